/** Where sealed reports are kept. A store of one's own adds a record once and never replaces its bytes. */
export interface Store {
  exclusive<T>(id: string, work: () => Promise<T>): Promise<T>;
  get(id: string): Promise<Kept | undefined>;
  add(record: Kept): Promise<void>;
  update(record: Kept): Promise<unknown>;
  remove(id: string): Promise<unknown>;
  runsOf(key: string): Promise<number>;
  /** The records of a run that are sealed and not known to be sent: what an outbox sends. */
  sealed(run: string): Promise<Kept[]>;
}

export interface Kept {
  id: string;
  run: string;
  study: string;
  key: string;
  index: number;
  state: "sealed" | "sent";
  hash: string;
  report: Uint8Array<ArrayBuffer> | null;
}

/** The page's own: the leader's address, the run in hex, and the study's 64 hex digits. Never from a link. */
export interface Pins {
  leader: string;
  run: string;
  study: string;
}

/** Sentences by their key, and `lang`: words.json has whole tables. English stands in for what is missing. */
export type Words = Record<string, string>;

export interface Options {
  store?: Store;
  fetch?: typeof globalThis.fetch;
  now?: () => number;
  words?: Words;
  /** Which of the plan's own texts a person reads best; the browser's languages, if left out. */
  languages?: readonly string[];
}

export interface Word {
  about: "asked" | "sent" | "made" | "promise" | "known" | "final" | "here" | "page";
  /** The sentence's key in a table of words, and what stands in its holes. */
  key: string;
  values: Record<string, string | number | string[]>;
  /** Whether a page shows it before the first question; the rest stands behind "more". */
  brief: boolean;
  text: string;
}

interface Asked {
  name: string;
  question: string;
  help?: string;
  optional: boolean;
}

export interface Choice {
  label: string;
  value: string | number;
}

export type Field =
  (Asked & { kind: "number"; min?: number; max?: number }) | (Asked & { kind: "choice"; choices: Choice[] });

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
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** False where another tab or visit sealed before: its answer stands, and this one is not sent. */
  readonly own: boolean;
}

export interface Run {
  readonly words: Word[];
  readonly fields: Field[];
  /** The plan's own title and the language of its texts, where it has them. */
  readonly title: string | undefined;
  readonly language: string | undefined;
  readonly index: number;
  readonly study: string;
  readonly closes: number;
  state(): Promise<"new" | "sealed" | "sent">;
  measure(records: Records): Measured;
  seal(measured: Measured): Promise<Report>;
  kept(): Promise<Report | null>;
  send(report: Report, options?: Sending): Promise<"sent" | "already_here">;
  forget(): Promise<void>;
}

export interface Sending {
  signal?: AbortSignal;
  /** Why it waits: the leader's code, or "unreachable"; and the sentence in English. */
  onWaiting?: (waiting: { code: string; text: string }) => void;
  /** Milliseconds until it gives up; two hours, if left out. */
  patience?: number;
}

export interface State {
  hash: string;
  index: number;
  /** "waiting" is tried again by itself; "stopped" is tried again by `resume`, once online, and on coming back. */
  state: "sending" | "waiting" | "stopped" | "refused" | "sent" | "already_here";
  code?: string;
}

export interface Outbox {
  /** Sends what is sealed and not on its way; ends when all of it has arrived, stopped or was refused. */
  resume(): Promise<void>;
  /** Hears no more of the browser; what is on its way goes on. */
  close(): void;
}

/** A refusal: a code for programs, a sentence for people. */
export declare class PrivstatsError extends Error {
  constructor(code: string, sentence: string, options?: { retry?: boolean });
  readonly code: string;
  readonly retry: boolean;
}

/** Opens an invitation (a link, its fragment, or what was typed). Nothing is drawn, kept or sent. */
export declare function open(invitation: string, pins: Pins, options?: Options): Promise<Run>;
/** Sends every sealed report of the run that this browser keeps, without its link: at once, once online, on coming back. */
export declare function outbox(
  pins: Pins,
  options?: Pick<Options, "store" | "fetch"> & { patience?: number; onState?: (state: State) => void },
): Outbox;
export declare function inBrowser(): Store;
export declare function inMemory(): Store;
/** The value of "another answer" in a category with `other`. */
export declare const OTHER: string;
