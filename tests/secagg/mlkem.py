"""ML-KEM-768 from the text of FIPS 203, in the plainest way; the algorithm's number stands at each function.

Slow, and not in constant time. It encapsulates from given randomness, which the library does not offer: frozen sessions
are recorded with it, and the vectors hold it and the library to the same bytes.
"""

import hashlib
import itertools

N, Q, K, ETA, DU, DV = 256, 3329, 3, 2, 10, 4
Poly = list[int]


def _reversed(bits: int) -> int:
    return int(f"{bits:07b}"[::-1], 2)


ZETA = [pow(17, _reversed(i), Q) for i in range(128)]
GAMMA = [pow(17, 2 * _reversed(i) + 1, Q) for i in range(128)]
BACK = pow(128, -1, Q)


def g(data: bytes) -> tuple[bytes, bytes]:
    digest = hashlib.sha3_512(data).digest()
    return digest[:32], digest[32:]


def h(data: bytes) -> bytes:
    return hashlib.sha3_256(data).digest()


def encode(poly: Poly, d: int) -> bytes:
    """5."""
    return sum(value << (d * i) for i, value in enumerate(poly)).to_bytes(32 * d, "little")


def decode(data: bytes, d: int) -> Poly:
    """6; 12-bit values stay as they are, so that a key with one of at least q shows."""
    number = int.from_bytes(data, "little")
    return [number >> (d * i) & (1 << d) - 1 for i in range(N)]


def compress(poly: Poly, d: int) -> Poly:
    return [((value << d) + Q // 2) // Q % (1 << d) for value in poly]


def decompress(poly: Poly, d: int) -> Poly:
    return [(value * Q + (1 << d - 1)) >> d for value in poly]


def sample_ntt(seed: bytes) -> Poly:
    """7."""
    stream, found = hashlib.shake_128(seed).digest(168 * 12), []
    for a, b, c in zip(stream[::3], stream[1::3], stream[2::3], strict=True):
        found += [value for value in (a | (b & 15) << 8, b >> 4 | c << 4) if value < Q]
    assert len(found) >= N
    return found[:N]


def sample_cbd(stream: bytes) -> Poly:
    """8."""
    number = int.from_bytes(stream, "little")
    bits = [number >> i & 1 for i in range(4 * N)]
    return [(sum(bits[4 * i : 4 * i + 2]) - sum(bits[4 * i + 2 : 4 * i + 4])) % Q for i in range(N)]


def ntt(poly: Poly) -> Poly:
    """9."""
    out, i = list(poly), 1
    for size in (128, 64, 32, 16, 8, 4, 2):
        for start in range(0, N, 2 * size):
            for j in range(start, start + size):
                t = ZETA[i] * out[j + size] % Q
                out[j], out[j + size] = (out[j] + t) % Q, (out[j] - t) % Q
            i += 1
    return out


def inverse(poly: Poly) -> Poly:
    """10."""
    out, i = list(poly), 127
    for size in (2, 4, 8, 16, 32, 64, 128):
        for start in range(0, N, 2 * size):
            for j in range(start, start + size):
                t = out[j]
                out[j], out[j + size] = (t + out[j + size]) % Q, ZETA[i] * (out[j + size] - t) % Q
            i -= 1
    return [value * BACK % Q for value in out]


def times(one: Poly, other: Poly) -> Poly:
    """11."""
    out = []
    for i, gamma in enumerate(GAMMA):
        (a, b), (c, d) = one[2 * i : 2 * i + 2], other[2 * i : 2 * i + 2]
        out += [(a * c + b * d * gamma) % Q, (a * d + b * c) % Q]
    return out


def plus(*polys: Poly) -> Poly:
    return [sum(values) % Q for values in zip(*polys, strict=True)]


def dot(one: list[Poly], other: list[Poly]) -> Poly:
    return plus(*map(times, one, other))


def matrix(rho: bytes) -> list[list[Poly]]:
    return [[sample_ntt(rho + bytes([j, i])) for j in range(K)] for i in range(K)]


def noise(seed: bytes, first: int, count: int) -> list[Poly]:
    return [sample_cbd(hashlib.shake_256(seed + bytes([n])).digest(64 * ETA)) for n in range(first, first + count)]


def parts(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def keys_of(seed: bytes) -> tuple[bytes, bytes]:
    """16: the encapsulation key, and the secret vector of the decapsulation key."""
    rho, sigma = g(seed[:32] + bytes([K]))
    s, e = ([ntt(p) for p in noise(sigma, first, K)] for first in (0, K))
    t = [plus(dot(row, s), error) for row, error in zip(matrix(rho), e, strict=True)]
    return b"".join(encode(p, 12) for p in t) + rho, b"".join(encode(p, 12) for p in s)


def encrypt(ek: bytes, m: bytes, r: bytes) -> bytes:
    """14."""
    t, columns = [decode(part, 12) for part in parts(ek[:-32], 384)], list(zip(*matrix(ek[-32:]), strict=True))
    y, e1, (e2,) = [ntt(p) for p in noise(r, 0, K)], noise(r, K, K), noise(r, 2 * K, 1)
    u = [plus(inverse(dot(list(column), y)), error) for column, error in zip(columns, e1, strict=True)]
    v = plus(inverse(dot(t, y)), e2, decompress(decode(m, 1), 1))
    return b"".join(encode(compress(p, DU), DU) for p in u) + encode(compress(v, DV), DV)


def check(ek: bytes) -> None:
    """7.2: the length, and that every number is below q."""
    if len(ek) != 384 * K + 32 or max(itertools.chain(*(decode(part, 12) for part in parts(ek[:-32], 384)))) >= Q:
        raise ValueError("no encapsulation key")


def encapsulate(ek: bytes, m: bytes) -> tuple[bytes, bytes]:
    """17: the shared secret and the ciphertext, from 32 bytes of randomness."""
    check(ek)
    secret, r = g(m + h(ek))
    return secret, encrypt(ek, m, r)


def expanded(seed: bytes) -> bytes:
    """16: the decapsulation key of the seed d || z, which ends with the encapsulation key, its hash and z."""
    ek, secret = keys_of(seed)
    return secret + ek + h(ek) + seed[32:]


def opened(dk: bytes, ciphertext: bytes) -> bytes:
    """18, with a decapsulation key of 2,400 bytes."""
    if len(ciphertext) != 32 * (DU * K + DV):
        raise ValueError("no ciphertext")
    secret, ek, digest, z = dk[: 384 * K], dk[384 * K : -64], dk[-64:-32], dk[-32:]
    u = [ntt(decompress(decode(part, DU), DU)) for part in parts(ciphertext[: 32 * DU * K], 32 * DU)]
    v = decompress(decode(ciphertext[32 * DU * K :], DV), DV)
    s = [decode(part, 12) for part in parts(secret, 384)]
    m = encode(compress([(a - b) % Q for a, b in zip(v, inverse(dot(s, u)), strict=True)], 1), 1)
    shared, r = g(m + digest)
    return shared if encrypt(ek, m, r) == ciphertext else hashlib.shake_256(z + ciphertext).digest(32)


def decapsulate(seed: bytes, ciphertext: bytes) -> bytes:
    """18, from the seed d || z."""
    return opened(expanded(seed), ciphertext)
