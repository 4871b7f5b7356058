"""``course rehearse``: from two files to the table of a course, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.moments import RecordFile, exact_moments
from privstats.moments.measurement import records_in
from tests.hazard import worlds as hazards
from tests.made import promise

COHORT = ps.Cohort(2, 2, 2_000)
PEOPLE = hazards.world(600)


def written(folder: Path, columns: dict[str, Any]) -> list[str]:
    """The columns as the files of two parties, with one column that no plan names."""
    for party in range(2):
        table = {"patient": np.arange(300), **{name: column[party::2] for name, column in columns.items()}}
        rows = np.column_stack(list(table.values()))
        np.savetxt(folder / f"{party}.csv", rows, "%.10g", ",", header=",".join(table), comments="")
    return ["0.csv", "1.csv"]


def test_a_trial_goes_from_two_files_to_its_table(privstats: Any, tmp_path: Path) -> None:
    rng, arm = np.random.default_rng(0), np.arange(600) // 2 % 2
    files = written(tmp_path, {"age": rng.uniform(20, 90, 600), "arm": arm, "well": (rng.random(600) < 0.3) * 1})
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
    ps.course.write(tmp_path / "trial.toml", ps.Effect.start(schema, COHORT, promise(epsilon=8.0)))
    words = ("course", "rehearse", "trial.toml", *files, "--target", "well", "--out", "out")
    done = privstats(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "out/0.release out/1.release"
    read = privstats("table", "out/0.release", "out/1.release", cwd=tmp_path)
    assert "Effect of a randomised treatment" in read.stdout
    assert "pass --force" in privstats(*words, cwd=tmp_path).stderr
    assert "say with --target" in privstats(*words[:5], "--out", "other", cwd=tmp_path).stderr
    assert not (tmp_path / "other").exists()


def test_hazards_are_read_from_files_by_name(privstats: Any, tmp_path: Path) -> None:
    files = written(tmp_path, PEOPLE)
    course = ps.Hazard.start(hazards.schema(), COHORT, promise(epsilon=8.0), by="arm")
    ps.course.write(tmp_path / "study.toml", course)
    done = privstats("course", "rehearse", "study.toml", *files, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == course.most
    schema, published = course.schema, course.plan.published
    found = records_in(RecordFile(tmp_path / "0.csv"), schema, "refuse")
    half = {name: column[::2] for name, column in PEOPLE.items()}
    assert exact_moments(schema, *found, published=published) == exact_moments(schema, half, published=published)
    counts = course.first.schema
    assert exact_moments(counts, *records_in(RecordFile(tmp_path / "0.csv"), counts, "refuse")) == exact_moments(
        counts, half
    )


def test_what_predicts_nothing_is_not_split(tmp_path: Path) -> None:
    written(tmp_path, PEOPLE)
    with pytest.raises(ps.errors.DataError, match="cannot be split"):
        records_in(RecordFile(tmp_path / "0.csv", split=0.5), hazards.schema(), "refuse")
