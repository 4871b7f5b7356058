"""A kind is a class: it states its own proof, no field replaces what every kind has, and it says what it cannot do."""

from typing import Any

import pytest

import privstats as ps
from privstats.errors import SchemaError
from privstats.kinds import KINDS
from privstats.kinds.base import Kind, row
from tests.made import refused


class Bare(ps.MeanSchema):
    """A mean that states neither what one record adds nor how far it moves the sum."""

    terms_of = Kind.terms_of
    move = Kind.move


BARE = Bare(2, 1.0)


@pytest.mark.parametrize("name", ["move", "proved", "moments_of"])
def test_a_field_that_would_replace_what_every_kind_has_is_refused(name: str) -> None:
    refused(SchemaError, f"Taken has fields {name},", type, "Taken", (Kind,), {"__annotations__": {name: "float"}})


def test_a_table_of_its_own_needs_a_proof_of_its_own() -> None:
    refused(SchemaError, "state proved", type, "Larger", (ps.MeanSchema,), {"table": ps.MeanSchema.table})


@pytest.mark.parametrize("call", [lambda: BARE.terms_of(None, {}), lambda: BARE.move({}, "add-remove"), BARE.adder])  # type: ignore[arg-type]
def test_what_a_kind_cannot_do_is_refused_by_its_name(call: Any) -> None:
    refused(SchemaError, "under Bare;", call)


def test_the_row_of_a_class_lacks_what_the_class_lacks() -> None:
    held, mean = row(Bare), KINDS["mean"]
    assert (held.terms, held.square, held.adder) == (None, None, None)
    assert mean.terms is not None
    assert mean.square is not None
    assert mean.square(ps.MeanSchema(2, 3.0), {"x": 1.0}, "replace-one") == 36.0
