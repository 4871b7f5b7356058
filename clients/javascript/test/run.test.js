import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join as pathJoin } from "node:path";
import { test } from "node:test";

import { inMemory, open } from "../privstats.js";
import { fromHex, publicOf, sha256, toHex, u8, utf8 } from "../src/bytes.js";
import { cellsOf } from "../src/cells.js";
import { inFolder } from "../src/folder.js";
import { readLink, seedOf, studyOf } from "../src/link.js";
import { requirePerson, watchPerson } from "../src/person.js";
import { isLowOrder } from "../src/plan.js";
import { deliver } from "../src/send.js";
import { ENGLISH } from "../src/english.js";
import { wordsIn } from "../src/say.js";
import { oneIn, wordsOf } from "../src/words.js";
import { base32, boxKeyOf, codeOf, linkOf, planOf, problem, SCHEMA, studyIn } from "./double.js";

const ANSWER = { age: [37], smokes: ["no"] };
const code = (wanted) => (error) => error.code === wanted || assert.fail(`${error.code}: ${error.message}`);

async function opened(how = {}, { index = 2, store = inMemory(), pins = {}, now } = {}) {
  const study = await studyIn(how);
  how.change?.(study.manifest);
  const options = { store, fetch: study.leader.fetch, ...(now ? { now } : {}) };
  return { ...study, store, run: () => open(study.links[index], { ...study.pins, ...pins }, options) };
}

test("an answer is measured, sealed once and sent", async () => {
  const { run, leader, links } = await opened();
  const opened_ = await run();
  assert.equal(opened_.index, 2);
  const report = await opened_.seal(opened_.measure(ANSWER));
  assert.equal(await opened_.send(report), "sent");
  assert.equal(leader.reports.get("2"), toHex(report.bytes));
  assert.equal(await opened_.state(), "sent");
  const put = leader.asked.at(-1);
  assert.equal(put.headers["Privstats-Signature"], toHex(report.bytes.subarray(-64)));
  assert.equal(put.keepalive, true);
  const told = JSON.stringify(leader.asked.map(({ url, headers }) => [url, headers]));
  assert.ok(!told.includes(links[2].split(".").at(-2)), "the code is in no request");
});

test("a second seal gives the first bytes, whatever is measured", async () => {
  const { run } = await opened();
  const first = await run();
  const report = await first.seal(first.measure(ANSWER));
  const second = await run();
  assert.equal(await second.state(), "sealed");
  assert.deepEqual((await second.seal(second.measure({ age: [80], smokes: ["yes"] }))).bytes, report.bytes);
  assert.deepEqual((await second.kept()).bytes, report.bytes);
});

test("what was measured is sealed once: a second seal of it would be of zeros", async () => {
  const store = inMemory();
  const full = { ...store, add: () => Promise.reject(new Error("full")) };
  const { run } = await opened({}, { store: full });
  const device = await run();
  const measured = device.measure(ANSWER);
  await assert.rejects(device.seal(measured), /full/);
  await assert.rejects(device.seal(measured), code("measured_again"));
  await assert.rejects(device.seal({ vector: new Float64Array(12), records: 1 }), code("measured_again"));
  await assert.rejects(device.seal(device.measure(ANSWER)), /full/);
});

test("an answer that has arrived is not said to be lost where the store fails then", async () => {
  const store = inMemory();
  const { run } = await opened({}, { store: { ...store, update: () => Promise.reject(new Error("gone")) } });
  const device = await run();
  const report = await device.seal(device.measure(ANSWER));
  assert.equal(await device.send(report), "sent");
  assert.equal(await device.state(), "sealed");
  assert.equal(await device.send(await device.kept()), "sent");
});

test("an answer kept for another study of the same run is not sent for this one", async () => {
  const store = inMemory();
  const { run } = await opened({}, { store });
  const device = await run();
  await device.seal(device.measure(ANSWER));
  const other = await (await opened({ members: [7, 8] }, { store })).run();
  await assert.rejects(other.seal(other.measure(ANSWER)), code("wrong_study"));
  await assert.rejects(other.kept(), code("wrong_study"));
});

