import type { Words } from "./privstats.js";

/**
 * Fills a `main` that names a study (data-leader, data-run, data-study) and has a region of role "status". It reads
 * the link in the address bar, and removes it from there at once. `words` has the sentences in one language, as in
 * words.json.
 */
export declare function start(main?: HTMLElement | null, options?: { words?: Words }): void;
