/**
 * The flat vector of whole numbers that a client contributes: the same integers as `ps.measure` and
 * `ps.encoding.flatten` give in Python (tests/moments/vectors/measure.json). Count tables, classes with the statistics
 * NA or NAB, and ridge of one fold, without a transform; other plans are refused by name.
 */
import { cellOf, cellsOf } from "./cells.js";
import { refuse } from "./errors.js";
import { powerOfTwo, quantize } from "./grid.js";

const COUNT_SCALE = 4096;
const EXACT = powerOfTwo(53);

const KINDS = {
  counts: {
    keys: ["variables", "tables"],
    layout: (schema) => [tablesOf(schema).reduce((cells, table) => cells + table.size, 0)],
    measure: counts,
  },
  classes: {
    keys: [
      "classes",
      "features",
      "statistics",
      "clip_norm",
      "grid_bits",
      "nonnegative",
      "class_names",
      "feature_names",
    ],
    layout: ({ classes, features, statistics }) => [
      classes,
      classes * features,
      ...(statistics === "NAB" ? triangle(features) : []),
    ],
    measure: classes,
  },
  ridge: {
    keys: ["features", "targets", "clip_norm", "target_bound", "grid_bits", "folds", "nonnegative", "feature_names"],
    layout: ({ features, targets }) => [...triangle(features), features * targets, 1],
    measure: ridge,
  },
};

/** The sizes of the vector's segments; a schema that this client cannot measure is refused. */
export function layoutOf(schema) {
  const kind = Object.hasOwn(KINDS, schema.task) ? KINDS[schema.task] : refuse("unsupported", unsupported(schema.task));
  const unknown = Object.keys(schema).filter((key) => !["task", "transform", ...kind.keys].includes(key));
  if (unknown.length) refuse("unsupported", unsupported(`schema.${unknown[0]}`));
  if (schema.transform?.length) refuse("unsupported", unsupported("schema.transform"));
  if (schema.task === "classes" && !["NA", "NAB"].includes(schema.statistics)) {
    refuse("unsupported", unsupported(`the statistics ${schema.statistics}`));
  }
  if (schema.task === "ridge" && schema.folds !== 1) refuse("unsupported", unsupported("several folds"));
  return kind.layout(schema);
}

/** The vector of some records, Float64Array, and how many records there are. */
export function measure(schema, records) {
  layoutOf(schema);
  if (records === null || typeof records !== "object") refuse("wrong_type", "records must be an object of columns");
  return KINDS[schema.task].measure(schema, records);
}

function unsupported(what) {
  return `this client cannot answer a study with ${what}; it needs a client of the privstats library`;
}

function triangle(size) {
  return [size, (size * (size - 1)) / 2];
}

function tablesOf({ variables, tables }) {
  const known = new Map(variables.map((variable) => [variable.name, variable]));
  return tables.map((names) => {
    const crossed = names.map((name) => known.get(name));
    return { crossed, size: crossed.reduce((size, variable) => size * cellsOf(variable).length, 1) };
  });
}

function column(records, name) {
  const values = Object.hasOwn(records, name) ? records[name] : undefined;
  if (!Array.isArray(values)) refuse("wrong_type", `"${name}" must be a list with one value per record`);
  // a hole in a list becomes undefined, and is refused as such
  return Array.from(values);
}

function counts(schema, records) {
  const unknown = Object.keys(records).filter((name) => !schema.variables.some((variable) => variable.name === name));
  if (unknown.length) refuse("wrong_type", `the plan has no column "${unknown[0]}"`);
  const columns = new Map(schema.variables.map((each) => [each.name, column(records, each.name)]));
  const sizes = new Set([...columns.values()].map((values) => values.length));
  if (sizes.size !== 1) refuse("wrong_type", "the columns have different lengths");
  const places = new Map(
    schema.variables.map((each) => [each.name, columns.get(each.name).map((value) => cellOf(each, value))]),
  );
  const [total] = layoutOf(schema);
  const [count] = sizes;
  requireRoom(count, COUNT_SCALE);
  const vector = new Float64Array(total);
  let start = 0;
  for (const { crossed, size } of tablesOf(schema)) {
    for (let record = 0; record < count; record++) {
      const cell = crossed.reduce((at, each) => at * cellsOf(each).length + places.get(each.name)[record], 0);
      vector[start + cell] += COUNT_SCALE;
    }
    start += size;
  }
  return { vector, records: count };
}

