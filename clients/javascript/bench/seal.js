/** Milliseconds of a report, beside the floor of the same work: node bench/seal.js */
import { aesGcm, join, signingKey, x25519Private, x25519Public } from "../src/bytes.js";
import { bytesOf, lanesOf, subtractStreams } from "../src/lanes.js";
import { reportOf } from "../src/seal.js";
import { noble } from "../vendor/noble.js";

const boxKeys = await Promise.all(
  [1, 2, 3].map(async (byte) => {
    const curve = await x25519Public(await x25519Private(new Uint8Array(32).fill(byte)));
    return join(noble.ml_kem768.keygen(new Uint8Array(64).fill(byte)).publicKey, curve);
  }),
);
const key = await signingKey(new Uint8Array(32).fill(9));

async function least(times, work) {
  let best = Infinity;
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    await work();
    best = Math.min(best, performance.now() - start);
  }
  return best.toFixed(1);
}

for (const [entries, bits] of [
  [2730, 32],
  [2730, 36],
  [125205, 38],
  [1000000, 32],
  [1000000, 36],
]) {
  const segments = [[entries, bits]];
  const vector = Float64Array.from({ length: entries }, (_, i) => (i % 2 ? -i : i * 4096));
  const root = () => crypto.getRandomValues(new Uint8Array(32));
  const run = { context: root(), boxKeys, segments };
  const whole = await least(7, () => reportOf(run, { index: 7, key }, vector, root()));
  const floor = await least(7, async () => {
    const [lane] = lanesOf(vector, segments);
    const nothing = new Uint8Array();
    await aesGcm(root(), new Uint8Array(12), nothing, bytesOf(lane));
    await subtractStreams([lane], [root()]);
    await aesGcm(root(), new Uint8Array(12), bytesOf(lane));
  });
  console.log(`${entries} entries of ${bits} bits, 2 helpers: ${whole} ms; hedge, one stream, box: ${floor} ms`);
}
