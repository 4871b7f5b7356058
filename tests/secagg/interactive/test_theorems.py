"""The count of challenges for which a lying dealer passes (docs/theorems.md, 1), exhaustively in a small field."""

from itertools import combinations
from math import comb, log2

import numpy as np
import pytest

P, K, T = 101, 6, 3
HOLDERS = range(1, K + 1)


def at(points: tuple[int, ...], values: list[int], x: int) -> int:
    """The polynomial through these points, at x."""
    total = 0
    for i, value in zip(points, values, strict=True):
        weight = 1
        for j in points:
            if j != i:
                weight = weight * (x - j) * pow(i - j, -1, P) % P
        total += value * weight
    return total % P


def low(points: tuple[int, ...], values: dict[int, int]) -> bool:
    """Whether values at these points are of a polynomial of degree below T."""
    first = points[:T]
    return all(at(first, [values[i] for i in first], x) == values[x] for x in points)


def bad(f: dict[int, int], u: dict[int, int], a: int, r: int, j: int) -> set[int]:
    """Challenges at which some set of at least K - j holders keeps shares of which T give another key than a."""
    found = set()
    for size in range(K - j, K + 1):
        for kept in combinations(HOLDERS, size):
            gives = {at(some, [f[i] for i in some], 0) for some in combinations(kept, T)}
            if gives == {a}:
                continue
            for e in range(P):
                z = {x: (u[x] + e * f[x]) % P for x in kept}
                if low(kept, z) and at(kept[:T], [z[x] for x in kept[:T]], 0) == (r + e * a) % P:
                    found.add(e)
    return found


def polynomial(rng: np.random.Generator, at_zero: int) -> dict[int, int]:
    slopes = rng.integers(0, P, T - 1)
    return {x: int(at_zero + sum(s * x ** (power + 1) for power, s in enumerate(slopes))) % P for x in HOLDERS}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("wrong", [0, 1, 2, 3, K])
def test_a_lie_passes_at_no_more_challenges_than_there_are_sets_of_holders(seed, wrong):
    """Lies: another key, some shares moved, and shares of no polynomial at all."""
    rng = np.random.default_rng(seed)
    a, r = 7, 11
    f = polynomial(rng, a if 0 < wrong < K else 8)
    u = polynomial(rng, r)
    for x in rng.permutation(K)[: wrong if wrong < K else 0]:
        f[int(x) + 1] = (f[int(x) + 1] + 1 + seed) % P
        u[int(x) + 1] = int(rng.integers(0, P))
    if wrong == K:
        f = {x: int(rng.integers(0, P)) for x in HOLDERS}
    for j in range(K - T + 1):
        found = bad(f, u, a, r, j)
        assert len(found) <= sum(comb(K, i) for i in range(j + 1))


def test_honest_dealings_have_no_bad_challenge_and_the_bound_is_met_by_a_lie_about_the_key():
    rng = np.random.default_rng(1)
    honest = polynomial(rng, 7)
    assert not bad(honest, polynomial(rng, 11), 7, 11, K - T)
    assert len(bad(polynomial(rng, 8), polynomial(rng, 12), 7, 11, 0)) == 1


@pytest.mark.parametrize(("k", "j", "bits"), [(255, 51, 71), (255, 77, 30)])
def test_the_page_s_numbers_by_the_holders_that_are_lost(k, j, bits):
    assert int(252 - log2(sum(comb(k, i) for i in range(j + 1)))) == bits


@pytest.mark.parametrize(("k", "t", "bits"), [(192, 137, 90), (150, 108, 127)])
def test_the_page_s_numbers_by_the_threshold_alone(k, t, bits):
    assert int(252 - log2(comb(k, t))) == bits
