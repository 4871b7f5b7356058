// Many devices in one process: each opens its invitation, measures, seals and sends with the library's own client.
// First all are sealed; after a line on standard input all are sent, so many at a time. What happened goes to standard output.
import { readFileSync } from "node:fs";
import { once } from "node:events";

const told = JSON.parse(readFileSync(process.argv[2]));
const { open, inMemory } = await import(told.client);

function recordsOf(index) {
  const row = Array.from({ length: told.features }, (_, at) => (((index * 31 + at * 17) % 64) - 32) / 512);
  return { X: [row], y: [index % told.classes] };
}

// the manifest is the same bytes for everybody: it is fetched by each connection's first device
let manifest = null;
const asked = async (url, options = {}) => {
  if (options.method === "PUT") return fetch(url, options);
  manifest ??= await (async () => {
    const response = await fetch(url, options);
    return { body: await response.text(), headers: response.headers };
  })();
  return new Response(manifest.body, { headers: manifest.headers });
};

async function inTurn(items, width, work) {
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const at = next++;
      await work(items[at], at);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
}

const began = process.cpuUsage();
const devices = [];
await inTurn(told.links, 8, async ([index, link]) => {
  const run = await open(link, told.pins, { store: inMemory(), fetch: asked });
  devices.push({ index, run, report: await run.seal(run.measure(recordsOf(index))) });
});
const cpu = process.cpuUsage(began);
console.log(JSON.stringify({ sealed: devices.length, cpu: (cpu.user + cpu.system) / 1e6, bytes: devices[0].report.bytes.length }));
await once(process.stdin, "data");

const found = { sent: [], seconds: [], waits: 0, refused: {} };
const start = performance.now();
await inTurn(devices, told.connections, async ({ index, run, report }) => {
  const from = performance.now();
  try {
    const answer = await run.send(report, { patience: told.patience * 1000, onWaiting: () => (found.waits += 1) });
    if (answer === "sent") found.sent.push(index);
    else found.refused[answer] = (found.refused[answer] ?? 0) + 1;
    found.seconds.push((performance.now() - from) / 1000);
  } catch (error) {
    const code = error.code ?? String(error);
    found.refused[code] = (found.refused[code] ?? 0) + 1;
  }
});
console.log(JSON.stringify({ ...found, whole: (performance.now() - start) / 1000 }));
process.exit(0);
