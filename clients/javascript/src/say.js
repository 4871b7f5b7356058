/** Writes sentences from a table of words, with their values filled in. */
import { ENGLISH } from "./english.js";
import { PrivstatsError, refuse } from "./errors.js";

/** Checks a table of words, and completes it with the English sentences that it lacks. */
export function wordsIn(table = {}) {
  if (table === null || typeof table !== "object") refuse("wrong_type", "words must be an object of sentences");
  for (const [key, sentence] of Object.entries(table)) {
    const strange = (hole) => !String(ENGLISH[key] ?? hole).includes(hole);
    if (typeof sentence !== "string" || !sentence || sentence.match(/{\w+}/g)?.some(strange))
      refuse("wrong_type", `words: "${key}" must be a text as in words.json`);
  }
  const complete = Object.freeze({ ...ENGLISH, ...table });
  if (!/^[a-z]{2,3}(-[^\W_]{2,8})*$/.test(complete.lang))
    refuse("wrong_type", `words: "lang" must be a tag such as "pt-BR"`);
  return complete;
}

export function say(words, key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (_, name) => shown(values[name], words.lang));
}

function shown(value, lang) {
  if (Array.isArray(value)) return new Intl.ListFormat(lang).format(value);
  return typeof value === "number" ? value.toLocaleString(lang, { maximumSignificantDigits: 15 }) : value;
}

/** Returns the sentence that a person reads for a refusal's code. */
export function sentenceOf(code, words = ENGLISH) {
  const key = `code.${code}`;
  return Object.hasOwn(words, key) ? words[key] : say(words, "code.else", { code });
}

/** Returns the sentence for an error. In English, a code without a sentence has the error's own message. */
export function sayError(error, words) {
  if (!(error instanceof PrivstatsError)) return sentenceOf("failed", words);
  const known = Object.hasOwn(words, `code.${error.code}`);
  return known || words.lang !== "en" ? sentenceOf(error.code, words) : error.message;
}
