/**
 * Stores sealed reports in a folder, for Node: each is written to a temporary file, synced, then linked to its name
 * once.
 */
import { createHash } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

const ENDING = ".report.json";

const hexed = (_, value) => (value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("hex") } : value);
const unhexed = (_, value) => (value?.bytes ? Uint8Array.from(Buffer.from(value.bytes, "hex")) : value);

async function synced(path, flags, text) {
  const file = await open(path, flags, 0o600);
  try {
    if (text !== undefined) await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

class FolderStore {
  #folder;
  #last = Promise.resolve();

  constructor(folder) {
    this.#folder = folder;
  }

  #path(id) {
    return join(this.#folder, createHash("sha256").update(id).digest("hex") + ENDING);
  }

  /** Writes a record to a temporary file, then puts it under its name by one system call. */
  async #place(record, put) {
    const temporary = join(this.#folder, `.${crypto.randomUUID()}`);
    await synced(temporary, "wx", JSON.stringify(record, hexed));
    try {
      await put(temporary, this.#path(record.id));
      await synced(this.#folder, "r");
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Runs work one by one within this process. If two processes seal, the report that is linked first counts. */
  exclusive(_, work) {
    return (this.#last = this.#last.then(work, work));
  }

  async get(id) {
    try {
      return JSON.parse(await readFile(this.#path(id), "utf8"), unhexed);
    } catch (error) {
      if (error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  add(record) {
    return this.#place(record, link);
  }

  update(record) {
    return this.#place(record, rename);
  }

  remove(id) {
    return rm(this.#path(id), { force: true });
  }

  async #all() {
    const names = (await readdir(this.#folder)).filter((name) => name.endsWith(ENDING));
    const texts = await Promise.all(names.map((name) => readFile(join(this.#folder, name), "utf8")));
    return texts.map((text) => JSON.parse(text, unhexed));
  }

  async runsOf(key) {
    return (await this.#all()).filter((each) => each.key === key).length;
  }

  async sealed(run) {
    return (await this.#all()).filter((each) => each.run === run && each.state === "sealed");
  }
}

/** Returns a store in a folder, which any number of processes may share. */
export async function inFolder(folder) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return new FolderStore(folder);
}
