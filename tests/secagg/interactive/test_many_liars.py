"""How many liars end a session of 1,000 clients on a random graph: the numbers of docs/wire/interactive.md.

Liars do not choose their places, but accuse whom they like: each pair of neighbours on the circle of liars accuses one
honest client, which the server excludes, as long as neither of them has more disputes. Then all liars vanish after the
uploads. In one attack they spread over the circle and make the list too short; in the other they meet around one client
and leave it too few neighbours.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from privstats.encoding import Ring
from privstats.errors import AggregationError
from privstats.secagg import Identity, Parameters, Roster
from privstats.secagg.interactive.blame import admitted, require_clients
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.prg import keystream
from privstats.secagg.wire import labelled

N, GRAPHS = 1000, 6


@cache
def parameters() -> Parameters:
    sizes = {"clients": N, "min_survivors": 900, "colluders": 100}
    return Parameters.solve(**sizes, ring=Ring(((1, 8),)), plan_digest=bytes(32))


@cache
def cohort(number: int) -> tuple[Graph, list[int], list[int]]:
    """A graph, its circle, and its clients in the order in which they become liars."""
    rng = np.random.default_rng(number)
    *publics, server = (Identity.generate(rng.bytes).public for _ in range(N + 1))
    graph = Graph(parameters(), Roster.numbered(tuple(publics), server=server, label="liars", counter=0))
    seed = labelled("graph", graph.roster.digest)
    ring = np.argsort(np.frombuffer(keystream(seed, 0, 0, 8 * N), "<u8"), kind="stable")
    return graph, ring.tolist(), rng.permutation(N).tolist()


def accusations(graph: Graph, pairs: Sequence[tuple[int, int]], liars: set[int], around: set[int]):
    """Both of each pair accuse the lowest honest client that both know, which a server removes first among equals."""
    failed: dict[int, set[int]] = {}
    left = around - liars
    for pair in pairs:
        both = left.intersection(*map(graph.neighbours, pair))
        if both:
            left.discard(min(both))
            for liar in pair:
                failed.setdefault(liar, set()).add(min(both))
    return {liar: tuple(sorted(accused)) for liar, accused in failed.items()}


def left_after(graph: Graph, ring: list[int], liars: list[int], around: set[int], *, closed: bool) -> frozenset[int]:
    """Return who is left when liars accuse clients in ``around`` and vanish; who would be removed accuses only once."""
    meet = [liar for liar in ring if liar in set(liars) and around.intersection(graph.neighbours(liar))]
    low: set[int] = set()
    fewest = frozenset(range(N))
    for _ in range(12):
        twice, once = ([liar for liar in meet if (liar in low) == each] for each in (False, True))
        pairs = list(zip(twice, twice[1:] + twice[: int(closed)], strict=False))
        pairs += zip(once[::2], once[1::2], strict=False)
        here = admitted(range(N), accusations(graph, pairs, set(liars), around), graph)
        fewest = min(fewest, here.difference(liars), key=lambda stay: len(stay & around))
        if set(liars) <= here:
            break
        low |= set(liars) - here
    return fewest


def ends(graph: Graph, stay: frozenset[int]) -> bool:
    try:
        require_clients(stay, "mask", graph)
    except AggregationError:
        return True
    return False


def crowded(graph: Graph, liars: list[int]) -> set[int]:
    """The neighbours of the honest client that has most liars near it and two steps away."""
    lying = np.zeros(N)
    lying[liars] = 1
    table = np.array([graph.neighbours(client) for client in range(N)])
    near = lying[table].sum(axis=1)
    score = near + near[table].mean(axis=1)
    score[liars] = 0
    return set(graph.neighbours(int(score.argmax())))


def spread(number: int, liars: int) -> frozenset[int]:
    graph, ring, order = cohort(number)
    return left_after(graph, ring, order[:liars], set(range(N)), closed=True)


@pytest.mark.ci
@pytest.mark.parametrize("number", range(GRAPHS))
def test_43_liars_leave_enough_for_a_list(number: int) -> None:
    """Two clients a liar at most: itself, and an honest one."""
    graph, ring, order = cohort(number)
    assert parameters().min_listed <= N - 2 * 43
    stay = spread(number, 43)
    assert N - 2 * 43 <= len(stay) < N - 43 - 30
    assert not ends(graph, stay)
    around = crowded(graph, order[:43])
    meeting = left_after(graph, ring, order[:43], around, closed=False)
    assert len(meeting & around) < parameters().neighbours - 10
    assert not ends(graph, meeting)


@pytest.mark.ci
def test_49_liars_end_a_session_in_which_nobody_else_vanishes() -> None:
    assert all(ends(cohort(number)[0], spread(number, 49)) for number in range(GRAPHS))
