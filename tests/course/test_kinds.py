"""Every kind of course has one row, which is asked for all that differs; a class without one is refused by its name."""

import math
import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
import tomli_w

import privstats as ps
from privstats.course import DisjointRounds, Single, read, write
from privstats.course.kinds import COURSE_KINDS, CourseKind, course_kind, labels_of
from privstats.errors import PlanError, PrivstatsError
from privstats.transforms import ConstantFeature
from privstats.workflows.report import sessions
from tests.course.announced_samples import Samples, announced_samples
from tests.course.cases import OF_CELLS, OF_CLOSED, TABLE, parties_plan, plan_of, promise, rounds, shards

ELEVEN = replace(TABLE, signs=11)
OF_ELEVEN = ps.ClassSchema(2, ELEVEN.width, "NAB", 1.0, transform=(ELEVEN,))
SCORES = ps.ScoreSchema(4, 2.0, transform=(ConstantFeature(1.0),))


HAZARDS = ps.HazardSchema(
    3,
    2.0,
    bins=ps.Bins("months", (0, 6, 12, 24)),
    event="died",
    feature_names=("arm", "age"),
    transform=(ConstantFeature(1.0),),
    times="continuous",
)


def _hazard(cohort: ps.Cohort) -> ps.Hazard:
    return ps.Hazard.start(HAZARDS, cohort, promise(epsilon=3.0), by="arm", rounds=3)


def ranged_plan(epsilon: float = 4.0) -> ps.Plan:
    schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=8.0, transform=(ConstantFeature(1.0),))
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=promise(epsilon=epsilon))


def _newton(cohort: ps.Cohort) -> ps.Newton:
    return ps.Newton.start(SCORES, cohort, promise(epsilon=3.0), 3)


OBSERVED = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1)}, trim=0.1)
DECLARED = ps.course.Analysis(("relapse",))


def _effect(cohort: ps.Cohort) -> ps.Effect:
    return ps.Effect.start(OBSERVED, cohort, promise(epsilon=3.0))


ANNOUNCED = announced_samples()
SAMPLES = Samples({
    "single": Single(plan_of()),
    "rounds": replace(rounds(OF_CLOSED, 4), clip=0.3),
    "newton": _newton(ps.Cohort(2, 2, 2_000)),
    "hazard": _hazard(ps.Cohort(2, 2, 2_000)),
    "standardised": ps.Standardised.within(ranged_plan()),
    "centred": ps.Centred.within(plan_of()),
    "effect": _effect(ps.Cohort(2, 2, 2_000)),
    "parties": ps.PartyRounds.within(parties_plan()),
    "binned": ps.Binned.within(plan_of(OF_ELEVEN), "centred", expected_records=600),
    **{name: sample.course for name, sample in ANNOUNCED.items()},
})  # fmt: skip

_REGRESSION = {"cohort": ps.Cohort(2, 2, 2_000), "privacy": promise(epsilon=3.0)}
WHOLES = Samples({
    "rounds": plan_of(),
    "newton": ps.Newton.full_plan(schema=SCORES, **_REGRESSION),
    "hazard": ps.Hazard.full_plan(schema=HAZARDS, **_REGRESSION),
    "standardised": ranged_plan(),
    "centred": plan_of(),
    "effect": ps.Effect.full_plan(schema=OBSERVED, **_REGRESSION),
    "parties": parties_plan(),
    "binned": plan_of(OF_CELLS),
    **{name: sample.whole for name, sample in ANNOUNCED.items()},
})  # fmt: skip
"""By kind with a file: a plan that states the promise of all sessions together, from which a course of it follows."""

