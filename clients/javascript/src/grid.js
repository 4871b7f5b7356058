/**
 * Rounds rows to the integer grid, term by term as privstats/moments/grid.py does, in float64 alone. Every sum is exact
 * or monotonic, so a row gets the same integers as in Python. Powers of two are set by their bits, because `**` may be
 * approximate.
 */
const BITS = new DataView(new ArrayBuffer(8));
const LIFT = 600;

export function powerOfTwo(exponent) {
  BITS.setUint32(0, ((exponent + 1023) << 20) >>> 0);
  BITS.setUint32(4, 0);
  return BITS.getFloat64(0);
}

const ONE = powerOfTwo(52);

/** Rounds to the nearest integer, ties to even; `Math.round` rounds ties up. */
export function rint(value) {
  const size = Math.abs(value);
  return size < ONE ? Math.sign(value) * (size + ONE - ONE) : value;
}

/** Returns e such that value = m 2^e and 1/2 <= m < 1; 0 for 0. */
function binaryExponent(value) {
  if (value === 0) return 0;
  BITS.setFloat64(0, value);
  const exponent = (BITS.getUint32(0) >>> 20) & 0x7ff;
  return exponent ? exponent - 1022 : binaryExponent(value * powerOfTwo(64)) - 64;
}

function dot(left, right) {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum += left[i] * right[i];
  return sum;
}

/** Multiplies a row by a power of two, so that its largest entry is about 2^bits. */
function scaled(row, bits) {
  const exponent = bits - binaryExponent(row.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0));
  const lift = exponent > LIFT ? LIFT : 0;
  const [first, second] = [powerOfTwo(lift), powerOfTwo(exponent - lift)];
  return row.map((value) => value * first * second);
}

/** Returns the scaled row, its norm to about 11 digits in any order of addition, and a bound on the norm's error. */
function rowNorm(row) {
  const bits = Math.floor((53 - (32 - Math.clz32(row.length - 1))) / 2);
  const rows = scaled(row, bits);
  const high = rows.map(rint);
  const low = rows.map((value, i) => rint((value - high[i]) * powerOfTwo(bits)));
  const rest = dot(high, low) * powerOfTwo(1 - bits) + dot(low, low) * powerOfTwo(-2 * bits);
  const root = Math.sqrt(row.length);
  return {
    rows,
    norm: Math.sqrt(dot(high, high) + rest),
    error: root * powerOfTwo(-(bits + 1)) + root * powerOfTwo(bits - 48),
  };
}

/**
 * Returns the grid vector of a row x: rint(scale x) if that is inside the ball; else x is shrunk into the ball and
 * rounded.
 */
export function quantize(row, { radius, scale, nonnegative = false }) {
  const clipped = Float64Array.from(nonnegative ? row.map((value) => Math.max(value, 0)) : row);
  const steps = clipped.map((value) => rint(value * scale));
  if (dot(steps, steps) <= radius * radius) return steps;
  const { rows, norm, error } = rowNorm(clipped);
  const factor = (radius - Math.sqrt(row.length) / 2) / (norm + error);
  const shrunk = rows.map((value) => rint(value * factor));
  if (!(dot(shrunk, shrunk) <= radius * radius)) throw new Error("a grid vector left its ball: report this bug");
  return shrunk;
}
