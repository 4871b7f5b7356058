/**
 * Stores sealed reports: one record for each run and key, added once and never replaced, so that every send has the
 * same bytes. A store has `exclusive`, `get`, `add`, `update`, `remove`, `runsOf` and `sealed`. `exclusive` locks one
 * name: a code's while its runs are counted and one is added, and a record's while that is changed. `folder.js` has a
 * store for Node.
 */
import { refuse } from "./errors.js";

const [NAME, REPORTS] = ["privstats", "reports"];

/** Returns the browser's store, IndexedDB, which one tab changes at a time. */
export function inBrowser() {
  const all = async () => (await transaction("readonly", (store) => store.getAll())) ?? [];
  return {
    exclusive(id, work) {
      if (!globalThis.navigator?.locks)
        refuse("no_storage", "this browser cannot store an answer safely: use another one");
      return navigator.locks.request(`${NAME}/${id}`, work);
    },
    get: (id) => transaction("readonly", (store) => store.get(id)),
    async add(record) {
      // nothing waits for this: a browser may ask the person, who may never answer
      navigator.storage?.persist?.().catch(() => {});
      await transaction("readwrite", (store) => store.add(record));
    },
    update: (record) => transaction("readwrite", (store) => store.put(record)),
    remove: (id) => transaction("readwrite", (store) => store.delete(id)),
    runsOf: async (key) => (await all()).filter((each) => each.key === key).length,
    sealed: async (run) => (await all()).filter((each) => each.run === run && each.state === "sealed"),
  };
}

/**
 * Returns whether the database is missing. Reading must not create it, so that a mail scanner that opens a link leaves
 * nothing.
 */
const isAbsent = async () => indexedDB.databases && !(await indexedDB.databases()).some(({ name }) => name === NAME);

async function transaction(mode, work) {
  try {
    if (mode === "readonly" && (await isAbsent())) return undefined;
    const database = await opened();
    try {
      return await new Promise((resolve, reject) => {
        const held = database.transaction(REPORTS, mode, { durability: "strict" });
        const request = work(held.objectStore(REPORTS));
        held.oncomplete = () => resolve(request.result);
        held.onabort = held.onerror = () => reject(held.error);
      });
    } finally {
      database.close();
    }
  } catch {
    return refuse(
      "no_storage",
      "this browser stores nothing here (a private window?), so nothing was sent: use another window",
    );
  }
}

function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(REPORTS, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = request.onblocked = () => reject(request.error);
  });
}

/** Returns a store in memory, for tests, and for a device that can be asked again. */
export function inMemory() {
  const records = new Map();
  /** @type {Promise<any>} */
  let last = Promise.resolve();
  return {
    exclusive: (_, work) => (last = last.then(work, work)),
    get: async (id) => records.get(id),
    async add(record) {
      if (records.has(record.id)) throw new Error("stored already");
      records.set(record.id, record);
    },
    update: async (record) => void records.set(record.id, record),
    remove: async (id) => void records.delete(id),
    runsOf: async (key) => [...records.values()].filter((each) => each.key === key).length,
    sealed: async (run) => [...records.values()].filter((each) => each.run === run && each.state === "sealed"),
  };
}