test("an answer that was sealed to other keys of the same study is not sent", async () => {
  const store = inMemory();
  const { run, pins } = await opened({}, { store });
  const device = await run();
  await device.seal(device.measure(ANSWER));
  const boxKeys = await Promise.all([5, 6].map((byte) => boxKeyOf(new Uint8Array(32).fill(byte))));
  const other = await opened({ boxKeys }, { store });
  assert.deepEqual(other.pins, pins);
  const again = await other.run();
  await assert.rejects(again.kept(), code("wrong_study"));
  await assert.rejects(again.seal(again.measure(ANSWER)), code("wrong_study"));
  assert.equal(other.leader.reports.size, 0);
});

test("a report other than the stored one is not sent, before the stored one has arrived and after it", async () => {
  const { run, leader } = await opened();
  const device = await run();
  const first = await device.seal(device.measure(ANSWER));
  await device.forget();
  await assert.rejects(device.send(first), code("other_report"));
  const second = await device.seal(device.measure(ANSWER));
  await assert.rejects(device.send(first), code("other_report"));
  assert.equal(await device.send(second), "sent");
  await assert.rejects(device.send(first), code("other_report"));
  assert.equal(await device.send(second), "sent");
  assert.deepEqual([...leader.reports.values()], [toHex(second.bytes)]);
});

test("an answer is not sent where the store cannot say which one it is", async () => {
  const store = inMemory();
  let failing = false;
  const get = (id) => (failing ? Promise.reject(new Error("gone")) : store.get(id));
  const { run, leader } = await opened({}, { store: { ...store, get } });
  const device = await run();
  const report = await device.seal(device.measure(ANSWER));
  failing = true;
  await assert.rejects(device.send(report), /gone/);
  assert.equal(leader.reports.size, 0);
});

test("two seals at once give one report", async () => {
  const { run } = await opened();
  const tabs = await Promise.all([run(), run()]);
  const reports = await Promise.all(tabs.map((tab) => tab.seal(tab.measure(ANSWER))));
  assert.deepEqual(reports[0].bytes, reports[1].bytes);
});

test("two people at one device send two answers", async () => {
  const study = await studyIn();
  const options = { store: inMemory(), fetch: study.leader.fetch };
  const reports = [];
  for (const index of [0, 5]) {
    const run = await open(study.links[index], study.pins, options);
    reports.push(await run.seal(run.measure(ANSWER)));
    await run.send(reports.at(-1));
  }
  assert.notDeepEqual(reports[0].bytes, reports[1].bytes);
  assert.equal(study.leader.reports.size, 2);
});

test("one code seals under one number", async () => {
  const { run, pins, leader, store } = await opened();
  const first = await run();
  await first.seal(first.measure(ANSWER));
  const other = await open(await linkOf(3, codeOf(2)), pins, { store, fetch: leader.fetch });
  await assert.rejects(other.seal(other.measure(ANSWER)), code("other_index"));
});

test("after the answer has arrived its bytes are gone and a new seal is refused", async () => {
  const { run, store } = await opened();
  const first = await run();
  await first.send(await first.seal(first.measure(ANSWER)));
  const second = await run();
  await assert.rejects(second.seal(second.measure(ANSWER)), code("already_sent"));
  assert.equal((await recordOf(store)).report, null);
  await second.forget();
  assert.equal(await second.state(), "new");
});

/** What a store holds of the third person's answer. */
async function recordOf(store) {
  const name = await sha256(utf8("privstats/devices/1/kept"), u8(0), await seedOf(codeOf(2)));
  return store.get(`${"11".repeat(16)}/${toHex(name)}`);
}

test("a code is used for no more runs than the plan says", async () => {
  const store = inMemory();
  for (const [place, run] of ["11", "22", "33"].entries()) {
    const { run: start } = await opened({ run: run.repeat(16) }, { store });
    const device = await start();
    const sealed = device.seal(device.measure(ANSWER));
    if (place < 2) await sealed;
    else await assert.rejects(sealed, code("most_runs"));
  }
});

const flipped = (hex, place) =>
  hex.slice(0, place) + (parseInt(hex[place], 16) ^ 1).toString(16) + hex.slice(place + 1);

