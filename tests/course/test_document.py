"""Course files: a course and the plan beside it, and no other plan."""

from __future__ import annotations

from pathlib import Path

import pytest

import privstats as ps
from privstats.course import Alignment, read, write
from privstats.errors import PlanError
from tests.alignment.cohort import first
from tests.course.cases import RIDGE, SOFTMAX, plan_of, rounds


@pytest.mark.parametrize("course", [rounds(), rounds(RIDGE, 3, retries=2, expected_records=77), ps.Rounds(plan_of())])
def test_a_course_comes_back_equal(course: ps.Rounds, tmp_path: Path) -> None:
    plan = write(tmp_path / "study.toml", course)
    assert plan.name == "study.first.toml"
    back = read(tmp_path / "study.toml")
    assert back == course
    assert back.digest == course.digest


def test_a_course_holds_to_the_plan_that_it_was_written_for(tmp_path: Path) -> None:
    plan = write(tmp_path / "study.toml", rounds())
    plan.write_text(plan_of(SOFTMAX).to_toml())
    with pytest.raises(PlanError, match="not the plan that the course was written for"):
        read(tmp_path / "study.toml")


@pytest.mark.parametrize(
    ("was", "became", "said"),
    [
        ("version = 1", "version = 2", "holds version = 1"),
        ("version = 1", "version = 1\nextra = 2", "holds version = 1"),
        ("[course]", "[caurse]", "table \\[course\\]"),
        ('kind = "rounds"', 'kind = "strand"', "course.kind must be one of rounds, alignment"),
        ('kind = "rounds"', "kind = 3", "course.kind must be one of rounds, alignment"),
        ('kind = "rounds"', "", "course.kind must be one of rounds, alignment"),
        ("plan_digest", "digest", "unknown keys 'digest'"),
        ("rounds = 2", "rounds = 0", "rounds must be"),
        ("rounds = 2", "ronds = 2", "unknown keys 'ronds'"),
        ('plan = "study.first.toml"', "plan = 3", "lacks plan"),
        ('plan = "study.first.toml"', 'plan = "../study.first.toml"', "beside the course"),
        ('plan = "study.first.toml"', 'plan = "nowhere.toml"', "cannot read"),
        ("[course]", "[course", "not valid TOML"),
    ],
)
def test_what_is_no_course_is_refused_with_a_sentence(was: str, became: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    write(path, rounds())
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, became))
    with pytest.raises(PlanError, match=said):
        read(path)


def test_an_alignment_has_a_file_too(tmp_path: Path) -> None:
    course = Alignment(first())
    write(tmp_path / "study.toml", course)
    assert read(tmp_path / "study.toml") == course
