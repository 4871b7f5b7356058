"""For every kind of schema two adjacent data sets that are far apart, as records on the grid, and how far they are.

Records have two entries that are not zero at most, so they are measured under the same schema of two features, by the
library's own moments. Which pairs are worst is proved in docs/sensitivity.md; here they are only written down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp import Privacy
from privstats.moments import exact_moments
from privstats.moments.class_moments import ClassMoments
from privstats.moments.sites import site_moments
from privstats.moments.within import within
from privstats.schema import (
    CalibrationSchema,
    ClassSchema,
    CountSchema,
    GaussianSchema,
    GradientSchema,
    MeanSchema,
    PartySchema,
    RidgeSchema,
    Schema,
    ScoreSchema,
    SitesSchema,
    WithinSchema,
    bare,
)

__all__ = ["Case", "worst_case"]

Record: TypeAlias = dict[str, Any]
"""``times`` and ``cell`` (class, fold or site), and sparse vectors as lists of (place, whole number)."""
Sums: TypeAlias = dict[tuple[str, int], NDArray[Any]]

_ONE = 1 << 20  # steps of a mean outcome, as a score is measured
_CROWD = 10**6
_MOST = 1 << 61


@dataclass(frozen=True)
class Case:
    """Two data sets: ``beside`` and ``gone`` against ``beside`` and ``come``, and by letter how far they are apart.

    Attributes:
        beside: records of the same party in both data sets, where a record's weight depends on them.
        gone: the record of the first data set alone; empty where a unit is added.
        come: the record of the second alone, or the client's.
        moves: squared distances in wire steps, by letter.
    """

    beside: tuple[Record, ...]
    gone: tuple[Record, ...]
    come: tuple[Record, ...]
    moves: Mapping[str, int]


def worst_case(schema: Schema, privacy: Privacy, weights: Mapping[str, float]) -> Case:
    """The candidate of the largest ``sum_s weights_s moves_s``.

    Args:
        schema: what is measured.
        privacy: unit and adjacency.
        weights: per letter, for squared wire steps; letters that are not named do not count.
    """
    found = [
        Case(beside, gone, come, _moves(schema, weights, (*beside, *gone), (*beside, *come)))
        for beside, gone, come in _candidates(schema, privacy, weights)
    ]
    return max(found, key=lambda case: sum(weights[s] * moved for s, moved in case.moves.items()))


Sides: TypeAlias = tuple[tuple[Record, ...], tuple[Record, ...], tuple[Record, ...]]


def _candidates(schema: Schema, privacy: Privacy, weights: Mapping[str, float]) -> Iterator[Sides]:
    if isinstance(schema, GaussianSchema):
        yield (), (), ()
        return
    pairs = _pairs(schema, weights)
    if privacy.adjacency == "replace-one":
        beside = _crowd(schema) if isinstance(schema, SitesSchema) else ()
        yield from ((beside, (one,), (other,)) for one, other in pairs)
        if isinstance(schema, WithinSchema):
            yield from ((_crowd(schema)[:1], (one,), (other,)) for one, other in pairs)
        return
    times = privacy.max_records_per_client if privacy.client_clip is None else None
    if privacy.unit == "record":
        yield from ((_crowd(schema)[:1], (), (one,)) for one, _ in pairs)
    if isinstance(schema, SitesSchema) and times and times > 1:
        half = times // 2
        yield (), (), (_record(_first(schema), times=half), _record(_first(schema, -1), times=times - half))
    yield from (((), (), ({**one, "times": times or 1},)) for one, _ in pairs)


def _crowd(schema: Schema) -> tuple[Record, ...]:
    """Many records of the same party, opposed to the one that comes or goes; none where it does not matter."""
    if not isinstance(schema, SitesSchema | WithinSchema):
        return ()
    times, sign = min(_CROWD, _MOST // schema.steps**2), 0 if schema.nonnegative else -1
    if isinstance(schema, WithinSchema):
        return (_record(_first(schema, sign), times=times, cell=1),)
    return (_record(_first(schema, sign), times=times), _record([[1, -schema.steps]], times=times, cell=1))


def _record(x: list[list[int]], *, times: int = 1, cell: int = 0, **more: Any) -> Record:
    return {"times": times, "cell": cell, "x": [entry for entry in x if entry[1]], **more}


def _first(schema: Schema, sign: int = 1) -> list[list[int]]:
    return [[0, sign * schema.steps]]


def _pairs(schema: Schema, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """A record, and one that it may be exchanged for; the first alone is the worst that is added, in some pair."""
    match schema:
        case ClassSchema() | MeanSchema() | WithinSchema() | SitesSchema():
            return _vectors(schema, weights)
        case RidgeSchema():
            return _with_targets(schema, weights)
        case CountSchema():
            names = [variable.name for variable in schema.variables]
            one, other = ({"times": 1, "cell": 0, "values": dict.fromkeys(names, cell)} for cell in (0, 1))
            return [(one, other)]
        case ScoreSchema():
            return _scores(schema, weights)
        case CalibrationSchema():
            left = schema.steps - schema.steps // schema.classes
            pair = _record([], v=[[0, left], [1, left]]), _record([], v=[[0, -schema.steps]])
            return [pair, pair[::-1]]
        case PartySchema():
            return [(_record([], a=_first(schema)), _record([], a=_first(schema, -1)))]
        case _:
            R = schema.steps
            one = _record([[0, R]], r=[[0, R]], k=[[0, R]])
            return [(one, _record([[0, R]], r=[[0, -R]], k=[]))]


def _vectors(schema: Schema, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    one, second = _record(_first(schema)), [[1, schema.steps]]
    others = [_record(second), _record(second, cell=1), _record(_first(schema), cell=1)]
    if schema.nonnegative:
        return [(one, other) for other in others]
    others += [_record(_first(schema, -1)), _record(_first(schema, -1), cell=1)]
    linear = weights.get("A", 0.0) * schema.steps**2
    quadratic = sum(weights.get(s, 0.0) for s in "BSD") * schema.steps**4
    turn = math.asin(min(1.0, linear / (2 * quadratic))) / 2 if quadratic else math.pi / 4
    long, short = (int(schema.steps * side(turn)) for side in (math.cos, math.sin))
    slanted = _record([[0, long], [1, short]]), _record([[0, -short], [1, -long]])
    return [*((one, other) for other in others), slanted]


def _with_targets(schema: RidgeSchema, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    R = schema.steps
    one = _record([[0, R]], b=[[0, R]])
    g, k, e = (weights.get(letter, 0.0) for letter in "Ghq")
    lengths = [0.0, 1.0, *([(1 - math.sqrt(1 - 2 * k / e)) / 2] if e > 2 * k else [])]
    pairs = [(one, _record([[1, R]], b=[[0, R]])), (one, _record([[0, R]], b=[]))]
    for t in lengths:
        c = min(1.0, k * t / (2 * g)) if g else 1.0
        x = [[0, int(c * R)], [1, int(math.sqrt(1 - c * c) * R)]]
        pairs.append((one, _record(x, b=[[0, -int(t * R)]] if int(t * R) else [])))
    return pairs + ([(one, {**one, "cell": 1})] if schema.folds > 1 else [])


def _scores(schema: ScoreSchema, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """What records can add at some weights: the means that matter, outcomes at both ends, one row or two."""
    H, g = weights.get("H", 0.0), weights.get("g", 0.0)
    means = [_ONE, _ONE // 2]
    if schema.family == "logistic" and g and 8 * g < H:
        means.append(int((3 - math.sqrt(1 - 8 * g / H)) / 4 * _ONE))
    ones = [_scored(schema, 0, m, 0) for m in means]
    others = [_scored(schema, place, m, y) for place in (0, 1) for m, y in [*((m, 0) for m in means), (0, _ONE)]]
    return [(one, other) for one in ones for other in others]


def _scored(schema: ScoreSchema, place: int, m: int, y: int) -> Record:
    R = schema.steps
    residual = abs(y - m) * R // _ONE * (1 if y >= m else -1)
    variance = m * (_ONE - m) // _ONE if schema.family == "logistic" else m
    root = math.isqrt(R * R * variance // _ONE)
    ends: dict[str, Any] = {"r": [[0, residual]] if residual else [], "a": [[place, root]] if root else []}
    return _record([[place, R]], m=m, y=y, **ends)


def _moves(
    schema: Schema, weights: Mapping[str, float], before: Sequence[Record], after: Sequence[Record]
) -> dict[str, int]:
    old, new = _sums(schema, before), _sums(schema, after)
    found = dict.fromkeys(weights, 0)
    for letter, cell in old.keys() | new.keys():
        if letter in found:
            gap = new.get((letter, cell), 0) - old.get((letter, cell), 0)
            found[letter] += int(np.sum(np.square(gap)))
    return found


def _sums(schema: Schema, records: Sequence[Record]) -> Sums:
    """The sums of a data set by letter and cell, in wire steps, as Python integers; whole matrices."""
    if isinstance(schema, SitesSchema | WithinSchema):
        return _of_parties(schema, records)
    total: Sums = {}
    for record in records:
        for key, array in _of_record(schema, record).items():
            total[key] = total.get(key, 0) + record["times"] * array
    return total


def _of_record(schema: Schema, record: Record) -> Sums:
    match schema:
        case ClassSchema():
            small = replace(bare(schema), classes=2, features=2)
            return _wire(exact_moments(small, _rows(schema, [record]), [record["cell"]]))
        case RidgeSchema():
            target = [[_dense(record["b"], 1)[0] / schema.target_scale]]
            small_ridge = replace(bare(schema), features=2, targets=1, folds=1)
            return _wire(exact_moments(small_ridge, _rows(schema, [record]), target), record["cell"])
        case CountSchema():
            return _wire(exact_moments(schema, _values(schema, record["values"])))
        case MeanSchema():
            return _wire(exact_moments(replace(bare(schema), features=2), _rows(schema, [record]), [0]))
        case CalibrationSchema():
            return {("t", 0): _dense(record["v"])}
        case PartySchema():
            return {("P", 0): _dense(record["a"])}
    x, r = _dense(record["x"]), _dense(record["r"])
    if isinstance(schema, GradientSchema):
        return {("g", 0): np.outer(r, x), ("k", 0): _dense(record["k"])}
    return {("g", 0): np.outer(x, r), ("H", 0): np.outer(_dense(record["a"]), _dense(record["a"]))}


def _of_parties(schema: SitesSchema | WithinSchema, records: Sequence[Record]) -> Sums:
    """What one client sends, or each of two sites."""
    total: Sums = {}
    split = isinstance(schema, SitesSchema)
    for party in {record["cell"] for record in records} if split else {0}:
        mine = [record for record in records if not split or record["cell"] == party]
        counts, sums, second = np.zeros(2, object), np.zeros((2, 2), object), np.zeros((2, 2), object)
        for record in mine:
            x, times = _dense(record["x"]), record["times"]
            counts[record["cell"]] += times
            sums[record["cell"]] += times * x
            second += times * np.outer(x, x)
        for key, array in _wire(_parts(schema, counts, sums, second)).items():
            total[key] = total.get(key, 0) + array
    return total


def _parts(schema: SitesSchema | WithinSchema, counts: Any, sums: Any, second: Any) -> Any:
    if isinstance(schema, SitesSchema):
        small = replace(bare(schema), features=2, groups=1)
        return site_moments(small, int(counts.sum()), sums.sum(axis=0), second)
    inner = ClassSchema(2, 2, "NAB", schema.clip_norm, schema.grid_bits)
    plain = ClassMoments(inner, *(part.astype(np.int64) for part in (counts, sums, second)))
    return within(replace(bare(schema), classes=2, features=2), plain)


def _wire(moments: Any, cell: int = 0) -> Sums:
    return {(row.letter, cell): moments.sums(row).astype(object) * row.kept for row in moments.schema.sent}


def _rows(schema: Schema, records: Sequence[Record]) -> NDArray[np.float64]:
    return np.array([_dense(record["x"]).astype(np.float64) / schema.scale for record in records])


def _dense(entries: Sequence[Sequence[int]], width: int = 2) -> NDArray[Any]:
    vector = np.zeros(width, object)
    for place, value in entries:
        vector[place] = value
    return vector


def _values(schema: CountSchema, cells: Mapping[str, int]) -> dict[str, list[Any]]:
    """A value of every variable in the cell of this number, the first or the second."""
    found = {}
    for variable in schema.variables:
        cell = cells[variable.name]
        edges = getattr(variable, "edges", None)
        value = variable.values[cell] if edges is None else (edges[cell] + edges[cell + 1]) / 2  # type: ignore[union-attr]
        found[variable.name] = [value]
    return found
