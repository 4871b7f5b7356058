"""The rows of settings: what is derived from them holds, and the lists that stay their own agree with them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.cli.parts.questions import questions
from privstats.errors import PrivstatsError
from privstats.plan import cohort_rules, device_rules
from privstats.plan.forms import (
    AsciiName,
    CheckedThere,
    ClassPairs,
    Form,
    Integer,
    Key,
    Keys,
    Levels,
    Name,
    Names,
    Number,
    PageTexts,
    Sentence,
    Words,
)
from privstats.plan.setting import Assumes, Fields, Setting, StatedBy
from privstats.plan.settings import SETTINGS, new_plans, rows
from privstats.review import certificate_checker as checker

FROZEN = json.loads((Path(__file__).parent / "frozen_plans.json").read_text("utf-8"))
PARTS = {"schema", "cohort", "privacy", "published", "validity", "devices"}
CLASSES: dict[str, Any] = {
    "cohort": ps.Cohort,
    "privacy": ps.Privacy,
    "aggregation": ps.Plan,
    "validity": ps.plan.Validity,
    "devices": ps.plan.Devices,
}
BASE: Fields = {
    "cohort": {"clients": 6, "min_survivors": 5, "max_records": 500},
    "privacy": {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5},
}


def _misspelt(words: Sequence[str]) -> list[Any]:
    return [wrong for word in words for wrong in (word.upper(), word.encode(), [word])]


WRONG: dict[type[Form], Callable[[Any], list[Any]]] = {
    **dict.fromkeys((Words, Levels), lambda form: ["", 0, *_misspelt(form.choices[:1])]),
    AsciiName: lambda form: ["gräph", 3, b"auto"],
    Integer: lambda form: [form.low - 1, float(form.low), True, "1", *([form.high + 1] if form.high else [])],
    Number: lambda form: [form.low - 1e-3, "1", True, float("nan"), *([form.high * 1.01] if form.high else [])],
    Name: lambda form: ["", " ", "K" * 121, "Trier\u202e", 7],
    Names: lambda form: ["Ulm", ("Ulm", " "), ("Ulm", 7)],
    Key: lambda form: ["a" * 63, "A" * 64, "0" * 64, 7],
    Keys: lambda form: ["a" * 64, ["a" * 63], ["A" * 64], ["a" * 64] * 2, ["0" * 64], None],
    Sentence: lambda form: [form.text.upper(), form.text + ".", True],
    ClassPairs: lambda form: [[(2, 0)], {"2": 0}, {2: 0.0}, {True: 0}, None],
    PageTexts: lambda form: [{}, {"de": "Ulm"}, {"de": {"name": "Ulm"}}, 7],
}
"""For each form, values that a setting of this form cannot have."""
WRONG_THERE = {
    "privacy.shares": [{"N": 0.5}, [0.5, 0.5], {"N": 0.0, "A": 1.0}],
    "privacy.person_clip": ["mean", 0.5, True],
}
"""The same for settings that their own class checks."""


def joined(*changes: Fields) -> dict[str, dict[str, Any]]:
    """Fields of a plan by table, later ones in place of earlier ones."""
    tables = {table for each in changes for table in each}
    return {table: {k: v for each in changes for k, v in each.get(table, {}).items()} for table in tables}


def plan_with(*changes: Fields) -> ps.Plan:
    """A plan with these fields."""
    named = joined(BASE, *changes)
    own = named.pop("aggregation", {})
    parts = {table: CLASSES[table](**values) for table, values in named.items()}
    built: ps.Plan = CLASSES["aggregation"](schema=ps.ClassSchema(3, 4, "NAB", 2.0), **parts, **own)
    return built


def pair(row: Setting) -> tuple[ps.Plan, ps.Plan]:
    """Two plans, in which a setting differs."""
    return plan_with(row.around), plan_with(row.around, row.example)


def part_of(plan: ps.Plan, row: Setting) -> Any:
    return plan if row.table == "aggregation" else getattr(plan, row.table)


every_row = pytest.mark.parametrize("row", [*rows()], ids=lambda row: row.path)
pytestmark = pytest.mark.filterwarnings("ignore:validity is experimental")


@pytest.mark.parametrize("table", CLASSES)
def test_every_field_has_a_row_or_is_a_part_of_the_plan(table: str) -> None:
    own = {each.name for each in fields(CLASSES[table]) if each.init}
    assert own - (PARTS if table == "aggregation" else set()) == set(SETTINGS[table])


@pytest.mark.parametrize("name", FROZEN)
def test_the_rows_change_no_digest_and_no_file(name: str) -> None:
    """Files and digests were written before settings had rows."""
    plan = CLASSES["aggregation"].from_toml(FROZEN[name]["toml"])
    assert plan.digest == FROZEN[name]["digest"]
    assert plan.to_toml() == FROZEN[name]["toml"]


@every_row
def test_a_setting_is_in_digest_and_file_and_its_default_is_omitted(row: Setting) -> None:
    """Parties compare plans by digest alone, so a server could change a setting that no digest covers."""
    without, having = pair(row)
    first, second = (getattr(part_of(plan, row), row.name) for plan in (without, having))
    assert first != second
    assert without.digest != having.digest
    assert row.name in having.tables[row.table]
    assert type(having).from_toml(having.to_toml()) == having
    usual = row.default(CLASSES[row.table])
    if row.omitted and not row.follows and usual is not MISSING:
        assert (row.name in without.tables[row.table]) == (first != usual)


def wrong_values() -> list[Any]:
    """Each setting with each value that it cannot have."""
    every = [
        (row, value)
        for row in rows()
        for value in (WRONG_THERE[row.path] if isinstance(row.form, CheckedThere) else WRONG[type(row.form)](row.form))
    ]
    return [pytest.param(row, value, id=f"{row.path} {value!r}") for row, value in every]


@pytest.mark.parametrize(("row", "value"), wrong_values())
def test_a_value_that_a_setting_cannot_have_is_refused_by_name(row: Setting, value: Any) -> None:
    with pytest.raises(PrivstatsError, match=rf"\b{row.name}\b") as caught:
        plan_with(row.around, row.example, {row.table: {row.name: value}})
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 400
    assert all(word in said for word in row.form.choices)


@every_row
def test_a_default_and_the_values_of_the_example_pass_the_form(row: Setting) -> None:
    usual = row.default(CLASSES[row.table])
    passing = [usual] if usual not in (MISSING, None) else []
    passing += [] if row.new is None else [row.new]
    passing += [getattr(part_of(pair(row)[1], row), row.name)]
    for value in passing if not isinstance(row.form, CheckedThere) else ():
        assert row.checked(value) == value
    assert row.new is None or row.new != usual


def test_every_rule_of_cohorts_and_devices_is_named_by_a_row() -> None:
    named = {place for row in rows() for place in (*row.joins, *row.fits)}
    rules = (cohort_rules, "cohort_rules"), (device_rules, "device_rules")
    assert {f"{at}:{name}" for module, at in rules for name in vars(module) if name.startswith("check_")} <= named


@every_row
def test_a_setting_changes_the_condition_only_if_its_row_states_so(row: Setting) -> None:
    without, having = pair(row)
    if row.condition is None and row.path not in ("devices.exact",):
        assert having.condition == without.condition
    if isinstance(row.condition, StatedBy):
        table, _, name = row.condition.setting.partition(".")
        assert isinstance(SETTINGS[table][name].condition, Assumes)
    if isinstance(row.condition, Assumes):
        assert row.condition.clause(having) in having.condition


def test_the_settings_whose_clause_another_one_states_change_the_condition() -> None:
    large: Fields = {"cohort": {"clients": 300, "min_survivors": 270, "max_records": 3000, "colluders": 3}}
    sparse, robust = ({"aggregation": {"graph": graph}} for graph in ("sparse", "robust"))
    changes: list[tuple[Fields, ...]] = [(), (SETTINGS["cohort"]["colluders"].example,), (large,), (large, sparse)]
    changes += [(SETTINGS["aggregation"]["protocol"].example,), (SETTINGS["privacy"]["model"].example,)]
    assert len({plan_with(*each).condition for each in changes}) == len(changes)
    assert plan_with(large, robust).condition == plan_with(large).condition


@every_row
def test_the_checker_states_the_condition_of_every_setting(row: Setting) -> None:
    """An outsider's check would else print a promise without what it rests on."""
    for plan in pair(row):
        assert isinstance(plan.privacy, ps.NoPrivacy) or checker._condition(plan.tables) == plan.condition


