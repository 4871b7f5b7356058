"""Courses that earlier versions stored are read, checked and continued by this one, with the numbers of then.

``python -m tests.course.stored_courses`` wrote the files, and writes those of a new case.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import read, verify_next
from privstats.course.document import texts
from tests.course.stored_courses import COURSES, OPENED, STORED

every_course = pytest.mark.parametrize("folder", [STORED / name for name in COURSES], ids=lambda folder: folder.name)


def releases_of(folder: Path) -> list[ps.Release]:
    return [ps.Release.load(folder / f"{place}.release") for place in range(len([*folder.glob("*.release")]))]


def digests_of(folder: Path) -> list[str]:
    """The course's digest, its mu, and the digest of each round's plan."""
    return (folder / "digests.txt").read_text("utf-8").split()


def number(cell: str) -> Any:
    """A cell of a table: equal to another within its rounding where it is a number."""
    try:
        return pytest.approx(float(cell), rel=1e-6)
    except ValueError:
        return cell


def provenance(card: str) -> dict[str, str]:
    """Rows of a card's table of digests, by name; sentences may be worded anew."""
    rows = card.partition("## Provenance")[2].partition("## ")[0]
    return dict(line.strip("| ").split(" | ", 1) for line in rows.splitlines() if line.startswith("| "))


@every_course
def test_a_stored_course_has_the_digest_and_the_cost_of_then(folder: Path, privstats: Any) -> None:
    digest, mu, *_ = digests_of(folder)
    course = read(folder / "study.toml")
    assert (course.digest, course.mu) == (digest, pytest.approx(float(mu), rel=1e-12))
    stored = {name: (folder / name).read_bytes() for name in texts("study.toml", course)}
    assert texts("study.toml", course) == stored
    shown = privstats("course", "check", "study.toml", cwd=folder, code=0).stdout
    assert digest in shown
    assert "study.toml is consistent" in shown


@every_course
def test_a_stored_course_publishes_the_values_of_then(folder: Path) -> None:
    """Later values follow from releases, whose last digits may differ between machines; first ones from the plan."""
    course, had, (_, _, *digests) = read(folder / "study.toml"), releases_of(folder), digests_of(folder)
    plans = [ps.Plan.read(folder / f"{place}.toml") for place in range(len(had))]
    assert [each.digest for each in plans] == [each.plan.digest for each in had] == digests
    assert course.first.digest == digests[0]
    for place, plan in enumerate(plans):
        assert plan.to_toml() == (folder / f"{place}.toml").read_text("utf-8")
        assert verify_next(course, plan, had[:place]).place == place
    assert course.next(had) is None


@every_course
def test_a_stored_course_has_the_table_of_then(folder: Path, privstats: Any) -> None:
    if not (folder / "table.csv").exists():
        assert folder.name == "gradients"
        return
    files = [f"{place}.release" for place in range(len(releases_of(folder)))]
    printed = privstats("table", *files, "--format", "csv", cwd=folder, code=0).stdout
    now = [*csv.DictReader(printed.splitlines())]
    # Those versions named the column `reported` `told`.
    stored_text = (folder / "table.csv").read_text("utf-8").replace("told", "reported")
    then = [*csv.DictReader(stored_text.splitlines())]
    for mine, stored in zip(now, then, strict=True):
        assert mine["reported"] == "TRUE"
        assert {name: number(mine[name]) for name in stored} == {name: number(each) for name, each in stored.items()}


def test_a_stored_head_has_the_scores_and_the_provenance_of_then() -> None:
    folder = STORED / "gradients"
    loaded, again = ps.heads.load(folder / "study.head"), ps.heads.RefinedSoftmax().fit_releases(releases_of(folder))
    stored = np.loadtxt(folder / "scores.csv", delimiter=",")
    np.testing.assert_allclose(loaded.decision_function(OPENED), stored, atol=1e-9)
    np.testing.assert_allclose(again.decision_function(OPENED), stored, atol=1e-6)
    assert provenance(loaded.card()) == provenance((folder / "card.md").read_text("utf-8"))
    assert "course" in provenance(loaded.card())
