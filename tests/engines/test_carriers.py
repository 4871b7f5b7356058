"""What every carrier of the one upload promises: the exact sum over those whose report arrived, or no sum.

One schedule, loopback and HTTP: who sends, in which order, and what the network does to a report on its way.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.encoding import flatten
from privstats.engines import loopback
from privstats.engines.faults import Fault, Network
from privstats.errors import AggregationError
from tests.contrib.http.desk import Desk, Study, opened, pumped, study_of_devices

pytest.importorskip("uvicorn")
CLIENTS, LEAST = 5, 3
FAULTS = ("drop", "duplicate", "truncate", "flip", "extend", "late")
HARMLESS = ("duplicate",)


@dataclass(frozen=True)
class Schedule:
    """Who never sends, who sends when, and one fault of a report on its way for some."""

    silent: frozenset[int]
    order: tuple[int, ...]
    faults: tuple[Fault, ...]

    @property
    def arrive(self) -> tuple[int, ...]:
        lost = {fault.client for fault in self.faults if fault.kind not in HARMLESS}
        return tuple(client for client in range(CLIENTS) if client not in self.silent | lost)


def by_loopback(study: Study, schedule: Schedule) -> tuple[tuple[int, ...], np.ndarray]:
    parts = [study.moments(index) for index in range(CLIENTS)]
    parties = ps.session.local_parties(study.plan, parts)
    outcome = loopback.run(
        parties.server,
        parties.clients,
        helpers=parties.helpers,
        dropouts={"report": schedule.silent},
        faults=schedule.faults,
        order=(*schedule.order, *range(CLIENTS, CLIENTS + len(parties.helpers))),
    )
    return outcome.survivors, outcome.total.lift()


def by_http(study: Study, schedule: Schedule) -> tuple[tuple[int, ...], np.ndarray]:
    network = Network(schedule.faults)
    with Desk(study.leader) as desk:
        pumped(study, desk)
        run = opened(desk, study)
        for client in schedule.order:
            if client not in schedule.silent:
                report = run.report(study.moments(client), client, study.identities[client])
                for data in network.carry("report", client, "up", report):
                    desk.put(study, client, data)
        if desk.run.ended is None and desk.run.reports < CLIENTS:
            try:
                desk.call(desk.run.close_reports)
            except ps.errors.PrivstatsError as refusal:
                raise AggregationError("report", "too_few_clients", str(refusal)) from None
        for _, client, data in network.overdue():
            assert desk.put(study, client, data).code == "closed"
        pumped(study, desk)
        assert desk.run.ended is not None
    release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    return release.survivors, release.vector


CARRIERS = {"loopback": by_loopback, "http": by_http}


@st.composite
def schedules(draw) -> Schedule:
    faults = {
        client: Fault("report", client, "up", draw(st.sampled_from(FAULTS)), draw(st.integers(0, 1 << 16)))
        for client in draw(st.sets(st.integers(0, CLIENTS - 1), max_size=2))
    }
    silent = frozenset(draw(st.sets(st.integers(0, CLIENTS - 1), max_size=2))) - faults.keys()
    return Schedule(silent, tuple(draw(st.permutations(range(CLIENTS)))), tuple(faults.values()))


def carried(carrier: Callable, schedule: Schedule) -> tuple[tuple[int, ...], np.ndarray, Study]:
    """In folders of its own, on a disk that need not keep them."""
    with TemporaryDirectory() as place, patch.object(os, "fsync", lambda _: None):
        study = study_of_devices(Path(place), CLIENTS, 2, least=LEAST)
        return *carrier(study, schedule), study


@pytest.mark.ci
@pytest.mark.parametrize("carrier", CARRIERS)
@given(schedule=schedules())
def test_a_schedule_ends_in_the_exact_sum_of_what_arrived_or_in_none(carrier: str, schedule: Schedule) -> None:
    if len(schedule.arrive) < LEAST:
        with pytest.raises(AggregationError, match="too_few_clients"):
            carried(CARRIERS[carrier], schedule)
        return
    survivors, total, study = carried(CARRIERS[carrier], schedule)
    exact = np.sum([flatten(study.moments(index)) for index in schedule.arrive], axis=0)
    assert survivors == schedule.arrive
    assert np.array_equal(total, exact)
