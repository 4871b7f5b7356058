"""Course files: a course and the plan beside it, and no other plan."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import privstats as ps
from privstats.contrib.alignment import Alignment
from privstats.course import read, write
from privstats.course.promise import Promise
from tests.contrib.alignment.cohort import PROMISE as CLIENT
from tests.contrib.alignment.cohort import PUBLIC, first
from tests.contrib.streams.streams import stream_of
from tests.course.cases import SOFTMAX, plan_of, rounds
from tests.made import refused


def test_a_course_holds_to_the_plan_that_it_was_written_for(tmp_path: Path) -> None:
    write(tmp_path / "study.toml", rounds()).write_text(plan_of(SOFTMAX).to_toml())
    refused(ps.PlanError, "not the plan that the course was written for", read, tmp_path / "study.toml")


@pytest.mark.parametrize(
    ("was", "became", "said"),
    [
        ("version = 2", "version = 3", "holds version = 2"),
        ("version = 2", "version = 2.0", "holds version = 2"),
        ("version = 2", "version = true", "holds version = 2"),
        ("version = 2", "version = 1",
            "version 1 is from before the first release of privstats .* write the course anew"),
        ("version = 2", "version = 2\nextra = 2", "holds version = 2"),
        ("[promise]", "[course.promise]", "unknown keys 'promise'"),
        ("epsilon = ", "epsilom = ", "holds epsilon and delta and nothing else"),
        ("epsilon = ", "epsilon = -", "promise.epsilon must be"),
        ("delta = 1e-5", "delta = 1e-6", "delta of its plan"),
        ("[course]", "[caurse]", "table \\[course\\]"),
        ('kind = "rounds"', 'kind = "strand"', "course.kind must be one of rounds, newton"),
        ('kind = "rounds"', "kind = 3", "course.kind must be one of rounds, newton"),
        ('kind = "rounds"', "", "course.kind must be one of rounds, newton"),
        ("plan_digest", "digest", "unknown keys 'digest'"),
        ("rounds = 2", "rounds = 0", "rounds must be"),
        ("rounds = 2", "ronds = 2", "unknown keys 'ronds'"),
        ('plan = "study.first.toml"', "plan = 3", "lacks plan"),
        ('plan = "study.first.toml"', 'plan = "../study.first.toml"', "beside the course"),
        ('plan = "study.first.toml"', 'plan = "nowhere.toml"', "cannot read"),
        ("[course]", "[course", "not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_no_course_is_refused_with_a_sentence(was: str, became: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    write(path, rounds())
    text = path.read_text().replace("1e-05", "1e-5")
    assert was in text
    path.write_text(text.replace(was, became))
    refused(ps.PlanError, said, read, path)


@pytest.mark.parametrize("epsilon", [0.7, 2.0])
def test_a_course_holds_what_its_owners_promised_as_a_whole(epsilon: float, tmp_path: Path) -> None:
    whole = plan_of(SOFTMAX)
    whole = replace(whole, privacy=replace(whole.privacy, epsilon=epsilon))
    course = ps.Rounds.within(whole, 3)
    write(tmp_path / "study.toml", course)
    back = read(tmp_path / "study.toml")
    assert back.promise == Promise(epsilon, whole.privacy.delta)
    assert not back.promise.holds(1.01 * course.mu)
    assert back.promise.holds(0.99 * course.mu)
    assert back.digest == replace(course, promise=None).digest  # what stands in ledgers is what it was


def test_a_course_that_was_not_divided_promises_what_its_nodes_cost(tmp_path: Path) -> None:
    for course in (rounds(), Alignment(first(PUBLIC, CLIENT))):
        write(tmp_path / "study.toml", course)
        promise = read(tmp_path / "study.toml").promise
        assert promise.holds(course.mu)
        assert not Promise(promise.epsilon * (1 - 1e-6), promise.delta).holds(course.mu)
    write(tmp_path / "study.toml", Alignment(first()))
    assert read(tmp_path / "study.toml").promise is None


def test_a_file_does_not_leave_the_promise_out(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    write(path, rounds())
    path.write_text(re.sub(r"\n\[promise\].*", "", path.read_text(), flags=re.S))
    refused(ps.PlanError, "must hold epsilon and delta of the whole course", read, path)


def test_a_stream_promises_what_its_plan_does(tmp_path: Path) -> None:
    path = tmp_path / "stream.toml"
    write(path, stream_of())
    assert read(path) == stream_of()
    assert read(path).promise == Promise(stream_of().plan.privacy.epsilon, stream_of().plan.privacy.delta)
    path.write_text(re.sub(r"epsilon = .*", "epsilon = 77.0", path.read_text()))
    refused(ps.PlanError, "of a stream both are its plan's", read, path)