test("nothing is drawn for a manifest with one thing wrong", async () => {
  const changes = {
    plan: (m) => (m.plan = m.plan.replace('"edges":[0,', '"edges":[1,')),
    question: (m) => (m.plan = m.plan.replace("smokes", "smoked")),
    roster: (m) => (m.roster = flipped(m.roster, 5)),
    run: (m) => (m.run = flipped(m.run, 3)),
    "another run with its own study": (m) => (m.run = "22".repeat(16)),
    ring: (m) => (m.segments[0][1] += 1),
    "ring's size": (m) => (m.segments[0][0] += 1),
    clients: (m) => (m.clients += 1),
    least: (m) => (m.min_survivors -= 1),
    colluders: (m) => (m.colluders -= 1),
    noise: (m) => (m.noisy_helpers = false),
    panel: (m) => (m.panel = [...m.panel].reverse()),
    offers: (m) => m.offers.reverse(),
    "an offer less": (m) => m.offers.pop(),
    "an offer twice": (m) => (m.offers[1] = m.offers[0]),
    version: (m) => (m.version = 2),
    "no segment": (m) => (m.segments[0] = null),
    "no close": (m) => delete m.closes,
    "a close in words": (m) => (m.closes = "2033-05-18"),
    "no segments": (m) => delete m.segments,
    ...Object.fromEntries(
      [1, 20, 70, 140, 200].map((at) => [`offer's digit ${at}`, (m) => (m.offers[1] = flipped(m.offers[1], at))]),
    ),
  };
  for (const [name, change] of Object.entries(changes)) {
    const { run, store, leader } = await opened({ change });
    const drawn = crypto.getRandomValues;
    crypto.getRandomValues = () => assert.fail(`${name}: a secret was drawn`);
    try {
      await assert.rejects(run(), (error) => error.code === "wrong_study" || assert.fail(`${name}: ${error}`));
    } finally {
      crypto.getRandomValues = drawn;
    }
    assert.equal(await store.runsOf(""), 0);
    assert.equal(leader.asked.length, 1, name);
  }
});

test("a panel of other keys, well signed, is refused: the page names the study, and no link or leader does", async () => {
  const theirs = await studyIn({ members: [7, 8] });
  const run = (pins) => open(theirs.links[0], pins, { store: inMemory(), fetch: theirs.leader.fetch });
  assert.equal((await run(theirs.pins)).index, 0);
  await assert.rejects(run((await studyIn()).pins), code("wrong_study"));
});

test("a key of low order is refused, however it is signed", async () => {
  for (const low of [new Uint8Array(32), Uint8Array.of(1, ...new Uint8Array(31))]) {
    const { run } = await opened({ boxKeys: [undefined, low] });
    await assert.rejects(run(), code("wrong_study"));
  }
  const { run, manifest } = await opened();
  const same = fromHex(manifest.offers[0].slice(66, 130));
  await assert.rejects((await opened({ boxKeys: [same, same] })).run(), code("wrong_study"));
  await run();
});

test("the 14 encodings of points of low order are known", () => {
  const prime = (low) => Uint8Array.of(low, ...new Uint8Array(30).fill(255), 127);
  const small = (low) => Uint8Array.of(low, ...new Uint8Array(31));
  const eighth = fromHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
  const minus = fromHex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a");
  const encodings = [small(0), small(1), prime(0xec), prime(0xed), prime(0xee), eighth, minus];
  for (const key of encodings) {
    const signed = Uint8Array.from(key);
    signed[31] |= 128;
    assert.ok(isLowOrder(key) && isLowOrder(signed), toHex(key));
  }
  for (const key of [small(2), prime(0xeb), prime(0xef), Uint8Array.from(eighth, (byte, i) => (i ? byte : byte ^ 1))]) {
    assert.ok(!isLowOrder(key), toHex(key));
  }
});

test("keys that have ended take nothing", async () => {
  const { run } = await opened({ until: Math.floor(Date.now() / 1000) - 5 });
  await assert.rejects(run(), code("ended"));
});

test("a clock an hour off is told so", async () => {
  const { run, leader } = await opened({}, { now: () => Date.now() + 2 * 3_600_000 });
  await assert.rejects(run(), code("clock"));
  assert.equal(leader.asked.length, 1);
});

