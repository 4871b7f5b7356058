"""The rows of settings: what is derived from them holds, and the lists that stay their own agree with them."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.cli.parts.questions import QUESTIONS
from privstats.plan.forms import AsciiName, ClassPairs, Form, Integer, Keys, Words
from privstats.plan.settings import AGGREGATION, Assumes, Setting, StatedBy, new_plans, rows
from privstats.review import certificate_checker as checker
from tests import made
from tests.plan.every_kind import PLANS

FROZEN = json.loads((Path(__file__).parent / "frozen_plans.json").read_text("utf-8"))
PARTS = {"schema", "cohort", "privacy", "published", "validity", "devices"}
WRONG: dict[type[Form], Callable[[Any], list[Any]]] = {
    Words: lambda form: ["", form.choices[0].upper(), form.choices[0].encode(), None, 0],
    AsciiName: lambda form: ["gräph", 3, None, b"auto"],
    Integer: lambda form: [form.low - 1, float(form.low), True, "1", None, *([form.high + 1] if form.high else [])],
    Keys: lambda form: ["a" * 64, ["a" * 63], ["A" * 64], ["a" * 64] * 2, ["0" * 64], None],
    ClassPairs: lambda form: [[(2, 0)], {"2": 0}, {2: 0.0}, {True: 0}, None],
}
"""For each form, values that a setting of this form cannot have."""


def plan_with(changes: Any) -> ps.Plan:
    """A plan with these fields; ``"privacy.model"`` is a field of a part."""
    parts = {
        "schema": ps.ClassSchema(3, 4, "NAB", 2.0),
        "cohort": ps.Cohort(6, 5, 500),
        "privacy": made.promise("central"),
    }
    for path, value in changes.items():
        part, inner, name = path.partition(".")
        parts[part] = replace(parts[part], **{name: value}) if inner else value
    return ps.Plan(**parts)


def pair(row: Setting) -> tuple[ps.Plan, ps.Plan]:
    """Two plans: the row's setting has its default in the first, and the example's value in the second."""
    return plan_with(row.example_without), plan_with(row.example)


def test_every_field_of_a_plan_is_a_part_or_has_a_row() -> None:
    assert {each.name for each in fields(ps.Plan)} == PARTS | set(AGGREGATION)


@pytest.mark.parametrize("name", FROZEN)
def test_the_rows_change_no_digest(name: str) -> None:
    """Computed before settings had rows."""
    assert PLANS[name].digest == FROZEN[name]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_setting_is_in_digest_and_file_and_its_default_is_omitted(row: Setting) -> None:
    """Parties compare plans by digest alone, so a server could change a setting that no digest covers."""
    without, having = pair(row)
    assert getattr(without, row.name) != getattr(having, row.name)
    assert without.digest != having.digest
    assert row.name in having.tables["aggregation"]
    assert ps.Plan.from_toml(having.to_toml()) == having
    if row.omitted and not row.follows:
        assert row.name not in without.tables["aggregation"]
        assert getattr(without, row.name) == row.default(ps.Plan)


def wrong_values() -> list[Any]:
    """Each setting with each value that it cannot have."""
    every = [(row, value) for row in rows() for value in WRONG[type(row.form)](row.form)]
    return [pytest.param(row, value, id=f"{row.name} {value!r}") for row, value in every]


@pytest.mark.parametrize(("row", "value"), wrong_values())
def test_a_value_that_a_setting_cannot_have_is_refused_by_name(row: Setting, value: Any) -> None:
    with pytest.raises(ps.PlanError, match=rf"^{row.name}(\[0\])? (must|names|is)\b") as caught:
        plan_with({**row.example, row.name: value})
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 400
    assert all(word in said for word in row.form.choices)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_default_passes_its_own_form(row: Setting) -> None:
    assert row.form.checked(row.name, row.default(ps.Plan)) == row.default(ps.Plan)
    assert row.new is None or row.form.checked(row.name, row.new) != row.default(ps.Plan)


def test_every_refusal_that_joins_settings_is_named_by_a_row_and_no_row_names_another() -> None:
    from privstats.plan import feasibility

    of_plans = {feasibility.check_panel, feasibility.check_noise, feasibility.check_key_agreement}
    of_plans |= {feasibility.check_excess, feasibility.check_min_count, feasibility.check_merge}
    assert {check for row in rows() for check in row.joins} == of_plans


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_setting_changes_the_condition_only_if_its_row_states_so(row: Setting) -> None:
    without, having = pair(row)
    if row.condition is None:
        assert having.condition == without.condition
    if isinstance(row.condition, StatedBy):
        assert isinstance(AGGREGATION[row.condition.setting].condition, Assumes)
    if isinstance(row.condition, Assumes):
        assert row.condition.clause(having) in having.condition


def test_the_graph_and_the_protocol_change_the_condition() -> None:
    sparse = {"cohort": ps.Cohort(300, 270, 3000, 3), "graph": "sparse"}
    split = AGGREGATION["protocol"].example
    assert len({plan_with(each).condition for each in ({}, sparse, sparse | {"graph": "robust"}, split)}) == 4


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_the_checker_lists_the_words_ranges_and_defaults_of_the_rows(row: Setting) -> None:
    """The checker of an outsider imports nothing of the package, so it has its own lists."""
    keys = {name.rstrip("?"): (mark, usual) for name, mark, usual in map(_key, checker.KEYS["aggregation"].split())}
    optional, usual = keys[row.name]
    assert optional == (row.omitted or bool(row.follows))
    assert json.loads(usual) == json.loads(json.dumps(row.form.written(row.default(ps.Plan))))
    omitted = {row.default(ps.Plan)} if optional and isinstance(row.default(ps.Plan), str | int) else set()
    if row.form.choices:
        assert set(checker.WORDS[row.name].split()) == set(row.form.choices) - omitted
    if isinstance(row.form, Integer):
        high = checker.MAX_INTEGER if row.form.high is None else row.form.high
        assert checker.INTEGERS[row.name] == (row.form.low + (row.form.low in omitted), high)


def _key(text: str) -> tuple[str, bool, str]:
    name, _, usual = text.partition("=")
    return name, name.endswith("?"), usual


def test_plan_init_offers_the_choices_and_help_of_the_rows() -> None:
    asked = {each.name: each for each in QUESTIONS if each.part == "aggregation"}
    assert asked.keys() >= new_plans().keys()
    for name, question in asked.items():
        row = AGGREGATION[name]
        assert (question.choices, question.help) == (row.form.choices, row.help)
        assert question.usual == (row.default(ps.Plan) if row.new is None else row.new)
        assert not set("`[]") & set(row.help)


def test_the_example_plan_has_what_new_plans_get() -> None:
    text = (Path(ps.__file__).parent / "cli" / "plan.toml").read_text("utf-8")
    plan = ps.Plan.from_toml(text)
    assert {name: getattr(plan, name) for name in new_plans()} == new_plans()
