"""Test another package's kind of schema: search for records that move its sums beyond the bound that it states."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.encoding import PersonAverage
from privstats.errors import SchemaError
from privstats.kinds.base import Kind, kind_of
from privstats.moments import exact_moments
from privstats.records.reading import Labels, Targets
from privstats.schema.base import Adjacency, Schema
from privstats.schema.public_values import Published

Draw: TypeAlias = Callable[[np.random.Generator, int], tuple[Any, Any]]
"""From a generator and n to n records: X as an array or as columns by name, and y or None."""

_POOL = 14  # records per trial
_CROWDS = (1, 30, 1000)  # equal records next to which one is added
_FLOATS = 1e-9  # what rounding of floats may add to a squared distance, relative to it


def check_kind(
    schema: Schema,
    draw: Draw | None = None,
    *,
    published: Published | None = None,
    trials: int = 20,
    seed: int = 0,
) -> float:
    """Search for a record that moves the sums of a schema's kind further than ``move`` states.

    Each trial compares neighbouring data sets under both adjacencies, at the weights of each statistic alone and at
    random ones. All orders and containers must give equal sums. Where sums of parts add up, so must records measured
    alone, batches, and persons of two equal records each. No entry of ``unsigned`` may be negative. The search proves
    nothing, also where it returns 1: it reaches only records that it draws. The proof belongs in the kind's docstring.

    Args:
        schema: a schema of a registered kind.
        draw: returns records, among them some at the bounds and some that cannot be read; None: rows of numbers of
            every size, with labels or targets. Declared and named columns need it.
        published: values that the schema reads.

    Returns:
        The largest part of the stated mu that a pair reached; 1 where the bound is attained. Near 0, no drawn record
        was near the clip: give ``draw``.

    Raises:
        AssertionError: the kind breaks its contract.
        SchemaError: an unregistered kind, or one without a proved sensitivity; or records need ``draw``.

    Example:
        >>> round(ps.testing.check_kind(ps.MeanSchema(3, clip_norm=2.0), trials=2), 3)
        1.0
    """
    kind = kind_of(schema)
    if not kind.proved:
        raise SchemaError(f"{type(schema).__name__} states no bound; check a kind with proved statistics")
    rng, nearest = np.random.default_rng(seed), 0.0
    with warnings.catch_warnings(action="ignore"):
        for _ in range(trials):
            records = _Records(kind, *(draw or _drawn(schema))(rng, _POOL), published)
            for adjacency, one, other in _neighbours(records, rng):
                nearest = max(nearest, _part_of_bound(kind, adjacency, one, other, rng))
            _check_company(records, rng)
            _check_containers(records)
    if not nearest:
        raise SchemaError(f"no drawn record moves the sums of a {type(schema).__name__}; give draw= for its records")
    return nearest


class _Records:
    """A pool of records, and the sums of some of them by letter, in wire steps."""

    def __init__(self, kind: Kind, X: Any, y: Any, published: Published | None) -> None:
        self.kind, self.X, self.y, self._published = kind, X, y, published

    def sums(self, at: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """Return the sums of the records at these indices, which may repeat."""
        return self.of(_some(self.X, at), _some(self.y, at))

    def of(self, X: Any, y: Any, **more: Any) -> dict[str, NDArray[Any]]:
        """Return the sums of records in a container."""
        return exact_moments(self.kind, X, y, published=self._published, unreadable="leave out", **more).wire()


def _neighbours(records: _Records, rng: np.random.Generator) -> Iterator[tuple[Adjacency, Any, Any]]:
    pool, nobody = np.arange(_POOL), np.empty(0, np.intp)
    if records.kind.party_is_record:
        one, other = (records.sums(rng.permutation(_POOL)[:size]) for size in (_POOL, _POOL // 2))
        none = {letter: np.zeros_like(array) for letter, array in one.items()}
        yield from (("add-remove", none, one), ("add-remove", none, other), ("replace-one", one, other))
        return
    crowds = [np.repeat(rng.integers(_POOL), size) for size in _CROWDS]
    for beside in (nobody, rng.permutation(pool)[:5], *crowds):
        without = records.sums(beside)
        first, second = (records.sums(_among(beside, each, rng)) for each in rng.permutation(pool)[:2])
        yield from (("add-remove", without, first), ("add-remove", without, second), ("replace-one", first, second))
    pairs = [records.sums(np.array([each])) for each in pool]
    yield from (("replace-one", one, other) for place, one in enumerate(pairs) for other in pairs[:place])


def _among(beside: NDArray[np.intp], record: np.intp, rng: np.random.Generator) -> NDArray[np.intp]:
    return np.insert(beside, rng.integers(len(beside) + 1), record)


def _part_of_bound(
    kind: Kind, adjacency: Adjacency, one: Mapping[str, Any], other: Mapping[str, Any], rng: np.random.Generator
) -> float:
    moved = {letter: _squared(kind, letter, one[letter], other[letter]) for letter in one}
    alone = {letter: kind.move({letter: 1.0}, "add-remove") for letter in moved}
    weights = [{letter: 1.0} for letter in moved]
    for _ in range(4):
        weights.append({s: 10.0 ** rng.uniform(-2, 2) / (each or 1.0) for s, each in alone.items()})
    reached = 0.0
    for weighting in weights:
        bound, far = kind.move(weighting, adjacency), math.fsum(weight * moved[s] for s, weight in weighting.items())
        if not far <= bound * (1 + _FLOATS):
            raise AssertionError(
                f"{type(kind).__name__} under {adjacency} states {math.sqrt(bound):.3g}, and one record moves the sums "
                f"by {math.sqrt(far):,.5g} ({', '.join(weighting)})"
            )
        reached = max(reached, far / bound if bound else 0.0)
    return math.sqrt(reached)


def _squared(kind: Kind, letter: str, one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the squared distance in real units; integers are subtracted before they become floats."""
    gap = np.asarray(np.subtract(one, other), np.float64).ravel() / kind.scale_of(letter)
    return math.fsum((gap * gap).tolist())