test("plans that this client does not know are refused by name", async () => {
  const privacy = (changes) => ({
    adjacency: "add-remove",
    delta: 1e-6,
    epsilon: 1,
    max_records_per_client: 1,
    model: "panel",
    unit: "client",
    ...changes,
  });
  const wrong = [
    { devices: undefined },
    { validity: {} },
    { published: { sha256: "" } },
    { privacy: privacy({ client_clip: 2 }) },
    { privacy: privacy({ model: "distributed" }) },
    { privacy: privacy({ model: "central" }) },
    { privacy: privacy({ model: "local" }) },
    { privacy: privacy({ unit: "record" }) },
    { privacy: { model: "none" } },
    { version: 2 },
    { cohort: { ...planOf([]).cohort, more: 1 } },
    { aggregation: { ...planOf([]).aggregation, spare_bits: 1 } },
  ];
  for (const plan of wrong)
    await assert.rejects((await opened({ plan })).run(), code("unsupported"), JSON.stringify(plan));
  const huge = await studyIn();
  const text = huge.manifest.plan.replace('"edges":[0,', '"edges":[9007199254740993,');
  await assert.rejects((await opened({ text })).run(), code("unsupported"));
});

test("a text of a plan may have the sign that divides accepted values", async () => {
  const { run } = await opened({ plan: { devices: { ...planOf([]).devices, page: "Library|Kiel" } } });
  assert.match((await run()).words.map(({ text }) => text).join(" "), /from Library\|Kiel/);
});

test("a plan allows so many records of one device", async () => {
  const { run } = await opened();
  const device = await run();
  assert.throws(() => device.measure({ age: [1, 2], smokes: ["no", "yes"] }), code("too_many_records"));
});

test("a link is read to its last letter", async () => {
  const link = await linkOf(7, codeOf(3));
  assert.deepEqual(await readLink(link), { index: 7, code: codeOf(3) });
  const fragment = link.split("#")[1];
  assert.deepEqual(await readLink(` ${fragment.toLowerCase().slice(0, 10)} - ${fragment.slice(10)} `), {
    index: 7,
    code: codeOf(3),
  });
  for (let at = 0; at < fragment.length; at++) {
    const letter = fragment[at] === "A" ? "B" : "A";
    await assert.rejects(
      readLink(`#${fragment.slice(0, at)}${letter}${fragment.slice(at + 1)}`),
      code("bad_link"),
      `letter ${at}`,
    );
  }
  for (const text of [
    "",
    "#",
    "#1.2.3.4",
    `#2${fragment.slice(1)}`,
    `#01.${fragment}`,
    undefined,
    fragment.slice(0, -1),
  ]) {
    await assert.rejects(readLink(text), code("bad_link"), String(text));
  }
  assert.equal(base32(Uint8Array.of(255)), "74");
});

test("links and studies are those of Python, spelling by spelling", async () => {
  const frozen = JSON.parse(
    await readFile(new URL("../../../tests/contrib/http/vectors/invitations.json", import.meta.url), "utf8"),
  );
  for (const each of frozen.codes) {
    for (const text of [each.fragment, `#${each.fragment}`, ...each.spellings]) {
      const found = await readLink(text);
      assert.deepEqual([found.index, toHex(found.code)], [each.index, each.code], text);
      const seed = await seedOf(found.code);
      assert.deepEqual([toHex(seed), toHex(await publicOf(seed))], [each.seed, each.public]);
    }
  }
  for (const text of frozen.refused) await assert.rejects(readLink(text), code("bad_link"), text);
  for (const { run, plan, roster, study } of frozen.studies) {
    assert.equal(toHex(await studyOf(fromHex(run), fromHex(plan), fromHex(roster))), study);
  }
  assert.ok(frozen.codes.length && frozen.refused.length && frozen.studies.length);
});

