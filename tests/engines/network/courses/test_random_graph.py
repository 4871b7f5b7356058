"""A course on a random graph over folders: exact, and each round on a graph of its own that no release chooses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.engines.network.folder_documents import read_documents
from privstats.errors import LedgerError, LocalProtocolError
from privstats.secagg import Roster
from privstats.secagg.interactive.graph import Graph
from tests import made
from tests.course.cases import SOFTMAX
from tests.engines.network.courses import study as studies
from tests.engines.network.courses.processes import ProcessNet, own_processes
from tests.engines.network.courses.study import CourseStudy, course_study, silence

CLIENTS = 20


def rounds_study(patch: pytest.MonkeyPatch, place: Path, cohort: ps.Cohort, graph: str) -> CourseStudy:
    """The folders of a course of three sessions."""
    patch.setattr(studies, "NAMES", tuple(f"p{i}" for i in range(cohort.clients)))
    plan = ps.Plan(schema=SOFTMAX, cohort=cohort, privacy=made.promise(model="distributed"), graph=graph)
    return course_study(place, ps.Rounds.within(plan, rounds=2), schema=SOFTMAX)


@pytest.fixture
def study(tmp_path, monkeypatch) -> CourseStudy:
    return rounds_study(monkeypatch, tmp_path, ps.Cohort(CLIENTS, CLIENTS - 3, 100_000), "robust")


@pytest.mark.parametrize(
    ("cohort", "graph", "apart"),
    [
        (ps.Cohort(10, 8, 100_000), "robust", 1),
        pytest.param(ps.Cohort(300, 270, 100_000, colluders=3), "auto", 10, marks=pytest.mark.nightly),
    ],
    ids=["10 parties", "300 parties"],
)
def test_a_course_on_a_random_graph_ends_exact_over_folders(monkeypatch, tmp_path, cohort, graph, apart: int) -> None:
    """``apart`` parties are processes of their own, as on machines of their own; this process answers for the rest."""
    silence(monkeypatch)
    study = rounds_study(monkeypatch, tmp_path, cohort, graph)
    assert not study.course.first.masking.complete
    with own_processes(study, apart) as processes:
        releases = ProcessNet(study, processes).ended().releases
    assert len(releases) == study.course.most
    plan, had = study.course.first, []
    for release in releases:
        assert len(release.survivors) == cohort.clients
        assert np.array_equal(release.vector, study.exact(plan, release.survivors))
        had.append(release)
        plan = study.course.next(had) or plan
    assert {study.account(peer).entries[0].begun for peer in range(cohort.clients)} == {tuple(range(len(releases)))}


def test_every_round_has_a_graph_of_its_own_that_no_release_changes(study) -> None:
    first, _ = read_documents(study.host)
    parameters = first.first.masking
    graphs = [Graph(parameters, study.roster.of_round(place)) for place in range(3)]
    drawn = [[graph.neighbours(client) for client in range(CLIENTS)] for graph in graphs]
    assert all(drawn.count(each) == 1 for each in drawn)
    other = Graph(replace(parameters, plan_digest=bytes(range(32))), study.roster.of_round(1))
    assert drawn[1] == [other.neighbours(client) for client in range(CLIENTS)]


def test_a_folder_is_refused_whose_run_name_a_party_could_choose(study) -> None:
    chosen = Roster(study.roster.publics, server=study.roster.server, run=bytes(16))
    (study.host / "roster.toml").unlink()
    chosen.save(study.host / "roster.toml")
    with pytest.raises(LocalProtocolError, match="Roster.numbered"):
        read_documents(study.host)


def test_the_charge_of_a_round_accepts_the_roster_of_that_round_alone(study, tmp_path) -> None:
    ledger = ps.dp.Ledger.create(tmp_path / "ledger.sqlite")
    ledger.set_cap("ward", **made.cap(4.001))
    entry = ps.course.spend(study.course, ledger, "ward", study.roster)
    charge = ps.course.authorize(study.course, study.course.first, [], ledger, entry)
    X, y = study.shards[0]
    moments = ps.measure(study.course.first.schema, X, y, published=study.course.first.published)
    with pytest.raises(LedgerError, match="not that of round 0"):
        ps.session.client(
            study.course.first,
            moments,
            index=0,
            identity=study.identities[0],
            roster=study.roster.of_round(1),
            charge=charge,
        )
    assert ledger.entry(entry).begun == ()


def test_a_numbered_roster_begins_one_course(study, tmp_path) -> None:
    ledger = ps.dp.Ledger.create(tmp_path / "ledger.sqlite")
    ledger.set_cap("ward", **made.cap(9.0))
    assert ps.course.spend(study.course, ledger, "ward", study.roster) == ps.course.spend(
        study.course, ledger, "ward", study.roster
    )
    later = study.roster.renewed().renewed()
    with pytest.raises(LedgerError, match="the next run of these parties is number 1"):
        ps.course.spend(study.course, ledger, "ward", later)
