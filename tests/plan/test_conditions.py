"""What epsilon rests on and cannot count stands wherever epsilon is shown."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import pytest

import privstats as ps
from privstats.plan.budget import _CHOSEN, _PUBLIC, conditions
from privstats.workflows.report import Statement, page_of
from tests import made
from tests.schema.samples import SCHEMAS

PLAN = made.plan(ps.ClassSchema(3, 4, "NAB", clip_norm=1.0), ps.Cohort(20, 15, 500, 2), made.promise())
CONDITIONS = (
    "refusal or absence must not depend on records, because no budget counts it",
    "numbers of records in a plan are public",
    "is a leak outside the budget",
    "no feasible audit of outputs distinguishes a deceptive source from the declared noise (arXiv 2509.23834)",
)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_conditions_stand_beside_epsilon() -> None:
    for document in (str(PLAN.budget()), page_of(Statement(PLAN)).replace("&#39;", "'")):
        assert all(condition in flat(document) for condition in CONDITIONS)


def test_plan_check_says_them_to_people_and_to_scripts(privstats: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())
    told = json.loads(privstats("plan", "check", "plan.toml", "--json", cwd=tmp_path).stdout)["conditions"]
    shown = flat(privstats("plan", "check", "plan.toml", cwd=tmp_path).stdout)
    assert [sum(condition in line for line in told) for condition in CONDITIONS] == [1] * 4
    assert all(condition in shown for condition in CONDITIONS)


def test_a_plan_without_a_promise_has_no_conditions() -> None:
    bare = replace(PLAN, privacy=ps.NoPrivacy())
    assert bare.budget().conditions == ()
    assert "rests on" not in page_of(Statement(bare)).partition("not promised")[0].partition("<body>")[2]


NUMBER = ps.Number("stay", low=0, high=30)


@pytest.mark.parametrize(
    ("schema", "public", "chosen"),
    [
        (PLAN.schema, "classes, columns", "clip_norm, grid_bits, transform, nonnegative, statistics"),
        (
            ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0),
            "columns",
            "clip_norm, target_bound, grid_bits, transform, nonnegative, folds",
        ),
        (
            ps.CountSchema((ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 120))), (("sex", "age"),)),
            "columns, listed values, bin edges, tables",
            "transform",
        ),
        (ps.CountSchema((), (), numbers=(NUMBER,)), "tables, number columns with their ranges", "transform"),
    ],
)
def test_each_kind_names_what_must_be_public(schema: Any, public: str, chosen: str) -> None:
    stated = made.plan(schema, ps.Cohort(20, 15, 500, 2), made.promise()).budget().conditions
    assert f"the {public} and numbers of records in a plan are public: they come from no private record" in stated
    assert sum(each.startswith(f"{chosen} and shares were chosen without private records") for each in stated) == 1


NO_CONDITION = {
    "class_names": "texts of the classes, which are on the public list",
    "feature_names": "texts of the columns, which are on the public list",
    "outcome_names": "texts of columns",
    "event": "the text of a column",
    "entry": "the text of a column",
    "late_entry": "the texts of two columns of times, and what a bin of them is",
    "exposure": "the text of a column",
    "targets": "the number of target columns",
    "outcomes": "the number of outcome columns",
    "expected_records": "a number of records, which the sentence names",
    "course_mu": "follows from the course's promise",
    "reference": "follows from the place of a round in its course",
    "among": "the clients on the first sum's list, which the server sees",
    "head": "a published file; its own release states the promise of the records that it was fitted to",
    "head_bytes": "the length of that file",
}
"""Settings that the printed conditions need not name, and why."""


def test_every_setting_of_every_kind_is_a_condition_or_exempt() -> None:
    settings = {each.name for schema in SCHEMAS for each in fields(cast(Any, schema))}
    stated = {*_CHOSEN, *_PUBLIC}
    missing = settings - stated - set(NO_CONDITION)
    assert not missing, f"add {sorted(missing)} to _CHOSEN or _PUBLIC in privstats/plan/budget.py, or to NO_CONDITION"
    assert len(stated) == len(_CHOSEN) + len(_PUBLIC), "a setting is on both lists"
    assert not stated & set(NO_CONDITION)
    assert stated | set(NO_CONDITION) == settings, "a list names a setting that no kind has"


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.task)
def test_every_set_value_is_in_the_printed_conditions(schema: Any) -> None:
    printed = " ".join(conditions(schema))
    words = {name: _PUBLIC.get(name, name) for name in (each.name for each in fields(schema))}
    unset = (None, ())
    due = {word for name, word in words.items() if name not in NO_CONDITION and getattr(schema, name) not in unset}
    assert {word for word in due if not re.search(rf"\b{word}\b", printed)} == set()


def test_the_page_about_sweeps_does_not_invite_to_a_leak() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text("utf-8")
    assert "reveals something about these records that no epsilon counts" in flat(page)