CHANGED = {
    "single": {"plan": plan_of(epsilon=4.1)},
    "rounds": {
        "first": plan_of(OF_CLOSED, epsilon=1.1),
        "rounds": 5,
        "expected_records": 9_999,
        "retries": 1,
        "release_share": 0.3,
        "calibrated": True,
        "module": "adapter/4",
        "clip": 0.5,
        "pairs": True,
    },
    "newton": {"first": _newton(ps.Cohort(2, 2, 2_001)).first, "rounds": 2, "retries": 1},
    "hazard": {"plan": _hazard(ps.Cohort(2, 2, 2_001)).plan, "by": "age", "rounds": 2, "retries": 1, "early_bins": 2},
    "standardised": {"plan": ranged_plan(4.1), "share": 0.1},
    "centred": {"plan": plan_of(epsilon=4.1), "expected_records": 9_999, "calibrated": True},
    "effect": {
        "plan": _effect(ps.Cohort(2, 2, 2_001)).plan,
        "share": 0.2,
        "rounds": 3,
        "retries": 1,
        "analysis": DECLARED,
    },
    "parties": {"first": parties_plan(epsilon=4.1)},
    "binned": {
        "then": plan_of(OF_ELEVEN),
        "expected_records": 601,
        "share": 0.25,
        "sessions": 2,
        "finer_ends": True,
    },
    **{name: sample.changed for name, sample in ANNOUNCED.items()},
}
"""Of each kind every field that is its own, with another value."""
IMPLIED = {name: sample.implied for name, sample in ANNOUNCED.items()}
"""Fields that follow from the others."""


@dataclass(frozen=True)
class Stranger(Single):
    """A course whose class has no row."""


STRANGE = CourseKind("strange", "strange", Stranger, charge="plan", gives_back=True, promise=None)


@pytest.mark.parametrize("name", COURSE_KINDS)
def test_a_row_answers_whatever_is_asked_of_a_course_of_its_kind(name: str, tmp_path: Path) -> None:
    row, course = COURSE_KINDS[name], SAMPLES[name]
    assert course_kind(course) is row
    assert row.type.label == name
    assert fields(row.type)[0].type in ("Plan", ps.Plan, "Rest")
    labels = [line[0] for line in sessions.course_table(course).rows]
    told = labels[: len(labels) - (course.most > 1 and course.mu < math.inf)]  # the last is of all
    named = [label.partition(": ")[0] for label in labels_of(course)]
    ends = [str(label).partition(": ")[0].split(" to ") for label in told]  # those that do the same are one row
    at = [(named.index(first), named.index(last)) for first, *_, last in ([*end[:1], *end] for end in ends)]
    assert [place for first, last in at for place in range(first, last + 1)] == list(range(len(course.priced)))
    changes = row.changing is not None
    assert changes == (row.charge == "registry") == isinstance(course, DisjointRounds) == (not row.follows)
    assert all(isinstance(row.pauses(course, place), bool) for place in range(1, course.most))
    assert row.changing is None or row.changing.totals(tmp_path, course, str.encode) is None
    assert " without a sum" in row.ended(course, [None], Path("study/host"))
    if row.promise is not None:
        write(tmp_path / "course.toml", course)
        assert read(tmp_path / "course.toml") == course
        assert f'kind = "{name}"' in (tmp_path / "course.toml").read_text()


@pytest.mark.parametrize("name", COURSE_KINDS)
def test_the_options_of_a_kind_are_those_of_its_within_and_its_flag(name: str) -> None:
    row = COURSE_KINDS[name]
    stated = {each.name for each in fields(row.terms)} if row.terms else set()
    assert stated == ({*row.options, *[row.asked] * bool(row.asked)} if row.promise else set())


@pytest.mark.parametrize("name", COURSE_KINDS)
def test_a_kind_has_a_public_name_and_a_page(name: str) -> None:
    kind, docs = COURSE_KINDS[name].type, Path(__file__).parents[2] / "docs"
    assert kind.__module__.startswith("privstats.contrib.") or getattr(ps.course, kind.__name__) is kind
    pages = docs.rglob("*.md")
    code = "".join(span for page in pages for span in re.findall(r"```.*?```|`[^`\n]+`", page.read_text("utf-8"), re.S))
    assert re.search(rf"\b{kind.__name__}\b", code), "a word of a sentence, such as Single, names no kind"


@pytest.mark.parametrize("name", COURSE_KINDS)
def test_every_field_of_a_course_is_in_its_digest_and_in_its_file(name: str, tmp_path: Path) -> None:
    """Parties hold a course by its digest, which lists its numbers one by one: a server could change one it lacks."""
    course, changed = SAMPLES[name], CHANGED[name]
    assert set(changed) | IMPLIED.get(name, set()) == {each.name for each in fields(course) if each.compare}
    without = {} if COURSE_KINDS[name].promise != "own" else {"promise": None}
    others = [replace(course, **without, **{field: value}) for field, value in changed.items()]
    assert len({course.digest, *(each.digest for each in others)}) == 1 + len(others)
    for each in others if COURSE_KINDS[name].promise is not None else ():
        write(tmp_path / "course.toml", each)
        again = read(tmp_path / "course.toml")
        assert (again, again.digest) == (each, each.digest)


