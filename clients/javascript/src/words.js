/** What a page says and asks, of the plan alone. */
import { cellsOf, OTHER } from "./cells.js";
import { refuse } from "./errors.js";

const listed = (names, last) =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} ${last} ${names.at(-1)}`;

/** Two digits of a number, rounded to the side where the sentence stays true. */
function few(value, round) {
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((round(value / step) * step).toPrecision(2)).toLocaleString("en");
}

/** Sentences for the person who answers, in the order in which they are read. */
export function wordsOf({ schema, cohort, privacy, devices }) {
  const { organisations, registrar, page, most_runs: runs, stated_epsilon: epsilon } = devices;
  const all = listed(organisations, "and");
  const others = listed([...organisations, registrar], "and");
  const together = organisations.length > 2 ? "all" : "both";
  return [
    { about: "asked", text: askedOf(schema) },
    {
      about: "sent",
      text:
        `One message, locked on this device. It can be read only if ${all} ${together} work together against you, ` +
        "or by somebody who keeps it until today’s locks are broken.",
    },
    { about: "made", text: `They publish only totals, over at least ${cohort.min_survivors} answers.` },
    { about: "promise", text: promiseOf(privacy, devices, epsilon, runs) },
    {
      about: "known",
      text: `That you answered is not secret: ${others} can see which invitations were used, and when.`,
    },
    {
      about: "final",
      text: "Once sent, an answer cannot be changed or called back, not even before the study closes.",
    },
    { about: "here", text: "This browser remembers that an answer was sent, until you choose “Forget”." },
    { about: "page", text: pageOf(page, registrar) },
  ];
}

const TRUSTED_REGISTRAR = "the registrar is trusted with every answer";

function pageOf(page, registrar) {
  if (page !== TRUSTED_REGISTRAR) return `This page comes from ${page}, who must not change it to read answers.`;
  return `This page comes from ${registrar}, who could read your answer by changing it, and is trusted not to.`;
}

function promiseOf({ model, delta, unit }, { exact, words, organisations }, epsilon, runs) {
  const trusting = `${organisations[0]} sees the exact totals, and is trusted with them.`;
  if (model === "none") return `The totals are exact. ${trusting} Who knows all other answers could work out yours.`;
  const times = runs === 1 ? "" : ` All ${runs} times that you may be asked are counted together.`;
  const whose = unit === "client" ? "your answer" : `each record that this device holds (${words})`;
  const [factor, chance] = [few(Math.exp(epsilon), Math.ceil), few(1 / delta, Math.floor)];
  return (
    `Noise is added to the totals, so that they hardly depend on ${whose}: whatever you answer, no result becomes ` +
    `more than ${factor} times as likely, except with a chance of 1 in ${chance} (ε = ${epsilon}).` +
    `${times}${exact ? ` ${trusting}` : ""}`
  );
}

function askedOf(schema) {
  if (schema.task !== "counts") return `Sums over ${schema.features} numbers of each record.`;
  const parts = schema.variables.map((variable) => `${variable.name} (${cellsOf(variable).join(", ")})`);
  return `${listed(parts, "and")}. Only the group that your answer falls into is counted.`;
}

/**
 * The form's fields: `number` with its bounds, or `choice` with the plan's own values. `optional` fields take null,
 * which is a choice of its own ("rather not say") and never a blank.
 */
export function fieldsOf(schema) {
  if (schema.task !== "counts") refuse("unsupported", "a form needs a plan of counts");
  return schema.variables.map(({ name, values, edges, other, missing = false, open = "both" }) => {
    if (!edges) {
      const choices = values.map((value) => ({ label: String(value), value }));
      const fresh = typeof values[0] === "string" ? OTHER : Math.max(...values) + 1;
      return {
        name,
        kind: "choice",
        optional: missing,
        choices: [...choices, ...(other ? [{ label: "another answer", value: fresh }] : [])],
      };
    }
    const min = ["both", "below"].includes(open) ? undefined : edges[0];
    const max = ["both", "above"].includes(open) ? undefined : edges.at(-1);
    return { name, kind: "number", optional: missing, min, max };
  });
}
