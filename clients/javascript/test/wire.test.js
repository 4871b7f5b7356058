import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { sha256, signingKey, toHex, utf8 } from "../src/bytes.js";
import { cellsOf } from "../src/cells.js";
import { bytesOf, lanesOf } from "../src/lanes.js";
import { readLink, seedOf } from "../src/link.js";
import { measure } from "../src/measure.js";
import { runOf } from "../src/plan.js";
import { reportOf } from "../src/seal.js";

// Node's own ML-KEM encapsulates at random; the frozen report is derived.
crypto.subtle.encapsulateBits = undefined;

const FROZEN = JSON.parse(readFileSync(new URL("../../../tests/contrib/http/vectors/wire.json", import.meta.url)));

test("the way from a link to a report is that of Python, step by step", async () => {
  const { link, manifest, answers, root, steps, ...pins } = FROZEN;
  const { index, code } = await readLink(link);
  const seed = await seedOf(code);
  const run = await runOf(manifest, pins, Date.now());
  const { vector } = measure(run.plan.schema, answers);
  const found = {
    seed,
    "plan digest": await sha256(utf8(manifest.plan)),
    context: run.context,
    lanes: bytesOf(lanesOf(vector, run.segments)[0]),
    report: await reportOf(run, { index, key: await signingKey(seed) }, vector, Buffer.from(root, "hex")),
  };
  for (const [name, value] of Object.entries(found)) assert.equal(toHex(value), steps[name], name);
});

test("a bin has the same name on a page and in a table", () => {
  for (const { cells, ...bins } of FROZEN.bins) assert.deepEqual(cellsOf(bins), cells);
  assert.equal(FROZEN.bins.length, 24);
});