test("refusals that ask to wait are waited for, with the same bytes", async () => {
  const { leader } = await opened();
  let times = 0;
  leader.before = () => {
    times += 1;
    if (times === 1) throw new TypeError("offline");
    if (times === 2) return problem("busy", 503, { retry: true, after: 0 });
    if (times === 3) return new Response("<h1>Bad Gateway</h1>", { status: 502 });
    return null;
  };
  const bytes = crypto.getRandomValues(new Uint8Array(300));
  const told = [];
  const where = "https://leader.example/v1/runs/00/reports/4";
  assert.equal(await deliver(where, bytes, { fetch: leader.fetch, onWaiting: (each) => told.push(each) }), "sent");
  assert.equal(new Set(leader.asked.filter(({ method }) => method === "PUT").map(({ body }) => toHex(body))).size, 1);
  assert.deepEqual(
    told.map(({ code }) => code),
    ["unreachable", "busy", "http_502"],
  );
});

test("no leader makes a device give up, or wait for years, by what it says of the next try", async () => {
  const { leader } = await opened();
  for (const after of ["9".repeat(400), 10 ** 10]) {
    leader.before = () => problem("busy", 503, { retry: true, after });
    const ending = new AbortController();
    const sending = deliver("https://leader.example/v1/runs/00/reports/4", new Uint8Array(100), {
      fetch: leader.fetch,
      signal: ending.signal,
      onWaiting: () => setTimeout(() => ending.abort(), 5),
    });
    await assert.rejects(sending, (error) => error.name === "AbortError");
  }
});

test("patience ends with a sentence, and other refusals end at once", async () => {
  const { leader } = await opened();
  leader.before = () => problem("busy", 503, { retry: true, after: 3600 });
  const go = (options) =>
    deliver("https://leader.example/v1/runs/00/reports/4", new Uint8Array(100), { fetch: leader.fetch, ...options });
  await assert.rejects(
    go({ patience: 2000 }),
    (error) => error.code === "busy" && error.retry && /safe on this device/.test(error.message),
  );
  for (const [status, name, words] of [
    [410, "closed", /takes no more/],
    [422, "bad_signature", /not for this study/],
    [400, "bad_request", /bad_request/],
  ]) {
    leader.before = () => problem(name, status);
    await assert.rejects(go(), (error) => error.code === name && !error.retry && words.test(error.message));
  }
  leader.before = () => problem("constructor", 400);
  await assert.rejects(go(), (error) => /say the word/.test(error.message));
  leader.before = () => new Response("x".repeat(1 << 17), { status: 404 });
  await assert.rejects(go(), code("http_404"));
  leader.before = () => problem("already_here", 409);
  assert.equal(await go(), "already_here");
});

test("groups are named as they are cut", () => {
  const cells = (changes) => cellsOf({ name: "age", edges: [0, 40, 60], ...changes });
  assert.deepEqual(cells({}), ["under 40", "40 or more"]);
  assert.deepEqual(cells({ closed: "right", missing: true }), ["up to 40", "over 40", "rather not say"]);
  assert.deepEqual(cells({ open: "none" }), ["0 to 40", "40 to 60"]);
  assert.deepEqual(cells({ open: "above" }), ["0 to 40", "40 or more"]);
});

test("the words are the plan's", async () => {
  const device = await (await opened()).run();
  const told = Object.fromEntries(device.words.map(({ key, text }) => [key, text]));
  assert.match(
    told["asked.counts"],
    /age \(0 to 40, 40 to 60, 60 to 120, rather not say\) and smokes \(yes, no, rather not say\)/,
  );
  assert.match(told["sent.two"], /University of Ulm and Bonn Clinic both work together/);
  assert.match(told.made, /at least 4 answers/);
  assert.match(told.promise, /more than 20 times as likely, except with a chance of 1 in 1,000,000 \(ε = 2.95\)/);
  assert.match(told.times, /All 2 times/);
  const promised = (privacy, epsilon) => {
    const plan = planOf([]);
    const devices = { ...plan.devices, stated_epsilon: epsilon };
    const words = wordsOf({ ...plan, devices, privacy: { ...plan.privacy, ...privacy } }, ENGLISH, {});
    return words.find(({ about }) => about === "promise").text;
  };
  assert.match(promised({ delta: 0 }, 2.95), /whatever you answer, no .* 20 times as likely \(ε = 2.95\)\.$/);
  assert.match(promised({ delta: 0, unit: "record" }, 2.95), /\(per record\), .* 20 times as likely \(ε = 2.95\)\.$/);
  assert.match(promised({}, 1000), /no result becomes more than ∞ times as likely/);
  const { values } = device.words.find(({ key }) => key === "promise");
  assert.deepEqual(values, { factor: 20, chance: 1_000_000, epsilon: 2.95, delta: 1e-6 });
  assert.match(told.page, /Library of Kiel, who must not/);
  const devices = {
    ...planOf([]).devices,
    page: "the registrar is trusted with every answer",
    exact: "the leader is trusted with the sum",
  };
  const exact = wordsOf(planOf([], { devices, privacy: { model: "none" } }), ENGLISH, {});
  const said = exact.map(({ text }) => text).join(" ");
  assert.match(said, /are exact\. .*University of Ulm sees the exact totals/);
  assert.match(said, /from Study Office Trier, who could read your answer/);
  assert.deepEqual(device.fields[1], {
    name: "smokes",
    question: "smokes",
    kind: "choice",
    optional: true,
    choices: [
      { label: "yes", value: "yes" },
      { label: "no", value: "no" },
    ],
  });
  assert.deepEqual(device.fields[0], {
    name: "age",
    question: "age",
    kind: "number",
    optional: true,
    min: 0,
    max: 120,
  });
});