function requireRoom(count, bound) {
  if (count * bound >= EXACT) refuse("too_many_records", "these are more records than can be summed exactly here");
}

/** X as rows of finite numbers, and y as a list beside it. */
function pairs(records, features) {
  const unknown = Object.keys(records).filter((name) => name !== "X" && name !== "y");
  if (unknown.length) refuse("wrong_type", `records have X and y, and no "${unknown[0]}"`);
  const [X, y] = [column(records, "X"), column(records, "y")];
  if (X.length !== y.length) refuse("wrong_type", "X and y have different lengths");
  return { X: X.map((row) => numbers("X", row, features)), y };
}

function numbers(name, row, width) {
  if (!Array.isArray(row) && !(row instanceof Float64Array)) refuse("wrong_type", `a row of ${name} must be a list`);
  const values = Array.from(row);
  if (values.length !== width) refuse("wrong_type", `a row of ${name} must have ${width} numbers`);
  if (!values.every((value) => typeof value === "number" && Number.isFinite(value))) {
    refuse("wrong_type", `${name} must hold finite numbers`);
  }
  return values;
}

function gridOf({ grid_bits: bits, clip_norm: norm, nonnegative }) {
  const radius = powerOfTwo(bits);
  return { radius, scale: radius / norm, nonnegative };
}

/** Adds the products of two rows: the diagonal, then the strict upper triangle row by row. */
function addGram(row, diagonal, above) {
  let at = 0;
  for (let i = 0; i < row.length; i++) {
    diagonal[i] += row[i] * row[i];
    for (let j = i + 1; j < row.length; j++) above[at++] += row[i] * row[j];
  }
}

function parts(schema) {
  const sizes = layoutOf(schema);
  const vector = new Float64Array(sizes.reduce((sum, size) => sum + size, 0));
  let start = 0;
  return [vector, ...sizes.map((size) => vector.subarray(start, (start += size)))];
}

function classes(schema, records) {
  const { X, y } = pairs(records, schema.features);
  const labels = y.map((label) => classOf(schema, label));
  const [vector, N, A, diagonal, above] = parts(schema);
  const grid = gridOf(schema);
  requireRoom(X.length, Math.max(grid.radius * grid.radius, COUNT_SCALE));
  X.forEach((row, record) => {
    const whole = quantize(row, grid);
    const start = labels[record] * schema.features;
    N[labels[record]] += COUNT_SCALE;
    whole.forEach((value, i) => (A[start + i] += value));
    if (diagonal) addGram(whole, diagonal, above);
  });
  return { vector, records: X.length };
}

function classOf({ classes: count, class_names: names }, label) {
  if (names ? typeof label !== "string" : !Number.isInteger(label)) {
    refuse("wrong_type", `y needs ${names ? "the names of classes" : "whole numbers"}`);
  }
  const place = names ? names.indexOf(label) : label;
  if (place < 0 || place >= count) refuse("no_cell", "y has a label that is no class of the plan");
  return place;
}

function ridge(schema, records) {
  const { X, y } = pairs(records, schema.features);
  const [vector, diagonal, above, h, q] = parts(schema);
  const grid = gridOf(schema);
  const target = { radius: grid.radius, scale: grid.radius / schema.target_bound };
  requireRoom(X.length, grid.radius * grid.radius);
  const targets = y.map((each) => numbers("y", typeof each === "number" ? [each] : each, schema.targets));
  X.forEach((row, record) => {
    const a = quantize(row, grid);
    const b = quantize(targets[record], target);
    addGram(a, diagonal, above);
    a.forEach((left, i) => b.forEach((right, j) => (h[i * b.length + j] += left * right)));
    b.forEach((right) => (q[0] += right * right));
  });
  return { vector, records: X.length };
}
