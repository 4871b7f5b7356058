/** What a page says and asks, of the plan alone: in its own texts, where it has them. */
import { cellsOf, columnsOf, OTHER } from "./cells.js";
import { unsupported } from "./errors.js";
import { say } from "./say.js";

const TRUSTED_REGISTRAR = "the registrar is trusted with every answer";

/** Two digits of a factor, rounded to the side where the sentence stays true. */
function few(value) {
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.ceil(value / step) * step).toPrecision(2));
}

/** In how many one failure is, at least, to two digits; of delta's decimal text, because 1 / 1e-5 is below 100,000. */
export function oneIn(delta) {
  const [digits, exponent] = delta.toExponential().split("e");
  const whole = digits.replace(".", "");
  const found = String(10n ** BigInt(whole.length - 1 - Number(exponent)) / BigInt(whole));
  return Number(found.slice(0, 2).padEnd(found.length, "0"));
}

/**
 * Sentences for the person who answers, in the order in which they are read: what each is about, its key and values in
 * the table of words, whether it stands before the first question or behind "more", and its text.
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
  const values = { factor: few(Math.exp(epsilon)), chance: oneIn(delta), epsilon, delta };
  return [unit === "client" ? "promise" : "promise.record", values];
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

/** The plan's own texts in the first of some languages that it has, else its first; and which language that is. */
export function textsIn({ texts = {} }, languages) {
  const tags = Object.keys(texts);
  const fits = (tag) => (wanted) => tag === wanted || wanted.startsWith(`${tag}-`) || tag.startsWith(`${wanted}-`);
  const found = languages.flatMap((wanted) => tags.filter((tag) => fits(tag)(wanted)))[0] ?? tags[0];
  return found === undefined ? {} : { ...texts[found], lang: found };
}

/**
 * The form's fields: `number` with its bounds, or `choice` with the plan's own values. `optional` fields take null,
 * which is a choice of its own ("rather not say") and never a blank.
 *
 * @returns {import("../privstats.js").Field[]}
 */
export function fieldsOf(schema, words, texts) {
  if (schema.task !== "counts") unsupported("a form of anything but counts");
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
