"""``privstats stream``: a folder, its epochs, and what they came to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from tests.course.streams import CLASSES, promise
from tests.engines.test_streams import COHORT, Records


@pytest.fixture
def run(privstats: Any, tmp_path: Path) -> Any:
    plan = ps.Plan(schema=CLASSES, cohort=COHORT, privacy=promise(epsilon=20.0, model="distributed"))
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    (tmp_path / "bare.toml").write_text(ps.Plan(schema=CLASSES, cohort=COHORT, privacy=ps.NoPrivacy()).to_toml())

    def run(*words: str, code: int = 0) -> Any:
        done = privstats("stream", *words, cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def test_a_stream_from_a_plan_to_its_total(run: Any, tmp_path: Path) -> None:
    records = Records(tmp_path)
    made = run("new", "study", "--plan", "plan.toml", "--epochs", "2", "--mechanism", "tree", "--deletions")
    assert "all epochs together: mu" in made.stdout
    assert "no sum yet" in run("show", "study").stdout
    records.epoch(0)
    rows = json.loads(run("epoch", "study", "changes-0", "--json").stdout)["nodes"]
    assert rows == [{"node": 0, "epoch": 0, "level": 0, "since": 0, "survivors": 3}]
    records.epoch(1, (0,))
    assert "no sum" in run("epoch", "study", "changes-1").stdout
    shown = json.loads(run("show", "study", "--json").stdout)
    assert [row["survivors"] for row in shown["nodes"]] == [3, None, None]
    assert set(shown["sigma"]) == {"N", "A", "B"}
    assert shown["mechanism"] == "tree"
    said = run("show", "study").stdout
    assert "noise in the total: N" in said
    assert "0-1" in said
    assert "has ended" in run("epoch", "study", "changes-1", code=2).stderr


def test_without_noise_leavers_are_disclosed_only_where_somebody_says_so(run: Any) -> None:
    words = ("new", "study", "--plan", "bare.toml", "--epochs", "2", "--deletions")
    assert "allow_disclosing_leavers" in run(*words, code=2).stderr.replace("\n", "")
    assert "no differential privacy" in run(*words, "--allow-disclosing-leavers").stdout
