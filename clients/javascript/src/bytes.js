/** Bytes, hashes and keys through WebCrypto alone, and the part of msgpack that messages use. */
const TEXT = new TextEncoder();

export const utf8 = (text) => TEXT.encode(text);
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const u8 = (value) => Uint8Array.of(value);
export const u32 = (value) => Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);
export const equal = (left, right) => left.length === right.length && left.every((byte, i) => byte === right[i]);

/** Returns the bytes of lower-case hex digits, `size` bytes if that is given; null for any other value. */
export function fromHex(text, size) {
  if (typeof text !== "string" || !/^([0-9a-f]{2})*$/.test(text) || (size ?? text.length / 2) * 2 !== text.length)
    return null;
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

export function join(...parts) {
  const joined = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
}

export async function hmac(key, ...parts) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const held = await crypto.subtle.importKey("raw", key.length ? key : new Uint8Array(32), algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", held, join(...parts)));
}

export async function hkdf(secret, salt, info) {
  const held = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const algorithm = { name: "HKDF", hash: "SHA-256", salt, info: utf8(info) };
  return new Uint8Array(await crypto.subtle.deriveBits(algorithm, held, 256));
}

/** Wraps a raw private key as PKCS #8 (RFC 8410), because WebCrypto imports no raw private keys. */
function pkcs8(lastByte, raw) {
  return join(Uint8Array.of(48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, lastByte, 4, 34, 4, 32), raw);
}

export function x25519Private(raw) {
  return crypto.subtle.importKey("pkcs8", pkcs8(110, raw), "X25519", false, ["deriveBits"]);
}

/** Returns the shared secret; null for a point of low order, which WebCrypto refuses or turns into zeros. */
export async function x25519(held, peer) {
  try {
    const key = await crypto.subtle.importKey("raw", peer, "X25519", false, []);
    const shared = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: key }, held, 256));
    return shared.some((byte) => byte) ? shared : null;
  } catch (error) {
    if (error.name === "NotSupportedError") throw error;
    return null;
  }
}

const BASE_POINT = Uint8Array.of(9, ...new Uint8Array(31));

export const x25519Public = (held) => x25519(held, BASE_POINT);

/** Imports a signing key that no script can export. */
export function signingKey(seed) {
  return crypto.subtle.importKey("pkcs8", pkcs8(112, seed), "Ed25519", false, ["sign"]);
}

/** Returns the public key of a seed; null where the browser does not export it, as in Firefox. */
export async function publicOf(seed) {
  try {
    const readable = await crypto.subtle.importKey("pkcs8", pkcs8(112, seed), "Ed25519", true, ["sign"]);
    const { x } = await crypto.subtle.exportKey("jwk", readable);
    const letters = atob(x.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

export async function sign(key, statement) {
  return new Uint8Array(await crypto.subtle.sign("Ed25519", key, statement));
}

export async function verify(publicKey, signature, statement) {
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, statement);
  } catch (error) {
    if (error.name === "NotSupportedError") throw error;
    return false;
  }
}

export async function aesGcm(key, nonce, content, associated = new Uint8Array()) {
  const held = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  const algorithm = { name: "AES-GCM", iv: nonce, additionalData: associated };
  return new Uint8Array(await crypto.subtle.encrypt(algorithm, held, content));
}

/** Packs an integer up to 2^32 - 1, a text, bytes or a list in msgpack's shortest form. */
export function pack(value) {
  if (typeof value === "number") return packNumber(value);
  if (typeof value === "string") return join(header([0xd9, 0xda], value.length, 0xa0, 32), utf8(value));
  if (value instanceof Uint8Array) return join(header([0xc4, 0xc5, 0xc6], value.length), value);
  return join(header([null, 0xdc], value.length, 0x90, 16), ...value.map(pack));
}

function packNumber(value) {
  if (value < 0x80) return u8(value);
  if (value < 0x100) return Uint8Array.of(0xcc, value);
  if (value < 0x10000) return Uint8Array.of(0xcd, value >>> 8, value);
  return join(u8(0xce), u32(value));
}

function header(codes, size, fixed = 0, below = 0) {
  if (size < below) return u8(fixed | size);
  if (size < 0x100 && codes[0] !== null) return Uint8Array.of(codes[0], size);
  if (size < 0x10000) return Uint8Array.of(codes[1], size >>> 8, size);
  return join(u8(codes[2]), u32(size));
}
