import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { inMemory, open } from "../privstats.js";
import { fromHex, join, toHex } from "../src/bytes.js";
import { encapsulate } from "../src/xwing.js";
import { noble } from "../vendor/noble.js";
import { boxKeyOf, planOf, studyIn } from "./double.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../tests/secagg/vectors/${name}`, import.meta.url)));
const ANSWER = { age: [37], smokes: ["no"] };
const encapsulated = (key, eseed) =>
  encapsulate(key, (purpose) => (purpose === "encapsulate" ? eseed.subarray(0, 32) : eseed.subarray(32)));

// a Node that has ML-KEM of its own draws inside, so frozen bytes are of the vendored one
crypto.subtle.encapsulateBits = undefined;

/** A study in memory, whose plan may name a key agreement. */
async function studyWith({ agreement, boxKeys } = {}) {
  const { aggregation } = planOf((await studyIn()).manifest.panel);
  const plan = { aggregation: { ...aggregation, ...(agreement && { key_agreement: agreement }) } };
  const study = await studyIn({ plan, boxKeys });
  return { ...study, run: () => open(study.links[2], study.pins, { store: inMemory(), fetch: study.leader.fetch }) };
}

test("ML-KEM's keys are those of ACVP", () => {
  for (const { d, z, "H(ek)": wanted } of read("mlkem_768_acvp.json").keyGen)
    assert.equal(toHex(noble.sha3_256(noble.ml_kem768.keygen(fromHex(d + z)).publicKey)), wanted);
});

test("ML-KEM's encapsulations and decapsulations are those of ACVP", () => {
  const { encapsulation, decapsulation } = read("mlkem_768_acvp.json");
  assert.deepEqual([encapsulation.length, decapsulation.tests.length], [25, 10]);
  for (const { dk, m, c, K } of encapsulation) {
    const ek = fromHex(dk).subarray(1152, 2336);
    const { cipherText, sharedSecret } = noble.ml_kem768.encapsulate(ek, fromHex(m));
    assert.deepEqual([toHex(sharedSecret), toHex(cipherText)], [K, c]);
  }
  const dk = fromHex(decapsulation.dk);
  for (const { c, K } of decapsulation.tests) assert.equal(toHex(noble.ml_kem768.decapsulate(fromHex(c), dk)), K);
});

test("ML-KEM's encapsulations and refusals are those of Wycheproof", () => {
  let valid = 0;
  for (const { result, ek, m, K, c } of read("mlkem_768.json").encapsulation) {
    const encapsulate = () => noble.ml_kem768.encapsulate(fromHex(ek), fromHex(m) ?? new Uint8Array(32));
    if (result !== "valid") {
      assert.throws(encapsulate);
      continue;
    }
    const { cipherText, sharedSecret } = encapsulate();
    assert.deepEqual([toHex(sharedSecret), toHex(cipherText)], [K, c]);
    valid += 1;
  }
  assert.equal(valid, 4);
});

test("X-Wing's keys, encapsulations and secrets are those of its draft, and of HPKE's", async () => {
  const { enc: wanted, ...group } = read("hpke_pq.json");
  for (const { seed, eseed, pk, ct, ss } of [...read("xwing.json").vectors, { ...group, ct: wanted }]) {
    assert.equal(toHex(await boxKeyOf(fromHex(seed))), pk);
    const [enc, secret] = await encapsulated(fromHex(pk), fromHex(eseed));
    assert.deepEqual([toHex(enc), toHex(secret)], [ct, ss]);
  }
});

test("a study is answered, with a report of the length that the library gives", async () => {
  const { run, leader } = await studyWith();
  const device = await run();
  const report = await device.seal(device.measure(ANSWER));
  assert.equal(await device.send(report), "sent");
  assert.equal(leader.reports.get("2"), toHex(report.bytes));
  assert.ok(report.bytes.length > 2 * 1168);
});

test("a plan with another key agreement is refused by name, and one that names this one is answered", async () => {
  for (const agreement of ["x25519", "mlkem1024"]) {
    const { run } = await studyWith({ agreement });
    await assert.rejects(run(), { code: "unsupported", message: /a study with aggregation.key_agreement/ });
  }
  const { run } = await studyWith({ agreement: "mlkem768-x25519" });
  assert.equal((await run()).index, 2);
});

test("a box key with a bad half is refused, however it is signed", async () => {
  const good = await boxKeyOf(new Uint8Array(32).fill(3));
  const other = await boxKeyOf(new Uint8Array(32).fill(4));
  const [low, unreduced] = [Uint8Array.from(good), Uint8Array.from(good)];
  low.fill(0, 1184);
  unreduced.fill(255, 0, 3);
  for (const bad of [low, unreduced, good.subarray(0, 1184), good.subarray(1184), join(good, Uint8Array.of(0))]) {
    const { run } = await studyWith({ boxKeys: [bad, other] });
    await assert.rejects(run(), { code: "wrong_study" });
  }
});

test("WebCrypto's own ML-KEM is used where it is there, and the vendored one where it fails", async (context) => {
  const key = await boxKeyOf(new Uint8Array(32).fill(3));
  const [mine, eseed] = [new Uint8Array(32).fill(7), new Uint8Array(64).fill(5)];
  const { cipherText, sharedSecret } = noble.ml_kem768.encapsulate(key.subarray(0, 1184), mine);
  const known = crypto.subtle.importKey.bind(crypto.subtle);
  const importing = (format, ...more) => (format === "raw-public" ? Promise.resolve(more[0]) : known(format, ...more));
  context.mock.method(crypto.subtle, "importKey", importing);
  crypto.subtle.encapsulateBits = async (name, held) => {
    assert.deepEqual([name, held], ["ML-KEM-768", key.subarray(0, 1184)]);
    return { ciphertext: cipherText.slice().buffer, sharedKey: sharedSecret.slice().buffer };
  };
  const [native] = await encapsulated(key, eseed);
  assert.equal(toHex(native.subarray(0, 1088)), toHex(cipherText));
  crypto.subtle.encapsulateBits = () => Promise.reject(new Error("not supported"));
  const [portable] = await encapsulated(key, eseed);
  assert.notEqual(toHex(portable.subarray(0, 1088)), toHex(cipherText));
  assert.equal(toHex(portable.subarray(1088)), toHex(native.subarray(1088)));
  crypto.subtle.encapsulateBits = undefined;
});