@every_row
def test_the_checker_lists_the_words_ranges_and_defaults_of_the_rows(row: Setting) -> None:
    """The checker of an outsider imports nothing of the package, so it has its own lists."""
    optional, usual = {key.partition("=")[0].rstrip("?"): _read(key) for key in checker.KEYS[row.table].split()}[
        row.name
    ]
    default = row.default(CLASSES[row.table])
    assert optional == ((row.omitted or bool(row.follows)) and default is not MISSING)
    assert usual == (None if default in (MISSING, None) else json.loads(json.dumps(row.form.written(default))))
    omitted = {default} if optional and isinstance(default, str | int) else set()
    if row.form.choices:
        assert set(checker.WORDS[row.name].split()) == set(row.form.choices) - omitted
    elif isinstance(row.form, Integer):
        low, high = checker.INTEGERS[row.name]
        assert low == row.form.low + (row.form.low in omitted)
        assert high == row.form.high if row.form.high else high <= checker.MAX_INTEGER
    elif isinstance(row.form, Number):
        low, high = checker.REAL[row.name]
        assert (float(low) == row.form.low) or (row.form.above and 0 < low < 1e-20)
        assert float(high) == row.form.high if row.form.high else high <= checker.MAX_INTEGER


def _read(key: str) -> tuple[bool, Any]:
    name, marked, usual = key.partition("=")
    return name.endswith("?"), json.loads(usual) if marked else None


def test_plan_init_offers_the_choices_and_help_of_the_rows() -> None:
    asked = {each.name: each for each in questions()}
    for row in rows():
        if row.name not in asked:
            continue
        question = asked[row.name]
        assert question.help.startswith(row.help)
        assert question.form is row.form
        assert set(question.offered) <= set(row.form.choices)
        assert not set("`[]") & set(row.help)
    parts = {"cohort", "privacy", "devices", "aggregation"}
    settings = {row.name for row in rows()}
    assert {each.name for each in questions() if each.part in parts} - settings == {"vanish"}  # min_survivors, in words


def test_the_example_plan_has_what_new_plans_get() -> None:
    text = (Path(ps.__file__).parent / "cli" / "plan.toml").read_text("utf-8")
    plan = ps.Plan.from_toml(text)
    assert {name: getattr(plan, name) for name in new_plans()} == new_plans()
