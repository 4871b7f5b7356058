/** What a person reads of a refusal: to wait, to ask, or that it is done. */
const ASK = "Tell who invited you, and say the word";
const SENTENCES = {
  already_here: "An answer has already come from this invitation. If it was not yours, tell who invited you.",
  closed: "This study takes no more answers: it has closed. Nothing of yours was sent.",
  over: "This study is over: it takes no more answers.",
  stranger: "This invitation is not for this study. Ask who invited you for another one.",
  bad_signature: "This invitation is not for this study. Ask who invited you for another one.",
  unknown_run: "This study is not here. Ask who invited you for the right link.",
  no_panel: "This study has not begun. Come back later with the same invitation.",
};

export const WAITING =
  "Your answer is safe on this device and is not sent yet. It is tried again by itself; keep this page open.";

export const sentenceOf = (code) =>
  Object.hasOwn(SENTENCES, code) ? SENTENCES[code] : `This did not work. ${ASK} “${code}”.`;
