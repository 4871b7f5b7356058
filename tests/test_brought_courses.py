"""A course, an engine of records, a source, a task and a command that other packages bring; ours load nothing heavy."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.cli.parts.plan_tasks import TASKS, PlanTask
from privstats.cli.parts.questions import questions
from privstats.cli.plan import _of_sources, _study
from privstats.course.kinds import COURSE_KINDS, CourseKind
from privstats.course.records_engines import ENGINES, RecordsEngine, engine_for
from privstats.doors import announced
from privstats.errors import BrokenPackageWarning, PlanError, PrivstatsError
from privstats.row_options import Option
from privstats.workflows.sources import SOURCES, Study, StudySource
from tests.brought import install
from tests.cli.test_loading import COMPUTES, loaded
from tests.planted import plant, plant_entries
from tests.without import needing

PLAN = """
import sys
from pathlib import Path
import numpy as np
from typer.testing import CliRunner
import privstats as ps
from privstats.cli.main import app
from privstats.randomness import seeded

def run(*words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.stdout.split())

privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
schema = ps.ClassSchema(3, 4, "NA", clip_norm=4.0)
plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 2, 1000), privacy=privacy)
rng = np.random.default_rng(0)
X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
"""
FOLLOWED = """
Path("plan.toml").write_text(plan.to_toml())
assert "init" in run("course", "--help") and "course" in run("--help")
assert "twice" not in sys.modules, "a list of commands loads no package's row"
assert "For two looks" in run("course", "init", "--help")
assert "twice.course" not in sys.modules, "options load no course"
assert "wrote study.toml" in run("course", "init", "study.toml", "--plan", "plan.toml", "--early", "0.3")
assert "0: early" in (said := run("course", "check", "study.toml")) and "is consistent" in said
course = ps.course.read("study.toml")
assert (type(course).__name__, course.early, course.most) == ("Twice", 0.3, 2)
early, late = ps.simulate(course, [(X[k::3], y[k::3]) for k in range(3)], rng=seeded(1))
assert early.sigma["A"] > late.sigma["A"] and abs(course.epsilon(1e-5) - 3) < 1e-6
alone = ps.private_releases(course, X, y, ledger="uncharged", rng=seeded(1), allow_reproducible=True)
assert [abs(each.moments.N - late.moments.N).max() < 60 for each in alone] == [True, True]
"""
SUMMED = """
import chunks
from privstats.course.alone import measuring
held = chunks.Chunks([(X[:9], y[:9]), (X[9:], y[9:])])
parts = measuring(held, ps.NoPrivacy())(schema, held)
assert parts.A.tolist() == ps.measure(schema, X, y).A.tolist()
try:
    ps.private_release(schema, privacy, held, ledger="uncharged")
except ps.DataError as error:
    assert str(error).startswith("chunks 0.1 would form the sums of a Chunks, and no claim on a plan names"), error
else:
    raise AssertionError("an engine of another package sums under a promise")
