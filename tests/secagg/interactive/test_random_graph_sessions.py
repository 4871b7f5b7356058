"""Kills and drop-outs at each step of a session on a random graph: the exact sum, or an abort that is named.

Thirty-four clients. A killed machine begins again from what it stored, and nothing is lost by it.
"""

from collections.abc import Collection

import numpy as np
import pytest

from privstats.errors import AggregationError
from privstats.secagg.interactive.graph import Graph
from tests.secagg.interactive.cohorts import STEPS, Cohort, cohort_of

KEY = bytes(range(32))
CLIENTS, MIN_SURVIVORS, COLLUDERS = 34, 28, 1
ABORTS = {"too_few_clients", "isolated", "too_few_signatures", "too_few_shares"}


def random_graph() -> Cohort:
    return cohort_of(CLIENTS, MIN_SURVIVORS, COLLUDERS, graph="robust")


def chosen(cohort: Cohort, whom: str) -> frozenset[int]:
    """Return clients to end: as many as the parameters admit, or too many."""
    admitted, graph = CLIENTS - cohort.parameters.min_listed, Graph(cohort.parameters, cohort.roster)
    match whom:
        case "one":
            return frozenset({17})
        case "admitted":
            return frozenset(np.random.default_rng(1).permutation(CLIENTS)[:admitted].tolist())
        case "neighbours":
            return frozenset(sorted(graph.neighbours(0))[:admitted])
        case "one too many":
            return frozenset(np.random.default_rng(1).permutation(CLIENTS)[: admitted + 1].tolist())
        case "half":
            return frozenset(range(CLIENTS // 2))
        case "all neighbours":
            return frozenset(graph.neighbours(0))
    raise ValueError(whom)


def killed(cohort: Cohort, index: int | None = None) -> None:
    """End a client, or the server, and start it again from what it stored."""
    machine = cohort.server if index is None else cohort.clients[index]
    if machine.step == "done":
        return  # it has answered all, and stores nothing
    again = type(machine).resume(machine.export(KEY), KEY, **cohort.place(index))
    if index is None:
        cohort.server = again
    else:
        cohort.clients[index] = again


def play(cohort: Cohort, step: str, *, gone: Collection[int] = (), kills: Collection[int] = ()) -> frozenset[int]:
    """Play a session in which clients vanish, or are killed before and after their answer, at a step.

    The server is killed at that step, too, before it ends. Returns the clients whose vectors arrived.
    """
    outbox, silent, uploaded = dict(cohort.server.start()), set(), frozenset()
    while cohort.server.step not in ("done", "failed"):
        current, here = cohort.server.step, set()
        if current == step:
            silent |= set(gone)
        for client, message in outbox.items():
            if client in silent:
                continue
            if current == step and client in kills:
                killed(cohort, client)
            ((_, answer),) = cohort.clients[client].receive(message)
            if current == step and client in kills:
                killed(cohort, client)
            cohort.server.receive(client, answer)
            here.add(client)
        if current == step:
            killed(cohort)
        if current == cohort.parameters.upload_step:
            uploaded = frozenset(here)
        outbox = dict(cohort.server.end_step())
    return uploaded


def exact(cohort: Cohort, uploaded: frozenset[int]) -> None:
    """Require the exact sum over the clients whose vectors arrived."""
    total, survivors = cohort.server.result
    assert set(survivors) == uploaded
    assert np.array_equal(total.lift(), cohort.sum_over(survivors))


def check_drop_outs(step: str, whom: str) -> None:
    cohort = random_graph()
    gone, admitted = chosen(cohort, whom), CLIENTS - cohort.parameters.min_listed
    try:
        uploaded = play(cohort, step, gone=gone)
        exact(cohort, uploaded)
    except AggregationError as abort:
        assert len(gone) > admitted, "fewer clients than this must not end a session"
        assert abort.step in STEPS
        assert abort.code in ABORTS
        assert str(abort)
    else:
        assert len(uploaded) >= MIN_SURVIVORS


def check_kills(step: str, whom: str) -> None:
    cohort = random_graph()
    kills = chosen(cohort, whom)
    exact(cohort, play(cohort, step, kills=kills))


@pytest.mark.parametrize("step", STEPS)
def test_admitted_drop_outs_at_any_step_leave_the_exact_sum(step: str) -> None:
    check_drop_outs(step, "admitted")


@pytest.mark.parametrize("step", STEPS)
def test_kills_at_any_step_leave_the_exact_sum_over_all(step: str) -> None:
    check_kills(step, "neighbours")


@pytest.mark.nightly
@pytest.mark.parametrize("whom", ["one", "neighbours", "one too many", "half", "all neighbours"])
@pytest.mark.parametrize("step", STEPS)
def test_drop_outs_of_any_clients_leave_the_exact_sum_or_a_named_abort(step: str, whom: str) -> None:
    check_drop_outs(step, whom)


@pytest.mark.nightly
@pytest.mark.parametrize("whom", ["one", "admitted", "half", "all neighbours"])
@pytest.mark.parametrize("step", STEPS)
def test_kills_of_any_clients_leave_the_exact_sum_over_all(step: str, whom: str) -> None:
    check_kills(step, whom)
