"""The gadgets by themselves, and the lemma on signed sums."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

from privstats.contrib.proofs import field, transcript
from privstats.contrib.proofs.field import P, add, dot, elements, matmul, mul, subtract
from privstats.contrib.proofs.gadgets import Bits, GramAnswer, combined_signs, gram_accepts, projected
from tests.contrib.proofs.cases import CASES, attempt_of


def drawn(label: int, *shape: int) -> np.ndarray:
    return field.stream(bytes([label]) * 32, math.prod(shape)).reshape(shape)


def signs_of(raw: bytes, entries: int) -> np.ndarray:
    """Z by its definition: bit l of b_i plus bit l of b'_i minus 1, bit l = bit 7 - l mod 8 of byte l div 8."""
    out = np.empty((128, entries), np.int64)
    for i, test in product(range(entries), range(128)):
        first, second = (raw[16 * i + offset + test // 8] >> (7 - test % 8) & 1 for offset in (0, 16 * entries))
        out[test, i] = first + second - 1
    return out


def test_sums_and_combinations_are_over_the_same_signs() -> None:
    entries = 300
    raw = transcript.signs(b"z" * 32, b"c" * 32, entries)
    Z = signs_of(raw, entries)
    assert abs((Z == 0).mean() - 0.5) < 0.02
    assert abs((Z == 1).mean() - 0.25) < 0.02
    for values in (drawn(1, entries).astype(np.int64) % 1000 - 500, field.lift(drawn(2, entries))):
        want = [sum(int(z) * int(v) for z, v in zip(row, values, strict=True)) for row in Z]
        assert projected(values, raw, 128) == want
        weights = drawn(3, 128)
        found = dot(combined_signs(raw, entries, weights), elements(values))
        assert found == sum(int(r) * each for r, each in zip(weights, want, strict=True)) % P


@pytest.mark.parametrize("kind", [name for name in CASES if name != "counts"])
def test_every_gram_is_complete_and_one_wrong_entry_of_its_product_is_seen(kind: str) -> None:
    made = attempt_of(CASES[kind](np.random.default_rng(0)))
    x, w = made.x, made.witness
    for gram, sent in zip(made.statement.grams, made.products, strict=True):
        z, c, v = drawn(1, gram.columns), drawn(2, gram.rows), 12345
        right, square = gram.multiply(x, w, z), dot(z, z)
        answered = add(gram.multiply_transposed(x, w, c), mul(z, np.full(gram.columns, v, np.uint64)))
        across = 2 * v * dot(c, right) + v * v * square
        assert gram_accepts(GramAnswer(answered, (gram.form(x, w, sent, c) + across) % P))
        if gram.sent:
            wrong = sent.copy()
            wrong[-1] = (int(wrong[-1]) + 1) % P
            assert not gram_accepts(GramAnswer(answered, (gram.form(x, w, wrong, c) + across) % P))
        else:
            moved = x.copy()
            moved[0] = (int(moved[0]) + 1) % P
            assert not gram_accepts(GramAnswer(answered, (gram.form(moved, w, sent, c) + across) % P))


@pytest.mark.parametrize("count", [1, 4, 23])
def test_bits_are_taken_and_a_single_other_value_is_not(count: int) -> None:
    bits, rows = Bits(count), 9
    table = (drawn(1, rows, count) & np.uint64(1)).astype(np.uint64)
    masks, gamma, point = drawn(2, rows), drawn(3, 3, rows), int(drawn(4, 1)[0])
    for value, taken in ((None, True), (2, False), (P - 1, False), (1 << 40, False)):
        changed = table.copy()
        if value is not None:
            changed[4, count - 1] = value
        quotients = bits.quotients(masks, changed, gamma)
        values, at = bits.answer(masks, changed, quotients, point)
        assert bits.accepts(values, at, gamma, point) is taken
    quotients = bits.quotients(masks, table, gamma)
    quotients[1, 0] = (int(quotients[1, 0]) + 1) % P
    assert not bits.accepts(*bits.answer(masks, table, quotients, point), gamma, point)


def test_polynomials_go_through_masks_and_bits() -> None:
    bits, rows = Bits(5), 3
    table, masks = drawn(1, rows, 5) & np.uint64(1), drawn(2, rows)
    whole = np.concatenate([masks[:, None], table], axis=1)
    quotients = bits.quotients(masks, table, drawn(3, 3, rows))
    for point in (0, 1, 5):  # which no query asks for
        values = [sum(int(c) * int(v) for c, v in zip(lagrange(6, point), row, strict=True)) % P for row in whole]
        assert values == [int(row[point]) for row in whole]
    values, _ = bits.answer(masks, table, quotients, 100)
    want = [sum(c * int(v) for c, v in zip(lagrange(6, 100), row, strict=True)) % P for row in whole]
    assert [int(value) for value in values] == want


def lagrange(count: int, point: int) -> list[int]:
    out = []
    for i in range(count):
        above = math.prod(point - j for j in range(count) if j != i)
        below = math.prod(i - j for j in range(count) if j != i)
        out.append(above * pow(below, -1, P) % P)
    return out


def test_a_slacks_bits_are_its_low_ones_and_its_last_row_ends_in_zeros() -> None:
    bits = Bits(4)
    rows = bits.rows_of(0b101101, 6)
    assert rows.tolist() == [[1, 0, 1, 1], [0, 1, 0, 0]]
    assert dot(bits.weights(6), rows.ravel()) == 0b101101
    assert bits.rows_of(-1, 6).tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert len(bits.weights(0)) == 0


# --- the lemma ---


def passing(entries: list[int], tau: int) -> float:
    """The exact chance that a signed sum of integers lies in a window of 2 tau, wherever it lies."""
    chances = {0: 1.0}
    for entry in entries:
        following: dict[int, float] = {}
        for value, chance in chances.items():
            for sign, weight in ((-1, 0.25), (0, 0.5), (1, 0.25)):
                following[value + sign * entry] = following.get(value + sign * entry, 0.0) + weight * chance
        chances = following
    windows = (sum(c for value, c in chances.items() if low <= value < low + 2 * tau) for low in chances)
    return max(windows)


@pytest.mark.parametrize(
    "entries", [[8], [8, 8], [9, 1], [100], [5] * 16, [7] * 8, [7, 7, 7, 7, 7, 7, 6, 6], [4] * 23, [1] * 361]
)
def test_what_the_lemma_excludes_passes_a_test_with_one_half_at_most(entries: list[int]) -> None:
    tau = 4
    assert max(entries) >= 2 * tau or math.hypot(*entries) >= 4.75 * tau
    assert passing(entries, tau) <= 0.5


def test_the_constant_of_the_lemma_is_near_the_truth() -> None:
    """Three entries of 2 tau - 1 have 3.4 tau and pass with more than one half, so 4.75 cannot become 3.4."""
    tau = 1 << 12
    assert passing([2 * tau - 1] * 3, tau) == pytest.approx(0.547, abs=1e-3)
    assert math.sqrt(3) * (2 * tau - 1) > 3.4 * tau


def test_the_integral_of_the_lemmas_proof() -> None:
    least = (math.sin(math.pi / 4) / (math.pi / 4)) ** 2
    assert least == pytest.approx(0.8106, abs=1e-4)
    area, _ = quad(lambda v: (1 - abs(v)) * math.exp(-((4.75 * math.pi / 4) ** 2) * v * v), -1, 1)
    assert area / least < 0.4976
    assert 5.16**2 >= 4.75**2 + 4  # squares of entries below 2 tau grow by less than 4 tau**2


def test_matrices_and_differences_agree() -> None:
    a, b = drawn(1, 4, 5), drawn(2, 5, 3)
    assert subtract(matmul(a, b), matmul(a, b)).tolist() == [[0] * 3] * 4
