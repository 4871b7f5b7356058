/** A report, as docs/one_upload.md defines it: secrets from one root, boxes by HPKE, the masked vector, a signature. */
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
import { refuse } from "./errors.js";
import { bytesOf, lanesOf, packLanes, subtractStreams } from "./lanes.js";

const SUITE = utf8("privstats/upload/1 X25519 Ed25519 HKDF-SHA256 AES-256-GCM");

export const label = (purpose) => join(utf8(`privstats/upload/1/${purpose}`), u8(0));
const derive = (secret, purpose, context) => hkdf(secret, context, `privstats/upload/${purpose}`);

/** The digest of a run's public parameters. */
export function parametersDigest({ clients, least, colluders, helpers, segments, plan, noisyHelpers }) {
  const numbers = [clients, least, colluders, helpers, helpers - 1];
  const stated = [SUITE, "split", numbers, segments, plan, ...(noisyHelpers ? ["noisy helpers"] : [])];
  return sha256(utf8("privstats/upload/parameters"), pack(stated));
}

/** The context of a run, from the digests of its parameters and roster and its members' identities and box keys. */
export async function contextOf(parameters, roster, members) {
  const panel = await sha256(label("panel"), ...members.flatMap(({ identity, boxKey }) => [identity, boxKey]));
  return sha256(label("context"), parameters, roster, panel);
}

const KEM = utf8("KEM\0 ");
const HPKE = join(utf8("HPKE\0 "), Uint8Array.of(0, 1, 0, 2));
const VERSION = utf8("HPKE-v1");

const extract = (suite, salt, purpose, content) => hmac(salt, VERSION, suite, utf8(purpose), content);

async function expand(suite, secret, purpose, info, size) {
  return (await hmac(secret, u8(0), u8(size), VERSION, suite, utf8(purpose), info, u8(1))).subarray(0, size);
}

/** HPKE (RFC 9180) in base mode, one message: `enc || ciphertext || tag`. */
async function hpkeSeal(receiver, ephemeral, content, info) {
  const held = await x25519Private(ephemeral);
  const [enc, exchanged] = await Promise.all([x25519Public(held), x25519(held, receiver)]);
  if (exchanged === null) refuse("bad_offer", "a member of the study's panel offers a key that hides nothing");
  const empty = new Uint8Array();
  const prk = await extract(KEM, empty, "eae_prk", exchanged);
  const [shared, names, about] = await Promise.all([
    expand(KEM, prk, "shared_secret", join(enc, receiver), 32),
    extract(HPKE, empty, "psk_id_hash", empty),
    extract(HPKE, empty, "info_hash", info),
  ]);
  const context = join(u8(0), names, about);
  const secret = await extract(HPKE, shared, "secret", empty);
  const [key, nonce] = await Promise.all([
    expand(HPKE, secret, "key", context, 32),
    expand(HPKE, secret, "base_nonce", context, 12),
  ]);
  return join(enc, await aesGcm(key, nonce, content));
}

/** The Merkle root over the boxes for places 1, 2, ... */
async function boxesRoot(boxes) {
  let level = await Promise.all(boxes.map((box, i) => sha256(label("box-hash"), u8(i + 1), box)));
  while (level.length & (level.length - 1)) level.push(new Uint8Array(32));
  while (level.length > 1) {
    const pairs = level.filter((_, i) => i % 2 === 0).map((left, i) => [left, level[2 * i + 1]]);
    level = await Promise.all(pairs.map((pair) => sha256(utf8("privstats/secagg/2/node\0"), ...pair)));
  }
  return level[0];
}

async function secretOf(root, context, sender, lanes) {
  const key = await derive(root, "hedge", context);
  const hedge = await aesGcm(key, new Uint8Array(12), new Uint8Array(), join(u32(sender), ...lanes.map(bytesOf)));
  return derive(join(root, hedge), `secret/${sender}`, context);
}

/**
 * The bytes of one report.
 *
 * @param run context (32 bytes), boxKeys (leader first), segments ([size, bits], ...)
 * @param sender the place on the roster, and the signing key behind it
 * @param vector whole numbers, one per entry of the ring
 * @param root 32 bytes that nobody else has; zeroed
 */
export async function reportOf({ context, boxKeys, segments }, { index, key }, vector, root) {
  const lanes = lanesOf(vector, segments);
  const secret = await secretOf(root, context, index, lanes);
  root.fill(0);
  const helpers = boxKeys.slice(1).map((_, i) => i + 1);
  const seeds = await Promise.all(helpers.map((place) => derive(secret, `seed/${place}`, context)));
  await subtractStreams(lanes, await Promise.all(seeds.map((seed) => derive(seed, `stream/${index}`, context))));
  const sealed = async (content, place) => {
    const ephemeral = await derive(secret, `ephemeral/${place}`, context);
    return hpkeSeal(boxKeys[place], ephemeral, content, join(label("box"), context, u32(index), u8(place)));
  };
  const [body, ...boxes] = await Promise.all([packLanes(lanes), ...seeds].map(sealed));
  const statement = join(label("report"), context, u32(index), body.subarray(0, 32), await boxesRoot(boxes));
  return join(u8(1), pack([0, context, index, join(...boxes), body, await sign(key, statement)]));
}
