/**
 * The questions of tests/ledger/test_every_account.py, put to every store of this client: what it stores is the record
 * of what was spent, and one code's run has one report. A store has no rounds, streams or withdrawals.
 */
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { inMemory, open } from "../privstats.js";
import { toHex } from "../src/bytes.js";
import { inFolder } from "../src/folder.js";
import { planOf, studyIn } from "./double.js";

const ANSWER = { age: [37], smokes: ["no"] };
const code = (wanted) => (error) => error.code === wanted || assert.fail(`${error.code}: ${error.message}`);
const RUNS = ["11", "22", "33"].map((byte) => byte.repeat(16));

/** A store with the browser's locks: one for each key, and a turn of the loop before each answer. */
function likeABrowser(under = inMemory()) {
  const last = new Map();
  const later = async (work) => {
    await new Promise(setImmediate);
    return work();
  };
  return {
    exclusive(key, work) {
      const next = (last.get(key) ?? Promise.resolve()).then(work, work);
      last.set(key, next);
      return next;
    },
    get: (id) => later(() => under.get(id)),
    add: (record) => later(() => under.add(record)),
    update: (record) => later(() => under.update(record)),
    remove: (id) => later(() => under.remove(id)),
    runsOf: (key) => later(() => under.runsOf(key)),
    sealed: (run) => later(() => under.sealed(run)),
  };
}

/**
 * By the function that makes a store: calls work with a way to open the same records again, as another tab or process
 * does. The browser's own store is played by one with its locks; tests/javascript/test_browser.py has the real one.
 */
const STORES = {
  async inMemory(work) {
    const store = inMemory();
    await work(async () => store);
  },
  async inBrowser(work) {
    const store = likeABrowser();
    await work(async () => store);
  },
  async inFolder(work) {
    const folder = await mkdtemp(join(tmpdir(), "privstats-"));
    try {
      await work(() => inFolder(folder));
    } finally {
      await rm(folder, { recursive: true });
    }
  },
};

/** A code's run on a device that has these records; every study here allows `most` runs. */
async function device(store, { run = RUNS[0], most = 2, study } = {}) {
  const found = study ?? (await studyIn({ run, ...allowing(most) }));
  const opened = await open(found.links[2], found.pins, { store, fetch: found.leader.fetch });
  return { ...found, opened, seal: () => opened.seal(opened.measure(ANSWER)) };
}

const allowing = (most) => ({ plan: { devices: { ...planOf([]).devices, most_runs: most } } });

for (const [name, within] of Object.entries(STORES)) {
  const ask = (question, work) => test(`${name}: ${question}`, () => within(work));

  ask("a report is sent again with identical bytes, and another is refused", async (records) => {
    const { opened, seal, leader } = await device(await records());
    const report = await seal();
    for (let time = 0; time < 2; time++) assert.equal(await opened.send(report), "sent");
    const other = { ...report, hash: "00".repeat(32), bytes: report.bytes.slice().fill(1) };
    await assert.rejects(opened.send(other), code("other_report"));
    assert.deepEqual([...leader.reports.values()], [toHex(report.bytes)]);
  });

  ask("what another process opens refuses the second report, too", async (records) => {
    const first = await device(await records());
    const report = await first.seal();
    const again = await device(await records(), { study: first });
    assert.deepEqual((await again.seal()).bytes, report.bytes);
    await first.opened.send(report);
    await assert.rejects(again.seal(), code("already_sent"));
  });

  ask("of many reports sealed at once one is stored", async (records) => {
    const first = await device(await records());
    const others = await Promise.all([0, 1, 2].map(async () => device(await records(), { study: first })));
    const sealed = await Promise.all([first, ...others].map(({ seal }) => seal()));
    assert.equal(new Set(sealed.map(({ hash }) => hash)).size, 1);
    assert.equal(sealed.filter(({ own }) => own).length, 1);
  });

  ask("a report that nothing stored is not sent", async (records) => {
    const { opened, leader } = await device(await records());
    const report = { hash: "00".repeat(32), bytes: new Uint8Array(8), own: true };
    await assert.rejects(opened.send(report), code("other_report"));
    assert.equal(leader.reports.size, 0);
  });

  ask("a stored report is of its study alone", async (records) => {
    const first = await device(await records());
    await first.seal();
    const store = await records();
    const other = await studyIn({ run: RUNS[0], ...allowing(1) });
    const found = await open(other.links[2], other.pins, { store, fetch: other.leader.fetch });
    await assert.rejects(found.seal(found.measure(ANSWER)), code("wrong_study"));
  });

  ask("a report that was removed is never sent, and a sent one stays sent at the leader", async (records) => {
    const { opened, seal, leader } = await device(await records());
    const removed = await seal();
    await opened.forget();
    await assert.rejects(opened.send(removed), code("other_report"));
    const report = await seal();
    assert.equal(await opened.send(report), "sent");
    await opened.forget();
    assert.equal(await opened.send(await seal()), "already_here");
    assert.deepEqual([...leader.reports.values()], [toHex(report.bytes)]);
  });

  ask("runs that are sealed at once stay within the runs that the plan allows", async (records) => {
    const store = await records();
    const devices = await Promise.all(RUNS.map((run) => device(store, { run, most: 1 })));
    const sealed = await Promise.allSettled(devices.map(({ seal }) => seal()));
    assert.equal(sealed.filter(({ status }) => status === "fulfilled").length, 1);
    for (const { reason } of sealed) assert.equal(reason?.code ?? "most_runs", "most_runs");
    const kept = await Promise.all(RUNS.map((run) => store.sealed(run)));
    assert.equal(kept.flat().length, 1);
  });

  ask("two processes that seal two runs at once stay within them, too", async (records) => {
    const stores = await Promise.all(RUNS.map(records));
    const apart = stores.map((store) => ({ ...bound(store), exclusive: (_, work) => work() }));
    const devices = await Promise.all(RUNS.map((run, place) => device(apart[place], { run, most: 1 })));
    const sealed = await Promise.allSettled(devices.map(({ seal }) => seal()));
    assert.ok(sealed.filter(({ status }) => status === "fulfilled").length <= 1);
    const kept = await Promise.all(RUNS.map((run) => stores[0].sealed(run)));
    assert.ok(kept.flat().length <= 1);
  });
}

/** A store's functions, without its lock. */
const bound = (store) =>
  Object.fromEntries(
    ["get", "add", "update", "remove", "runsOf", "sealed"].map((each) => [each, (...given) => store[each](...given)]),
  );

test("inBrowser: tabs count one code's runs in turn, and store none too many for a moment", async () => {
  const store = likeABrowser();
  const counts = [];
  const add = async (record) => {
    await store.add(record);
    counts.push(await store.runsOf(record.key));
  };
  const devices = await Promise.all(RUNS.map((run) => device({ ...store, add }, { run, most: 1 })));
  await Promise.allSettled(devices.map(({ seal }) => seal()));
  assert.deepEqual(counts, [1]);
});

test("every store of the client is asked", async () => {
  const folder = new URL("../src/", import.meta.url);
  const sources = (await readdir(folder)).filter((name) => name.endsWith(".js"));
  const texts = await Promise.all(sources.map((name) => readFile(new URL(name, folder), "utf8")));
  const stores = texts.filter((text) => /\brunsOf[:(]/.test(text) && /\bsealed[:(]/.test(text));
  const factories = stores.flatMap((text) => [...text.matchAll(/^export (?:async )?function (in\w+)/gm)]);
  assert.deepEqual(factories.map(([, name]) => name).sort(), Object.keys(STORES).sort());
});
