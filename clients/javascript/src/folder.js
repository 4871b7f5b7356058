/** A folder of Node that keeps sealed reports: each is written whole beside its name, synced, and linked once. */
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

  /** The record in a file of its own, then at its place by one call of the system. */
  async #place(record, put) {
    const beside = join(this.#folder, `.${crypto.randomUUID()}`);
    await synced(beside, "wx", JSON.stringify(record, hexed));
    try {
      await put(beside, this.#path(record.id));
      await synced(this.#folder, "r");
    } finally {
      await rm(beside, { force: true });
    }
  }

  /** One after the other in this process; of two processes the one whose report is linked first has sealed. */
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

/** A store in a folder, which any number of processes may share. */
export async function inFolder(folder) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return new FolderStore(folder);
}
