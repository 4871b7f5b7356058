/**
 * Seals a report as docs/wire/device.md defines it: secrets from one root, boxes by HPKE, the masked vector, a
 * signature.
 */
import { aesGcm, hkdf, hmac, join, pack, sha256, sign, toHex, u32, u8, utf8 } from "./bytes.js";
import { bytesOf, lanesOf, packLanes, subtractStreams } from "./lanes.js";
import { encapsulate } from "./xwing.js";

const SUITE = "privstats/upload/3 X-Wing Ed25519 HKDF-SHA256 AES-256-GCM";

export const label = (purpose) => join(utf8(`privstats/upload/1/${purpose}`), u8(0));

/** Returns the hex of the context in a report: the run, the panel and the suite that it was sealed for. */
export const contextIn = (report) => toHex(report.subarray(5, 37));

const derive = (secret, purpose, context) => hkdf(secret, context, `privstats/upload/${purpose}`);

/** Returns the digest of a run's public parameters. */
export function parametersDigest({ clients, least, colluders, helpers, segments, plan, noisyHelpers }) {
  const numbers = [clients, least, colluders, helpers, helpers - 1];
  const stated = [utf8(SUITE), "split", numbers, segments, plan, ...(noisyHelpers ? ["noisy helpers"] : [])];
  return sha256(utf8("privstats/upload/parameters"), pack(stated));
}

/** Returns a run's context, from the digests of its parameters and roster, and its members' identities and box keys. */
export async function contextOf(parameters, roster, members) {
  const panel = await sha256(label("panel"), ...members.flatMap(({ identity, boxKey }) => [identity, boxKey]));
  return sha256(label("context"), parameters, roster, panel);
}

const VERSION = utf8("HPKE-v1");
const NOTHING = new Uint8Array();

const extract = (names, salt, purpose, content) => hmac(salt, VERSION, names, utf8(purpose), content);

async function expand(names, secret, purpose, info, size) {
  return (await hmac(secret, u8(0), u8(size), VERSION, names, utf8(purpose), info, u8(1))).subarray(0, size);
}

/** Seals one message by HPKE (RFC 9180) in base mode, with X-Wing (KEM 0x647a): `enc || ciphertext || tag`. */
async function hpkeSeal(receiver, derived, content, info) {
  const [enc, shared] = await encapsulate(receiver, derived);
  const suite = join(utf8("HPKEdz"), Uint8Array.of(0, 1, 0, 2));
  const [names, about, secret] = await Promise.all([
    extract(suite, NOTHING, "psk_id_hash", NOTHING),
    extract(suite, NOTHING, "info_hash", info),
    extract(suite, shared, "secret", NOTHING),
  ]);
  const context = join(u8(0), names, about);
  const [key, nonce] = await Promise.all([
    expand(suite, secret, "key", context, 32),
    expand(suite, secret, "base_nonce", context, 12),
  ]);
  return join(enc, await aesGcm(key, nonce, content));
}

/** Returns the Merkle root over the boxes, the leader's first. */
async function boxesRoot(boxes) {
  let level = await Promise.all(boxes.map((box, i) => sha256(label("box-hash"), u8(i), box)));
  while (level.length & (level.length - 1)) level.push(new Uint8Array(32));
  while (level.length > 1) {
    const pairs = level.filter((_, i) => i % 2 === 0).map((left, i) => [left, level[2 * i + 1]]);
    level = await Promise.all(pairs.map((pair) => sha256(utf8("privstats/secagg/2/node\0"), ...pair)));
  }
  return level[0];
}

async function secretOf(root, context, sender, lanes) {
  const key = await derive(root, "hedge", context);
  const hedge = await aesGcm(key, new Uint8Array(12), NOTHING, join(u32(sender), ...lanes.map(bytesOf)));
  return derive(join(root, hedge), `secret/${sender}`, context);
}

/**
 * Returns the bytes of one report.
 *
 * @param run context (32 bytes), boxKeys (leader first), segments ([size, bits], ...)
 * @param sender the index on the roster, and its signing key
 * @param vector integers, one per entry of the ring
 * @param root 32 secret random bytes, which are set to zeros
 */
export async function reportOf({ context, boxKeys, segments }, { index, key }, vector, root) {
  const lanes = lanesOf(vector, segments);
  const secret = await secretOf(root, context, index, lanes);
  root.fill(0);
  const seeds = await Promise.all(boxKeys.slice(1).map((_, i) => derive(secret, `seed/${i + 1}`, context)));
  await subtractStreams(lanes, await Promise.all(seeds.map((seed) => derive(seed, `stream/${index}`, context))));
  const sealed = (content, place) => {
    const derived = (purpose) => derive(secret, `${purpose}/${place}`, context);
    return hpkeSeal(boxKeys[place], derived, content, join(label("box"), context, u32(index), u8(place)));
  };
  const bodyKey = await derive(secret, "body", context);
  const body = await aesGcm(bodyKey, new Uint8Array(12), packLanes(lanes));
  const boxes = await Promise.all([bodyKey, ...seeds].map(sealed));
  const statement = join(label("report"), context, u32(index), await boxesRoot(boxes));
  return join(u8(1), pack([0, context, index, join(...boxes), body, await sign(key, statement)]));
}
