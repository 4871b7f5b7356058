/** The client of privstats studies: see README.md and docs/devices.md. */
export { OTHER } from "./src/cells.js";
export { PrivstatsError } from "./src/errors.js";
export { inBrowser, inMemory } from "./src/keep.js";
export { outbox } from "./src/outbox.js";
export { open } from "./src/run.js";
