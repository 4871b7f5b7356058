/**
 * The flat vector of whole numbers that a client contributes: the same integers as `ps.measure` and
 * `ps.encoding.flatten` give in Python (tests/moments/vectors/measure.json). Count tables and numbers beside them, classes
 * with the statistics NA or NAB, and ridge of one fold, without a transform; other plans are refused by name.
 */
import { cellOf, cellsOf, columnsOf } from "./cells.js";
import { others, refuse, unsupported } from "./errors.js";
import { powerOfTwo, quantize, rint } from "./grid.js";

const COUNT_SCALE = 4096;
const EXACT = powerOfTwo(53);

const KINDS = {
  counts: {
    keys: "variables tables numbers",
    layout: (schema) => {
      const tables = tablesOf(schema);
      const groups = sumOf(tables.map((table) => table.groups));
      return [sumOf(tables.map((table) => table.size)), ...(groups ? [groups, groups] : [])];
    },
    measure: counts,
  },
  classes: {
    keys: "classes features statistics clip_norm grid_bits nonnegative class_names feature_names",
    layout: ({ classes, features, statistics }) => [
      classes,
      classes * features,
      ...(statistics === "NAB" ? triangle(features) : []),
    ],
    measure: classes,
  },
  ridge: {
    keys: "features targets clip_norm target_bound grid_bits folds nonnegative feature_names",
    layout: ({ features, targets }) => [...triangle(features), features * targets, 1],
    measure: ridge,
  },
};

/** The sizes of the vector's segments; a schema that this client cannot measure is refused. */
export function layoutOf(schema) {
  const kind = Object.hasOwn(KINDS, schema.task) ? KINDS[schema.task] : unsupported(schema.task);
  others(schema, `task transform ${kind.keys}`.split(" "), (key) => unsupported(`schema.${key}`));
  if (schema.transform?.length) unsupported("schema.transform");
  if (schema.task === "classes" && !["NA", "NAB"].includes(schema.statistics)) {
    unsupported(`the statistics ${schema.statistics}`);
  }
  if (schema.task === "ridge" && schema.folds !== 1) unsupported("several folds");
  return kind.layout(schema);
}

/** The vector of some records, Float64Array, and how many records there are. */
export function measure(schema, records) {
  layoutOf(schema);
  if (records === null || typeof records !== "object") refuse("wrong_type", "records must be an object of columns");
  return KINDS[schema.task].measure(schema, records);
}

function triangle(size) {
  return [size, (size * (size - 1)) / 2];
}

const sumOf = (sizes) => sizes.reduce((sum, size) => sum + size, 0);

/** The tables, and for each number one of its groups and of who gave it: what it crosses, cells, groups, and the number. */
function tablesOf(schema) {
  const asked = columnsOf(schema);
  const own = (schema.numbers ?? []).map(({ name, by = [] }) => [...by, name]);
  return [...schema.tables, ...own].map((names) => {
    const crossed = names.map((name) => asked.findIndex((each) => each.name === name));
    const size = crossed.reduce((cells, at) => cells * cellsOf(asked[at]).length, 1);
    const last = asked[crossed.at(-1)];
    return { crossed, size, last, groups: "low" in last ? size / cellsOf(last).length : 0 };
  });
}

/** The lists of these columns, and of no others, one as long as the other. */
function columns(records, names) {
  others(records, names, (name) => refuse("wrong_type", `the plan has no column "${name}"`));
  const lists = names.map((name) => {
    const values = Object.hasOwn(records, name) ? records[name] : undefined;
    if (!Array.isArray(values)) refuse("wrong_type", `"${name}" must be a list with one value per record`);
    // a hole in a list becomes undefined, and is refused as such
    return Array.from(values);
  });
  if (lists.some(({ length }) => length !== lists[0].length))
    refuse("wrong_type", "the columns have different lengths");
  return lists;
}

function counts(schema, records) {
  const asked = columnsOf(schema);
  const lists = columns(
    records,
    asked.map(({ name }) => name),
  );
  const places = lists.map((values, at) => values.map((value) => cellOf(asked[at], value)));
  const [{ length }] = lists;
  const [vector, T, x, q] = parts(schema);
  requireRoom(length, x ? COUNT_SCALE * COUNT_SCALE : COUNT_SCALE);
  let [start, first] = [0, 0];
  for (const { crossed, size, last, groups } of tablesOf(schema)) {
    for (let record = 0; record < length; record++) {
      const cell = crossed.reduce((cells, at) => cells * cellsOf(asked[at]).length + places[at][record], 0);
      T[start + cell] += COUNT_SCALE;
      if (groups) {
        const steps = stepsOf(last, lists[crossed.at(-1)][record]);
        const group = first + Math.floor((cell * groups) / size);
        x[group] += steps;
        q[group] += steps * steps;
      }
    }
    start += size;
    first += groups;
  }
  return { vector, records: length };
}

/** Whole steps from the middle of a number's range; a missing number has none. */
function stepsOf({ low, high }, value) {
  const steps = value === null ? 0 : rint((value - (low + high) / 2) * (COUNT_SCALE / ((high - low) / 2)));
  return Math.max(-COUNT_SCALE, Math.min(steps, COUNT_SCALE));
}

function requireRoom(count, bound) {
  if (count * bound >= EXACT) refuse("too_many_records", "too many records");
}

/** X as rows of finite numbers, and y as a list beside it. */
function pairs(records, features) {
  const [X, y] = columns(records, ["X", "y"]);
  return { X: X.map((row) => numbers("X", row, features)), y };
}

function numbers(name, row, width) {
  if ((!Array.isArray(row) && !(row instanceof Float64Array)) || row.length !== width)
    refuse("wrong_type", `a row of ${name} must be a list of ${width} numbers`);
  const values = Array.from(row);
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
  const vector = new Float64Array(sumOf(sizes));
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
