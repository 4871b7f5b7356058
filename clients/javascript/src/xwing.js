/**
 * Adds the suite X-Wing (X25519 and ML-KEM-768 together), which some plans require: importing this module registers it.
 */
import { noble } from "../vendor/noble.js";
import { fromHex, join } from "./bytes.js";
import { exchange, SUITES } from "./seal.js";

const PUBLIC = 1184;
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
async function encapsulate(receiver, derived) {
  const [lattice, curve] = [receiver.subarray(0, PUBLIC), receiver.subarray(PUBLIC)];
  const [[enc, exchanged], own] = await Promise.all([exchange(curve, await derived("ephemeral")), native(lattice)]);
  const [ciphertext, shared] = own ?? portable(lattice, await derived("encapsulate"));
  return [join(ciphertext, enc), noble.sha3_256(join(shared, exchanged, enc, curve, LABEL))];
}

SUITES.set("mlkem768-x25519", {
  name: "privstats/upload/3 X-Wing Ed25519 HKDF-SHA256 AES-256-GCM",
  offer: "offer-xwing",
  keyBytes: PUBLIC + 32,
  first: 0,
  kem: "dz",
  encapsulate,
});
