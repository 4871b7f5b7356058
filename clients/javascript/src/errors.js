/** A refusal: a code for programs and a sentence for people. Neither ever holds an answer or a secret. */
export class PrivstatsError extends Error {
  constructor(code, sentence, { retry = false } = {}) {
    super(sentence);
    this.name = "PrivstatsError";
    this.code = code;
    this.retry = retry;
  }
}

export function refuse(code, sentence) {
  throw new PrivstatsError(code, sentence);
}

/** Tells of every key of a table that is not known. */
export const others = (table, known, tell) => Object.keys(table).forEach((key) => known.includes(key) || tell(key));

export const unsupported = (what) => refuse("unsupported", `this client cannot answer a study with ${what}`);
