/** The declared types are those of the sources: `tsc -p .` fails where a name, a parameter or a result is another. */
import * as declared from "../privstats.js"; // its declarations
import { OTHER } from "../src/cells.js";
import { PrivstatsError } from "../src/errors.js";
import { inBrowser, inMemory } from "../src/keep.js";
import { outbox } from "../src/outbox.js";
import { open } from "../src/run.js";
import { start } from "../src/page.js";

declare global {
  interface Document {
    readonly prerendering?: boolean;
  }
}

type Same<Left, Right> = [Left, Right] extends [Right, Left] ? true : never;

export const sources: typeof declared = { OTHER, PrivstatsError, inBrowser, inMemory, open, outbox };
export const page: typeof import("../page.js").start = start;
export const members: {
  run: Same<keyof Awaited<ReturnType<typeof open>>, keyof declared.Run>;
  outbox: Same<keyof ReturnType<typeof outbox>, keyof declared.Outbox>;
  store: Same<keyof ReturnType<typeof inMemory>, keyof declared.Store>;
  kept: Same<keyof declared.Kept, "id" | "run" | "study" | "key" | "index" | "state" | "hash" | "report">;
} = { run: true, outbox: true, store: true, kept: true };
