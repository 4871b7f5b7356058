"""The sparse graph: regular, symmetric, fixed by plan and roster, and connected wherever nobody is isolated."""

import hashlib
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.secagg import Identity, Parameters, Roster
from privstats.secagg.interactive.checks import check_agreement
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import Agreement, survivors_statement
from privstats.secagg.interactive.state import ClientState
from privstats.secagg.prg import keystream
from privstats.secagg.wire import Refusal, members, to_bitmap
from tests.secagg.interactive.cohorts import RING
from tests.secagg.plainly import ctr

SERVER = b"s" * 32


def graph_of(clients: int, neighbours: int, plan: int = 0) -> Graph:
    publics = tuple(b"client" + client.to_bytes(26, "big") for client in range(clients))
    threshold = clients // 2 + 1 if neighbours == clients - 1 else neighbours // 2 + 1
    parameters = Parameters(clients, threshold, clients // 2 + 1, 0, neighbours, RING, plan.to_bytes(32, "big"))
    return Graph(parameters, numbered(publics))


def numbered(publics) -> Roster:
    return Roster.numbered(publics, server=SERVER, label="graphs", counter=0)


sparse = st.integers(8, 60).flatmap(
    lambda n: st.builds(
        graph_of, st.just(n), st.integers(3, (n - 2) // 2).map(lambda half: 2 * half), st.integers(0, 99)
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


def drawn(graph: Graph) -> tuple[list[tuple[int, ...]], frozenset[int]]:
    """Neighbours of all clients, and the committee."""
    return [graph.neighbours(i) for i in range(graph.parameters.clients)], graph.committee


@given(st.integers(0, 2**256 - 1))
def test_no_plan_chooses_the_graph_and_every_roster_and_round_has_its_own(plan: int) -> None:
    """In a course the plan holds what earlier rounds released, and the server writes that."""
    one, other = graph_of(40, 6), graph_of(40, 6, plan=plan)
    assert drawn(one) == drawn(other)
    rosters = (one.roster, numbered(one.roster.publics[::-1]), *map(one.roster.of_round, range(3)))
    graphs = [drawn(Graph(one.parameters, roster))[0] for roster in rosters]
    assert all(graphs.count(graph) == 1 for graph in graphs)


def test_no_plan_chooses_the_committee_of_a_large_cohort() -> None:
    publics = tuple(sha256(b"%d" % client).digest() for client in range(1_100))
    roster = Roster.numbered(publics, server=sha256(b"server").digest(), label="large", counter=0)
    one, other = (Parameters(1_100, 6, 800, 0, 8, Ring(((1, 8),)), plan * 32) for plan in (b"a", b"b"))
    assert Graph(one, roster).committee == Graph(other, roster).committee
    assert Graph(one, roster).committee != Graph(one, roster.of_round(0)).committee


@given(sparse, st.data())
def test_a_list_that_leaves_everyone_more_than_half_its_neighbours_leaves_the_graph_connected(graph, data) -> None:
    """What the survivor check relies on: degree > k/2 everywhere implies one component."""
    n = graph.parameters.clients
    survivors = frozenset(range(n)) - data.draw(st.frozensets(st.integers(0, n - 1), max_size=n // 3))
    assume(len(survivors) > 1)
    assume(graph.min_degree(survivors) > graph.parameters.neighbours // 2)
    assert connected(graph, survivors) == 1


@given(sparse, st.data())
def test_honest_survivors_fall_apart_only_beside_enough_colluders(graph, data) -> None:
    """The lying-server bound: if a list that isolates nobody splits the honest survivors, then some honest survivor has
    at least t - k/2 colluders among the k/2 places on one side of it, for every t that the list's degrees reach."""
    n, half, ring = graph.parameters.clients, graph.parameters.neighbours // 2, on_the_ring(graph)
    survivors = frozenset(range(n)) - data.draw(st.frozensets(st.integers(0, n - 1), max_size=n // 8))
    arcs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(1, half + 2)), min_size=2, max_size=3))
    colluders = frozenset(ring[(at + away) % n] for at, length in arcs for away in range(length)) & survivors
    honest = survivors - colluders
    assume(len(honest) > 1)
    degree = graph.min_degree(survivors)
    assume(degree > half)
    components = connected(graph, honest)
    event(f"{min(components, 2)} components or more")
    if components > 1:
        beside = max(
            sum(ring[(at + away) % n] in colluders for away in range(1, half + 1))
            for at, client in enumerate(ring)
            if client in honest
        )
        assert beside >= degree - half


def connected(graph, members) -> int:
    """Components of the graph among ``members``."""
    left, count = set(members), 0
    while left:
        count += 1
        frontier = {left.pop()}
        while frontier:
            frontier = {j for i in frontier for j in graph.neighbours(i)} & left
            left -= frontier
    return count


def on_the_ring(graph) -> list[int]:
    """The order of the clients on the circle, as docs/wire/interactive.md defines it."""
    purpose = b"privstats/secagg/2/graph\0"
    seed = hashlib.sha256(purpose + graph.roster.digest).digest()
    drawn = np.frombuffer(keystream(seed, 0, 0, 8 * graph.parameters.clients), "<u8")
    return [int(client) for client in np.argsort(drawn, kind="stable")]


@given(sparse, st.data())
def test_min_degree_is_what_counting_gives(graph, data) -> None:
    n = graph.parameters.clients
    survivors = data.draw(st.frozensets(st.integers(0, n - 1), min_size=1))
    assert graph.min_degree(survivors) == min(len(survivors.intersection(graph.neighbours(i))) for i in survivors)


@given(st.integers(1, 100), st.data())
def test_a_survivor_list_has_exactly_one_encoding(size: int, data) -> None:
    clients = data.draw(st.frozensets(st.integers(0, size - 1)))
    bitmap = to_bitmap(clients, size)
    assert members(bitmap, size) == clients
    assert np.unpackbits(np.frombuffer(bitmap, np.uint8)).sum() == len(clients)


def test_the_committee_of_a_large_cohort_is_the_pages() -> None:
    """docs/wire/interactive.md, Graph: the 1,024 smallest draws of a keystream of its own, not those of the circle."""
    parameters = Parameters(1_100, 6, 800, 0, 8, Ring(((1, 8),)), bytes(32))
    publics = tuple(sha256(b"%d" % client).digest() for client in range(1_100))
    roster = Roster.numbered(publics, server=sha256(b"server").digest(), label="large", counter=0)
    graph = Graph(parameters, roster)
    seed = sha256(b"privstats/secagg/2/committee\0" + roster.digest).digest()
    drawn = ctr(seed, 0, 0, 8 * 1_100)
    order = sorted(range(1_100), key=lambda client: int.from_bytes(drawn[8 * client : 8 * client + 8], "little"))
    assert graph.committee == frozenset(order[:1_024])
    assert parameters.signatures == 513


def test_only_the_committee_counts_toward_the_one_list() -> None:
    """Signatures of others, and the receiver's own where it is no member, count for nothing."""
    parameters = Parameters(1_100, 6, 800, 0, 8, Ring(((1, 8),)), bytes(32))
    identities = [Identity(sha256(b"%d" % client).digest()) for client in range(1_100)]
    publics = tuple(identity.public for identity in identities)
    roster = Roster.numbered(publics, server=sha256(b"server").digest(), label="large", counter=0)
    graph = Graph(parameters, roster)
    strangers = sorted(set(range(1_100)) - graph.committee)
    me = strangers[0]
    state = ClientState(root=bytearray(), transcript=bytes(32), survivors=to_bitmap(range(1_100), 1_100))
    statement = survivors_statement(state.transcript, state.survivors)

    def shown(members: int, others: int) -> None:
        near = set(graph.neighbours(me))
        counted = sorted(near & graph.committee) + sorted(graph.committee - near - {me})
        signers = tuple(sorted({*near, *counted[:members], *strangers[1 : 1 + others]} - {me}))
        signatures = b"".join(identities[each].sign(statement) for each in signers)
        check_agreement(Agreement(bytes(32), signers, signatures), graph, me, state)

    shown(513, 0)
    with pytest.raises(Refusal, match="too_few_signatures"):
        shown(512, len(strangers) - 1)
