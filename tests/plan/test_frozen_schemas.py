"""A plan of before means what it meant: the schema that its table gives has the fields of then, defaults among them.

A digest does not show that: a table omits newer fields at their defaults, so a changed default keeps the digest.
"""

import copy
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.kinds import KINDS
from privstats.plan import document
from privstats.schema import Schema

FROZEN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("frozen_schemas.json").read_text("utf-8"))
"""Of every kind's samples the table, and the text of each field; :func:`frozen` makes a line for a new kind."""


def table_of(schema: Schema) -> dict[str, Any]:
    """Return the schema's table in a plan, as JSON reads it."""
    table: dict[str, Any] = json.loads(document.canonical(document.schema_table(schema)))
    return table


def frozen(schema: Schema) -> dict[str, Any]:
    """Return a schema's line."""
    return {
        "table": table_of(schema),
        "fields": {each.name: repr(getattr(schema, each.name)) for each in fields(schema)},
    }


@pytest.mark.parametrize("line", FROZEN, ids=lambda line: line["table"]["task"])
def test_a_frozen_table_gives_the_schema_of_then(line: dict[str, Any]) -> None:
    schema = document._schema(copy.deepcopy(line["table"]))
    assert {name: repr(getattr(schema, name)) for name in line["fields"]} == line["fields"]
    assert table_of(schema) == line["table"]


def test_the_frozen_tables_are_of_every_kind_that_was_released() -> None:
    assert {line["table"]["task"] for line in FROZEN} <= {*KINDS}
    assert len({line["table"]["task"] for line in FROZEN}) >= 15


def test_a_subclass_that_would_share_a_digest_is_in_no_plan() -> None:
    """Its sums or its promise may differ from those of its parent, and no plan file gives it back."""

    class Other(ps.ClassSchema):
        pass

    class Norm(ps.transforms.UnitNorm):
        def apply(self, rows: Any) -> Any:
            return 2 * rows

    class Fewer(ps.Cohort):
        pass

    plain = {"schema": ps.ClassSchema(2, 2, "NA", 1.0), "cohort": ps.Cohort(3, 3, 9), "privacy": ps.NoPrivacy()}
    assert ps.Plan(**plain).digest
    with pytest.raises(ps.PlanError, match="Other is a subclass of a kind of schema, and no kind"):
        ps.Plan(**{**plain, "schema": Other(2, 2, "NA", 1.0)})
    with pytest.raises(ps.PlanError, match="cohort must be a Cohort, got Fewer"):
        ps.Plan(**{**plain, "cohort": Fewer(3, 3, 9)})
    mapped = ps.ClassSchema(2, 2, "NA", 1.0, transform=(Norm(),))
    with pytest.raises(ps.SchemaError, match="Norm shares the kind 'unit-norm'"):
        _ = ps.Plan(**{**plain, "schema": mapped}).digest
