import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { cellOf } from "../src/cells.js";
import { powerOfTwo, quantize, rint } from "../src/grid.js";
import { layoutOf, measure } from "../src/measure.js";

const FROZEN = JSON.parse(readFileSync(new URL("../../../tests/moments/vectors/measure.json", import.meta.url)));
const SMOKES = { name: "smokes", values: ["yes", "no"], missing: true, other: true };
const AGE = { name: "age", edges: [0, 40, 60], open: "none" };

function number(hex) {
  return Buffer.from(hex, "hex").readDoubleBE();
}

function code(wanted) {
  return (error) => error.code === wanted && error.name === "PrivstatsError";
}

test("rows give the integers of ps.measure, case by case", () => {
  assert.equal(FROZEN.rows.length, 400);
  let clipped = 0;
  for (const [place, { schema, X, y, vector }] of FROZEN.rows.entries()) {
    const rows = X.map((row) => row.map(number));
    const targets = schema.task === "ridge" ? y.map((row) => row.map(number)) : y;
    const found = measure(schema, { X: rows, y: targets });
    assert.deepEqual(
      Array.from(found.vector, (value) => value + 0),
      vector,
      `case ${place}`,
    );
    assert.equal(found.records, rows.length);
    const grid = { radius: Infinity, scale: powerOfTwo(schema.grid_bits) / schema.clip_norm };
    clipped += rows.filter((row) => Math.hypot(...quantize(row, grid)) > powerOfTwo(schema.grid_bits)).length;
  }
  assert.ok(clipped > 150, `only ${clipped} rows were clipped`);
});

test("counts and numbers give the integers of ps.measure, alone and among others with blanks", () => {
  assert.deepEqual([FROZEN.counts.length, FROZEN.numbers.length], [100, 60]);
  for (const [place, { schema, records, vector }] of [...FROZEN.counts, ...FROZEN.numbers].entries()) {
    const found = Array.from(measure(schema, records).vector, (value) => value + 0);
    assert.deepEqual(found, vector, `case ${place}`);
    const sizes = layoutOf(schema);
    assert.equal(
      found.length,
      sizes.reduce((sum, size) => sum + size, 0),
    );
  }
});

test("a number beyond its range, of another type or missing has no place", () => {
  const hours = { name: "hours", low: 0, high: 80 };
  const schema = { task: "counts", variables: [], tables: [], numbers: [hours], transform: [] };
  assert.deepEqual(Array.from(measure(schema, { hours: [80] }).vector), [4096, 4096, 4096 ** 2]);
  for (const value of [80.1, -1, 1e300, null]) {
    assert.throws(() => measure(schema, { hours: [value] }), code("no_cell"));
  }
  for (const value of ["37", NaN, Infinity, true]) {
    assert.throws(() => measure(schema, { hours: [value] }), code("wrong_type"));
  }
});

test("rounding is to even, below and above 2^51", () => {
  const half = powerOfTwo(51) + 0.5;
  assert.deepEqual(
    [0.5, 1.5, 2.5, -0.5, -1.5, half, -half, half + 1].map((value) => rint(value) + 0),
    [0, 2, 2, 0, -2, powerOfTwo(51), -powerOfTwo(51), powerOfTwo(51) + 2],
  );
});

test("nothing is coerced into a number", () => {
  for (const value of ["37", "", " ", "37,5", NaN, Infinity, undefined, true, [37], {}, new Date(), 37n]) {
    assert.throws(() => cellOf(AGE, value), code("wrong_type"), String(value));
  }
  assert.throws(() => cellOf(AGE, null), code("no_cell"));
  assert.throws(() => cellOf(AGE, 61), code("no_cell"));
  assert.equal(cellOf(AGE, 60), 1);
});

test("nothing is coerced into a category", () => {
  for (const value of [1, true, undefined, ["yes"], {}]) assert.throws(() => cellOf(SMOKES, value), code("wrong_type"));
  const whole = { name: "children", values: [0, 1], other: true };
  for (const value of ["1", 1.5, NaN, true, null]) assert.throws(() => cellOf(whole, value));
  assert.equal(cellOf(whole, 7), 2);
});

test("a text that Python reads as another value has no cell here", () => {
  for (const value of [
    " yes",
    "yes ",
    "",
    "NA",
    "None",
    "1",
    "1.0",
    "True",
    "2020-01-31",
    "(0, 1]",
    "a\0",
    "e\u0301",
  ]) {
    assert.throws(() => cellOf(SMOKES, value), code("no_cell"), JSON.stringify(value));
  }
  assert.equal(cellOf(SMOKES, "Yes"), 2);
  const accented = { name: "drink", values: ["cafe\u0301", "tea"], other: true };
  assert.throws(() => cellOf(accented, "caf\u00e9"), code("no_cell"));
});

test("a declared text that means a gap elsewhere is an answer, and is not missing", () => {
  const drug = { name: "drug", values: ["none", "NA", "aspirin"], missing: true, other: true };
  assert.deepEqual(
    ["none", "NA", "aspirin", "ibuprofen", null].map((value) => cellOf(drug, value)),
    [0, 1, 2, 3, 4],
  );
  for (const value of ["None", "na", "null"]) assert.throws(() => cellOf(drug, value), code("no_cell"), value);
});

test("an error names the column and never the value", () => {
  try {
    cellOf(SMOKES, 424242);
  } catch (error) {
    assert.match(error.message, /smokes/);
    assert.doesNotMatch(error.message + error.stack.split("\n")[0], /424242/);
  }
});

test("other schemas, transforms and folds are refused by name", () => {
  const ridge = { task: "ridge", features: 2, targets: 1, clip_norm: 1, target_bound: 1, grid_bits: 4, folds: 1 };
  assert.deepEqual(layoutOf(ridge), [2, 1, 2, 1]);
  for (const schema of [
    { ...ridge, folds: 5 },
    { ...ridge, transform: [{ kind: "standardize" }] },
    { ...ridge, surprise: 1 },
    { task: "classes", classes: 2, features: 2, statistics: "NAS", clip_norm: 1, grid_bits: 4 },
    { task: "counts", variables: [{ ...SMOKES, gaps: ["no"] }], tables: [["smokes"]], transform: [] },
    { task: "counts", variables: [], tables: [], transform: [], numbers: [{ name: "a", low: 0, high: 1, clip: 1 }] },
    { task: "logistic" },
    { task: "constructor" },
  ]) {
    assert.throws(() => layoutOf(schema), code("unsupported"));
  }
});

test("records that do not fit the plan are refused", () => {
  const schema = { task: "counts", variables: [AGE, SMOKES], tables: [["age", "smokes"]], transform: [] };
  const fine = { age: [37], smokes: ["no"] };
  assert.equal(measure(schema, fine).vector[1], 4096);
  const sparse = [];
  sparse.length = 1;
  for (const records of [{ ...fine, age: [] }, { age: [37] }, { ...fine, more: [1] }, { ...fine, age: sparse }, null]) {
    assert.throws(() => measure(schema, records), code("wrong_type"));
  }
});
