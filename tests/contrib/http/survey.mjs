// People of a survey in one process: each opens an invitation, reads the questions in a language, answers and sends,
// with the library's own client. Prints what was asked by language, and how many answers were sent.
import { readFileSync } from "node:fs";

const { client, pins, words, people } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { open, inMemory } = await import(client);

/** The value that stands behind what a person reads and chooses; a number, or null for "rather not say", is itself. */
const valueOf = ({ kind, choices }, said) =>
  kind === "choice" && said !== null ? choices.find(({ label }) => label === said).value : said;

const asked = {};
const sent = {};
async function answer({ link, language, answers }) {
  const run = await open(link, pins, { store: inMemory(), words: words[language], languages: [language] });
  asked[language] = {
    title: run.title,
    questions: run.fields.map(({ question, choices }) => [question, (choices ?? []).map(({ label }) => label)]),
    promise: run.words.find(({ key }) => key === "promise").text,
  };
  const records = Object.fromEntries(run.fields.map((field) => [field.name, [valueOf(field, answers[field.name])]]));
  const end = await run.send(await run.seal(run.measure(records)), { patience: 60_000 });
  sent[end] = (sent[end] ?? 0) + 1;
}

const waiting = [...people];
const lane = async () => {
  while (waiting.length) await answer(waiting.pop());
};
await Promise.all(Array.from({ length: 8 }, lane));
console.log(JSON.stringify({ asked, sent }));
