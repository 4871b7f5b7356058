"""The sparse graph: regular, symmetric, fixed by plan and roster, and connected wherever nobody is isolated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from privstats.errors import LocalProtocolError
from privstats.secagg import Parameters, Roster
from privstats.secagg.bitmap import members, to_bitmap
from privstats.secagg.graph import Graph
from tests.secagg.cohorts import RING


def graph_of(clients: int, neighbours: int, plan: int = 0) -> Graph:
    publics = tuple(client.to_bytes(32, "big") for client in range(clients))
    threshold = clients // 2 + 1 if neighbours == clients - 1 else neighbours // 2 + 1
    parameters = Parameters(clients, threshold, clients, 0, neighbours, RING, plan.to_bytes(32, "big"))
    return Graph(parameters, Roster(publics))


sparse = st.integers(6, 60).flatmap(
    lambda n: st.builds(
        graph_of, st.just(n), st.integers(1, (n - 2) // 2).map(lambda half: 2 * half), st.integers(0, 99)
    )
)


@given(sparse)
def test_every_client_has_k_neighbours_and_is_theirs(graph: Graph) -> None:
    n, k = graph.parameters.clients, graph.parameters.neighbours
    edges = {(i, j) for i in range(n) for j in graph.neighbours(i)}
    assert all(len(set(graph.neighbours(i))) == k and i not in graph.neighbours(i) for i in range(n))
    assert edges == {(j, i) for i, j in edges}


@given(sparse)
def test_holders_have_distinct_points_that_a_byte_can_carry(graph: Graph) -> None:
    for owner in range(graph.parameters.clients):
        points = [graph.point(owner, holder) for holder in graph.neighbours(owner)]
        assert points == list(range(1, graph.parameters.neighbours + 1))


def test_points_of_the_complete_graph_skip_the_owner() -> None:
    graph = graph_of(6, 5)
    assert [[graph.point(owner, holder) for holder in graph.neighbours(owner)] for owner in (0, 3, 5)] == 3 * [
        [1, 2, 3, 4, 5]
    ]


def test_another_plan_or_another_roster_is_another_graph() -> None:
    one, other = graph_of(40, 6), graph_of(40, 6, plan=1)
    assert [one.neighbours(i) for i in range(40)] != [other.neighbours(i) for i in range(40)]
    shuffled = Graph(one.parameters, Roster(one.roster.publics[::-1]))
    assert [one.neighbours(i) for i in range(40)] != [shuffled.neighbours(i) for i in range(40)]


@given(sparse, st.data())
def test_a_list_that_leaves_everyone_more_than_half_its_neighbours_leaves_the_graph_connected(graph, data) -> None:
    """What the survivor check relies on: degree > k/2 everywhere implies one component."""
    n = graph.parameters.clients
    survivors = frozenset(range(n)) - data.draw(st.frozensets(st.integers(0, n - 1), max_size=n // 3))
    assume(len(survivors) > 1)
    assume(graph.least_degree(survivors) > graph.parameters.neighbours // 2)
    reached, frontier = set(), {min(survivors)}
    while frontier:
        reached |= frontier
        frontier = {j for i in frontier for j in graph.neighbours(i) if j in survivors} - reached
    assert reached == survivors


@given(sparse, st.data())
def test_least_degree_is_what_counting_gives(graph, data) -> None:
    n = graph.parameters.clients
    survivors = data.draw(st.frozensets(st.integers(0, n - 1), min_size=1))
    assert graph.least_degree(survivors) == min(len(survivors.intersection(graph.neighbours(i))) for i in survivors)


def test_a_roster_of_another_size_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="the roster lists 39 clients, the parameters 40"):
        Graph(graph_of(40, 6).parameters, Roster(graph_of(40, 6).roster.publics[1:]))


@pytest.mark.parametrize("publics", [(b"short",), (b"k" * 32, b"k" * 32)])
def test_a_roster_with_a_short_or_repeated_key_is_refused(publics: tuple[bytes, ...]) -> None:
    with pytest.raises(LocalProtocolError, match="a roster"):
        Roster(publics)


@given(st.integers(1, 100), st.data())
def test_a_survivor_list_has_exactly_one_encoding(size: int, data) -> None:
    clients = data.draw(st.frozensets(st.integers(0, size - 1)))
    bitmap = to_bitmap(clients, size)
    assert members(bitmap, size) == clients
    assert np.unpackbits(np.frombuffer(bitmap, np.uint8)).sum() == len(clients)