const TEXTS = {
  en: { title: "Smoking" },
  de: {
    title: "Rauchen in Ulm",
    questions: {
      age: { question: "Wie alt sind Sie?", help: "In Jahren." },
      smokes: { question: "Rauchen Sie?", answers: { yes: "ja", no: "nein" } },
    },
  },
};
const WORDS = JSON.parse(await readFile(new URL("../words.json", import.meta.url), "utf8"));

test("a plan's own texts are asked in the language that a person reads best", async () => {
  const plan = { devices: { ...planOf([]).devices, texts: TEXTS } };
  const { links, pins, leader } = await studyIn({ plan });
  const opened_ = (options) => open(links[2], pins, { store: inMemory(), fetch: leader.fetch, ...options });
  const german = await opened_({ words: WORDS.de, languages: ["de-AT", "en"] });
  assert.deepEqual([german.title, german.language], ["Rauchen in Ulm", "de"]);
  const [age, smokes] = german.fields;
  assert.deepEqual([age.name, age.question, age.help], ["age", "Wie alt sind Sie?", "In Jahren."]);
  assert.deepEqual(smokes.choices, [
    { label: "ja", value: "yes" },
    { label: "nein", value: "no" },
  ]);
  const said = german.words.map(({ text }) => text).join(" ");
  assert.match(said, /mehr als 20-mal so wahrscheinlich, außer mit einer Wahrscheinlichkeit von 1 zu 1.000.000/);
  assert.match(
    said,
    /Wie alt sind Sie\? \(0 bis 40, 40 bis 60, 60 bis 120, keine Angabe\) und Rauchen Sie\? \(ja, nein/,
  );
  german.measure(ANSWER); // the plan's own values, whatever they are called
  const french = await opened_({ words: WORDS.fr, languages: ["fr", "en-GB"] });
  assert.deepEqual([french.title, french.fields[0].question], ["Smoking", "age"]);
  assert.equal((await opened_({ languages: ["fr"] })).title, "Smoking", "the first that the plan has");
  const typo = { de: { titel: "x" } };
  await assert.rejects(
    (await opened({ plan: { devices: { ...plan.devices, texts: typo } } })).run(),
    code("unsupported"),
  );
});

test("every language has every sentence, with the same values in it", () => {
  const holes = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
  for (const [key, text] of Object.entries(ENGLISH)) assert.equal(WORDS.en[key], text, key);
  const codes = Object.keys(WORDS.de).filter((key) => key.startsWith("code.") && !WORDS.en[key]);
  assert.ok(codes.length >= 5);
  for (const [lang, words] of Object.entries(WORDS)) {
    assert.equal(words.lang, lang);
    assert.doesNotMatch(JSON.stringify(words), /</);
    for (const [key, text] of Object.entries(WORDS.en))
      assert.deepEqual(holes(words[key]), holes(text), `${lang} ${key}`);
    if (lang !== "en") for (const key of codes) assert.ok(words[key], `${lang} ${key}`);
    assert.deepEqual(
      Object.keys(words).filter((key) => !(key in WORDS.de)),
      [],
    );
  }
});

test("what is read before the first question has less than 120 words, in every language", () => {
  for (const words of Object.values(WORDS)) {
    const plan = planOf([], { devices: { ...planOf([]).devices, most_runs: 1 } });
    const brief = wordsOf(plan, words, {}).filter((each) => each.brief);
    const seen = [words.title, words.before, ...brief.map(({ text }) => text), words.more, words.right]
      .join(" ")
      .split(/\s+/);
    assert.ok(seen.length < 120, `${words.lang}: ${seen.length}`);
    assert.deepEqual(
      brief.map(({ about }) => about),
      ["sent", "made", "promise", "final", "page"],
    );
  }
});

test("one in so many is never more than delta allows, and every power of ten is itself", () => {
  for (let power = 1; power <= 15; power++) assert.equal(oneIn(Number(`1e-${power}`)), 10 ** power);
  for (const [delta, wanted] of [
    [3e-7, 3_300_000],
    [0.1, 10],
    [2.5e-5, 40_000],
    [1.1e-6, 900_000],
  ])
    assert.equal(oneIn(delta), wanted);
});

test("a table of words or a page's pin of another form gets a sentence", async () => {
  const { links, pins, leader } = await studyIn();
  const go = (words, changes = {}) => open(links[0], { ...pins, ...changes }, { words, fetch: leader.fetch });
  for (const words of [
    ...[null, 3, { lang: "english!" }, { lang: "de-a_b" }, { lang: ["de"] }],
    ...[{ made: 3 }, { made: "" }, { made: "Over {fewest} answers." }, { final: "{toString}" }],
  ])
    await assert.rejects(go(words), (error) => error.code === "wrong_type" && /^words/.test(error.message));
  for (const [field, value] of [
    ["leader", "leader.example"],
    ["leader", "https://leader.example/path"],
    ["leader", undefined],
    ["run", "11"],
    ["run", pins.run.toUpperCase().replace(/1/g, "A")],
    ["study", pins.study.slice(2)],
    ["study", null],
  ])
    await assert.rejects(
      go({}, { [field]: value }),
      (error) => error.code === "bad_pins" && error.message.includes(`"${field}"`),
    );
  await assert.rejects(open(links[0], undefined, { fetch: leader.fetch }), code("bad_pins"));
  assert.equal(wordsIn({ made: "Mine" }).made, "Mine");
});

test("a browser that lacks a primitive hears which", async () => {
  const { run } = await opened();
  for (const [name, lacking] of [
    ["Ed25519", "Ed25519"],
    ["X25519", "X25519"],
    ["AES-GCM", "AES-GCM"],
  ]) {
    const whole = crypto.subtle.importKey;
    crypto.subtle.importKey = function (format, data, algorithm, ...more) {
      if ((algorithm.name ?? algorithm) === name) return Promise.reject(new DOMException("", "NotSupportedError"));
      return whole.call(this, format, data, algorithm, ...more);
    };
    try {
      await assert.rejects(run(), (error) => error.code === "too_old" && error.message.includes(`lacks ${lacking}.`));
    } finally {
      delete crypto.subtle.importKey;
    }
  }
  await run();
});

test("a browser that tells no public key answers, and a record of an earlier version keeps its name", async () => {
  const { run, store, links, pins, leader } = await opened();
  const whole = crypto.subtle.exportKey;
  crypto.subtle.exportKey = () => Promise.reject(new DOMException("", "OperationError"));
  try {
    const device = await run();
    assert.equal(await device.send(await device.seal(device.measure(ANSWER))), "sent");
  } finally {
    delete crypto.subtle.exportKey;
  }
  assert.equal(crypto.subtle.exportKey, whole);
  assert.equal((await recordOf(store)).state, "sent");
  const former = toHex(await sha256(await publicOf(await seedOf(codeOf(2)))));
  const old = inMemory();
  const record = { ...(await recordOf(store)), id: `${pins.run}/${former}`, key: former };
  await old.add(record);
  const again = await open(links[2], pins, { store: old, fetch: leader.fetch });
  assert.equal(await again.state(), "sent");
  await assert.rejects(again.seal(again.measure(ANSWER)), code("already_sent"));
  await again.forget();
  assert.equal(await old.get(record.id), undefined);
  for (const turn of ["22", "33"]) await old.add({ ...record, id: `${turn}/${former}`, run: turn });
  await assert.rejects(again.seal(again.measure(ANSWER)), code("most_runs"));
});

test("a submit by a person is good for one seal, however late, and a script's for none", () => {
  let [submit, active] = [null, false];
  const given = {
    document: { addEventListener: (name, listener) => name === "submit" && (submit = listener) },
    navigator: {
      userActivation: {
        get isActive() {
          return active;
        },
      },
    },
  };
  const before = Object.keys(given).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const [name, value] of Object.entries(given))
    Object.defineProperty(globalThis, name, { value, configurable: true });
  try {
    watchPerson();
    submit({ isTrusted: true }); // requestSubmit() of a script: no activation
    assert.throws(requirePerson, code("no_person"));
    active = true;
    submit({ isTrusted: false });
    submit({ isTrusted: true });
    active = false; // five seconds later
    requirePerson();
    assert.throws(requirePerson, code("no_person"));
    active = true; // a tap without a form
    requirePerson();
    document.prerendering = true;
    assert.throws(requirePerson, code("no_person"));
  } finally {
    for (const [name, own] of before) own ? Object.defineProperty(globalThis, name, own) : delete globalThis[name];
  }
});

