import type { Store } from "../privstats.js";

/** A folder of Node that keeps sealed reports, for one process at a time. */
export declare function inFolder(folder: string): Promise<Store>;
