/**
 * Seals a report as docs/one_upload.md defines it: secrets from one root, boxes by HPKE, the masked vector, a
 * signature.
 */
import {
  aesGcm,
  hkdf,
  hmac,
  join,
  pack,
  sha256,
  sign,
  u32,
  u8,
  utf8,
  x25519,
  x25519Private,
  x25519Public,
} from "./bytes.js";
import { bytesOf, lanesOf, packLanes, subtractStreams } from "./lanes.js";

export const label = (purpose) => join(utf8(`privstats/upload/1/${purpose}`), u8(0));
const derive = (secret, purpose, context) => hkdf(secret, context, `privstats/upload/${purpose}`);

/** Returns the digest of a run's public parameters. */
export function parametersDigest({ suite, clients, least, colluders, helpers, segments, plan, noisyHelpers }) {
  const numbers = [clients, least, colluders, helpers, helpers - 1];
  const stated = [utf8(suite.name), "split", numbers, segments, plan, ...(noisyHelpers ? ["noisy helpers"] : [])];
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

/**
 * Returns the public ephemeral key, and its shared secret with a receiver: null for a receiver of low order, so that
 * derivation throws.
 */
export async function exchange(receiver, ephemeral) {
  const held = await x25519Private(ephemeral);
  return Promise.all([x25519Public(held), x25519(held, receiver)]);
}

/** Encapsulates by DHKEM with X25519 (RFC 9180). */
async function dhkem(receiver, derived) {
  const [enc, exchanged] = await exchange(receiver, await derived("ephemeral"));
  const names = utf8("KEM\0 ");
  const prk = await extract(names, NOTHING, "eae_prk", exchanged);
  return [enc, await expand(names, prk, "shared_secret", join(enc, receiver), 32)];
}

/**
 * The suites that seal a report, by the plan's `key_agreement`, which is omitted for X25519 alone. `first` is the first
 * panel index with a box besides the body. If `first` is 1, the body is the leader's box; if 0, that box has the body's
 * key.
 */
export const SUITES = new Map().set(undefined, {
  name: "privstats/upload/1 X25519 Ed25519 HKDF-SHA256 AES-256-GCM",
  offer: "offer-until",
  keyBytes: 32,
  first: 1,
  kem: "\0 ",
  encapsulate: dhkem,
});

/** Seals one message by HPKE (RFC 9180) in base mode: `enc || ciphertext || tag`. */
async function hpkeSeal({ kem, encapsulate }, receiver, derived, content, info) {
  const [enc, shared] = await encapsulate(receiver, derived);
  const suite = join(utf8(`HPKE${kem}`), Uint8Array.of(0, 1, 0, 2));
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

/** Returns the Merkle root over the boxes, which start at panel index `first`. */
async function boxesRoot(boxes, first) {
  let level = await Promise.all(boxes.map((box, i) => sha256(label("box-hash"), u8(i + first), box)));
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
 * @param run suite, context (32 bytes), boxKeys (leader first), segments ([size, bits], ...)
 * @param sender the index on the roster, and its signing key
 * @param vector integers, one per entry of the ring
 * @param root 32 secret random bytes, which are set to zeros
 */
export async function reportOf({ suite, context, boxKeys, segments }, { index, key }, vector, root) {
  const lanes = lanesOf(vector, segments);
  const secret = await secretOf(root, context, index, lanes);
  root.fill(0);
  const seeds = await Promise.all(boxKeys.slice(1).map((_, i) => derive(secret, `seed/${i + 1}`, context)));
  await subtractStreams(lanes, await Promise.all(seeds.map((seed) => derive(seed, `stream/${index}`, context))));
  const sealed = (content, place) => {
    const derived = (purpose) => derive(secret, `${purpose}/${place}`, context);
    return hpkeSeal(suite, boxKeys[place], derived, content, join(label("box"), context, u32(index), u8(place)));
  };
  const { first } = suite;
  const packed = packLanes(lanes);
  const keys = first ? [] : [await derive(secret, "body", context)];
  const body = await (first ? sealed(packed, 0) : aesGcm(keys[0], new Uint8Array(12), packed));
  const boxes = await Promise.all([...keys, ...seeds].map((content, i) => sealed(content, i + first)));
  const head = body.subarray(0, 32 * first);
  const statement = join(label("report"), context, u32(index), head, await boxesRoot(boxes, first));
  return join(u8(1), pack([0, context, index, join(...boxes), body, await sign(key, statement)]));
}