test("a member of the panel cannot answer", async () => {
  const seed = await seedOf(codeOf(2));
  const { run } = await opened({ seeds: [seed, new Uint8Array(32).fill(2)] });
  await assert.rejects(run(), (error) => error.code === "wrong_study" && /member of the panel/.test(error.message));
});

test("a folder keeps a report over the end of its process, and adds it once", async () => {
  const folder = await mkdtemp(pathJoin(tmpdir(), "privstats-"));
  try {
    const { run } = await opened({}, { store: await inFolder(folder) });
    const device = await run();
    const report = await device.seal(device.measure(ANSWER));
    const again = await opened({}, { store: await inFolder(folder) });
    const second = await again.run();
    assert.deepEqual((await second.kept()).bytes, report.bytes);
    const [name, ...more] = await readdir(folder);
    assert.deepEqual(more, []);
    const text = await readFile(pathJoin(folder, name), "utf8");
    assert.ok(text.includes(toHex(report.bytes)));
    const store = await inFolder(folder);
    await assert.rejects(store.add(JSON.parse(text)), { code: "EEXIST" });
    assert.equal((await readdir(folder)).length, 1, "nothing is left beside it");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("two stores of one folder seal one after the other, and give one report", async () => {
  const folder = await mkdtemp(pathJoin(tmpdir(), "privstats-"));
  try {
    const devices = await Promise.all(
      [0, 1].map(async () => (await opened({}, { store: await inFolder(folder) })).run()),
    );
    const reports = await Promise.all(devices.map((device) => device.seal(device.measure(ANSWER))));
    assert.deepEqual(reports[0].bytes, reports[1].bytes);
    await devices[0].send(reports[0]);
    assert.equal(await devices[1].state(), "sent");
    await devices[1].forget();
    assert.deepEqual(await readdir(folder), []);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a report's secrets are in no error and no record of what was asked", async () => {
  const { run, store, links, leader } = await opened();
  leader.before = (path) => (path.includes("reports") ? problem("bad_body", 422) : null);
  const device = await run();
  const report = await device.seal(device.measure(ANSWER));
  const error = await device.send(report).catch((refused) => refused);
  const seen = JSON.stringify([
    error.message,
    error.stack,
    [...leader.asked].map(({ url, headers }) => [url, headers]),
  ]);
  const letters = links[2].split(".").at(-2);
  const seed = toHex(await seedOf(codeOf(2)));
  const kept = JSON.stringify(await recordOf(store), (_, value) =>
    value instanceof Uint8Array ? toHex(value) : value,
  );
  for (const secret of [letters, seed, toHex(codeOf(2)), '"no"', "37]"]) {
    assert.ok(!seen.includes(secret) && !kept.includes(secret), secret);
  }
});
