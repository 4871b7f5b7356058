import type { Store } from "../privstats.js";

/** A folder of Node that keeps sealed reports, which any number of processes may share. */
export declare function inFolder(folder: string): Promise<Store>;
