/** Writes a page's sentences and questions from the plan alone, with the plan's own texts if it has some. */
import { cellsOf, columnsOf, OTHER } from "./cells.js";
import { unsupported } from "./errors.js";
import { say } from "./say.js";

const TRUSTED_REGISTRAR = "the registrar is trusted with every answer";

/** Rounds a factor up to two digits, so that "no more than this factor" stays true. */
function few(value) {
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  // a factor beyond float64 is Infinity, which the formula turns into NaN
  return Number((Math.ceil(value / step) * step).toPrecision(2)) || value;
}

/**
 * Returns 1 / delta, rounded down to two digits. It reads delta's decimal text, because 1 / 1e-5 in float64 is below
 * 100,000.
 */
export function oneIn(delta) {
  const [digits, exponent] = delta.toExponential().split("e");
  const whole = digits.replace(".", "");
  const found = String(10n ** BigInt(whole.length - 1 - Number(exponent)) / BigInt(whole));
  return Number(found.slice(0, 2).padEnd(found.length, "0"));
}

/**
 * Returns the sentences for the person who answers, in reading order. Each has its topic (`about`), its key and values
 * in the table of words, whether it is shown before the first question (`brief`) or behind "more", and its text.
 */
export function wordsOf({ schema, cohort, privacy, devices }, words, texts) {
  const { organisations, registrar, page, most_runs: runs, exact } = devices;
  const word = (about, key, values = {}, brief = false) => ({
    about,
    key,
    values,
    brief,
    text: say(words, key, values),
  });
  const own = page === TRUSTED_REGISTRAR;
  return [
    word("sent", organisations.length > 2 ? "sent.more" : "sent.two", { all: organisations }, true),
    word("made", "made", { least: cohort.min_survivors }, true),
    word("promise", ...promiseOf(privacy, devices), true),
    ...(exact ? [word("promise", "trusted", { leader: organisations[0] }, true)] : []),
    word("final", "final", {}, true),
    word("page", own ? "page.registrar" : "page", { page: own ? registrar : page }, true),
    ...askedOf(schema, words, texts, word),
    ...(privacy.model === "none" || runs === 1 ? [] : [word("promise", "times", { runs })]),
    word("known", "known", { others: [...organisations, registrar] }),
    word("here", "here"),
  ];
}

function promiseOf({ model, delta, unit }, { stated_epsilon: epsilon }) {
  if (model === "none") return ["exact", {}];
  const key = unit === "client" ? "promise" : "promise.record";
  const values = { factor: few(Math.exp(epsilon)), chance: delta && oneIn(delta), epsilon, delta };
  return [delta ? key : `${key}.pure`, values];
}

function askedOf(schema, words, texts, word) {
  if (schema.task !== "counts") return [word("asked", "asked.sums", { features: schema.features })];
  const told = (variable) => {
    const { question = variable.name, answers } = askedIn(texts, variable.name);
    const listed = (variable.values ?? []).map((value) => labelOf(value, answers));
    const cells = [...listed, ...cellsOf(variable, words).slice(listed.length)];
    return `${question} (${cells.join(", ")})`;
  };
  return ["asked.counts", "asked.numbers"].flatMap((key, i) => {
    const asked = columnsOf(schema).filter((each) => "low" in each === i > 0);
    return asked.length ? [word("asked", key, { asked: asked.map(told) })] : [];
  });
}

const askedIn = (texts, name) => (Object.hasOwn(texts.questions ?? {}, name) ? texts.questions[name] : {});

const labelOf = (value, answers = {}) => (Object.hasOwn(answers, value) ? answers[value] : String(value));

/**
 * Returns the plan's own texts in the first of `languages` that it has, else in its first language; `lang` names the
 * language.
 */
export function textsIn({ texts = {} }, languages) {
  const tags = Object.keys(texts);
  const fits = (tag) => (wanted) => tag === wanted || wanted.startsWith(`${tag}-`) || tag.startsWith(`${wanted}-`);
  const found = languages.flatMap((wanted) => tags.filter((tag) => fits(tag)(wanted)))[0] ?? tags[0];
  return found === undefined ? {} : { ...texts[found], lang: found };
}

/**
 * Returns the form's fields: a `number` with its bounds, or a `choice` with the plan's own values. An `optional` field
 * accepts null, which is a choice of its own ("rather not say") and never a blank.
 *
 * @returns {import("../privstats.js").Field[]}
 */
export function fieldsOf(schema, words, texts) {
  if (schema.task !== "counts") unsupported(`a form for ${schema.task}`);
  return columnsOf(schema).map(({ name, values, edges, other, missing = false, open = "both" }) => {
    const { question = name, help, answers } = askedIn(texts, name);
    const asked = { name, question, ...(help ? { help } : {}) };
    if (!edges) {
      const choices = values.map((value) => ({ label: labelOf(value, answers), value }));
      const fresh = typeof values[0] === "string" ? OTHER : Math.max(...values) + 1;
      if (other) choices.push({ label: words["cell.other"], value: fresh });
      return { ...asked, kind: "choice", optional: missing, choices };
    }
    const min = ["both", "below"].includes(open) ? undefined : edges[0];
    const max = ["both", "above"].includes(open) ? undefined : edges.at(-1);
    return { ...asked, kind: "number", optional: missing, min, max };
  });
}
