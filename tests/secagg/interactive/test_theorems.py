"""Theorems in small cases, exhaustively.

Theorem 1: the count of challenges for which a lying dealer passes, in a small field. Theorem 8: which sums a lying
server can make on a circle on which pairs in dispute do not mask.
"""

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


def bad(f: dict[int, int], u: dict[int, int], j: int) -> set[int]:
    """Challenges at which some set of at least K - j holders keeps shares that lie on no polynomial."""
    found = set()
    for size in range(K - j, K + 1):
        for kept in combinations(HOLDERS, size):
            if not low(kept, f):
                found |= {e for e in range(P) if low(kept, {x: (u[x] + e * f[x]) % P for x in kept})}
    return found


def polynomial(rng: np.random.Generator) -> dict[int, int]:
    slopes = rng.integers(0, P, T)
    return {x: int(sum(s * x**power for power, s in enumerate(slopes))) % P for x in HOLDERS}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("wrong", [1, 2, 3, K])
def test_a_lie_passes_at_no_more_challenges_than_there_are_sets_of_holders(seed, wrong):
    """Lies: some shares moved, and shares of no polynomial at all."""
    rng = np.random.default_rng(seed)
    f, u = polynomial(rng), polynomial(rng)
    for x in rng.permutation(K)[:wrong]:
        f[int(x) + 1] = (f[int(x) + 1] + 1 + seed) % P if wrong < K else int(rng.integers(0, P))
        u[int(x) + 1] = int(rng.integers(0, P))
    for j in range(K - T + 1):
        found = bad(f, u, j)
        assert len(found) <= min(sum(comb(K, i) for i in range(j + 1)), comb(K, T + 1))


def test_honest_dealings_have_no_bad_challenge_and_the_bound_is_met_by_one_moved_share():
    rng = np.random.default_rng(1)
    f, u = polynomial(rng), polynomial(rng)
    assert not bad(f, u, K - T)
    assert not bad(polynomial(rng), {x: int(rng.integers(0, P)) for x in HOLDERS}, K - T)
    f[1], u[1] = (f[1] + 1) % P, (u[1] - 29) % P
    assert bad(f, u, 0) == {29}


@pytest.mark.parametrize(("k", "j", "bits"), [(255, 51, 71), (255, 77, 30)])
def test_the_page_s_numbers_by_the_holders_that_are_lost(k, j, bits):
    assert int(252 - log2(sum(comb(k, i) for i in range(j + 1)))) == bits


@pytest.mark.parametrize(("k", "t", "bits"), [(184, 133, 99), (146, 107, 133)])
def test_the_page_s_numbers_by_the_threshold_alone(k, t, bits):
    assert int(252 - log2(comb(k, t))) == bits


def windows(n: int, k: int) -> list[int]:
    """By client, its k neighbours on the circle as bits."""
    return [sum(1 << ((i + d) % n) for d in range(-k // 2, k // 2 + 1) if d) for i in range(n)]


def most_left_out(n: int, k: int, t: int, q: int, colluders: int, *, all_listed: bool = False) -> int:
    """Return how many honest clients on a list a server can leave out of a sum: the most over all lists and sums.

    An honest client is not on the list, on it and not in the sum, or in the sum. Whoever is on the list has t listed
    neighbours. Whoever is in the sum masks with t neighbours in it, off the list or colluding, and t of its neighbours
    sign or collude; it signs itself if at most q of its neighbours are listed and not in the sum, and t are in it or
    collude. The server has everything else as it likes: of those off the sum all sign.
    """
    near, bits = windows(n, k), np.bitwise_count
    honest = [i for i in range(n) if not colluders >> i & 1]
    off, left, inside = (np.zeros((3 - all_listed) ** len(honest), np.int64) for _ in range(3))
    rest = np.arange(off.size)
    for i in honest:
        rest, kind = np.divmod(rest, 3 - all_listed)
        for place, row in enumerate((off, left, inside)):
            row[kind == place - all_listed] |= 1 << i
    listed = left | inside | colluders
    possible = inside > 0
    for i in range(n):
        possible &= (listed >> i & 1 == 0) | (bits(listed & near[i]) >= t)
    off, left, inside = off[possible], left[possible], inside[possible]
    signs = left.copy()
    for i in honest:
        may = (bits(left & near[i]) <= q) & (bits((inside | colluders) & near[i]) >= t)
        signs[may & (inside >> i & 1 == 1)] |= 1 << i
    good = np.ones(len(inside), bool)
    for i in honest:
        shown = bits((signs | colluders) & near[i]) >= t
        masked = bits((inside | off | colluders) & near[i]) >= t
        good &= (inside >> i & 1 == 0) | (shown & masked)
    return int(bits(left[good]).max(initial=0))


def bad_event(n: int, k: int, t: int, q: int, colluders: int) -> bool:
    """Whether colluders lie so close together that theorem 8 claims nothing."""
    near, h = windows(n, k), k // 2
    sides = [sum(colluders >> (i + sign * d) % n & 1 for d in range(1, h + 1)) for i in range(n) for sign in (1, -1)]
    return max(sides) >= t - q - h or max((colluders & row).bit_count() for row in near) >= 2 * t - k


def bound(n: int, k: int, q: int) -> int:
    """Return the bound of ``min_listed``: how many more must be listed than are in the sum."""
    return q * (-(-(n - k - 1) // (k // 2 + 1)) + 1)


@pytest.mark.parametrize(
    ("n", "k", "t", "q", "colluders"),
    [(12, 8, 6, 1, 0), (12, 8, 7, 0, 0b1), (12, 8, 7, 0, 0b11), (12, 10, 8, 1, 0), (12, 10, 8, 1, 0b1),
     (12, 10, 8, 1, 0b1000001)],
)  # fmt: skip
def test_a_server_leaves_out_no_more_of_a_list_than_the_bound_says(n: int, k: int, t: int, q: int, colluders: int):
    assert not bad_event(n, k, t, q, colluders)
    assert most_left_out(n, k, t, q, colluders) <= bound(n, k, q)


@pytest.mark.parametrize("n", [14, 16, 18])
def test_a_longer_ring_lets_it_leave_out_more_and_never_more_than_the_bound(n: int) -> None:
    """All honest clients are on the list, so that a circle of several windows can be walked whole."""
    assert not bad_event(n, 8, 6, 1, 0)
    assert 1 <= most_left_out(n, 8, 6, 1, 0, all_listed=True) <= bound(n, 8, 1)


def test_the_bound_is_passed_where_colluders_lie_close() -> None:
    assert bad_event(12, 6, 4, 1, 0b1)
    assert most_left_out(12, 6, 4, 1, 0b1) > bound(12, 6, 1)
