/**
 * The cell of one value in a count table. It follows from that value and the plan alone, and nothing is coerced: a bin
 * takes a finite number, a category a text (or a whole number, where the plan lists whole numbers), and null is what is
 * missing. Python reads further spellings as one value (`" yes"`, `"7.0"`); such a text is refused here, so that no
 * accepted value counts in another cell than there.
 */
import { refuse } from "./errors.js";
import { powerOfTwo } from "./grid.js";

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

/** The cells of a variable, as people read them. */
export function cellsOf({ values, edges, closed = "left", open = "both", other, missing }) {
  const named = edges ? binsOf(edges, closed, open) : values.map(String);
  return [...named, ...(other ? ["another answer"] : []), ...(missing ? ["rather not say"] : [])];
}

function binsOf(edges, closed, open) {
  const left = closed === "left";
  const bins = edges.slice(1).map((high, i) => `${edges[i]} to ${high}`);
  if (["both", "below"].includes(open)) bins[0] = `${left ? "under" : "up to"} ${edges[1]}`;
  if (["both", "above"].includes(open))
    bins[bins.length - 1] = left ? `${edges.at(-2)} or more` : `over ${edges.at(-2)}`;
  return bins;
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
