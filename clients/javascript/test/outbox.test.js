import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { inMemory, open, outbox } from "../privstats.js";
import { ENGLISH } from "../src/english.js";
import { problem, studyIn } from "./double.js";

const ANSWER = { age: [37], smokes: ["no"] };
const MINUTE = 60_000;

/** A study with one answer that a person sealed, in a store; time stands still until a test moves it. */
async function sealedIn({ people = [2] } = {}) {
  const study = await studyIn();
  const store = inMemory();
  const reports = [];
  for (const index of people) {
    const run = await open(study.links[index], study.pins, { store, fetch: study.leader.fetch });
    reports.push(await run.seal(run.measure(ANSWER)));
  }
  study.leader.asked.length = 0;
  return { ...study, store, reports };
}

async function withClock(work) {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.now() });
  const heard = new EventTarget();
  Object.assign(globalThis, {
    addEventListener: heard.addEventListener.bind(heard),
    removeEventListener: heard.removeEventListener.bind(heard),
  });
  try {
    await work({ back: (name) => heard.dispatchEvent(new Event(name)) });
  } finally {
    mock.timers.reset();
    delete globalThis.addEventListener;
    delete globalThis.removeEventListener;
  }
}

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
};

/** Lets so much time go by, in steps of a second. */
async function pass(ms) {
  for (let gone = 0; gone < ms; gone += 1000) {
    mock.timers.tick(1000);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
  await settled();
}

/** An outbox, and the states that it tells, each once until another follows. */
function listened({ pins, store, leader }, options = {}) {
  const told = [];
  const onState = ({ state, code }) => {
    const line = code ? `${state} ${code}` : state;
    if (told.at(-1) !== line) told.push(line);
  };
  return { told, box: outbox(pins, { store, fetch: leader.fetch, onState, ...options }) };
}

test("what an earlier visit sealed is sent at load, without its link, and the bytes go", () =>
  withClock(async () => {
    const study = await sealedIn();
    const { told } = listened(study);
    await settled();
    assert.deepEqual(told, ["sending", "sent"]);
    assert.equal(study.leader.asked.length, 1, "no manifest is asked for");
    assert.deepEqual(await study.store.sealed(study.pins.run), []);
    listened(study);
    await settled();
    assert.equal(study.leader.asked.length, 1, "once");
  }));

test("an hour without a network is waited for, and what is told is true all the time", () =>
  withClock(async () => {
    const study = await sealedIn();
    study.leader.before = () => Promise.reject(new TypeError("offline"));
    const { told } = listened(study);
    await pass(60 * MINUTE);
    assert.deepEqual(told, ["sending", "waiting unreachable"]);
    const tries = study.leader.asked.length;
    assert.ok(tries > 100 && tries < 400, `${tries}: it is tried again by itself`);
    study.leader.before = () => null;
    await pass(MINUTE);
    assert.deepEqual(told.slice(2), ["sent"]);
  }));

for (const name of ["online", "visibilitychange"]) {
  test(`once patience has ended it says so; ${name} and "Send" try again`, () =>
    withClock(async ({ back }) => {
      const study = await sealedIn();
      study.leader.before = () => problem("busy", 503, { retry: true });
      const { told, box } = listened(study);
      await pass(121 * MINUTE);
      assert.deepEqual(told, ["sending", "waiting busy", "stopped busy"]);
      const tries = study.leader.asked.length;
      await pass(60 * MINUTE);
      assert.equal(study.leader.asked.length, tries, "stopped means stopped");
      back(name);
      await settled();
      assert.equal(study.leader.asked.length, tries + 1);
      await pass(121 * MINUTE);
      assert.equal(told.at(-1), "stopped busy");
      study.leader.before = () => null;
      await box.resume();
      assert.equal(told.at(-1), "sent");
    }));

  test(`${name} ends a pause`, () =>
    withClock(async ({ back }) => {
      const study = await sealedIn();
      study.leader.before = () => problem("busy", 503, { retry: true, after: 600 });
      const { told } = listened(study);
      await settled();
      study.leader.before = () => null;
      back(name);
      await settled();
      assert.deepEqual(told, ["sending", "waiting busy", "sent"]);
    }));
}

test("a server that takes a request and says nothing has 30 seconds", () =>
  withClock(async () => {
    const study = await sealedIn();
    study.leader.before = (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const { told } = listened(study);
    await settled();
    await pass(29_000);
    assert.deepEqual(told, ["sending"]);
    await pass(2_000);
    assert.deepEqual(told, ["sending", "waiting unreachable"]);
    const before = study.leader.asked.length;
    const refused = assert.rejects(open(study.links[3], study.pins, { fetch: study.leader.fetch }), (error) => {
      return error.code === "unreachable" && error.retry;
    });
    while (study.leader.asked.length === before) await new Promise(setImmediate); // keys are made by other threads
    await pass(31_000);
    await refused;
  }));

test("a refusal is told, and what is refused stays for a person to see", () =>
  withClock(async () => {
    const study = await sealedIn();
    study.leader.before = () => problem("closed", 410);
    const { told } = listened(study);
    await pass(5 * MINUTE);
    assert.deepEqual(told, ["sending", "refused closed"]);
    assert.equal(study.leader.asked.length, 1);
    assert.equal((await study.store.sealed(study.pins.run)).length, 1);
  }));

test("every answer that waits is sent, and none of another study", () =>
  withClock(async () => {
    const study = await sealedIn({ people: [0, 1] });
    listened({ ...study, pins: { ...study.pins, study: "ab".repeat(32) } });
    await settled();
    assert.equal(study.leader.asked.length, 0);
    listened(study);
    await settled();
    assert.deepEqual([...study.leader.reports.keys()].sort(), ["0", "1"]);
  }));

test("an answer that an earlier version stored is not sent without its link", async () => {
  const study = await sealedIn();
  const [{ context, ...before }] = await study.store.sealed(study.pins.run);
  assert.match(context, /^[0-9a-f]{64}$/);
  await study.store.update(before);
  await outbox(study.pins, { store: study.store, fetch: study.leader.fetch }).resume();
  assert.equal(study.leader.asked.length, 0);
  const run = await open(study.links[2], study.pins, { store: study.store, fetch: study.leader.fetch });
  assert.equal(await run.send(await run.kept()), "sent", "its context is the run's");
});

test("a second tab hears that the first one's answer stands", async () => {
  const study = await studyIn();
  const options = { store: inMemory(), fetch: study.leader.fetch };
  const tabs = await Promise.all([0, 1].map(() => open(study.links[2], study.pins, options)));
  const [first, second] = await Promise.all(tabs.map((tab) => tab.seal(tab.measure(ANSWER))));
  assert.deepEqual([first.own, second.own], [true, false]);
  assert.equal(first.hash, second.hash);
});

test("the sentences are those of these states", () => {
  assert.match(ENGLISH.waiting, /not sent yet.*tried again by itself.*keep this page open/);
  assert.match(ENGLISH.stopped, /is not sent: press “Send”.*online again or you come back/);
});
