"""Proofs of class moments (N, A, B) once more, in Python's integers, written from the specification.

It shares no code with ``privstats``: its own field, streams, hashes, gadgets and orders. Slow, for small shapes only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import isqrt

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

P = 2**61 - 1
TESTS = 128


def kdf(secret: bytes, purpose: str, salt: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt, b"privstats/upload/" + purpose.encode()).derive(secret)


def digest(purpose: str, *parts: bytes) -> bytes:
    return hashlib.sha256(b"privstats/upload/1/" + purpose.encode() + b"\0" + b"".join(parts)).digest()


def u32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def keystream(key: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def stream(key: bytes, size: int) -> list[int]:
    """Elements; no word of these is p, which has probability 2**-61."""
    raw = keystream(key, 8 * size)
    return [int.from_bytes(raw[8 * k : 8 * k + 8], "little") >> 3 for k in range(size)]


def packed(values: list[int]) -> bytes:
    return b"".join(value.to_bytes(8, "little") for value in values)


def lagrange(nodes: list[int], point: int) -> list[int]:
    out = []
    for i in nodes:
        value = 1
        for j in nodes:
            if i != j:
                value = value * (point - j) * pow(i - j, -1, P) % P
        out.append(value)
    return out


@dataclass
class Shape:
    """Lengths, constants and orders, by ``(classes, features, f, n)``."""

    classes: int
    features: int
    f: int
    n: int

    def __post_init__(self) -> None:
        C, d, unit = self.classes, self.features, 4**self.f
        self.K, mass = C + d, self.n * 4**self.f
        self.m = C + C * d + d * (d + 1) // 2
        self.e2 = self.n * self.K * unit
        self.t = isqrt(self.e2) + 6 * isqrt(mass) + d
        beta2 = 2 * mass + self.K + self.e2 + self.K * isqrt(self.n) * 2**self.f
        self.Q = next(q for q in range(64) if 4 * (1 << (q - 1) if q else 0) ** 2 >= 361 * beta2)
        self.a = round((4 * self.m) ** (1 / 3))
        self.b = -(-self.m // self.a)
        w = (mass + self.K).bit_length()
        cone = (mass + 2 * self.t).bit_length()
        self.slacks = [(self.K, w), (mass, w), (self.e2, self.e2.bit_length())] + [(self.t, cone)] * C
        self.rows = TESTS + sum(-(-width // self.Q) for _, width in self.slacks)
        stage = [self.m, 2 * self.m]
        for rows, columns, sent in ((self.K, self.K, False), (self.a, self.b, True), (C, d, True)):
            stage += [rows * (rows + 1) // 2 if sent else 0, columns, rows, 1]
        self.lengths = [*stage, self.rows * self.Q, self.rows, 3 * (self.Q + 1)]
        self.first, self.second = sum(stage), sum(self.lengths[:-1])
        self.size = sum(self.lengths)
        self.places = [(c, c) for c in range(C)]
        self.places += [(C + i, c) for c in range(C) for i in range(d)]
        self.places += [(C + i, C + j) for i in range(d) for j in range(i + 1)]

    def parts(self, v: list[int]) -> list[list[int]]:
        out, at = [], 0
        for length in self.lengths:
            out.append(v[at : at + length])
            at += length
        return out

    def target(self, x: list[int]) -> list[int]:
        """T in the order of the places: x has B's diagonal, then its upper triangle row by row."""
        C, d = self.classes, self.features
        start = C + C * d
        upper = [(i, j) for i in range(d) for j in range(i + 1, d)]
        own = {(i, i): x[start + i] for i in range(d)}
        own |= {(j, i): x[start + d + k] for k, (i, j) in enumerate(upper)}
        return x[:start] + [own[(i - C, j - C)] for i, j in self.places[start:]]

    def lower(self, entries: list[int]) -> list[list[int]]:
        out = [[0] * self.K for _ in range(self.K)]
        for (i, j), value in zip(self.places, entries, strict=True):
            out[i][j] = value
        return out

    def symmetric(self, entries: list[int]) -> list[list[int]]:
        out = self.lower(entries)
        return [[out[max(i, j)][min(i, j)] for j in range(self.K)] for i in range(self.K)]

    def matrices(self, w: list[int]) -> list[list[list[int]]]:
        """X of the three Grams."""
        L, E = w[: self.m], w[self.m :] + [0] * (self.a * self.b - self.m)
        C, d = self.classes, self.features
        columns = [L[C + c * d : C + (c + 1) * d] for c in range(C)]
        return [self.lower(L), [E[k * self.b : (k + 1) * self.b] for k in range(self.a)], columns]

    def products(self, x: list[int], w: list[int], sent: list[list[int]]) -> list[list[list[int]]]:
        """M of the three Grams, whole."""
        target = [(t - e) % P for t, e in zip(self.target(x), w[self.m :], strict=True)]
        out = [self.symmetric(target)]
        for rows, triangle in ((self.a, sent[1]), (self.classes, sent[2])):
            whole = [[0] * rows for _ in range(rows)]
            for k, (row, column) in enumerate((i, j) for i in range(rows) for j in range(i + 1)):
                whole[row][column] = whole[column][row] = triangle[k]
            out.append(whole)
        return out

    def forms(self, x: list[int], w: list[int], sent: list[list[int]]) -> list[int]:
        C, d = self.classes, self.features
        counts, trace = sum(x[:C]), sum(x[C + C * d : C + C * d + d])
        errors, cones = self.products(x, w, sent)[1:]
        return [
            counts - trace,
            -counts,
            -sum(errors[i][i] for i in range(self.a)),
            *[x[c] - w[self.m + c] - cones[c][c] for c in range(C)],
        ]


