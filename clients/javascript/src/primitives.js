/** Tries each cryptographic primitive once, so that a refusal can name those that this browser lacks. */
import { aesGcm, hkdf, hmac, sha256, sign, signingKey, x25519Private, x25519Public } from "./bytes.js";
import { refuse } from "./errors.js";

const SOME = new Uint8Array(32).fill(1);

const TRIED = {
  "SHA-256": () => sha256(SOME),
  HMAC: () => hmac(SOME, SOME),
  HKDF: () => hkdf(SOME, SOME, ""),
  "AES-GCM": () => aesGcm(SOME, SOME.subarray(0, 12), SOME),
  Ed25519: async () => sign(await signingKey(SOME), SOME),
  X25519: async () => x25519Public(await x25519Private(SOME)),
};

/**
 * Refuses a browser that lacks a primitive: arithmetic in JavaScript would replace it, in a time that depends on the
 * key.
 */
export async function requirePrimitives() {
  const lacks = async ([name, attempt]) => ((await attempt().then(Boolean, () => false)) ? [] : [name]);
  const tried = await Promise.all(Object.entries(TRIED).map(lacks));
  const missing = globalThis.crypto?.subtle ? tried.flat().join(", ") : "a secure connection (https)";
  if (missing)
    refuse("too_old", `This browser is too old to send an answer safely: it lacks ${missing}. Use another one.`);
}
