"""What every kind of moments takes from the one container, and what a kind may not lose on the way."""

import operator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.encoding import flatten, to_real, unflatten
from privstats.errors import DataError
from privstats.kinds import GradientSchema, ScoreSchema, kind_of
from privstats.kinds.gradients import GradientMoments
from privstats.kinds.score import ScoreMoments
from privstats.moments import Moments
from privstats.moments.base import RealMoments
from tests.made import refused
from tests.schema.samples import SCHEMAS as SAMPLES

SCORE = ScoreSchema(2, 1.0)
GRADIENT = GradientSchema(2, 3, residual_norm=0.5, expected_records=9, course_mu=1.0)
SCHEMAS = [schema for schema in SAMPLES if getattr(schema, "module", None) is None]


def made(schema: Any, seed: int = 0) -> Moments:
    """Small integers in the shapes of the schema, symmetric where its rows are."""
    rng = np.random.default_rng(seed)
    sums = {}
    for row in schema.sent:
        array = rng.integers(100, 900, row.shape(schema.sizes))
        sums[row.letter] = array + array.swapaxes(-1, -2) if row.symmetric else array
    for table in getattr(schema, "tables", ()):  # every table holds the same records
        cells = sums["T"][schema.place(table)]
        cells[-1] += 900 * sums["T"].size - cells.sum()
    return kind_of(schema).exact(sums)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.task + schema.statistics)
def test_a_kind_is_checked_frozen_added_compared_and_hidden(schema: Any) -> None:
    one, two = made(schema), made(schema, 1)
    assert one == made(schema) != two
    assert one.real() == made(schema).real() != two.real()
    assert sum([one, two]) == one + two == two + one != one
    assert np.array_equal(flatten(one + two), flatten(one) + flatten(two))
    assert (unflatten(schema, flatten(one)), to_real(schema, flatten(one))) == (one, one.real())
    for other in (3, None, one.real()):
        assert one != other
        refused(TypeError, "unsupported operand", operator.add, one, other)
        refused(TypeError, "unsupported operand", operator.add, other, one)
    refused(TypeError, "unhashable", hash, one)
    for value in (one, one.real()):
        arrays = [getattr(value, field.name) for field in fields(value)]
        assert not any(array.flags.writeable for array in arrays if isinstance(array, np.ndarray))
    assert isinstance(one.real(), RealMoments)
    numbers = {str(number) for row in schema.sent for number in one.sums(row).reshape(-1).tolist()}
    assert not any(number in repr(one) for number in numbers)
    refused(DataError, "different schemas cannot be added", lambda: one + made(replace(schema, **other_field(schema))))
    row = schema.sent[-1]
    with pytest.raises(DataError, match=f"{row.letter} must have shape"):
        kind_of(schema).exact({each.letter: one.sums(each) for each in schema.sent} | {row.letter: None})


def other_field(schema: Any) -> dict[str, Any]:
    """A change of the schema that leaves all shapes."""
    if isinstance(schema, ps.CountSchema):
        first: Any = schema.variables[0]
        return {"variables": (replace(first, values=("f", "x")), *schema.variables[1:])}
    return {"head": "0" * 64} if schema.task == "scoring" else {"grid_bits": 11}


SITES = ps.SitesSchema(2, clip_norm=4.0, pulls=(1.0,))
WITHIN = ps.WithinSchema(2, 2, clip_norm=4.0, pull=5.0, n_max=100)


@pytest.mark.parametrize(
    ("schema", "change"),
    [
        *((SITES, change) for change in ({"pulls": (2.0,)}, {"pulls": (1.0, 2.0)}, {"target_scale": 2.0})),
        *((WITHIN, change) for change in ({"pull": 4.0}, {"n_max": 99}, {"classes": 3}, {"clip_norm": 5.0})),
    ],
    ids=str,
)
def test_sums_within_parties_at_other_public_values_are_refused(schema: Any, change: dict[str, Any]) -> None:
    other = replace(schema, **change)
    refused(DataError, "different schemas cannot be added", lambda: made(schema) + made(other))


@pytest.mark.parametrize("schema", [SITES, WITHIN], ids=lambda schema: schema.task)
def test_parts_of_a_party_add_as_two_parties(schema: Any) -> None:
    X, y = np.arange(8.0).reshape(8, 1) ** 2 / 64, np.arange(8) % 2
    X = np.hstack([X, 1 - X]) if schema is WITHIN else X
    parts = ps.measure(schema, X[:3], y[:3]), ps.measure(schema, X[3:], y[3:])
    together = ps.measure(schema, X, y)
    assert sum(parts) != together == ps.measure(schema, iter([(X[:3], y[:3]), (X[3:], y[3:])]))
    assert sum(parts).records == together.records


@pytest.mark.parametrize(("kind", "schema"), [(ScoreMoments, SCORE), (GradientMoments, GRADIENT)])
def test_sums_of_rounds_never_wrap_around_and_stay_at_their_values(kind: Any, schema: Any) -> None:
    sums = {row.letter: made(schema).sums(row) for row in schema.sent}
    known = kind.of_sums(schema, sums, records=5, published="a")
    assert (known + kind.of_sums(schema, sums)).published == "a"
    assert (known + kind.of_sums(schema, sums)).records is None
    assert (known + replace(known, published="")).records == 10
    refused(DataError, "different published values", lambda: known + replace(known, published="b"))
    refused(DataError, "fit 64-bit totals", lambda: known + replace(known, records=1 << 60))
    large = kind.of_sums(schema, {letter: array + (1 << 62) for letter, array in sums.items()})
    refused(DataError, "could pass 64 bits", lambda: large + large)
