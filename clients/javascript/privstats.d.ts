/** A store of sealed reports. Your own store must add a record once, and never replace its bytes. */
export interface Store {
  /** Runs work under one name alone: a code's key, or a record's id. */
  exclusive<T>(name: string, work: () => Promise<T>): Promise<T>;
  get(id: string): Promise<Kept | undefined>;
  add(record: Kept): Promise<void>;
  update(record: Kept): Promise<unknown>;
  remove(id: string): Promise<unknown>;
  runsOf(key: string): Promise<number>;
  /** Returns the records of a run that are sealed and not known to be sent, which an outbox sends. */
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
  /** The hex of the report's context. Records of earlier versions have none, and an outbox does not send them. */
  context?: string;
  report: Uint8Array<ArrayBuffer> | null;
}

/** The page's pins: the leader's address, the run in hex, and the study's 64 hex digits. Never from a link. */
export interface Pins {
  leader: string;
  run: string;
  study: string;
}

/** Sentences by key, and `lang`: words.json has complete tables. Missing sentences are English. */
export type Words = Record<string, string>;

export interface Options {
  store?: Store;
  fetch?: typeof globalThis.fetch;
  now?: () => number;
  words?: Words;
  /** The languages of the plan's own texts that a person prefers; by default the browser's languages. */
  languages?: readonly string[];
}

export interface Word {
  about: "asked" | "sent" | "made" | "promise" | "known" | "final" | "here" | "page";
  /** The sentence's key in a table of words, and the values filled into it. */
  key: string;
  values: Record<string, string | number | string[]>;
  /** Whether a page shows it before the first question; other sentences are behind "more". */
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

/** Columns of a plan of counts; or X and y of a plan of classes or a regression. */
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
  /** False if another tab or visit sealed before: its answer counts, and this one is not sent. */
  readonly own: boolean;
}

export interface Run {
  readonly words: Word[];
  readonly fields: Field[];
  /** The plan's own title and the language of its texts, if it has texts. */
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
  /** Called with the reason to wait: the leader's code, or "unreachable", and an English sentence. */
  onWaiting?: (waiting: { code: string; text: string }) => void;
  /** Milliseconds until it gives up; by default two hours. */
  patience?: number;
}

export interface State {
  hash: string;
  index: number;
  /** "waiting" is tried again soon; "stopped" by `resume`, once the browser is online, or when a person returns. */
  state: "sending" | "waiting" | "stopped" | "refused" | "sent" | "already_here";
  code?: string;
}

export interface Outbox {
  /** Sends the sealed reports that are not being sent; ends when each has arrived, stopped or was refused. */
  resume(): Promise<void>;
  /** Stops listening to the browser; reports that are being sent continue. */
  close(): void;
}

/** A refusal: a code for programs, a sentence for people. */
export declare class PrivstatsError extends Error {
  constructor(code: string, sentence: string, options?: { retry?: boolean });
  readonly code: string;
  readonly retry: boolean;
}

/** Opens an invitation (a link, its fragment, or typed text). It generates, stores and sends nothing. */
export declare function open(invitation: string, pins: Pins, options?: Options): Promise<Run>;
/** Sends every stored report of the run, without its link: at once, once online, and when a person returns. */
export declare function outbox(
  pins: Pins,
  options?: Pick<Options, "store" | "fetch"> & { patience?: number; onState?: (state: State) => void },
): Outbox;
export declare function inBrowser(): Store;
export declare function inMemory(): Store;
/** The value of "another answer" in a category with `other`. */
export declare const OTHER: string;
