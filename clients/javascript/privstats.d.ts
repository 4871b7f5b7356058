/** Where sealed reports are kept. A store of one's own adds a record once and never replaces its bytes. */
export interface Store {
  exclusive<T>(id: string, work: () => Promise<T>): Promise<T>;
  get(id: string): Promise<Kept | undefined>;
  add(record: Kept): Promise<void>;
  update(record: Kept): Promise<unknown>;
  remove(id: string): Promise<unknown>;
  runsOf(key: string): Promise<number>;
}

export interface Kept {
  id: string;
  run: string;
  study: string;
  key: string;
  index: number;
  state: "sealed" | "sent";
  hash: string;
  report: Uint8Array | null;
}

/** The page's own: the leader's address, the run in hex, and the study's 64 hex digits. Never from a link. */
export interface Pins {
  leader: string;
  run: string;
  study: string;
}

export interface Options {
  store?: Store;
  fetch?: typeof globalThis.fetch;
  now?: () => number;
}

export interface Word {
  about: "asked" | "sent" | "made" | "promise" | "known" | "final" | "here" | "page";
  text: string;
}

export type Field =
  | { name: string; kind: "number"; optional: boolean; min?: number; max?: number }
  | { name: string; kind: "choice"; optional: boolean; choices: { label: string; value: string | number }[] };

/** Columns of a plan of counts; or X and y of a plan of classes or of a regression. */
export type Records =
  | { [column: string]: (string | number | null)[] }
  | { X: (number[] | Float64Array)[]; y: (string | number | number[])[] };

export interface Measured {
  vector: Float64Array;
  records: number;
}

export interface Report {
  readonly hash: string;
  readonly bytes: Uint8Array;
}

export interface Run {
  readonly words: Word[];
  readonly fields: Field[];
  readonly index: number;
  readonly study: string;
  readonly closes: number;
  state(): Promise<"new" | "sealed" | "sent">;
  measure(records: Records): Measured;
  seal(measured: Measured): Promise<Report>;
  kept(): Promise<Report | null>;
  send(
    report: Report,
    options?: { signal?: AbortSignal; onWaiting?: (text: string) => void; patience?: number },
  ): Promise<"sent" | "already_here">;
  forget(): Promise<void>;
}

/** A refusal: a code for programs, a sentence for people. */
export declare class PrivstatsError extends Error {
  constructor(code: string, sentence: string, options?: { retry?: boolean });
  readonly code: string;
  readonly retry: boolean;
}

/** Opens an invitation (a link, its fragment, or what was typed). Nothing is drawn, kept or sent. */
export declare function open(invitation: string, pins: Pins, options?: Options): Promise<Run>;
export declare function inBrowser(): Store;
export declare function inMemory(): Store;
/** The value of "another answer" in a category with `other`. */
export declare const OTHER: string;