def signs_of(z1: bytes, context: bytes, entries: int) -> list[list[int]]:
    raw = keystream(kdf(z1, "signs", context), 32 * entries)

    def bit(place: int, test: int) -> int:
        return raw[place + test // 8] >> (7 - test % 8) & 1

    return [[bit(16 * i, test) + bit(16 * (entries + i), test) - 1 for i in range(entries)] for test in range(TESTS)]


@dataclass
class Said:
    context: bytes
    sender: int
    commits: list[bytes]
    parts: list[bytes]

    @property
    def z1(self) -> bytes:
        return digest("proof-signs", self.context, u32(self.sender), *self.commits, self.parts[0])

    @property
    def z2(self) -> bytes:
        return digest("proof-bits", self.z1, self.parts[1])


def report(
    shape: Shape, x: list[int], w: list[int], context: bytes, sender: int, seeds: list[bytes], coins: bytes
) -> tuple[list[int], bytes, Said]:
    """Body, blind and what is signed; randomness is this implementation's own."""
    drawn = iter(stream(coins, 10_000))
    grams, v = shape.matrices(w), [value % P for value in x + w]
    sent: list[list[int]] = []
    for number, matrix in enumerate(grams):
        rows, z = len(matrix), [next(drawn) for _ in matrix[0]]
        inner = [[sum(a * b for a, b in zip(r, q, strict=True)) for q in matrix] for r in matrix]
        sent.append([inner[i][j] % P for i in range(rows) for j in range(i + 1)] if number else [])
        right = [sum(a * b for a, b in zip(row, z, strict=True)) % P for row in matrix]
        v += sent[-1] + z + right + [sum(a * a for a in z) % P]
    blind = hashlib.sha256(coins).digest()
    shares = [stream(kdf(seed, f"field/{sender}", context), shape.size) for seed in seeds]
    shared = [sum(column) for column in zip(*shares, strict=True)]
    commits = [digest("proof-commit", context, u32(sender), bytes([j + 1]), seed) for j, seed in enumerate(seeds)]

    def part(which: bytes, start: int, end: int) -> bytes:
        body = [(a - b) % P for a, b in zip(v[start:end], shared[start:end], strict=True)]
        return digest("proof-part", context, u32(sender), which, blind, packed(body))

    said = Said(context, sender, commits, [part(b"\x01", 0, shape.first)])
    tau, table = 1 << (shape.Q - 1), []
    for row in signs_of(said.z1, context, 2 * shape.m):
        total = sum(z * value for z, value in zip(row, w, strict=True)) + tau
        assert 0 <= total < 2 * tau
        table.append([total >> k & 1 for k in range(shape.Q)])
    for form, (constant, width) in zip(shape.forms(x, w, sent), shape.slacks, strict=True):
        value = (form + constant) % P
        assert value < 1 << width
        bits = [value >> k & 1 for k in range(width)] + [0] * (-width % shape.Q)
        table += [bits[k : k + shape.Q] for k in range(0, len(bits), shape.Q)]
    masks = [next(drawn) for _ in table]
    v += [bit for row in table for bit in row] + masks
    said.parts.append(part(b"\x02", shape.first, shape.second))
    gamma = stream(kdf(said.z2, "gamma", context), 3 * shape.rows)
    nodes, values = list(range(shape.Q + 1)), []
    for point in range(shape.Q + 1, 2 * shape.Q + 2):
        weights = lagrange(nodes, point)
        values.append(
            [
                sum(a * b for a, b in zip([mask, *row], weights, strict=True)) % P
                for mask, row in zip(masks, table, strict=True)
            ]
        )
    for r in range(3):
        for point, found in zip(range(shape.Q + 1, 2 * shape.Q + 2), values, strict=True):
            zeros = 1
            for k in range(1, shape.Q + 1):
                zeros = zeros * (point - k) % P
            total = sum(gamma[r * shape.rows + row] * (value * value - value) for row, value in enumerate(found))
            v.append(total * pow(zeros, -1, P) % P)
    return [(a - b) % P for a, b in zip(v, shared, strict=True)], blind, said


Asked = tuple[list[tuple[int, list[int]]], int, list[int]]


def asked_of(shape: Shape, said: Said, rho: bytes) -> Asked:
    """Per Gram v and c, then t, then a weight for each relation."""
    words = iter(stream(kdf(rho, f"query/{said.sender}", said.context), 2_000))
    queries = []
    for rows in (shape.K, shape.a, shape.classes):
        v = next(word for word in words if word)
        queries.append((v, [next(words) for _ in range(rows)]))
    point = next(word for word in words if word >= 2 * shape.Q + 2)
    return queries, point, [next(words) for _ in range(TESTS + len(shape.slacks))]


def answer_of(shape: Shape, share: list[int], said: Said, rho: bytes) -> list[int]:
    """A member's answer."""
    return _answer(shape, share, said, *asked_of(shape, said, rho))


def accepts(shape: Shape, shares: list[list[int]], said: Said, rho: bytes) -> bool:
    """The decision on all members' shares, each of which answers by itself."""
    _, point, weights = asked_of(shape, said, rho)
    answers = [answer_of(shape, share, said, rho) for share in shares]
    total = [sum(column) % P for column in zip(*answers, strict=True)]
    at = 0
    for columns in (shape.K, shape.b, shape.features):
        w, q = total[at : at + columns], total[at + columns]
        if sum(value * value for value in w) % P != q:
            return False
        at += columns + 1
    constants = (1 << (shape.Q - 1)) * sum(weights[:TESTS])
    constants += sum(r * constant for r, (constant, _) in zip(weights[TESTS:], shape.slacks, strict=True))
    if (total[at] + constants) % P:
        return False
    values, h = total[at + 1 : at + 1 + shape.rows], total[at + 1 + shape.rows :]
    gamma, zeros = stream(kdf(said.z2, "gamma", said.context), 3 * shape.rows), 1
    for k in range(1, shape.Q + 1):
        zeros = zeros * (point - k) % P
    sums = [sum(gamma[r * shape.rows + row] * (f * f - f) for row, f in enumerate(values)) % P for r in range(3)]
    return sums == [zeros * each % P for each in h]


def _answer(
    shape: Shape, share: list[int], said: Said, queries: list[tuple[int, list[int]]], point: int, weights: list[int]
) -> list[int]:
    parts = shape.parts(share)
    x, w, (bits, masks, h) = parts[0], parts[1], parts[-3:]
    masked = [parts[2 + 4 * k : 6 + 4 * k] for k in range(3)]
    sent = [each[0] for each in masked]
    out: list[int] = []
    matrices = zip(shape.matrices(w), shape.products(x, w, sent), masked, queries, strict=True)
    for matrix, product, (_, z, right, (square,)), (v, c) in matrices:
        out += [(sum(a * row[k] for a, row in zip(c, matrix, strict=True)) + v * z[k]) % P for k in range(len(z))]
        form = sum(a * b * product[i][j] for i, a in enumerate(c) for j, b in enumerate(c))
        out.append((form + 2 * v * sum(a * b for a, b in zip(c, right, strict=True)) + v * v * square) % P)
    table, zero = [bits[k : k + shape.Q] for k in range(0, len(bits), shape.Q)], 0
    for test, row in enumerate(signs_of(said.z1, said.context, 2 * shape.m)):
        shown = sum(bit << k for k, bit in enumerate(table[test]))
        zero += weights[test] * (sum(s * value for s, value in zip(row, w, strict=True)) - shown)
    at = TESTS
    for (_, width), form, weight in zip(shape.slacks, shape.forms(x, w, sent), weights[TESTS:], strict=True):
        rows = -(-width // shape.Q)
        held = [bit for row in table[at : at + rows] for bit in row][:width]
        zero += weight * (form - sum(bit << k for k, bit in enumerate(held)))
        at += rows
    inner, outer = lagrange(list(range(shape.Q + 1)), point), lagrange(list(range(shape.Q + 1, 2 * shape.Q + 2)), point)
    out.append(zero % P)
    out += [sum(a * b for a, b in zip([m, *row], inner, strict=True)) % P for m, row in zip(masks, table, strict=True)]
    thirds = [h[k : k + shape.Q + 1] for k in range(0, len(h), shape.Q + 1)]
    return out + [sum(a * b for a, b in zip(third, outer, strict=True)) % P for third in thirds]