"""
OPTIONS = """
from privstats.cli.course import _terms
from privstats.doors import Door, PrivstatsError
commands = Door("privstats.commands.course", "command", PrivstatsError, lambda row, _: callable(row))
assert len(list(commands.values())) == len(commands) and _terms().joined().__name__ == "Options"
"""


def _run(program: str, site: Path) -> None:
    done = subprocess.run([sys.executable, "-c", program], cwd=site, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.ci
def test_a_course_of_another_package_is_written_checked_and_run(tmp_path: Path) -> None:
    _run(PLAN + FOLLOWED, install("twice", tmp_path))


@pytest.mark.ci
def test_records_of_another_package_are_summed_where_it_has_them(tmp_path: Path) -> None:
    _run(PLAN + SUMMED, install("chunks", tmp_path))


def test_options_and_commands_are_loaded_without_what_computes() -> None:
    assert not {name.partition(".")[0] for name in loaded(OPTIONS)} & COMPUTES


GREEDY = RecordsEngine("a", lambda _: True, lambda *_, **__: None)  # type: ignore[arg-type, return-value]


def ward(path: Path) -> None:
    """Print a ward's name. It is loaded when a person asks for it."""
    print(f"the ward in {path}")


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a package that is not ours announce an object of this module."""

    def bring(group: str, name: str, value: str) -> None:
        plant_entries(monkeypatch, group, {name: f"{__name__}:{value}"}, "stranger")

    return bring


@needing("privstats.records_engines:parts")
def test_our_engine_of_records_comes_first_and_plain_records_are_no_package_s(brought: Any) -> None:
    brought(ENGINES.group, "broken", "NOTHING")
    brought(ENGINES.group, "a", "GREEDY")
    held = ("ward.parquet", Path("ward.parquet"), [[0.5]], {"age": [5]}, np.eye(2), Registry())
    found = [engine_for(each, ps.NoPrivacy()) for each in held]
    assert [each and each.name for each in found] == ["parts", "parts", None, None, None, "a"]


def test_a_command_of_another_package_is_listed_by_its_name_and_run(brought: Any) -> None:
    names = [each.name for each in announced("privstats.commands.course")]
    brought("privstats.commands.course", "ward", "ward")
    listed = " ".join(CliRunner().invoke(app, ["course", "--help"]).stdout.split())
    assert "ward A command of stranger 0.1." in listed
    assert ("sites Plan one more round after those of a logistic regression" in listed) == ("sites" in names)
    assert CliRunner().invoke(app, ["course", "ward", "Ulm"]).stdout == "the ward in Ulm\n"
    brought("privstats.commands.course", "check", "ward")
    with pytest.warns(BrokenPackageWarning, match="privstats and stranger 0.1 both have the command of privstats cour"):
        assert CliRunner().invoke(app, ["course", "ward", "Ulm"]).stdout == "the ward in Ulm\n"


@dataclass(frozen=True)
class Registry:
    """Options of a source."""

    registry: Annotated[Path | None, Option("A register's file.", "FILE")] = None
    year: Annotated[int | None, Option("Its year.")] = None


@dataclass(frozen=True)
class Hyphened:
    """Options of a source whose name has a hyphen."""

    our_registry: Annotated[Path | None, Option("A register's file.", "FILE", "--register")] = None
    year: Annotated[int | None, Option("Its year.", flag="--in")] = None


def _of_registry(given: Registry) -> Study:
    return Study("cases", f"-- {given.registry} {given.year}", (ps.Truth("smoker"),), ps.Truth("stroke"))


PROMISE = [
    *("--model", "central", "--adjacency", "add-remove", "--epsilon", "3", "--delta", "1e-6", "--clients", "3"),
    *("--vanish", "0", "--colluders", "0", "--max-records", "1000", "--yes"),
]


@needing("privstats.sources:omop", "privstats.sources:fhir")
def test_a_source_brings_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    plant(monkeypatch, SOURCES, "registry", StudySource("registry", Registry, _of_registry))
    words = ["plan", "init", "plan.toml", "--registry", "r.csv", "--year", "2024", *PROMISE]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert Path("plan.sql").read_text() == "-- r.csv 2024;\n"
    refused = CliRunner().invoke(app, [*words, "--omop", "c.toml", "--target", "stroke", "--force"]).exception
    assert str(refused) == "--registry declares every column and the outcome: omit --target, --omop"
    refused = CliRunner().invoke(app, ["plan", "init", "other.toml", "--year", "9"]).exception
    assert str(refused) == "--year goes with a source that is not named: pass --registry, --fhir or --omop, or omit it"


@needing("privstats.tasks:rows")
def test_a_task_brings_its_words_and_its_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def plan(answers: Any, fields: Any, terms: Any) -> ps.Plan:
        assert (answers["task"], fields) == ("pulse", {})
        return ps.Plan(schema=ps.kinds.MeanSchema(3, 1.0), **terms)

    monkeypatch.chdir(tmp_path)
    plant(monkeypatch, TASKS, "pulse", PlanTask("pulse", "the mean of a pulse", plan))
    questions.cache_clear()
    try:
        (task,) = (each for each in questions() if each.name == "task")
        assert task.why.endswith("; pulse: the mean of a pulse; rows: synthetic rows of a table.")
        assert task.help == "classes, ridge, effect, hazard, rates, score, survey, pulse or rows."
        done = CliRunner().invoke(app, ["plan", "init", "--task", "pulse", "--unit", "record", *PROMISE])
        assert done.exit_code == 0, (done.output, done.exception)
        assert ps.Plan.read("plan.toml").schema == ps.kinds.MeanSchema(3, 1.0)
    finally:
        questions.cache_clear()


def test_a_task_without_columns_refuses_their_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    plant(monkeypatch, TASKS, "pulse", PlanTask("pulse", "the mean of a pulse", lambda *_: None))  # type: ignore[arg-type, return-value]
    questions.cache_clear()
    try:
        words = ["plan", "init", "--task", "pulse", "--unit", "record", "--public", "columns.toml", *PROMISE]
        assert str(CliRunner().invoke(app, words).exception) == "--task pulse declares no columns: omit --public"
    finally:
        questions.cache_clear()


def test_a_source_has_an_option_of_its_own_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hyphen of the name is an underscore of the field, and the messages name the option as people type it."""
    monkeypatch.chdir(tmp_path)
    plant(monkeypatch, SOURCES, "our-registry", StudySource("our-registry", Hyphened, _of_registry))
    words = ["plan", "init", "plan.toml", "--register", "r.csv", *PROMISE]
    refused = CliRunner().invoke(app, [*words, "--in", "2024", "--target", "stroke"]).exception
    assert str(refused) == "--register declares every column and the outcome: omit --target"
    refused = CliRunner().invoke(app, ["plan", "init", "other.toml", "--in", "9"]).exception
    assert str(refused) == "--in goes with a source that is not named: pass --register, --fhir or --omop, or omit it"


