/**
 * The English sentences of a study and of refusals. words.json has them in every language, and the page's own
 * sentences.
 */
export const ENGLISH = {
  lang: "en",
  "asked.counts": "{asked}. Only the group that your answer falls into is counted.",
  "asked.numbers": "{asked}. Your number and its square are added up.",
  "asked.sums": "Sums over {features} numbers of each record.",
  "sent.two":
    "One message, locked on this device. It can be read only if {all} both work together against you, or by " +
    "somebody who keeps it until today’s locks are broken.",
  "sent.more":
    "One message, locked on this device. It can be read only if {all} all work together against you, or by " +
    "somebody who keeps it until today’s locks are broken.",
  made: "They publish only totals, over at least {least} answers.",
  promise:
    "Noise is added to the totals: whatever you answer, no result becomes more than {factor} times as likely, except " +
    "with a chance of 1 in {chance} (ε = {epsilon}).",
  "promise.record":
    "Noise is added to the totals: whatever a record of this device says (per record), no result becomes more than " +
    "{factor} times as likely, except with a chance of 1 in {chance} (ε = {epsilon}).",
  "promise.pure":
    "Noise is added to the totals: whatever you answer, no result becomes more than {factor} times as likely " +
    "(ε = {epsilon}).",
  "promise.record.pure":
    "Noise is added to the totals: whatever a record of this device says (per record), no result becomes more than " +
    "{factor} times as likely (ε = {epsilon}).",
  exact: "The totals are exact. Anyone who knows all other answers could work out yours.",
  trusted: "{leader} sees the exact totals, and is trusted with them.",
  times: "All {runs} times that you may be asked are counted together.",
  known: "That you answered is not secret: {others} can see which invitations were used, and when.",
  final: "Once sent, an answer cannot be changed or called back, not even before the study closes.",
  here: "This browser remembers that an answer was sent, until you choose “Forget”.",
  page: "This page comes from {page}, who must not change it to read answers.",
  "page.registrar": "This page comes from {page}, who could read your answer by changing it, and is trusted not to.",
  "cell.under": "under {high}",
  "cell.upTo": "up to {high}",
  "cell.more": "{low} or more",
  "cell.over": "over {low}",
  "cell.between": "{low} to {high}",
  "cell.other": "another answer",
  "cell.missing": "rather not say",
  waiting: "Your answer is safe on this device and is not sent yet. It is tried again by itself; keep this page open.",
  stopped:
    "Your answer is safe on this device and is not sent: press “Send” to try again. It is also tried when this device " +
    "is online again or you come back to this page.",
  "code.already_here":
    "An answer has already come from this invitation. If it was not yours, tell the people who invited you.",
  "code.closed": "This study takes no more answers: it has closed. Nothing of yours was sent.",
  "code.over": "This study is over: it takes no more answers.",
  "code.stranger": "This invitation is not for this study. Ask the people who invited you for another one.",
  "code.bad_signature": "This invitation is not for this study. Ask the people who invited you for another one.",
  "code.unknown_run": "This study is not here. Ask the people who invited you for the right link.",
  "code.no_panel": "This study has not begun. Come back later with the same invitation.",
  "code.unreachable": "The study’s server cannot be reached: are you online?",
  "code.clock": "The clock of this device is wrong by more than an hour: set it, then come back.",
  "code.else": "This did not work. Tell the people who invited you, and say the word “{code}”.",
};
