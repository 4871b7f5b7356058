"""What an officer reads of a schema: every kind says what a record is, every letter what is summed."""

import re
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.kinds import KINDS
from privstats.schema import Schema
from privstats.schema.base import Statistic
from privstats.workflows.report import explanations, sessions
from tests import made
from tests.schema.samples import SCHEMAS

DOCS = Path(__file__).parents[2] / "docs"
_DISTINCT = {schema.table: schema.task for schema in SCHEMAS}
TABLES = {f"{task}-{place}": table for place, (table, task) in enumerate(_DISTINCT.items())}
ROWS = [*dict.fromkeys(row for table in TABLES.values() for row in table)]


def test_every_kind_and_every_letter_is_shown_here() -> None:
    assert {type(schema) for schema in SCHEMAS} == set(KINDS.values())
    shown = {row for schema in SCHEMAS for row in schema.sent}
    assert shown == {row for table in TABLES.values() for row in table}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_example_of_a_kind_is_of_this_kind(kind: Any) -> None:
    assert type(kind.example()) is kind


@pytest.mark.parametrize("schema", [ps.ClassSchema, ps.RidgeSchema])
def test_every_sum_that_a_plan_may_choose_is_on_the_page_of_plans(schema: type[Schema]) -> None:
    (rows,) = re.findall(r"^\| statistic \|.*\n((?:\|.*\n)+)", (DOCS / "plan.md").read_text("utf-8"), re.MULTILINE)
    named = set(re.findall(r"`(\w)`", " ".join(line.split("|")[1] for line in rows.splitlines())))
    assert {row.letter for row in schema.table} <= named


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_letter_of_a_table_says_something_else(table: tuple[Statistic, ...]) -> None:
    for row in table:
        assert len(row.meaning.split()) >= 4, row
    assert len({row.meaning for row in table}) == len(table)


def test_a_row_without_a_meaning_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="meaning"):
        Statistic("Z", "pooled", (), (0, 0))  # type: ignore[call-arg]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.letter)
def test_a_meaning_says_what_its_row_sums_apart(row: Statistic) -> None:
    """Counts are "how many" or "counts", pooled sums do not speak of each class, and sums by class do."""
    assert bool(re.search("how many|counts", row.meaning)) == (row.degree == 0)
    assert bool(re.search("each class|for each class", row.meaning)) == (row.partition == "class")


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_a_kind_says_what_a_record_is_and_what_bounds_it(schema: Schema) -> None:
    assert re.match(r"(the columns|a value of each of|\d+ numbers)", schema.record)
    assert all(name in schema.record for name in getattr(schema, "class_names", None) or ())
    assert getattr(schema, "family", "") != "poisson" or f"at most {schema.target_bound:g}" in schema.record
    assert "no record weighs more" in schema.clipping


def test_the_officers_page_says_the_meaning_of_the_plans_own_kind() -> None:
    """N of a pooled kind counts all records: the page said "how many records each class has"."""
    plan = made.plan(ps.SitesSchema(5, 1.0), ps.Cohort(clients=30, min_survivors=20, max_records=900), made.promise())
    told = {str(row[0]): row[1] for row in sessions.collected_table(plan).rows}
    assert told == {row.letter: row.meaning for row in plan.schema.sent}
    assert told["N"] == "how many records there are"
    notes = [row[0].notes for row in explanations.budget_table(plan).rows if not isinstance(row[0], str)]
    assert notes[:2] == [(row.meaning,) for row in plan.schema.sent]
