"""A setting that is planted by one field and one row is in files, digests, pages, refusals and every claim.

What its author may forget is impossible, or a test of ``test_settings.py`` fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

import privstats as ps
from benchmarks import setting_tables
from benchmarks.tables import DOCS, rewritten
from privstats.cli.parts.questions import QUESTIONS, _of_row
from privstats.contrib.http.browsers import unanswered
from privstats.plan import feasibility
from privstats.plan.forms import Form, Words
from privstats.plan.setting import Assumes, Setting
from privstats.plan.settings import SETTINGS, new_plans
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import check
from tests import made
from tests.javascript.test_accepted import PLANS, REFUSED, plan_of, settings, stated
from tests.made import refused
from tests.plan import test_settings
from tests.review import test_certificate_keys
from tests.review.test_conditions import DOCUMENTS, UNPROMISED, told

KEY_SHARES = "stored", "wiped"
WIPED = ("wiped",)
CLAUSE = "no party stores its key shares"
COHORT = ps.Cohort(6, 5, 500)
SCHEMA = ps.ClassSchema(3, 4, "NAB", 2.0)


@dataclass(frozen=True, kw_only=True)
class Planted(ps.Plan):
    """A plan with one setting more."""

    key_shares: str = "stored"


def refuse_with_panel(plan: Any) -> None:
    """The planted setting is for a protocol that shares keys."""
    if plan.key_shares != "stored" and plan.panel:
        raise ps.PlanError("key_shares='wiped' is for a protocol without a panel: omit it")


def row_of(of: Literal["noise", "masks"] = "masks", **changes: Any) -> Setting:
    stated_by = Assumes(of, lambda plan: CLAUSE if getattr(plan, "key_shares", "stored") == "wiped" else "")
    own: dict[str, Any] = {
        "table": "aggregation",
        "name": "key_shares",
        "meaning": "whether parties *store* their `key_shares` ([Protocol](wire/interactive.md))",
        "form": Words(f"{__name__}:KEY_SHARES"),
        "condition": stated_by,
        "fits": ("feasibility:refuse_with_panel",),
        "example": {"aggregation": {"key_shares": "wiped"}},
    }
    return Setting(**{**own, **changes})


def plant(patch: pytest.MonkeyPatch, row: Setting) -> None:
    """Put a row into the table, and its field into the class that tests and pages ask for defaults."""
    patch.setattr(feasibility, "refuse_with_panel", refuse_with_panel, raising=False)
    patch.setitem(SETTINGS["aggregation"], row.name, row)  # type: ignore[index]
    patch.setitem(setting_tables._CLASSES, "aggregation", Planted)  # type: ignore[index]
    patch.setitem(test_settings.CLASSES, "aggregation", Planted)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Setting:
    row = row_of()
    plant(monkeypatch, row)
    return row


def plan(key_shares: str = "wiped", **changes: Any) -> Any:
    around: dict[str, Any] = {"schema": SCHEMA, "cohort": COHORT, "privacy": made.promise()}
    return Planted(**{**around, "key_shares": key_shares, **changes})


def test_file_and_digest_follow_and_older_plans_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    older = ps.Plan(schema=SCHEMA, cohort=COHORT, privacy=made.promise())
    plant(monkeypatch, row_of())
    text = plan().to_toml()
    assert Planted.from_toml(text) == plan()
    assert plan("stored").digest == older.digest != plan().digest
    assert 'key_shares = "wiped"' in text
    assert "key_shares" not in plan("stored").to_toml()
    monkeypatch.undo()
    refused(ps.PlanError, "aggregation has unknown keys 'key_shares'", ps.Plan.from_toml, text)


def test_values_and_settings_that_contradict_each_other_are_refused(planted: Setting) -> None:
    for value in test_settings.WRONG[Words](planted.form):
        refused(ps.PlanError, "^key_shares must be one of stored, wiped, got", plan, value)
    panel = {"protocol": "split", "panel": tuple(character * 64 for character in "ab")}
    refused(ps.PlanError, "key_shares='wiped' is for a protocol without a panel", plan, **panel)
    assert plan("stored", **panel).panel


def test_the_page_has_its_row(planted: Setting) -> None:
    line = (
        "| `key_shares` | whether parties *store* their `key_shares` ([Protocol](wire/interactive.md)) | "
        '`"stored"` or `"wiped"` | `"stored"` |\n'
    )
    page = (DOCS / "plan.md").read_text("utf-8")
    assert line not in page
    assert line in rewritten(page)
    assert planted.help == "Whether parties store their key_shares (Protocol)."


def test_plan_init_can_ask_it_by_a_question_without_choices_and_help(planted: Setting) -> None:
    question = _of_row("aggregation", "key_shares", "stored", kind=str, heading="Parties", asks="Stored?", why="No.")
    assert (question.offered, question.help, question.part) == (("stored", "wiped"), planted.help, "aggregation")
    assert "key_shares" not in {each.name for each in QUESTIONS}
    assert "key_shares" not in new_plans()


@pytest.mark.parametrize("of", ["masks", "noise"])
@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name != "certificate"])
def test_every_claim_states_its_condition(
    monkeypatch: pytest.MonkeyPatch, of: Literal["noise", "masks"], document: str
) -> None:
    plant(monkeypatch, row_of(of))
    for model in ("central", "distributed", None if of == "masks" else "local"):
        if model is None and document in UNPROMISED:
            continue
        privacy = made.promise(model) if model else ps.NoPrivacy()
        assert CLAUSE in told(DOCUMENTS[document](plan(privacy=privacy))), (document, model)
        assert CLAUSE not in told(DOCUMENTS[document](plan("stored", privacy=privacy)))


def test_checker_and_browsers_refuse_a_setting_that_they_do_not_know(planted: Setting) -> None:
    refused(ps.PlanError, "aggregation has a key that no plan has", certificate_text, plan())
    assert check(plan("stored").to_toml(), certificate_text(plan("stored")))
    assert unanswered(plan()).startswith("no browser answers a plan with aggregation.key_shares = 'wiped': omit it")


@pytest.mark.parametrize("forgotten", ["table", "name", "meaning", "form", "condition", "example"])
def test_a_row_without_one_of_these_is_no_row(forgotten: str) -> None:
    named = {each: getattr(row_of(), each) for each in ("table", "name", "meaning", "form", "condition", "example")}
    del named[forgotten]
    with pytest.raises(TypeError, match=forgotten):
        Setting(**named)


def test_a_row_that_names_a_refusal_which_does_not_exist_makes_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, row_of(fits=("feasibility:refuse_nothing",)))
    with pytest.raises(AttributeError, match="refuse_nothing"):
        plan()


def test_a_row_without_a_field_makes_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS["aggregation"], "key_shares", row_of())  # type: ignore[index]
    with pytest.raises(AttributeError, match="key_shares"):
        ps.Plan(schema=SCHEMA, cohort=COHORT, privacy=made.promise())


def test_a_field_without_a_row_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(test_settings.CLASSES, "aggregation", Planted)
    red(test_settings.test_every_field_has_a_row_or_is_a_part_of_the_plan, "aggregation")


def red(test: Callable[..., None], *given: Any) -> None:
    """A test fails for this reason."""
    __tracebackhide__ = True
    with pytest.raises((AssertionError, KeyError, ps.PlanError, ValueError)):
        test(*given)


def test_what_a_row_states_wrongly_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the row as it should be, which passes, and with one fault."""

    class Lenient(Form):
        """Accepts everything."""

        choices = ("stored", "wiped")

        def checked(self, name: str, value: Any) -> Any:
            del name
            return value

    kept = test_settings.test_a_setting_is_in_digest_and_file_and_its_default_is_omitted
    passing = test_settings.test_a_default_and_the_values_of_the_example_pass_the_form
    faults: list[tuple[Callable[[Setting], None], dict[str, Any]]] = [
        (lambda _: test_settings.test_the_rows_change_no_digest_and_no_file("hybrid"), {"omitted": False}),
        (kept, {"follows": "protocol"}),
        (kept, {"example": {}}),
        (passing, {"form": Words(f"{__name__}:WIPED")}),
        (passing, {"new": "stored"}),
    ]
    for test, fault in faults:
        for changes in ({}, fault):
            with monkeypatch.context() as patch:
                row = row_of(**changes)
                plant(patch, row)
                red(test, row) if changes else test(row)
    with monkeypatch.context() as patch:
        row = row_of(form=Lenient())
        plant(patch, row)
        with pytest.raises(KeyError):  # a form without wrong values
            test_settings.WRONG[type(row.form)]


def test_lists_of_their_own_are_red_until_they_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    held = set().union(*(stated(plan_of(**changes)) for changes in PLANS.values()))
    assert settings() - held - REFUSED.keys() == set()
    plant(monkeypatch, row_of())
    assert settings() - held - REFUSED.keys() == {"aggregation.key_shares"}
    red(test_settings.test_the_checker_lists_the_words_ranges_and_defaults_of_the_rows, row_of())
    red(test_certificate_keys.test_the_checker_knows_the_keys_of_a_plan_file_and_no_others)


def test_a_condition_that_a_row_does_not_state_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """The masking's own clause may follow the setting, and its row may say that nothing does."""
    row = row_of(condition=None)
    plant(monkeypatch, row)
    test_settings.test_a_setting_changes_the_condition_only_if_its_row_states_so(row)
    own = SETTINGS["aggregation"]["protocol"]
    clause = Assumes("masks", lambda plan: f"{plan.masking.condition}{plan.key_shares}")  # type: ignore[attr-defined]
    monkeypatch.setitem(SETTINGS["aggregation"], "protocol", replace(own, condition=clause))  # type: ignore[index]
    red(test_settings.test_a_setting_changes_the_condition_only_if_its_row_states_so, row)
