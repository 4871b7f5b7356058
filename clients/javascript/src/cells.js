/**
 * The cell of one value in a count table. It follows from that value and the plan alone, and nothing is coerced: a bin
 * takes a finite number, a category a text (or a whole number, where the plan lists whole numbers), and null is what is
 * missing. Python reads further spellings as one value (`" yes"`, `"7.0"`); such a text is refused here, so that no
 * accepted value counts in another cell than there.
 */
import { ENGLISH } from "./english.js";
import { refuse } from "./errors.js";
import { powerOfTwo } from "./grid.js";
import { say } from "./say.js";

const NEAR = powerOfTwo(-45);
const MISSING =
  /^(|[+-]?inf(inity)?|#n\/a|#n\/a n\/a|#na|-1\.#ind|-1\.#qnan|-nan|1\.#ind|1\.#qnan|<na>|n\/a|na|nan|nat|none|null)$/i;
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;
const READ_OTHERWISE =
  /\0|\p{Surrogate}|^[\s\x1c-\x1f\x85([]|[\s\x1c-\x1f\x85]$|^(true|false)$|^[0-9]{4}-[0-9]{2}-[0-9]{2}/iu;
const LONGEST = 1024;

/** What a form gives for "another value": a text that no plan lists. */
export const OTHER = "\u0001";

/** A number at 15 digits, ties to even as in Python; `toPrecision` takes ties away from zero. */
function same(value) {
  const [, head, last, tail, exponent] = value.toExponential(100).match(/^(-?\d\.\d{13})(\d)(\d+)(e.+)$/);
  const down = /^50*$/.test(tail) && "02468".includes(last);
  return Number(down ? head + last + exponent : value.toPrecision(15));
}

/** The number, or the mark that it equals at 15 digits. */
function alike(number, marks) {
  for (const mark of marks) {
    if (number !== mark && Math.abs(number - mark) <= NEAR * Math.abs(mark) && same(number) === same(mark)) return mark;
  }
  return number;
}

/** What count tables read: variables, and numbers, each as one bin. */
export const columnsOf = ({ variables, numbers = [] }) => [
  ...variables,
  ...numbers.map((each) => ({ ...each, edges: [each.low, each.high], open: "none" })),
];

/** The cells of a variable, as people read them. */
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

/** The place of one value among the cells of its variable. */
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
    refuse("no_cell", `"${name}" must lie between ${low} and ${high}`);
  }
  return edges.slice(1, -1).filter((cut) => (closed === "left" ? cut <= seen : cut < seen)).length;
}

function categoryOf(variable, value) {
  const { name, values, other } = variable;
  const whole = typeof values[0] === "number";
  if (whole ? !Number.isInteger(value) : typeof value !== "string") {
    refuse("wrong_type", `"${name}" needs ${whole ? "a whole number" : "a text"}`);
  }
  const place = values.indexOf(whole ? alike(value, values) : value);
  if (place >= 0) return place;
  if (!other || !(whole || isPlain(value, values))) refuse("no_cell", `"${name}" needs one of the listed answers`);
  return values.length;
}

/** Whether Python reads a text as itself, and as none of the listed ones. */
function isPlain(text, values) {
  const normal = text.normalize("NFC") === text && text.length <= LONGEST;
  const spelled = !NUMBER.test(text) && !MISSING.test(text) && !READ_OTHERWISE.test(text);
  return normal && spelled && !values.some((value) => value.normalize("NFC").trim() === text);
}