@dataclass(frozen=True)
class UnlikeOmop:
    late: Annotated[Path | None, Option("A registry's file.", "FILE")] = None
    omop: Annotated[int, Option("A number.")] = 0


LATE = StudySource("late", UnlikeOmop, _of_registry)
MISSING = CourseKind("missing", "nothing", "nowhere.far:Course")


@needing("privstats.sources:omop")
def test_a_source_whose_options_were_left_out_stops_no_plan(brought: Any) -> None:
    """Every ``plan init`` ended in an AttributeError."""
    brought(SOURCES.group, "late", "LATE")
    with pytest.warns(BrokenPackageWarning, match="'late' of stranger .* 'omop'"):
        sources = _of_sources().joined()
    assert _study(sources(), []) is None


def test_a_course_whose_class_is_missing_is_refused_by_its_package(brought: Any) -> None:
    """The package of a kind of schema with the course's name was named in its place, or none."""
    brought(COURSE_KINDS.group, "missing", "MISSING")
    said = "the kind of course 'missing' of stranger 0.1 failed with ModuleNotFoundError"
    with pytest.raises(PlanError, match=said):
        _ = COURSE_KINDS["missing"].type


NAMELESS = StudySource("nameless", Registry, _of_registry)
CALLABLE = CourseKind("callable", "anything", "x:Y", terms=lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("group", "name"), [(SOURCES.group, "NAMELESS"), (COURSE_KINDS.group, "CALLABLE")])
def test_a_row_whose_options_are_none_is_refused_by_its_package(brought: Any, group: str, name: str) -> None:
    """A traceback of every call for help named no package."""
    brought(group, name.lower(), name)
    with pytest.raises(PrivstatsError, match=f"stranger 0.1 announces the .* {name.lower()!r} as .* of that name"):
        (SOURCES if group == SOURCES.group else COURSE_KINDS)[name.lower()]


def test_a_source_without_a_row_of_its_name_is_refused(brought: Any) -> None:
    brought("privstats.sources", "a", "GREEDY")
    with pytest.raises(PrivstatsError, match="stranger 0.1 announces the source of a study 'a' as"):
        list(SOURCES.values())
