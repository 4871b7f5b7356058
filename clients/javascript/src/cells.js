/**
 * Finds the cell of one value in a count table, from that value and the plan alone. No value is converted: a bin
 * accepts a finite number, a category a text (an integer if the plan lists integers), and null means missing. Python
 * reads some texts as another value (`" yes"` as `"yes"`, `"7.0"` as 7). Such a text is refused here, so that every
 * accepted value has the same cell as in Python.
 */
import { ENGLISH } from "./english.js";
import { refuse } from "./errors.js";
import { powerOfTwo } from "./grid.js";
import { say } from "./say.js";

const NEAR = powerOfTwo(-45);
const MISSING = /^(|[+-]?inf(inity)?|#?n\/?a|#n\/a n\/a|-?1\.#(ind|qnan)|-?nan|<na>|nat|none|null)$/i;
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;
const READ_OTHERWISE =
  /\0|\p{Surrogate}|^[\s\x1c-\x1f\x85([]|[\s\x1c-\x1f\x85]$|^(true|false)$|^[0-9]{4}-[0-9]{2}-[0-9]{2}/iu;
const LONGEST = 1024;

/** The value that a form passes for "another answer": a text that no plan lists. */
export const OTHER = "\u0001";

/** Rounds a number to 15 digits, ties to even as in Python; `toPrecision` rounds ties away from zero. */
function round15(value) {
  const [, head, last, tail, exponent] = value.toExponential(100).match(/^(-?\d\.\d{13})(\d)(\d+)(e.+)$/);
  const down = /^50*$/.test(tail) && "02468".includes(last);
  return Number(down ? head + last + exponent : value.toPrecision(15));
}

/** Returns the mark that equals a number at 15 digits, else the number. */
function alike(number, marks) {
  for (const mark of marks) {
    if (number === mark || Math.abs(number - mark) > NEAR * Math.abs(mark)) continue;
    if (round15(number) === round15(mark)) return mark;
  }
  return number;
}

/** Returns the columns of a count plan: its variables, then its numbers, each as one bin. */
export const columnsOf = ({ variables, numbers = [] }) => [
  ...variables,
  ...numbers.map((each) => ({ ...each, edges: [each.low, each.high], open: "none" })),
];

/** Returns the names of a variable's cells, as people read them. */
export function cellsOf({ values, edges, closed = "left", open = "both", other, missing }, words = ENGLISH) {
  const named = edges ? binsOf(edges, closed, open, words) : values.map(String);
  return [...named, ...(other ? [words["cell.other"]] : []), ...(missing ? [words["cell.missing"]] : [])];
}

function binsOf(edges, closed, open, words) {
  const left = closed === "left";
  return edges.slice(1).map((high, i) => {
    const low = edges[i];
    const first = i === 0 && ["both", "below"].includes(open);
    const last = i === edges.length - 2 && ["both", "above"].includes(open);
    const key = last ? (left ? "more" : "over") : first ? (left ? "under" : "upTo") : "between";
    return say(words, `cell.${key}`, { low: String(low), high: String(high) });
  });
}

/** Returns the index of a value's cell among the cells of its variable. */
export function cellOf(variable, value) {
  if (value === null) {
    if (!variable.missing) refuse("no_cell", `"${variable.name}" needs an answer`);
    return cellsOf(variable).length - 1;
  }
  return variable.edges ? binOf(variable, value) : categoryOf(variable, value);
}

function binOf({ name, edges, closed = "left", open = "both" }, value) {
  if (typeof value !== "number" || !Number.isFinite(value)) refuse("wrong_type", `"${name}" needs a number`);
  const seen = alike(value, edges);
  const [low, high] = [edges[0], edges.at(-1)];
  if ((seen < low && !["both", "below"].includes(open)) || (seen > high && !["both", "above"].includes(open))) {
    refuse("no_cell", `"${name}" must be between ${low} and ${high}`);
  }
  return edges.slice(1, -1).filter((cut) => (closed === "left" ? cut <= seen : cut < seen)).length;
}

function categoryOf(variable, value) {
  const { name, values, other } = variable;
  const integers = typeof values[0] === "number";
  if (integers ? !Number.isInteger(value) : typeof value !== "string") {
    refuse("wrong_type", `"${name}" needs ${integers ? "an integer" : "a text"}`);
  }
  const index = values.indexOf(integers ? alike(value, values) : value);
  if (index >= 0) return index;
  if (!other || !(integers || isPlain(value, values))) refuse("no_cell", `"${name}" needs one of the listed answers`);
  return values.length;
}

/** Returns whether Python reads a text as itself, and as none of the listed values. */
function isPlain(text, values) {
  const normal = text.normalize("NFC") === text && text.length <= LONGEST;
  const spelled = !NUMBER.test(text) && !MISSING.test(text) && !READ_OTHERWISE.test(text);
  return normal && spelled && !values.some((value) => value.normalize("NFC").trim() === text);
}
