"""``privstats stream``: a folder, its epochs, and what they came to."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import made
from tests.contrib.streams.streams import CLASSES
from tests.contrib.streams.test_local_stream import COHORT, Records
from tests.contrib.streams.ward import Ward, exact
from tests.course.cases import promise, rounds
from tests.engines.network.courses.study import course_study


@pytest.fixture
def run(privstats: Any, tmp_path: Path) -> Any:
    plan = made.plan(CLASSES, COHORT, promise(epsilon=20.0, model="distributed"))
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    (tmp_path / "bare.toml").write_text(made.plan(CLASSES, COHORT).to_toml())

    def run(*words: str, code: int = 0) -> Any:
        return privstats("stream", *words, cwd=tmp_path, code=code)

    return run


def test_a_stream_from_a_plan_to_its_total(run: Any, tmp_path: Path) -> None:
    records = Records(tmp_path)
    made = run("new", "study", "--plan", "plan.toml", "--epochs", "2", "--mechanism", "tree", "--deletions")
    assert "all epochs together: mu" in made.stdout
    assert "no sum yet" in run("show", "study").stdout
    assert "`privstats stream epoch`" in run("bring", "study", "batch.npz", code=2).stderr
    records.epoch(0)
    rows = json.loads(run("epoch", "study", "changes-0", "--json").stdout)["nodes"]
    assert rows == [{"node": 0, "epoch": 0, "level": 0, "since": 0, "survivors": 3}]
    records.epoch(1, (0,))
    assert "away names parties" in run("epoch", "study", "changes-1", "--away", "7", code=2).stderr
    assert "no sum" in run("epoch", "study", "changes-1", "--away", "1", "--away", "2").stdout
    shown = json.loads(run("show", "study", "--json").stdout)
    assert [row["survivors"] for row in shown["nodes"]] == [3, None, None]
    assert (set(shown["sigma"]), shown["mechanism"]) == ({"N", "A", "B"}, "tree")
    said = run("show", "study").stdout
    assert "noise in the total: N" in said
    assert "0-1" in said
    assert "has ended" in run("epoch", "study", "changes-1", code=2).stderr


def test_without_noise_leavers_are_disclosed_only_where_somebody_says_so(run: Any) -> None:
    words = ("new", "study", "--plan", "bare.toml", "--epochs", "2", "--deletions")
    assert "allow_disclosing_leavers" in run(*words, code=2).stderr.replace("\n", "")
    assert "no differential privacy" in run(*words, "--allow-disclosing-leavers").stdout


def test_a_stream_between_machines_from_its_file_to_its_total(privstats: Any, run: Any, tmp_path: Path) -> None:
    words = ("--plan", "plan.toml", "--epochs", "2", "--deletions")
    assert "run: privstats flower new stream.toml STUDY" in run("init", "stream.toml", *words).stdout
    assert "pass --force to replace it" in run("init", "stream.toml", *words, code=2).stderr
    assert run("init", "stream.toml", *words, "--force").stdout
    ward = Ward(tmp_path, exact(3))
    np.savez(tmp_path / "batch.npz", ids=["a", "b"], X=np.ones((2, 4)), y=[0, 1])
    said = run("bring", "study/party 0", "batch.npz").stdout
    assert said.startswith("queued for the next epoch: 2 that enter, 0 that leave\nclip_norm shortens 100% of the rows")
    assert "a second time" in run("bring", "study/party 0", "batch.npz", code=2).stderr
    facts = facts_of(privstats, tmp_path)
    assert facts["stream"] == "3 epochs by increments: a record enters once and leaves once"
    assert (facts["epochs_begun"], facts["records"], facts["goes_next"]) == (0, 2, "2 that enter, 0 that leave")
    assert facts["ledger"] == "nothing was released yet"
    for party in range(1, 5):
        ward.bring(party)
    ward.epoch()
    np.savez(tmp_path / "batch.npz", ids=["c"], X=np.ones((1, 4)), y=[0], leave=["a"])
    assert "1 that enter, 1 that leave" in run("bring", "study/party 0", "batch.npz").stdout
    facts = facts_of(privstats, tmp_path)
    assert (facts["epochs_begun"], facts["records"], facts["gone"]) == (1, 2, 1)
    assert facts["goes_next"] == "1 that enter, 1 that leave"
    shown = json.loads(run("show", "study/host", "--json").stdout)
    assert [row["survivors"] for row in shown["nodes"]] == [5]
    assert shown["digest"] == ward.stream.digest == facts["course"]


def facts_of(privstats: Any, place: Path) -> Any:
    return json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=place, code=0).stdout)


def test_folders_of_other_courses_are_no_streams(run: Any, tmp_path: Path) -> None:
    course_study(tmp_path, rounds(model="distributed"))
    np.savez(tmp_path / "batch.npz", ids=["a"], X=np.ones((1, 4)), y=[0])
    assert "holds another course" in run("bring", "study/party 0", "batch.npz", code=2).stderr
    assert "holds another course" in run("show", "study/host", code=2).stderr
