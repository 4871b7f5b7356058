"""``audit inference`` of hazard ratios passes the reader as shipped, and flags one whose intervals are too short."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from privstats.course import document
from privstats.inference import last_step
from privstats.randomness import seeded
from tests.hazard.worlds import course_of
from tests.lengths import sized
from threat_models.audits.hazard_worlds import audit_hazard_intervals


@pytest.mark.ci
def test_hazard_ratios_keep_their_claim() -> None:
    report = audit_hazard_intervals(course_of(3_000, 8.0), seeded(1), runs=15)
    assert not report.violated
    assert [row[1] for row in report.rows] == ["arm", "age", "dose"] * 2
    assert min(row[3] for row in report.rows[:3]) > 0.9  # reported


@pytest.mark.nightly
@pytest.mark.parametrize(("records", "epsilon"), [(5_000, 3.0), (20_000, 1.0)])
def test_hazard_ratios_keep_their_claim_in_hundreds_of_releases(records: int, epsilon: float) -> None:
    """The lower ends of the misses, for every ratio and both numbers of persons."""
    report = audit_hazard_intervals(course_of(records // 2, epsilon), seeded(2), runs=sized(200, 500))
    assert not report.violated
    assert max(row[5] for row in report.rows) <= 0.05
    assert max(row[4] for row in report.rows) < 0.1


@pytest.mark.ci
def test_intervals_of_half_their_width_are_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    right = last_step.LastStep.interval

    def half(self: last_step.LastStep, alpha: float, *, sampling: bool = True) -> tuple[np.ndarray, np.ndarray]:
        low, high = right(self, alpha, sampling=sampling)
        return (low + self.estimate) / 2, (high + self.estimate) / 2

    monkeypatch.setattr(last_step.LastStep, "interval", half)
    assert audit_hazard_intervals(course_of(3_000, 8.0), seeded(1), runs=15).violated


@pytest.mark.ci
def test_the_command_takes_a_course(privstats: Any, tmp_path: Any) -> None:
    document.write(tmp_path / "study.toml", course_of(500, 8.0, by=None))
    done = privstats("audit", "inference", "study.toml", "--runs", "20", "--seed", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row["parameter"] for row in json.loads(done.stdout)[0]["rows"]} == {"arm", "age", "dose"}
