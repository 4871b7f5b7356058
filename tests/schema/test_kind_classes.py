"""A kind is a class: it states its own proof, no field replaces what every kind has, and it says what it cannot do."""

from typing import Any

import pytest

import privstats as ps
from privstats.errors import PlanError, SchemaError
from privstats.kinds.base import Kind, kind_of
from tests.made import refused


class Bare(ps.MeanSchema):
    """A mean that states neither what one record adds nor how far it moves the sum."""

    no_persons = "it states no terms"
    terms_of = Kind.terms_of
    move = Kind.move


BARE = Bare(2, 1.0)


@pytest.mark.parametrize("name", ["move", "proved", "moments_of", "facts", "longest"])
def test_a_field_that_would_replace_what_every_kind_has_is_refused(name: str) -> None:
    refused(SchemaError, f"Taken has fields {name},", type, "Taken", (Kind,), {"__annotations__": {name: "float"}})


def test_a_table_of_its_own_needs_a_proof_of_its_own() -> None:
    refused(SchemaError, "state proved", type, "Larger", (ps.MeanSchema,), {"table": ps.MeanSchema.table})


def test_a_task_of_its_own_needs_a_purpose_for_an_ethics_board() -> None:
    refused(SchemaError, "state what its sums are used for", type, "Unsaid", (ps.MeanSchema,), {"task": "unsaid"})


def test_a_task_of_its_own_needs_an_example() -> None:
    space = {"task": "unshown", "purpose": "nothing"}
    refused(SchemaError, "Unshown has a task of its own and no example;", type, "Unshown", (Kind,), space)


def test_a_kind_that_admits_persons_states_what_one_record_adds() -> None:
    refused(SchemaError, "set no_persons", type, "Silent", (ps.MeanSchema,), {"terms_of": Kind.terms_of})


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: BARE.terms_of(None, {}), SchemaError),  # type: ignore[arg-type]
        (lambda: BARE.move({}, "add-remove"), PlanError),
        (BARE.adder, SchemaError),
    ],
)
def test_what_a_kind_cannot_do_is_refused_by_its_name(call: Any, error: Any) -> None:
    refused(error, "Bare;", call)


def test_no_subclass_of_a_kind_has_its_proof() -> None:
    refused(SchemaError, "sums of a Bare;", kind_of, BARE)
