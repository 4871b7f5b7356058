/**
 * Vectors of a ring, as 32-bit words: one word for an entry of up to 32 bits, two (low, high) for a wider one. The
 * bytes of these arrays are the ones that privstats/secagg/prg.py masks and privstats/files/packing.py packs, tile by
 * tile.
 */
import { refuse } from "./errors.js";
import { join, u32 } from "./bytes.js";

const TILE = 1 << 16;
const WORD = 4294967296;

/** Returns the words of a vector of integers, segment by segment, truncated to the widths of the segments. */
export function lanesOf(vector, segments) {
  if (new Uint8Array(Uint32Array.of(1).buffer)[0] !== 1) refuse("unsupported", "this machine is big-endian");
  let start = 0;
  return segments.map(([size, bits]) => {
    const words = new Uint32Array(bits > 32 ? 2 * size : size);
    const mask = maskOf(bits > 32 ? bits - 32 : bits);
    for (let i = 0; i < size; i++) {
      const value = vector[start + i];
      if (bits <= 32) words[i] = value & mask;
      else {
        words[2 * i] = value;
        words[2 * i + 1] = Math.floor(value / WORD) & mask;
      }
    }
    start += size;
    return { words, size, bits };
  });
}

function maskOf(bits) {
  return bits === 32 ? -1 : (1 << bits) - 1;
}

export const bytesOf = ({ words }) => new Uint8Array(words.buffer);

/** Subtracts the keystreams of 32-byte keys from the words, in place. */
export async function subtractStreams(lanes, keys) {
  const held = await Promise.all(keys.map((key) => crypto.subtle.importKey("raw", key, "AES-CTR", false, ["encrypt"])));
  const zeros = new Uint8Array(
    4 * Math.max(...lanes.map((lane) => Math.min(lane.words.length, lanesWords(lane, TILE)))),
  );
  for (const [number, lane] of lanes.entries()) {
    for (let start = 0, tile = 0; start < lane.size; start += TILE, tile++) {
      const part = lane.words.subarray(lanesWords(lane, start), lanesWords(lane, Math.min(start + TILE, lane.size)));
      const counter = join(u32(number), u32(0), u32(tile), u32(2));
      for (const key of held) {
        const algorithm = { name: "AES-CTR", counter, length: 32 };
        const stream = await crypto.subtle.encrypt(algorithm, key, zeros.subarray(0, part.byteLength));
        (lane.bits > 32 ? subtractPairs : subtractWords)(part, new Uint32Array(stream));
      }
    }
  }
}

const lanesWords = ({ bits }, entries) => (bits > 32 ? 2 * entries : entries);

function subtractWords(words, stream) {
  for (let i = 0; i < words.length; i++) words[i] -= stream[i];
}

function subtractPairs(words, stream) {
  for (let i = 0; i < words.length; i += 2) {
    const borrow = words[i] < stream[i] ? 1 : 0;
    words[i] -= stream[i];
    words[i + 1] -= stream[i + 1] + borrow;
  }
}

export const packedBytes = (segments) => segments.reduce((sum, [size, bits]) => sum + Math.ceil((size * bits) / 8), 0);

/** Packs the low bits of every entry into `packedBytes` bytes. */
export function packLanes(lanes) {
  const out = new Uint8Array(packedBytes(lanes.map(({ size, bits }) => [size, bits])));
  let at = 0;
  for (const lane of lanes) {
    for (let start = 0; start < lane.size; start += TILE) {
      at = packTile(lane, start, Math.min(TILE, lane.size - start), out, at);
    }
  }
  return out;
}

const ARRAYS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

/** Packs full bytes as planes of 8, 4, 2 and 1 bytes, then the top bits; returns the offset of the next tile. */
function packTile(lane, start, count, out, at) {
  const step = lane.bits > 32 ? 2 : 1;
  const words = lane.words.subarray(start * step, (start + count) * step);
  let column = 0;
  for (const width of [8, 4, 2, 1]) {
    if (!((lane.bits >>> 3) & width)) continue;
    const plane = width === 8 ? words : new ARRAYS[width](count);
    if (width < 8) {
      const shift = 8 * (column & 3);
      for (let i = 0, from = column >> 2; i < count; i++, from += step) plane[i] = words[from] >>> shift;
    }
    out.set(new Uint8Array(plane.buffer, plane.byteOffset, plane.byteLength), at);
    at += width * count;
    column += width;
  }
  return lane.bits & 7 ? packTop(words, step, column, lane.bits & 7, count, out, at) : at;
}

/**
 * Packs the top bits of every eight entries into one word, and all words as planes of bytes; the last entries follow.
 */
function packTop(words, step, column, bits, count, out, at) {
  const groups = count >>> 3;
  const shift = 8 * (column & 3);
  const mask = (1 << bits) - 1;
  const last = at + bits * groups;
  for (let entry = 0, from = column >> 2; entry < count;) {
    const group = entry >>> 3;
    const [place, stride] = group < groups ? [at + group, groups] : [last, 1];
    let held = 0;
    let length = 0;
    let to = place;
    for (const end = Math.min(entry + 8, count); entry < end; entry++, from += step) {
      held |= ((words[from] >>> shift) & mask) << length;
      length += bits;
      if (length >= 8) {
        out[to] = held;
        to += stride;
        held >>>= 8;
        length -= 8;
      }
    }
    if (length) out[to] = held;
  }
  return last + Math.ceil(((count & 7) * bits) / 8);
}
