/** Reads invitations, `1.<index>.<code>.<check>`, from a link's fragment or typed from paper. */
import { hkdf, join, sha256, u8, utf8 } from "./bytes.js";
import { refuse } from "./errors.js";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LINK = /^#?1\.(0|[1-9][0-9]{0,9})\.([A-Z2-7]{26})\.([A-Z2-7]{4})$/;

function base32(bytes) {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits
    .match(/.{1,5}/g)
    .map((five) => LETTERS[parseInt(five.padEnd(5, "0"), 2)])
    .join("");
}

function codeBytes(code) {
  const bits = Array.from(code, (letter) => LETTERS.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Uint8Array.from(bits.slice(0, 128).match(/.{8}/g), (eight) => parseInt(eight, 2));
}

/** Returns the index and the 16-byte code of an invitation, or of the link that contains it; refuses a wrong letter. */
export async function readLink(text) {
  const plain = String(text)
    .slice(String(text).lastIndexOf("#") + 1)
    .replace(/[\s-]/g, "")
    .replace(/[a-z]/g, (letter) => letter.toUpperCase());
  const [, index, letters, check] = plain.match(LINK) ?? [];
  if (!index || Number(index) > 0xffffffff)
    refuse("bad_link", "this invitation is not complete: copy it again, to its last letter");
  const code = codeBytes(letters);
  const sum = await sha256(utf8("privstats/devices/1/link"), u8(0), utf8(`1.${index}.${letters}`));
  if (base32(sum).slice(0, 4) !== check || base32(code) !== letters) {
    refuse("bad_link", "a letter of this invitation is wrong: compare it with your letter, or copy it again");
  }
  return { index: Number(index), code };
}

/** Returns the seed of a code's signing key, and sets the code to zeros. */
export async function seedOf(code) {
  const seed = await hkdf(code, new Uint8Array(), "privstats/devices/1/identity");
  code.fill(0);
  return seed;
}

/** Returns the number by which a page names its study: a hash of run, plan and roster. */
export function studyOf(run, plan, roster) {
  return sha256(utf8("privstats/devices/1/study"), u8(0), u8(run.length), join(run, plan, roster));
}
