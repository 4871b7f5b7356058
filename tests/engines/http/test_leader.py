"""The leader's application: what each resource answers, and that the sum is exact."""

from __future__ import annotations

from pathlib import Path

import pytest

import privstats as ps
from privstats.engines.network.folder import Folder
from privstats.errors import LocalProtocolError
from tests.engines.http.desk import Desk, Helpers, opened, study_of_devices


def test_a_run_is_exact_and_every_device_hears_that_its_report_is_on_the_disk(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path)
    with Desk(study.leader) as desk, Helpers(study, lambda: desk) as helpers:
        run = opened(desk, study)
        for index in (0, 1, 3, 4, 5):
            report = run.report(study.moments(index), index, study.identities[index])
            assert desk.put(study, index, report).status == 201
            assert desk.put(study, index, report).status == 200
        desk.call(desk.run.close_reports)
        helpers.join()
        assert desk.run.ended is not None, desk.lines
        assert desk.run.ended.survivors == (0, 1, 3, 4, 5)
    release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    assert release.survivors == (0, 1, 3, 4, 5)
    print(desk.lines, release)


def test_a_folder_with_the_roster_in_bytes_is_the_same_run(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path)
    for home in (study.leader, study.helper(1)):
        study.roster.save(home / "roster.bin")
        with pytest.raises(LocalProtocolError, match=r"holds roster\.toml and roster\.bin: keep the one"):
            Folder.open(home)
        (home / "roster.toml").unlink()
        assert Folder.open(home).roster == study.roster
    (study.leader / "roster.bin").unlink()
    with pytest.raises(LocalProtocolError, match=r"has no roster\.toml"):
        Folder.open(study.leader)
