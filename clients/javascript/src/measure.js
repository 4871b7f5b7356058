/**
 * Measures records: returns the flat vector of integers that a client contributes, equal to those of `ps.measure` and
 * `ps.encoding.flatten` in Python (tests/moments/vectors/measure.json). It measures count tables with numbers, classes
 * with the statistics NA or NAB, and ridge of one fold, without a transform. Other schemas are refused by name.
 */
import { requireAccepted } from "./accepted.js";
import { cellOf, cellsOf, columnsOf } from "./cells.js";
import { refuse, unsupported } from "./errors.js";
import { powerOfTwo, quantize, rint } from "./grid.js";

const COUNT_SCALE = 4096;
const EXACT = powerOfTwo(53);

const KINDS = {
  counts: {
    layout: (schema) => {
      const tables = tablesOf(schema);
      const groups = sumOf(tables.map((table) => table.groups));
      return [sumOf(tables.map((table) => table.size)), ...(groups ? [groups, groups] : [])];
    },
    measure: counts,
  },
  classes: {
    layout: ({ classes, features, statistics }) => [
      classes,
      classes * features,
      ...(statistics === "NAB" ? triangle(features) : []),
    ],
    measure: classes,
  },
  ridge: {
    layout: ({ features, targets }) => [...triangle(features), features * targets, 1],
    measure: ridge,
  },
};

/** Returns the sizes of the vector's segments; refuses a schema that this client cannot measure. */
export function layoutOf(schema) {
  const kind = Object.hasOwn(KINDS, schema.task) ? KINDS[schema.task] : unsupported("schema.task");
  requireAccepted(schema, "schema", schema.task);
  return kind.layout(schema);
}

/** Returns the vector of some records, a Float64Array, and the number of records. */
export function measure(schema, records) {
  layoutOf(schema);
  if (records === null || typeof records !== "object") refuse("wrong_type", "records must be an object of columns");
  return KINDS[schema.task].measure(schema, records);
}

function triangle(size) {
  return [size, (size * (size - 1)) / 2];
}

const sumOf = (sizes) => sizes.reduce((sum, size) => sum + size, 0);

/**
 * Returns every table: the indices of its columns, its number of cells and its last column. A number has a table of its
 * own, of its groups and of whether it was given; `groups` is its number of groups, 0 for other tables.
 */
function tablesOf(schema) {
  const read = columnsOf(schema);
  const own = (schema.numbers ?? []).map(({ name, by = [] }) => [...by, name]);
  return [...schema.tables, ...own].map((names) => {
    const crossed = names.map((name) => read.findIndex((each) => each.name === name));
    const size = crossed.reduce((cells, at) => cells * cellsOf(read[at]).length, 1);
    const last = read[crossed.at(-1)];
    return { crossed, size, last, groups: "low" in last ? size / cellsOf(last).length : 0 };
  });
}

/** Returns the lists of exactly these columns, all of one length. */
function columns(records, names) {
  const stranger = Object.keys(records).find((name) => !names.includes(name));
  if (stranger !== undefined) refuse("wrong_type", `the plan has no column "${stranger}"`);
  const lists = names.map((name) => {
    const values = Object.hasOwn(records, name) ? records[name] : undefined;
    if (!Array.isArray(values)) refuse("wrong_type", `"${name}" must be a list with one value per record`);
    // a hole in a list becomes undefined, which is refused later
    return Array.from(values);
  });
  if (lists.some(({ length }) => length !== lists[0].length))
    refuse("wrong_type", "the columns have different lengths");
  return lists;
}

function counts(schema, records) {
  const read = columnsOf(schema);
  const lists = columns(
    records,
    read.map(({ name }) => name),
  );
  const places = lists.map((values, at) => values.map((value) => cellOf(read[at], value)));
  const [{ length }] = lists;
  const [vector, T, x, q] = parts(schema);
  requireRoom(length, x ? COUNT_SCALE * COUNT_SCALE : COUNT_SCALE);
  let [start, first] = [0, 0];
  for (const { crossed, size, last, groups } of tablesOf(schema)) {
    for (let record = 0; record < length; record++) {
      const cell = crossed.reduce((cells, at) => cells * cellsOf(read[at]).length + places[at][record], 0);
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

/** Returns a value's distance from the middle of a number's range, in grid steps; 0 for a missing value. */
function stepsOf({ low, high }, value) {
  const steps = value === null ? 0 : rint((value - (low + high) / 2) * (COUNT_SCALE / ((high - low) / 2)));
  return Math.max(-COUNT_SCALE, Math.min(steps, COUNT_SCALE));
}

function requireRoom(count, bound) {
  if (count * bound >= EXACT) refuse("too_many_records", "too many records: send fewer");
}

/** Returns X as rows of finite numbers, and y as it was passed. */
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

/** Adds a row's products with itself: the diagonal, then the strict upper triangle row by row. */
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
    const steps = quantize(row, grid);
    const start = labels[record] * schema.features;
    N[labels[record]] += COUNT_SCALE;
    steps.forEach((value, i) => (A[start + i] += value));
    if (diagonal) addGram(steps, diagonal, above);
  });
  return { vector, records: X.length };
}

function classOf({ classes: count, class_names: names }, label) {
  if (names ? typeof label !== "string" : !Number.isInteger(label)) {
    refuse("wrong_type", `y must be ${names ? "names of classes" : "integers"}`);
  }
  const index = names ? names.indexOf(label) : label;
  if (index < 0 || index >= count) refuse("no_cell", "a label of y is not a class of the plan");
  return index;
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
