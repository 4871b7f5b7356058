/** Sentences of a table of words, with their values in place. */
import { ENGLISH } from "./english.js";
import { PrivstatsError, refuse } from "./errors.js";

/** A table of one's own, checked; English stands in for what it lacks. */
export function wordsIn(table = {}) {
  if (table === null || typeof table !== "object") refuse("wrong_type", "words must be an object of sentences");
  for (const [key, sentence] of Object.entries(table)) {
    const strange = (hole) => !String(ENGLISH[key] ?? hole).includes(hole);
    if (typeof sentence !== "string" || !sentence || sentence.match(/{\w+}/g)?.some(strange))
      refuse("wrong_type", `words: "${key}" must be a text as words.json has it`);
  }
  const whole = Object.freeze({ ...ENGLISH, ...table });
  if (!/^[a-z]{2,3}(-[^\W_]{2,8})*$/.test(whole.lang)) refuse("wrong_type", 'words: "lang" must be a tag such as "pt-BR"');
  return whole;
}

export function say(words, key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (_, name) => shown(values[name], words.lang));
}

function shown(value, lang) {
  if (Array.isArray(value)) return new Intl.ListFormat(lang).format(value);
  return typeof value === "number" ? value.toLocaleString(lang, { maximumSignificantDigits: 15 }) : value;
}

/** What a person reads of a refusal: to wait, to ask, or that it is done. */
export function sentenceOf(code, words = ENGLISH) {
  const key = `code.${code}`;
  return Object.hasOwn(words, key) ? words[key] : say(words, "code.else", { code });
}

/** The same of an error; what only programs meet has its sentence in English. */
export function sayError(error, words) {
  if (!(error instanceof PrivstatsError)) return sentenceOf("failed", words);
  const known = Object.hasOwn(words, `code.${error.code}`);
  return known || words.lang !== "en" ? sentenceOf(error.code, words) : error.message;
}
