/** X-Wing, which is X25519 and ML-KEM-768 together: whoever imports this module can answer studies whose plan says so. */
import { noble } from "../vendor/noble.js";
import { fromHex, join } from "./bytes.js";
import { exchange, SUITES } from "./seal.js";

const PUBLIC = 1184;
const LABEL = fromHex("5c2e2f2f5e5c");

/** WebCrypto's own ML-KEM, which draws inside; null where a browser has none, as most. */
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

/** X-Wing's encapsulation (draft-connolly-cfrg-xwing-kem-10): `enc` of 1,120 bytes, and the secret; throws for no key. */
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
