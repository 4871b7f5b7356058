"""The sparse graph's parameters: the published table, brute-force bounds, and contradictions refused."""

from dataclasses import fields
from itertools import product
from math import comb, inf, isclose, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.errors import PlanError
from privstats.secagg import Parameters
from privstats.secagg.interactive.random_graph import FailureBounds, failure_bounds, signatures_needed, solve_sparse


@pytest.mark.parametrize(("clients", "k", "t"), [(100, 32, 22), (1000, 100, 69), (10_000, 132, 91)])
def test_ten_percent_colluders_and_dropouts_need_the_table_of_the_design(clients: int, k: int, t: int) -> None:
    graph = solve_sparse(clients, min_survivors=clients - clients // 10, colluders=clients // 10)
    assert (graph.neighbours, graph.threshold) == (k, t)
    assert max(graph.bounds.connectivity, graph.bounds.privacy) <= -40
    assert graph.bounds.liveness <= -30


@pytest.mark.ci
@pytest.mark.parametrize(
    ("clients", "k", "t"), [(100, 36, 30), (1000, 146, 107), pytest.param(10_000, 184, 133, marks=pytest.mark.nightly)]
)
def test_more_neighbours_carry_a_server_that_chooses_who_drops(clients: int, k: int, t: int) -> None:
    dropping = {"min_survivors": clients - clients // 10, "colluders": clients // 10}
    graph = solve_sparse(clients, robust=True, **dropping)
    assert (graph.neighbours, graph.threshold) == (k, t)
    assert max(graph.bounds.connectivity, graph.bounds.privacy, graph.bounds.lying_server) <= -40
    assert graph.bounds.liveness <= -30
    assert solve_sparse(clients, **dropping).bounds.lying_server > -40


def tail(draws: int, good: int, total: int, hit) -> float:
    """P[hypergeometric in ``hit``] by counting."""
    ways = sum(comb(good, x) * comb(total - good, draws - x) for x in range(draws + 1) if hit(x))
    return ways / comb(total, draws)


@given(st.integers(6, 40), st.data())
def test_bounds_with_disputes_are_the_counted_probabilities(n: int, data) -> None:
    """As many more must stay as a server may leave out, with q neighbours more for each."""
    k = data.draw(st.integers(2, (n - 2) // 2)) * 2
    t, q = data.draw(st.integers(k // 2 + 1, k)), data.draw(st.integers(1, 2))
    c = data.draw(st.integers(0, n - 2))
    d = data.draw(st.integers(0, n - 1 - c))
    windows = 1 + next(more for more in range(n) if k + 1 + more * (k // 2 + 1) >= n)
    gone = max(0, d - q * windows)
    bounds = failure_bounds(n, min_survivors=n - d, colluders=c, neighbours=k, threshold=t, disputes=q)
    counted = {
        "liveness": tail(k, n - 1 - gone, n - 1, lambda x: x < t + q),
        "lying_server": tail(k // 2, c, n - 1, lambda x: x >= t - q - k // 2),
    }
    assert_bounds(bounds, {name: n * probability for name, probability in counted.items()}, n, c, d)


@pytest.mark.ci
def test_a_large_cohort_needs_the_graph_of_the_page() -> None:
    """Of 1,000 clients, with a tenth that colludes and a tenth that may be gone from the sum."""
    parameters = Parameters.solve(clients=1000, min_survivors=900, colluders=100, ring=RING, plan_digest=bytes(32))
    assert (parameters.neighbours, parameters.threshold, parameters.min_listed) == (146, 107, 913)
    assert max(parameters.bounds.connectivity, parameters.bounds.privacy, parameters.bounds.lying_server) <= -40
    assert parameters.bounds.liveness <= -30


@given(st.integers(6, 60), st.data())
def test_bounds_are_the_counted_probabilities(n: int, data) -> None:
    k = data.draw(st.integers(1, (n - 2) // 2)) * 2
    t = data.draw(st.integers(k // 2 + 1, k))
    c = data.draw(st.integers(0, n - 2))
    d = data.draw(st.integers(0, n - 1 - c))
    bounds = failure_bounds(n, min_survivors=n - d, colluders=c, neighbours=k, threshold=t, disputes=0)
    counted = {
        "privacy": tail(k, c, n - 1, lambda x: x >= 2 * t - k),
        "liveness": tail(k, n - 1 - d, n - 1, lambda x: x < t),
        "lying_server": tail(k // 2, c, n - 1, lambda x: x >= t - k // 2),
        "connectivity": comb(c + d, k // 2) / comb(n, k // 2),
    }
    assert_bounds(bounds, {name: n * probability for name, probability in counted.items()}, n, c, d)


def assert_bounds(bounds: FailureBounds, counted: dict[str, float], n: int, c: int, d: int) -> None:
    """Compare with counted probabilities. Up to 1,024 clients, too few to sign one list is certain or impossible."""
    counted["liveness"] += n - d <= (n + c) // 2
    assert bounds.two_lists == -inf
    for name, probability in counted.items():
        expected = log2(probability) if probability else -inf
        assert isclose(getattr(bounds, name), expected, rel_tol=1e-6, abs_tol=1e-6) or expected < -200


@pytest.mark.parametrize(("clients", "colluders"), [(1_025, 0), (1_500, 15), (1_500, 150), (3_000, 600)])
def test_a_committee_signs_no_two_lists(clients: int, colluders: int) -> None:
    """The smallest number of signatures whose counted probability of two lists is at most 2^-40."""
    size, tau = 1_024, signatures_needed(clients, colluders)
    ways = comb(clients, size)

    def two_lists(signatures: int) -> int:
        excess = range(max(0, 2 * signatures - size), min(colluders, size) + 1)
        return sum(comb(colluders, x) * comb(clients - colluders, size - x) for x in excess)

    assert two_lists(tau) << 40 <= ways
    assert tau == size // 2 + 1 or two_lists(tau - 1) << 40 > ways
    bounds = failure_bounds(clients, min_survivors=clients, colluders=colluders, neighbours=8, threshold=6)
    assert isclose(2**bounds.two_lists, two_lists(tau) / ways, rel_tol=1e-6)


@given(st.integers(4, 1_024), st.data())
def test_up_to_1024_clients_a_majority_of_the_honest_signs(clients: int, data) -> None:
    """Two lists need 2 (tau - c) honest signatures, of n - c honest clients that sign once."""
    colluders = data.draw(st.integers(0, clients - 2))
    tau = signatures_needed(clients, colluders)
    assert 2 * (tau - colluders) > clients - colluders >= 2 * (tau - 1 - colluders)


def test_a_plan_whose_survivors_are_too_few_to_sign_is_refused_before_the_session() -> None:
    with pytest.raises(PlanError, match="160 survivors may be too few: raise min_survivors, or lower colluders"):
        solve(300, 160, 30)
    assert solve(300, 270, 30).signatures == 166
    with pytest.raises(PlanError, match="5200 survivors may be too few"):
        solve(10_000, 5_200, 100, graph="sparse")
    with pytest.raises(PlanError, match="min_survivors must be at least 7, since more than"):
        Parameters(12, 4, 6, 1, 6, RING, bytes(32))


def test_no_smaller_degree_would_do() -> None:
    best = solve_sparse(300, min_survivors=270, colluders=30)
    for k, t in product(range(2, best.neighbours, 2), range(2, best.neighbours)):
        if k // 2 < t <= k:
            bounds = failure_bounds(300, min_survivors=270, colluders=30, neighbours=k, threshold=t)
            assert bounds.connectivity > -40 or bounds.privacy > -40 or bounds.liveness > -30


@pytest.mark.parametrize(
    ("clients", "min_survivors", "colluders", "match"),
    [
        (3, 3, 0, "at least 4 clients"),
        (10, 11, 0, "an honest survivor"),
        (10, 9, -1, "an honest survivor"),
        (10, 5, 5, "an honest survivor"),
        (1000, 660, 300, "expect fewer colluders or fewer dropouts"),
    ],
)
def test_what_no_sparse_graph_can_carry_is_refused(
    clients: int, min_survivors: int, colluders: int, match: str
) -> None:
    with pytest.raises(PlanError, match=match):
        solve_sparse(clients, min_survivors=min_survivors, colluders=colluders)


RING = Ring(((1, 8),))


def solve(clients: int, min_survivors: int, colluders: int, graph="auto", plan_digest=bytes(32)) -> Parameters:
    return Parameters.solve(
        clients=clients,
        min_survivors=min_survivors,
        colluders=colluders,
        graph=graph,
        ring=RING,
        plan_digest=plan_digest,
    )


def test_the_graph_is_complete_up_to_256_clients_and_robust_beyond() -> None:
    assert solve(256, 240, 20).complete
    assert solve(256, 240, 20).neighbours == 255
    beyond = solve(257, 250, 5)
    assert not beyond.complete
    assert beyond.neighbours < 256
    assert beyond == solve(257, 250, 5, graph="robust")
    assert beyond.bounds.lying_server <= -40
    assert solve(256, 230, 10, graph="sparse").neighbours < solve(256, 230, 10, graph="robust").neighbours < 255


@pytest.mark.nightly
def test_a_cohort_that_no_robust_graph_carries_is_told_to_expect_fewer_of_either() -> None:
    with pytest.raises(PlanError, match="no robust graph of at most 255 .*expect fewer colluders or fewer dropouts"):
        solve(1000, 800, 100)


def test_bounds_say_nothing_can_fail_by_chance_in_a_complete_graph() -> None:
    assert solve(20, 14, 3).bounds.privacy == -inf
    assert solve(300, 290, 5).bounds.privacy <= -40


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((1, 1, 0), "two honest clients"),
        ((5, 5, 4), "two honest clients"),
        ((10, 5, 0), "min_survivors must be between the threshold 6"),
        ((10, 7, 6), "min_survivors must be between the threshold 9"),
        ((10, 11, 0), "min_survivors must be between"),
        ((300, 290, 5, "complete"), "at most 256 clients"),
        ((10, 9, 0, "auto", b"short"), "32 bytes"),
    ],
)
def test_contradictions_are_refused_with_the_field_and_the_remedy(arguments, match: str) -> None:
    with pytest.raises(PlanError, match=match):
        solve(*arguments)


@pytest.mark.parametrize(
    ("threshold", "neighbours", "match"),
    [
        (5, 9, "threshold must exceed"),
        (6, 0, "neighbours must be between"),
        (6, 10, "neighbours must be between"),
        (6, 7, "even neighbours"),
        (4, 8, "k/2 < threshold"),
        (9, 8, "k/2 < threshold"),
    ],
)
def test_numbers_set_by_hand_are_checked_too(threshold: int, neighbours: int, match: str) -> None:
    with pytest.raises(PlanError, match=match):
        Parameters(10, threshold, 9, 0, neighbours, RING, bytes(32))


def test_every_number_and_the_plan_are_in_the_digest() -> None:
    """But for what the plan says already: whether its graph is made for a server that lies."""
    base = Parameters(10, 7, 8, 2, 9, RING, bytes(32))
    others = {
        "clients": Parameters(11, 7, 8, 2, 10, RING, bytes(32)),
        "threshold": Parameters(10, 8, 8, 2, 9, RING, bytes(32)),
        "min_survivors": Parameters(10, 7, 9, 2, 9, RING, bytes(32)),
        "colluders": Parameters(10, 7, 8, 3, 9, RING, bytes(32)),
        "neighbours": Parameters(14, 6, 9, 2, 8, RING, bytes(32)),
        "ring": Parameters(10, 7, 8, 2, 9, Ring(((1, 9),)), bytes(32)),
        "plan_digest": Parameters(10, 7, 8, 2, 9, RING, b"p" * 32),
        "levels": Parameters(10, 7, 8, 2, 9, RING, bytes(32), levels=(8, 10)),
    }
    assert {*others, "server_may_lie"} == {each.name for each in fields(Parameters)}
    assert len({base.digest, *(other.digest for other in others.values())}) == 9
    assert others["neighbours"].digest != Parameters(14, 6, 9, 2, 10, RING, bytes(32)).digest
