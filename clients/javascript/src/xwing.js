/** Encapsulates by X-Wing: X25519 and ML-KEM-768 together. */
import { noble } from "../vendor/noble.js";
import { fromHex, join, x25519, x25519Private, x25519Public } from "./bytes.js";

const PUBLIC = 1184;
/** The length of a box key. */
export const KEY_BYTES = PUBLIC + 32;
const LABEL = fromHex("5c2e2f2f5e5c");

/** Encapsulates by WebCrypto's own ML-KEM, with its own randomness; null in a browser without it, as most are. */
async function native(receiver) {
  /** @type {any} TypeScript does not know this part of WebCrypto yet */
  const subtle = crypto.subtle;
  try {
    const key = await subtle.importKey("raw-public", receiver, "ML-KEM-768", false, ["encapsulateBits"]);
    const { ciphertext, sharedKey } = await subtle.encapsulateBits("ML-KEM-768", key);
    return [new Uint8Array(ciphertext), new Uint8Array(sharedKey)];
  } catch {
    return null;
  }
}

function portable(receiver, message) {
  const { cipherText, sharedSecret } = noble.ml_kem768.encapsulate(receiver, message);
  return [cipherText, sharedSecret];
}

/**
 * Encapsulates by X-Wing (draft-connolly-cfrg-xwing-kem-10): returns `enc`, 1,120 bytes, and the secret; throws for an
 * invalid key.
 */
export async function encapsulate(receiver, derived) {
  const [lattice, curve] = [receiver.subarray(0, PUBLIC), receiver.subarray(PUBLIC)];
  const held = await x25519Private(await derived("ephemeral"));
  const [enc, exchanged, own] = await Promise.all([x25519Public(held), x25519(held, curve), native(lattice)]);
  const [ciphertext, shared] = own ?? portable(lattice, await derived("encapsulate"));
  return [join(ciphertext, enc), noble.sha3_256(join(shared, exchanged, enc, curve, LABEL))];
}
