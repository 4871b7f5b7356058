import type { Words } from "./privstats.js";

/**
 * Fills a `main` that names a study (data-leader, data-run, data-study) and has a region of role "status", from the link
 * in the address bar, which is removed from it at once. `words` are the sentences in one language, as words.json has them.
 */
export declare function start(main?: HTMLElement | null, options?: { words?: Words }): void;
