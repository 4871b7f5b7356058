import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { fromHex, join, pack, sha256, toHex, x25519, x25519Private } from "../src/bytes.js";
import { bytesOf, lanesOf, packLanes, packedBytes } from "../src/lanes.js";
import { reportOf } from "../src/seal.js";
import { runOf } from "./frozen.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../tests/secagg/vectors/${name}`, import.meta.url)));

// a Node that has ML-KEM of its own draws inside, so frozen bytes are of the vendored one
crypto.subtle.encapsulateBits = undefined;

test("every frozen report is the same to the byte", async () => {
  const wanted = read("uploads_javascript.json");
  let reports = 0;
  for (const [name, frozen] of Object.entries(read("uploads.json"))) {
    const { run, signers } = await runOf(frozen);
    for (const [from, vector] of frozen.vectors.entries()) {
      const root = fromHex(frozen.roots[from]);
      const found = await reportOf(run, { index: from, key: signers[from].key }, vector, root);
      assert.equal(toHex(await sha256(found)), wanted[name][from], `${name}, client ${from}`);
      assert.ok(
        root.every((byte) => byte === 0),
        "the root is zeroed",
      );
      reports += 1;
    }
  }
  assert.equal(reports, 18);
});

test("packing gives every width its bytes, by one loop over bits", () => {
  for (let bits = 1; bits <= 64; bits++) {
    for (const size of [1, 7, 8, 9, 40]) {
      const vector = Array.from({ length: size }, (_, i) => (i % 2 ? -1 : 1) * Math.floor(9e15 / (i + 1)));
      const lanes = lanesOf(vector, [[size, bits]]);
      assert.deepEqual(packLanes(lanes), plainly(vector, bits), `${size} entries of ${bits} bits`);
    }
  }
});

/** The definition in docs/wire/interactive.md, with BigInt. */
function plainly(vector, bits) {
  const entries = vector.map((value) => BigInt.asUintN(bits, BigInt(value)));
  const out = [];
  let column = 0;
  for (const width of [8, 4, 2, 1]) {
    if (!((bits >> 3) & width)) continue;
    for (const entry of entries)
      for (let k = 0; k < width; k++) out.push(Number((entry >> BigInt(8 * (column + k))) & 255n));
    column += width;
  }
  const top = entries.map((entry) => entry >> BigInt(8 * column));
  const rest = bits & 7;
  if (!rest) return Uint8Array.from(out);
  const whole = Math.floor(top.length / 8);
  const wordOf = (some) => some.reduce((word, value, i) => word | (value << BigInt(rest * i)), 0n);
  const words = Array.from({ length: whole }, (_, g) => wordOf(top.slice(8 * g, 8 * g + 8)));
  for (let plane = 0; plane < rest; plane++)
    for (const word of words) out.push(Number((word >> BigInt(8 * plane)) & 255n));
  const tail = top.slice(8 * whole);
  const word = wordOf(tail);
  for (let k = 0; k < Math.ceil((tail.length * rest) / 8); k++) out.push(Number((word >> BigInt(8 * k)) & 255n));
  return Uint8Array.from(out);
}

test("a second tile is packed behind the first", () => {
  const vector = Array.from({ length: (1 << 16) + 11 }, (_, i) => i * 31337 - 9e8);
  for (const bits of [13, 32, 37]) {
    const tiles = [plainly(vector.slice(0, 1 << 16), bits), plainly(vector.slice(1 << 16), bits)];
    assert.equal(toHex(packLanes(lanesOf(vector, [[vector.length, bits]]))), toHex(join(...tiles)), `${bits} bits`);
  }
});

test("lanes are cut to their widths, two words beyond 32 bits", () => {
  assert.equal(toHex(bytesOf(lanesOf([-1], [[1, 33]])[0])), "ffffffff01000000");
  assert.equal(toHex(bytesOf(lanesOf([-1, 5], [[2, 12]])[0])), "ff0f000005000000");
  assert.equal(
    packedBytes([
      [3, 12],
      [2, 64],
    ]),
    5 + 16,
  );
});

test("msgpack is the shortest form", () => {
  const cases = [
    [127, "7f"],
    [128, "cc80"],
    [256, "cd0100"],
    [65536, "ce00010000"],
    ["split", "a573706c6974"],
    [[1], "9101"],
  ];
  for (const [value, hex] of cases) assert.equal(toHex(pack(value)), hex);
  assert.equal(toHex(pack(new Uint8Array(300)).subarray(0, 3)), "c5012c");
  assert.equal(toHex(pack(new Uint8Array(70000)).subarray(0, 5)), "c600011170");
  assert.equal(toHex(pack(Array(16).fill(0))), `dc0010${"00".repeat(16)}`);
});

test("a key of low order gives no secret", async () => {
  const held = await x25519Private(new Uint8Array(32).fill(7));
  for (const low of [new Uint8Array(32), join(Uint8Array.of(1), new Uint8Array(31))])
    assert.equal(await x25519(held, low), null);
});
