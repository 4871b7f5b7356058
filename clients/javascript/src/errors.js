/** A refusal: a code for programs and a sentence for people. Neither contains an answer or a secret. */
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

export const unsupported = (what) => refuse("unsupported", `this client cannot answer a study with ${what}`);
