"""Interim looks over Flower, whose run ends after each look: one party's file grows, one shrinks, one is another.

Each look sums the files as they are. The two parties whose files do not continue the look before are warned in their
own logs, and the server hears nothing of it.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from privstats import session
from privstats.engines import flower
from privstats.engines.flower import client_app, server_app
from privstats.release import Release
from tests.engines.flower.federation import Federation
from tests.engines.flower.quickstart import AtOnce
from tests.engines.network.courses.looked import LOOKS, PARTIES, looked_study, summed, table
from tests.engines.network.courses.study import CourseStudy, silence

FILES = ("grows.csv", "shrinks.csv", "another.csv")
SHORTER = "shrinks.csv is shorter than at the look before, and a look sums all records so far"
OTHER = "another.csv does not begin with the file of the look before, and a look sums all records so far"
TABLES = (
    [table(party, 100) for party in range(PARTIES)],
    [table(0, 200), table(1, 60), table(5, 200)],
    [table(0, 300), table(1, 300), table(5, 300)],
)
"""The files at each look. At the third all three files begin with those of the second."""
WARNINGS: tuple[Mapping[str, int], ...] = ({}, {SHORTER: 1, OTHER: 1}, {})


@pytest.fixture
def study(tmp_path: Path) -> CourseStudy:
    return looked_study(tmp_path, FILES)


def write(study: CourseStudy, look: int) -> None:
    for party, (file, text) in enumerate(zip(FILES, TABLES[look], strict=True)):
        (study.home(party) / file).write_text(text)


def warned(log: str) -> dict[str, int]:
    """How often a log names a party's file, by the sentence up to its colon."""
    sentences = re.findall(rf"(?:{'|'.join(map(re.escape, FILES))})[^:\n]*", log)
    return {each: sentences.count(each) for each in sentences}


@pytest.mark.usefixtures("task")
def test_each_look_of_the_two_apps_sums_the_files_as_they_are(study, tmp_path, monkeypatch, capsys) -> None:
    silence(monkeypatch)
    (tmp_path / "parties").mkdir()
    for party in range(PARTIES):
        (tmp_path / "parties" / str(party)).symlink_to(study.home(party))
    monkeypatch.setenv(client_app.PARTIES, str(tmp_path / "parties"))
    monkeypatch.setenv(server_app.HOME, str(study.host))
    plan = study.course.first
    for look, tables in enumerate(TABLES):
        write(study, look)
        server_app.app(AtOnce(client_app.app, PARTIES), Context(1, 1, {}, RecordDict(), {}))
        releases = [released(study, each) for each in range(look + 1)]
        assert np.array_equal(releases[-1].vector, summed(plan, tables))
        assert warned(capsys.readouterr().err) == WARNINGS[look]
        plan = study.course.next(releases) or plan
    assert [len(study.account(party).entries) for party in range(PARTIES)] == [1] * PARTIES
    assert study.account(0).entries[0].begun == tuple(range(LOOKS))


@pytest.mark.nightly
@pytest.mark.waits
def test_each_look_between_processes_sums_the_files_as_they_are(study, tmp_path) -> None:
    app = Path(flower.__file__).parent / "template" / "app"
    with Federation(study, tmp_path / "federation") as federation:
        for look in range(LOOKS):
            write(study, look)
            federation.finish_session(federation.start_session(app), f"nodes/{look}")
            release = released(study, look)
            vectors = [(federation.marks / f"party {party}.vector").read_bytes() for party in range(PARTIES)]
            expected = session.aggregate_unmasked(release.plan, [release.plan.ring.unpack(each) for each in vectors])
            assert np.array_equal(release.vector, expected.vector)
        assert [warned(federation.log_of(f"party {party}")) for party in range(PARTIES)] == [
            {},
            {SHORTER: 1},
            {OTHER: 1},
        ]
        assert not warned(federation.log_of("serve") + federation.log_of("run"))


def released(study: CourseStudy, look: int) -> Release:
    return Release.load(study.host / "nodes" / str(look) / "release.safetensors", signed_by=study.roster.server)