def _check_company(records: _Records, rng: np.random.Generator) -> None:
    kind, pool = records.kind, np.arange(_POOL)
    whole = records.sums(pool)
    if negative := [s for s in whole if s in kind.unsigned and (whole[s] < 0).any()]:
        raise AssertionError(f"{type(kind).__name__} states {negative[0]} as unsigned, and an entry is negative")
    orders = {"once more": records.sums(pool), "in another order": records.sums(rng.permutation(pool))}
    if not kind.refuses_parts:
        alone = [records.sums(np.array([each])) for each in pool]
        orders["each alone"] = {letter: reduce(np.add, [each[letter] for each in alone]) for letter in whole}
    if not kind.refuses_parts and kind.reading.batches and not isinstance(records.X, Mapping):
        parts = np.split(pool, [3, 3, 9])
        orders["in batches"] = records.of([(_some(records.X, at), _some(records.y, at)) for at in parts], None)
    if not kind.refuses_persons(averaged=True):
        # A person with one row adds as a record does; the average of two equal rows is that row.
        twice = np.repeat(pool, 2)
        persons = np.array([f"person {each}" for each in twice])
        orders["as persons of two equal rows"] = records.of(
            _some(records.X, twice), _some(records.y, twice), persons=persons, person_clip=PersonAverage()
        )
    for how, sums in orders.items():
        if not _equal(whole, sums):
            raise AssertionError(
                f"{type(kind).__name__} sums records {how} to other numbers than all together: a record then moves "
                "more than its own contribution, and no bound covers that"
            )


def _check_containers(records: _Records) -> None:
    whole = records.sums(np.arange(_POOL))
    for name, X in _containers(records.X):
        if not _equal(whole, records.of(X, records.y)):
            raise AssertionError(f"{type(records.kind).__name__} sums the same records otherwise in {name}")


def _containers(X: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(X, Mapping):
        yield "lists", {name: list(values) for name, values in X.items()}
    elif isinstance(X, np.ndarray):
        yield "nested lists", X.tolist()
        yield "an array of objects", X.astype(object)
        yield "an array in column order", np.asfortranarray(X)
        yield "a sparse array", csr_array(X)
    if find_spec("pandas") is not None:
        pandas: Any = import_module("pandas")
        yield "a frame", pandas.DataFrame(X)


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(np.array_equal(one[letter], other[letter]) for letter in one)


def _some(values: Any, at: NDArray[np.intp]) -> Any:
    if isinstance(values, Mapping):
        return {name: np.asarray(column)[at] for name, column in values.items()}
    return None if values is None else np.asarray(values)[at]


def _drawn(schema: Schema) -> Draw:
    """Return what draws rows of numbers of every size, at the clip and beyond it, and some that cannot be read."""
    reading = schema.reading
    if reading.columns or reading.declaration is not None or reading.levels is not None:
        raise SchemaError(f"records of a {type(schema).__name__} are named columns; give draw= for them")

    return lambda rng, count: (_rows(rng, count, schema), _goals(rng, count, schema))


def _rows(rng: np.random.Generator, count: int, schema: Schema) -> NDArray[np.float64]:
    inputs = schema.reading.inputs
    rows = rng.normal(size=(count, inputs)) * rng.choice([0.01, 1.0, 1e6], size=(count, 1))
    axis = np.zeros(inputs)
    axis[rng.integers(inputs)] = schema.clip_norm * rng.choice([1.0, 1e3])
    odd = [
        axis,
        -axis,
        np.roll(axis, 1),
        np.zeros(inputs),
        1e300 * axis,
        np.full(inputs, np.nan),
        np.full(inputs, np.inf),
    ]
    rows[: len(odd)] = odd[:count]
    return np.asarray(rows[rng.permutation(count)])


def _goals(rng: np.random.Generator, count: int, schema: Schema) -> Any:
    match schema.reading.goal:
        case Labels(classes):
            return rng.choice(np.array(classes), count)
        case Targets(width=width):
            targets = rng.normal(size=(count, width)) * rng.choice([0.1, 1.0, 1e6], size=(count, 1))
            return targets if width > 1 else targets[:, 0]
    return np.zeros(count)
