"""Proofs of every statement once more, in Python's integers, written from the pages on reports alone.

It shares no code with ``privstats``: its own field, streams, hashes, gadgets and orders. Slow, for small shapes only.
"""

import hashlib
from collections.abc import Callable, Sequence
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
class Gram:
    """One product: X from ``(x, w)`` as rows, and M from ``(x, w)`` where it does not travel."""

    rows: int
    columns: int
    matrix: Callable[[list[int], list[int]], list[list[int]]]
    product: Callable[[list[int], list[int]], list[list[int]]] | None = None

    def whole(self, x: list[int], w: list[int], sent: list[int]) -> list[list[int]]:
        """M, symmetric."""
        return symmetric(self.rows, sent) if self.product is None else self.product(x, w)

    @property
    def travels(self) -> int:
        """Entries of M in a report."""
        return self.rows * (self.rows + 1) // 2 if self.product is None else 0


Forms = Callable[[list[int], list[int], list[list[list[int]]]], list[int]]


@dataclass
class Layout:
    """Lengths, constants and orders of one statement.

    Attributes:
        size, witness: entries of x and w.
        tested: the entries that the tests are over, from ``(x, w)``; None where there are no tests.
        beta2: what they square to at most.
        grams: in order.
        slacks: constant and width.
        forms: of the slacks, from x, w and every M.
    """

    size: int
    witness: int
    tested: Callable[[list[int], list[int]], list[int]] | None
    beta2: int
    grams: list[Gram]
    slacks: list[tuple[int, int]]
    forms: Forms

    def __post_init__(self) -> None:
        self.tests = TESTS if self.tested else 0
        widest = max(width for _, width in self.slacks)
        self.Q = isqrt(361 * self.beta2 // 4).bit_length() + 1 if self.tested else widest
        self.rows = self.tests + sum(-(-width // self.Q) for _, width in self.slacks)
        stage = [self.size, self.witness]
        for gram in self.grams:
            stage += [gram.travels, gram.columns, gram.rows, 1]
        self.lengths = [*stage, self.rows * self.Q, self.rows, 3 * (self.Q + 1)]
        self.first, self.second, self.length = sum(stage), sum(self.lengths[:-1]), sum(self.lengths)

    @property
    def tau(self) -> int:
        return 1 << (self.Q - 1)

    def parts(self, v: list[int]) -> list[list[int]]:
        out, at = [], 0
        for length in self.lengths:
            out.append(v[at : at + length])
            at += length
        return out


def symmetric(rows: int, triangle: list[int]) -> list[list[int]]:
    out = [[0] * rows for _ in range(rows)]
    for value, (i, j) in zip(triangle, lower(rows), strict=True):
        out[i][j] = out[j][i] = value
    return out


def lower(rows: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(rows) for j in range(i + 1)]


def upper(rows: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(rows) for j in range(i + 1, rows)]


def moments(
    blocks: int,
    corner: int,
    below: int,
    order: list[int],
    size: int,
    hidden: int,
    limits: list[tuple[list[int], list[int], int, int]],
    f: int,
    n: int,
    coarse: tuple[int, int] = (0, 0),
) -> Layout:
    """``order`` says which of x and the hidden entries a place of T holds; ``limits`` are plus, minus, and a slack."""
    K, mass, m = blocks * (corner + below), n * 4**f, len(order)
    e2 = n * K * 4**f + coarse[0]
    t = isqrt(e2) + 6 * isqrt(mass) + below + coarse[1]
    block = [(c, c) for c in range(corner)]
    block += [(corner + i, c) for c in range(corner) for i in range(below)]
    block += [(corner + i, corner + j) for i, j in lower(below)]
    places = [(k * (corner + below) + i, k * (corner + below) + j) for k in range(blocks) for i, j in block]
    a = max(1, round((4 * m) ** (1 / 3)))
    b = -(-m // a)
    cones = corner if blocks == 1 and corner > 1 else 0

    def sources(x: list[int], w: list[int]) -> list[int]:
        return x + w[2 * m :]

    def triangle(entries: list[int]) -> list[list[int]]:
        out = [[0] * K for _ in range(K)]
        for (i, j), value in zip(places, entries, strict=True):
            out[i][j] = value
        return out

    def rest(x: list[int], w: list[int]) -> list[list[int]]:
        found = sources(x, w)
        whole = triangle([(found[k] - e) % P for k, e in zip(order, w[m : 2 * m], strict=True)])
        return [[whole[max(i, j)][min(i, j)] for j in range(K)] for i in range(K)]

    def errors(_: list[int], w: list[int]) -> list[list[int]]:
        padded = w[m : 2 * m] + [0] * (a * b - m)
        return [padded[k * b : (k + 1) * b] for k in range(a)]

    def columns(_: list[int], w: list[int]) -> list[list[int]]:
        return [w[corner + c * below : corner + (c + 1) * below] for c in range(corner)]

    def forms(x: list[int], w: list[int], products: list[list[list[int]]]) -> list[int]:
        found = sources(x, w)
        out = [sum(found[k] for k in plus) - sum(found[k] for k in minus) for plus, minus, _, _ in limits]
        out.append(-sum(products[1][k][k] for k in range(a)))
        return out + [found[order[c]] - w[m + c] - products[2][c][c] for c in range(cones)]

    grams = [Gram(K, K, lambda _, w: triangle(w[:m]), rest), Gram(a, b, errors)]
    slacks = [(constant, width) for _, _, constant, width in limits] + [(e2, e2.bit_length())]
    if cones:
        grams.append(Gram(cones, below, columns))
        slacks += [(t, (mass + 2 * t).bit_length())] * cones
    beta2 = 2 * mass + K + e2 + K * isqrt(n) * 2**f
    return Layout(size, 2 * m + hidden, lambda _, w: w[: 2 * m], beta2, grams, slacks, forms)


def within(first: int, d: int, blocks: int = 1) -> list[list[int]]:
    """Of each block, where its lower triangle lies: all diagonals come first, then all upper triangles by row."""
    out, strict = [], upper(d)
    for k in range(blocks):
        above = first + blocks * d + k * len(strict)
        own = {(i, i): first + k * d + i for i in range(d)} | {(j, i): above + at for at, (i, j) in enumerate(strict)}
        out.append([own[place] for place in lower(d)])
    return out


def classes(C: int, d: int, f: int, n: int, *, summed: bool = True, clipped: bool = False) -> Layout:
    start, mass, step = C + C * d, n * 4**f, 4**f // 4096 * clipped
    trace, own = C + d + C * step, d * (d + 1) // 2
    width = (mass + trace).bit_length()
    limits = [(list(range(C)), list(range(start, start + d)), trace, width), ([], list(range(C)), mass, width)]
    order = list(range(start)) + within(start, d)[0]
    coarse = (C * step**2 + C * d * 4**f + own, 4 * step) if clipped else (0, 0)
    return moments(1, C, d, order, start + own * summed, own * (not summed), limits, f, n, coarse)


def classes_apart(C: int, d: int, f: int, n: int) -> Layout:
    start, mass = C + C * d, n * 4**f
    width, squares, order = (mass + 1 + d).bit_length(), within(start, d, C), []
    for c in range(C):
        order += [c, *range(C + c * d, C + (c + 1) * d), *squares[c]]
    traces = [([c], list(range(start + c * d, start + (c + 1) * d)), 1 + d, width) for c in range(C)]
    size = start + C * d * (d + 1) // 2
    return moments(C, 1, d, order, size, 0, [*traces, ([], list(range(C)), mass, width)], f, n)


def ridge(d: int, T: int, F: int, f: int, n: int) -> Layout:
    across, mass, own = F * d * (d + 1) // 2, n * 4**f, T * (T + 1) // 2
    q = across + F * d * T
    size, G, order = q + F, within(0, d, F), []
    for k in range(F):
        rows = [G[k][i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] for i in range(d)]
        for j in range(T):
            h = [across + k * d * T + i * T + j for i in range(d)]
            rows.append(h + [size + k * own + j * (j + 1) // 2 + i for i in range(j + 1)])
        order += [place for row in rows for place in row]
    traces = [[size + k * own + j * (j + 3) // 2 for j in range(T)] for k in range(F)]
    limits = [([q + k], traces[k], 0, 0) for k in range(F)]
    limits += [([], list(range(F * d)), mass, mass.bit_length()), ([], list(range(q, q + F)), mass, mass.bit_length())]
    return moments(F, 0, d + T, order, size, F * own, limits, f, n)


def norm(sizes: list[int], counters: list[int], f: int, n: int) -> Layout:
    size, mass, shift = sum(sizes), n * 4**f, 0
    while True:
        found = _norm(sizes, counters, mass, shift)
        reach = 19 * found.tau // 4 + 1
        most, widest = max(c for c, _ in found.slacks), max(width for _, width in found.slacks)
        if 4**shift * isqrt(size) >= mass and 2 * (reach**2 + most + (1 << widest)) < P:
            return found
        shift += 1


def _norm(sizes: list[int], counters: list[int], mass: int, s: int) -> Layout:
    size = sum(sizes)
    b = -(-size // max(1, round((4 * size) ** (1 / 3))))
    bounds = [(4 * mass**2 + 4**s * k + isqrt((4 * mass * 2**s) ** 2 * k)) // 4 ** (s + 1) + 1 for k in sizes]
    heights = [-(-k // b) for k in sizes]

    def matrix(_: list[int], w: list[int]) -> list[list[int]]:
        out, at = [], 0
        for k, height in zip(sizes, heights, strict=True):
            part = w[at : at + k] + [0] * (height * b - k)
            out += [part[row * b : (row + 1) * b] for row in range(height)]
            at += k
        return out

    def forms(x: list[int], _: list[int], products: list[list[list[int]]]) -> list[int]:
        out, at = [], 0
        for height in heights:
            out.append(-sum(products[0][k][k] for k in range(at, at + height)))
            at += height
        return out + [sign * x[k] for k in counters for sign in (1, -1)]

    slacks = [(bound, bound.bit_length()) for bound in bounds]
    slacks += [(0, mass.bit_length()), (mass, mass.bit_length())] * len(counters)
    beta2 = sum(bounds) + size * 4**s // 4
    gram = Gram(sum(heights), b, matrix)

    def tested(x: list[int], w: list[int]) -> list[int]:
        return w + [(value - 2**s * y) % P for value, y in zip(x, w, strict=True)]

    return Layout(size, size, tested, beta2, [gram], slacks, forms)


def counts(tables: list[int], unit: int, n: int) -> Layout:
    one = pow(unit, -1, P)

    def forms(x: list[int], _: list[int], __: list[list[list[int]]]) -> list[int]:
        cells, out, at = [value * one % P for value in x], [], 0
        for size in tables:
            out.append(-sum(cells[at : at + size]))
            at += size
        return cells + out

    slacks = [(0, n.bit_length())] * sum(tables) + [(n, n.bit_length())] * len(tables)
    return Layout(sum(tables), 0, None, 0, [], slacks, forms)


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


def times(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(p * q for p, q in zip(a, b, strict=True))


def centred(value: int) -> int:
    return (value + P // 2) % P - P // 2


def part_of(said: Said, which: bytes, blind: bytes, body: list[int]) -> bytes:
    return digest("proof-part", said.context, u32(said.sender), which, blind, packed(body))


def report(
    layout: Layout, x: list[int], w: list[int], context: bytes, sender: int, seeds: list[bytes], coins: bytes
) -> tuple[list[int], bytes, Said]:
    """Body, blind and what is signed; randomness is this implementation's own."""
    drawn = iter(stream(coins, 20_000))
    v = [value % P for value in x + w]
    products = []
    for gram in layout.grams:
        matrix, z = gram.matrix(x, w), [next(drawn) for _ in range(gram.columns)]
        inner = [[times(r, q) % P for q in matrix] for r in matrix]
        sent = [inner[i][j] for i, j in lower(gram.rows)] if gram.travels else []
        products.append(gram.whole(x, w, sent))
        v += sent + z + [times(row, z) % P for row in matrix] + [times(z, z) % P]
    blind = hashlib.sha256(coins).digest()
    shares = [stream(kdf(seed, f"field/{sender}", context), layout.length) for seed in seeds]
    shared = [sum(column) for column in zip(*shares, strict=True)]
    commits = [digest("proof-commit", context, u32(sender), bytes([j + 1]), seed) for j, seed in enumerate(seeds)]
    said = Said(context, sender, commits, [])

    def body(start: int, end: int) -> list[int]:
        return [(a - b) % P for a, b in zip(v[start:end], shared[start:end], strict=True)]

    said.parts.append(part_of(said, b"\x01", blind, body(0, layout.first)))
    table = _table(layout, x, w, products, said)
    masks = [next(drawn) for _ in table]
    v += [bit for row in table for bit in row] + masks
    said.parts.append(part_of(said, b"\x02", blind, body(layout.first, layout.second)))
    v += _quotients(layout, said, masks, table)
    return body(0, layout.length), blind, said


def _table(layout: Layout, x: list[int], w: list[int], products: list[list[list[int]]], said: Said) -> list[list[int]]:
    """The rows of bits: those of the tests, then those of the slacks."""
    table = []
    if layout.tested:
        tested = [centred(value) for value in layout.tested(x, w)]
        for row in signs_of(said.z1, said.context, len(tested)):
            total = times(row, tested) + layout.tau
            assert 0 <= total < 2 * layout.tau
            table.append([total >> k & 1 for k in range(layout.Q)])
    for form, (constant, width) in zip(layout.forms(x, w, products), layout.slacks, strict=True):
        value = (form + constant) % P
        assert value < 1 << width
        bits = [value >> k & 1 for k in range(width)] + [0] * (-width % layout.Q)
        table += [bits[k : k + layout.Q] for k in range(0, len(bits), layout.Q)]
    return table


def _quotients(layout: Layout, said: Said, masks: list[int], table: list[list[int]]) -> list[int]:
    """h by its values, the first of the three before the second."""
    gamma, Q = stream(kdf(said.z2, "gamma", said.context), 3 * layout.rows), layout.Q
    points, nodes, values = range(Q + 1, 2 * Q + 2), list(range(Q + 1)), []
    for point in points:
        weights = lagrange(nodes, point)
        values.append([times([mask, *row], weights) % P for mask, row in zip(masks, table, strict=True)])
    out = []
    for r in range(3):
        for point, found in zip(points, values, strict=True):
            total = sum(gamma[r * layout.rows + row] * (value * value - value) for row, value in enumerate(found))
            out.append(total * pow(zeros(Q, point), -1, P) % P)
    return out


def zeros(Q: int, point: int) -> int:
    out = 1
    for k in range(1, Q + 1):
        out = out * (point - k) % P
    return out


Asked = tuple[list[tuple[int, list[int]]], int, list[int]]


def asked_of(layout: Layout, said: Said, rho: bytes) -> Asked:
    """Per Gram v and c, then t, then a weight for each relation."""
    words = iter(stream(kdf(rho, f"query/{said.sender}", said.context), 4_000))
    queries = []
    for gram in layout.grams:
        v = next(word for word in words if word)
        queries.append((v, [next(words) for _ in range(gram.rows)]))
    point = next(word for word in words if word >= 2 * layout.Q + 2)
    return queries, point, [next(words) for _ in range(layout.tests + len(layout.slacks))]


def answer_of(layout: Layout, share: list[int], said: Said, rho: bytes) -> list[int]:
    """A member's answer."""
    queries, point, weights = asked_of(layout, said, rho)
    parts = layout.parts(share)
    x, w, (bits, masks, h) = parts[0], parts[1], parts[-3:]
    out, products = [], []
    for k, (gram, (v, c)) in enumerate(zip(layout.grams, queries, strict=True)):
        sent, z, right, (square,) = parts[2 + 4 * k : 6 + 4 * k]
        matrix, product = gram.matrix(x, w), gram.whole(x, w, sent)
        products.append(product)
        out += [(times(c, [row[j] for row in matrix]) + v * z[j]) % P for j in range(gram.columns)]
        form = sum(a * times(c, product[i]) for i, a in enumerate(c))
        out.append((form + 2 * v * times(c, right) + v * v * square) % P)
    table = [bits[k : k + layout.Q] for k in range(0, len(bits), layout.Q)]
    out.append(_zero(layout, x, w, products, table, said, weights))
    inner = lagrange(list(range(layout.Q + 1)), point)
    outer = lagrange(list(range(layout.Q + 1, 2 * layout.Q + 2)), point)
    out += [times([mask, *row], inner) % P for mask, row in zip(masks, table, strict=True)]
    thirds = [h[k : k + layout.Q + 1] for k in range(0, len(h), layout.Q + 1)]
    return out + [times(third, outer) % P for third in thirds]


def _zero(
    layout: Layout,
    x: list[int],
    w: list[int],
    products: list[list[list[int]]],
    table: list[list[int]],
    said: Said,
    weights: list[int],
) -> int:
    zero, at = 0, layout.tests
    if layout.tested:
        tested = layout.tested(x, w)
        for test, row in enumerate(signs_of(said.z1, said.context, len(tested))):
            shown = sum(bit << k for k, bit in enumerate(table[test]))
            zero += weights[test] * (times(row, tested) - shown)
    pairs = zip(layout.slacks, layout.forms(x, w, products), weights[layout.tests :], strict=True)
    for (_, width), form, weight in pairs:
        rows = -(-width // layout.Q)
        held = [bit for row in table[at : at + rows] for bit in row][:width]
        zero += weight * (form - sum(bit << k for k, bit in enumerate(held)))
        at += rows
    return zero % P


def accepts(layout: Layout, shares: list[list[int]], said: Said, rho: bytes) -> bool:
    """The decision on all members' shares, each of which answers by itself."""
    _, point, weights = asked_of(layout, said, rho)
    answers = [answer_of(layout, share, said, rho) for share in shares]
    total, at = [sum(column) % P for column in zip(*answers, strict=True)], 0
    for gram in layout.grams:
        w, q = total[at : at + gram.columns], total[at + gram.columns]
        if times(w, w) % P != q:
            return False
        at += gram.columns + 1
    constants = layout.tau * sum(weights[: layout.tests])
    constants += times(weights[layout.tests :], [constant for constant, _ in layout.slacks])
    if (total[at] + constants) % P:
        return False
    values, h = total[at + 1 : at + 1 + layout.rows], total[at + 1 + layout.rows :]
    gamma = stream(kdf(said.z2, "gamma", said.context), 3 * layout.rows)
    sums = [sum(gamma[r * layout.rows + row] * (f * f - f) for row, f in enumerate(values)) % P for r in range(3)]
    return sums == [zeros(layout.Q, point) * each % P for each in h]
