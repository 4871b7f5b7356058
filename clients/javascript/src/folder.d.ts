import type { Store } from "../privstats.js";

/** Returns a store in a folder, for Node, which any number of processes may share. */
export declare function inFolder(folder: string): Promise<Store>;