WRONG = (
    [[[[1]]]],
    [],
    [[]],
    {"a": 1},
    "",
    "x",
    ".",
    "..",
    "\0",
    True,
    -1,
    0,
    1 << 62,
    float("inf"),
    float("nan"),
    [""],
    ["x"],
)
"""TOML's values, for any key."""


@pytest.mark.parametrize("name", [name for name, row in COURSE_KINDS.items() if row.promise is not None])
def test_any_value_under_any_key_is_a_course_or_one_sentence(name: str, tmp_path: Path) -> None:
    """``plan = ""`` and ``clip = [[[[1]]]]`` ended in tracebacks."""
    write(tmp_path / "course.toml", SAMPLES[name])
    document, wrong = tomllib.loads((tmp_path / "course.toml").read_text()), []
    tables = [table for table in document.values() if isinstance(table, dict)]
    keys = {each.name for each in fields(SAMPLES[name])[1:]} - {"promise", "analysis"}
    for table in tables:
        for key in {*table, *(keys if table is document["course"] else ())}:
            for value in WRONG:
                changed = {name: {**each, key: value} if each is table else each for name, each in document.items()}
                (tmp_path / "course.toml").write_text(tomli_w.dumps(changed))
                try:
                    read(tmp_path / "course.toml")
                except PrivstatsError:
                    pass
                except Exception as error:
                    wrong.append(f"{key} = {value!r}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def test_only_a_stream_pauses_weighs_and_names_its_nodes_together(tmp_path: Path) -> None:
    stream = SAMPLES["stream"]
    correlated = replace(stream, mechanism="square-root")
    pauses = [place for place in range(1, stream.most) if COURSE_KINDS["stream"].pauses(stream, place)]
    assert pauses == [1, 3, 4]  # the first nodes of epochs 1, 2 and 3
    assert labels_of(stream) == ("each of 7",)
    changing = COURSE_KINDS["stream"].changing
    assert changing is not None
    assert changing.totals(tmp_path, correlated, str.encode) is not None
    assert {name for name, row in COURSE_KINDS.items() if row.charge == "registry"} == {"stream"}
    assert {name for name, row in COURSE_KINDS.items() if row.gives_back} == {"single", "stream"}


def test_a_class_without_a_row_is_refused_by_its_name(tmp_path: Path) -> None:
    course = Stranger(plan_of())
    for act in (
        lambda: course_kind(course),
        lambda: ps.simulate(course, shards()),
        lambda: sessions.course_table(course),
        lambda: write(tmp_path / "course.toml", course),
    ):
        with pytest.raises(PlanError, match="^Stranger is not a known kind of course .single, rounds, "):
            act()
    assert not list(tmp_path.iterdir())


def test_a_course_of_one_plan_has_no_file_of_a_course(tmp_path: Path) -> None:
    write(tmp_path / "course.toml", rounds())
    text = (tmp_path / "course.toml").read_text()
    (tmp_path / "course.toml").write_text(text.replace('"rounds"', '"single"'))
    written = ", ".join(name for name, row in COURSE_KINDS.items() if row.promise is not None)
    with pytest.raises(PlanError, match=f"course.kind must be one of {written}, got 'single'"):
        read(tmp_path / "course.toml")


READ_ALL_AT_FIRST = {"single", "rounds", "alignment", "stream", "newton", "standardised", "parties", "synthetic"}


def test_every_kind_says_whether_a_later_round_reads_more() -> None:
    """A kind without ``admits`` is listed here only if its first round reads all that a later one reads."""
    without = {name for name, kind in COURSE_KINDS.items() if not hasattr(kind.type, "admits")}
    assert without == READ_ALL_AT_FIRST & COURSE_KINDS.keys()
    for name in without:
        first, *later = (_read(plan.schema) for plan in SAMPLES[name].priced)
        assert [each for each in later if each != first] == [], f"{name} needs admits: a later session reads more"


def _read(schema: ps.schema.Schema) -> tuple[object, ...]:
    """Return what the schema reads next to the features, and the number of input columns."""
    return type(schema.goal), schema.reading.columns, schema.reading.inputs
