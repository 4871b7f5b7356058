"""A server with several lists reads no smaller sum on a random graph, and one where clients count neighbours alone."""

from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats.errors import PlanError
from privstats.randomness import seeded
from privstats.secagg import Parameters, Roster
from privstats.secagg.interactive.graph import Graph
from threat_models.attack import attacks_named
from threat_models.attacks import several_lists
from threat_models.attacks.several_lists import LIES, Circle, Lists, ManyClients, readable, search
from threat_models.attacks.staged import RING
from threat_models.attacks.unmasking import tried

from ..conftest import plan_of

FORMERLY_BROKEN = [(300, 270, 0), (300, 270, 3)]
"""Clients, min_survivors, colluders: the rule of neighbours alone lets a server read 240 and 244 clients."""


def parameters_of(clients: int, min_survivors: int, colluders: int) -> Parameters:
    return Parameters.solve(
        clients=clients,
        min_survivors=min_survivors,
        colluders=colluders,
        ring=RING,
        plan_digest=bytes(32),
        graph="robust",
    )


def graph_of(parameters: Parameters, label: str) -> Graph:
    publics = tuple(sha256(b"%d" % index).digest() for index in range(parameters.clients))
    return Graph(parameters, Roster.numbered(publics, server=sha256(b"server").digest(), label=label, counter=0))


def staged(seed: int = 0) -> ManyClients:
    numbers = several_lists.CLIENTS, several_lists.MIN_SURVIVORS, several_lists.COLLUDERS
    return ManyClients(seeded(seed), parameters=parameters_of(*numbers))


@pytest.mark.parametrize("lie", list(LIES))
def test_no_lists_break_the_machines_as_shipped(lie: str) -> None:
    run = staged()
    assert not tried(LIES[lie], run)
    assert len(run.aimed) < several_lists.MIN_SURVIVORS  # the lists that break clients who count neighbours alone


@pytest.mark.parametrize("lie", list(LIES))
def test_the_same_lists_read_a_smaller_sum_where_clients_count_neighbours_alone(lie: str, neighbours_alone) -> None:
    run = staged()
    assert tried(LIES[lie], run)
    honest = set(run.aimed) - run.colluding
    assert len(honest) < several_lists.MIN_SURVIVORS - several_lists.COLLUDERS


@pytest.mark.parametrize(("clients", "min_survivors", "colluders"), FORMERLY_BROKEN)
def test_the_search_finds_the_break_in_the_old_rule_and_none_in_the_new(
    clients: int, min_survivors: int, colluders: int
) -> None:
    parameters = parameters_of(clients, min_survivors, colluders)
    graph = graph_of(parameters, "formerly broken")
    _, read = search(Circle.of(graph, neighbours_alone=True), seeded(1))
    assert read.sum() < min_survivors - colluders
    _, read = search(Circle.of(graph), seeded(1))
    assert read.sum() >= min_survivors


def _searched(clients: int, gone: int, colluders: int, seed: int) -> None:
    try:
        parameters = parameters_of(clients, clients - gone, colluders)
    except PlanError:  # no graph for these numbers
        return
    graph, chosen = graph_of(parameters, f"{seed}"), np.random.default_rng(seed).permutation(clients)[:colluders]
    colluding = frozenset(chosen.tolist())
    _, read = search(Circle.of(graph, colluding), seeded(seed), most=3)
    assert len(set(np.flatnonzero(read)) - colluding) >= clients - gone - colluders


CASES = {
    "clients": st.integers(60, 160),
    "gone": st.integers(1, 24),
    "colluders": st.integers(0, 6),
    "seed": st.integers(0, 1 << 20),
}


@settings(max_examples=12, deadline=None)
@given(**CASES)
def test_no_search_reads_fewer_honest_clients_than_promised(clients: int, gone: int, colluders: int, seed: int) -> None:
    _searched(clients, gone, colluders, seed)


@pytest.mark.nightly
@settings(max_examples=60, deadline=None)
@given(**CASES | {"clients": st.integers(60, 500), "gone": st.integers(1, 60), "colluders": st.integers(0, 25)})
def test_no_search_reads_fewer_honest_clients_than_promised_by_night(
    clients: int, gone: int, colluders: int, seed: int
) -> None:
    _searched(clients, gone, colluders, seed)


@settings(deadline=None)
@given(st.data())
def test_whatever_lists_are_shown_to_whom_the_sum_is_over_as_many_as_promised(data) -> None:
    """No search: any lists, shown to any clients."""
    n, rng = 60, np.random.default_rng(data.draw(st.integers(0, 1 << 20)))
    parameters = parameters_of(n, 57, 0)
    circle, arcs = Circle.of(graph_of(parameters, "any")), data.draw(st.integers(1, 4))
    missing = np.zeros((arcs, n), bool)
    for number in range(arcs):
        missing[number, rng.permutation(n)[: data.draw(st.integers(0, 3))]] = True
    shown = rng.choice(arcs, n, p=rng.dirichlet([0.2] * arcs))
    read = readable(circle, Lists(shown, missing))
    assert read is None or read.sum() >= 57


def test_the_model_and_the_machines_agree_on_lists_of_one_small_and_one_large_part() -> None:
    """The large part has a majority: it opens its list, and the sum is over that list."""
    run = staged()
    graph = Graph(run.parameters, run.roster)
    circle = Circle.of(graph)
    shown = np.zeros(run.parameters.clients, np.int64)
    shown[circle.order[:3]] = 1
    missing = np.zeros((2, run.parameters.clients), bool)
    missing[0, circle.order[70:73]] = missing[1, circle.order[1]] = True
    lists = Lists(shown, missing)
    read = readable(circle, lists)
    assert read is not None
    assert read.tolist() == (~missing[0]).tolist()
    run.aimed = tuple(np.flatnonzero(read).tolist())
    assert run.got(several_lists.play(run, lists, read))


def test_the_attack_reports_no_success_and_is_for_random_graphs_alone(monkeypatch) -> None:
    (attack,) = attacks_named(["several-lists"])
    assert "everyone masks with everyone" in (attack.refusal(plan_of()) or "")
    large = SimpleNamespace(masking=parameters_of(300, 285, 0))
    assert attack.refusal(large) is None
    monkeypatch.setattr(several_lists, "LIES", {"nothing": lambda _: None})
    rows = attack.examine(large, seeded(0), trials=1, confidence=0.95)
    assert [(row.metric, row.measured, row.ceiling, row.verdict) for row in rows] == [
        ("nothing, 300 clients", 0.0, 0.0, "no evidence")
    ]
    assert rows[0].worlds == 21, "44 sessions of 140 clients take as long"
