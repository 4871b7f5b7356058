/** A folder of Node that keeps sealed reports: each is written whole beside its name, synced, and linked once. */
import { createHash } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

const ENDING = ".report.json";
const LOCK_MS = 50;

async function synced(path, text) {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(folder) {
  const held = await open(folder, "r");
  try {
    await held.sync();
  } finally {
    await held.close();
  }
}

const written = (record) => JSON.stringify(record, (_, value) => (value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("hex") } : value));
const read = (text) => JSON.parse(text, (_, value) => (value?.bytes ? Uint8Array.from(Buffer.from(value.bytes, "hex")) : value));

/** A store in a folder, for one process at a time; `exclusive` waits for another one that holds the folder. */
export async function inFolder(folder) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const pathOf = (id) => join(folder, createHash("sha256").update(id).digest("hex") + ENDING);
  const beside = () => join(folder, `.${crypto.randomUUID()}`);
  let last = Promise.resolve();

  async function all() {
    const names = (await readdir(folder)).filter((name) => name.endsWith(ENDING));
    return Promise.all(names.map(async (name) => read(await readFile(join(folder, name), "utf8"))));
  }

  async function locked(work) {
    const lock = join(folder, ".lock");
    for (;;) {
      try {
        await mkdir(lock);
        break;
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
        await new Promise((resolve) => setTimeout(resolve, LOCK_MS));
      }
    }
    try {
      return await work();
    } finally {
      await rm(lock, { recursive: true });
    }
  }

  async function place(record, put) {
    const temporary = beside();
    await synced(temporary, written(record));
    try {
      await put(temporary, pathOf(record.id));
      await syncFolder(folder);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  return {
    exclusive: (_, work) => (last = last.then(() => locked(work), () => locked(work))),
    async get(id) {
      try {
        return read(await readFile(pathOf(id), "utf8"));
      } catch (error) {
        if (error.code === "ENOENT") return undefined;
        throw error;
      }
    },
    add: (record) => place(record, link),
    update: (record) => place(record, rename),
    remove: (id) => rm(pathOf(id), { force: true }),
    runsOf: async (key) => (await all()).filter((each) => each.key === key).length,
  };
}
