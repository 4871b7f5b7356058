"""For every kind of schema two adjacent data sets that are far apart, as records on the grid, and how far they are.

Records have two entries that are not zero at most, so they are measured under the same schema of two features, by the
library's own moments. Which pairs are worst is proved in docs/sensitivity.md; here they are only written down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp import Privacy
from privstats.moments import exact_moments
from privstats.moments.class_moments import ClassMoments
from privstats.moments.counts import CountMoments
from privstats.moments.sites import site_moments
from privstats.moments.within import within_moments
from privstats.schema import (
    COUNT_SCALE,
    CalibrationSchema,
    ClassSchema,
    CountSchema,
    EffectSchema,
    GaussianSchema,
    GradientSchema,
    HazardSchema,
    MeanSchema,
    PartySchema,
    RidgeSchema,
    Schema,
    ScoreSchema,
    ScoringSchema,
    SitesSchema,
    WithinSchema,
    bare,
    row_of,
)
from privstats.schema.statistic import INFLUENCES

__all__ = ["Case", "worst_case"]

Record: TypeAlias = dict[str, Any]
"""``times`` and ``cell`` (class, fold or site), and sparse vectors as lists of (place, whole number)."""
Sums: TypeAlias = dict[tuple[str, int], NDArray[Any]]
Vectors: TypeAlias = ClassSchema | MeanSchema | WithinSchema | SitesSchema

_ONE = 1 << 20  # steps of a mean outcome, as a score is measured
_CROWD = 10**6
_MOST = 1 << 61


@dataclass(frozen=True)
class Case:
    """Two data sets: ``beside`` and ``gone`` against ``beside`` and ``come``, and by letter how far they are apart.

    Attributes:
        beside: records of the same party in both data sets, where a record's weight depends on them.
        gone: the record of the first data set alone; empty where a unit is added.
        come: the record of the second alone, or those of a client or a person.
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

    Raises:
        SchemaError: no worst case is written for the kind of the schema.
    """
    found = [
        Case(beside, gone, come, _moves(schema, weights, (*beside, *gone), (*beside, *come)))
        for beside, gone, come in _candidates(schema, privacy, weights)
    ]
    return max(found, key=lambda case: sum(weights[s] * moved for s, moved in case.moves.items()))


Sides: TypeAlias = tuple[tuple[Record, ...], tuple[Record, ...], tuple[Record, ...]]


def _candidates(schema: Schema, privacy: Privacy, weights: Mapping[str, float]) -> Iterator[Sides]:
    row = row_of(_ROWS, schema, "worst case")
    pairs = row.pairs(schema, weights)
    if not pairs:
        yield (), (), ()
        return
    if privacy.unit == "person":  # of so many rows as count in full, alone or beside another
        whole = [tuple({**each, "times": math.floor(privacy.group)} for each in pair) for pair in pairs]
        gone = privacy.adjacency == "replace-one"
        yield from (((), (one,) if gone else (), (other if gone else one,)) for one, other in whole)
        return
    if privacy.adjacency == "replace-one":
        yield from ((beside, (one,), (other,)) for beside in row.exchanged(schema) for one, other in pairs)
        if row.left_out:
            yield from (((), (), (one,)) for one, _ in pairs)
        return
    times = privacy.max_records_per_client if privacy.client_clip is None else None
    if privacy.unit == "record":
        yield from ((row.crowd(schema)[:1], (), (one,)) for one, _ in pairs)
    if row.halves and times and times > 1:
        half = times // 2
        yield (), (), (_record(_first(schema), times=half), _record(_first(schema, -1), times=times - half))
    yield from (((), (), ({**one, "times": times or 1},)) for one, _ in pairs)


def _nobody(_: Schema) -> tuple[Record, ...]:
    """A record's weight does not depend on others."""
    return ()


def _alone(_: Schema) -> list[tuple[Record, ...]]:
    return [()]


def _crowd_of_site(schema: SitesSchema) -> tuple[Record, ...]:
    """Many records of the same site, opposed to the one that comes or goes, and as many of another."""
    times = min(_CROWD, _MOST // schema.steps**2)
    return _record(_first(schema, -1), times=times), _record([[1, -schema.steps]], times=times, cell=1)


def _crowd_of_client(schema: WithinSchema) -> tuple[Record, ...]:
    times, sign = min(_CROWD, _MOST // schema.steps**2), 0 if schema.nonnegative else -1
    return (_record(_first(schema, sign), times=times, cell=1),)


def _record(x: list[list[int]], *, times: int = 1, cell: int = 0, **more: Any) -> Record:
    return {"times": times, "cell": cell, "x": [entry for entry in x if entry[1]], **more}


def _first(schema: Schema, sign: int = 1) -> list[list[int]]:
    return [[0, sign * schema.steps]]


def _cells(schema: CountSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    names = [variable.name for variable in schema.variables]
    one, other = ({"times": 1, "cell": 0, "values": dict.fromkeys(names, cell)} for cell in (0, 1))
    return [(one, other)]


def _in_tables(schema: ScoringSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    one, other = ({"times": 1, "cell": 0, "places": [cell] * len(schema.tables)} for cell in (0, 1))
    return [(one, other)]


def _sure(schema: CalibrationSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    left = schema.steps - schema.steps // schema.classes
    pair = _record([], v=[[0, left], [1, left]]), _record([], v=[[0, -schema.steps]])
    return [pair, pair[::-1]]


def _influences(schema: EffectSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """The largest influence on every outcome beside its opposite, beside a record that is dropped, and beside itself
    in another subgroup; of a ratio with the most that lies below the line, at either end."""
    R, further = schema.steps, INFLUENCES[1 : schema.outcomes]
    weight = [[0, R]] if "W" in schema.statistics else []

    def record(entry: list[int], o: list[list[int]]) -> Record:
        several: dict[str, Any] = {letter: [entry] for letter in further}
        if schema.balance:
            several["b"] = [[0, entry[1] * (entry[0] == 0)]]
        return _record([], t=[entry], o=o, **several)

    most = record([0, R], weight)
    apart = [(most, {**most, "cell": 1})] if schema.blocks > 1 else []
    other, k = weight, schema.deepest if schema.measure else 0
    if schema.measure:
        other = [[0, -k], [1, (R * R - k * k) // R]]
    return [(most, record([0, -R], other)), (most, record([1, R], [[1, R]] if schema.measure else [])), *apart]


def _directions(schema: PartySchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    return [(_record([], a=_first(schema)), _record([], a=_first(schema, -1)))]


def _residuals(schema: GradientSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    R = schema.steps
    one = _record([[0, R]], r=[[0, R]], k=[[0, R]])
    return [(one, _record([[0, R]], r=[[0, -R]], k=[]))]


def _no_records(_: GaussianSchema, __: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """What a client sends is no sum over records on a grid; its clip alone bounds it."""
    return []


def _vectors(schema: Vectors, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
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


def _persons(schema: HazardSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """Persons of one period, which miss the information's bound: more periods come nearer and reach it in the limit."""
    one = _person(schema, 0, _ONE, event=False)
    others = [_person(schema, place, m, event=not m) for place in (0, 1) for m in (_ONE, 0)]
    return [(one, other) for other in others]


def _person(schema: HazardSchema, place: int, m: int, *, event: bool) -> Record:
    """A person whose row is the place alone, with this hazard in the one period; at the event r is 1 where m is 0."""
    R = schema.steps
    root = math.isqrt(R * R * int(m * m / math.expm1(m / _ONE) / _ONE) // _ONE) if m else 0
    ends: dict[str, Any] = {"r": [[0, R if event else -(m * R // _ONE)]], "a": [[place, root]] if root else []}
    return _record([[place, R]], m=m, y=_ONE if event else 0, **ends)


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
    old, new = (row_of(_ROWS, schema, "worst case").sums(schema, records) for records in (before, after))
    found = dict.fromkeys(weights, 0)
    for letter, cell in old.keys() | new.keys():
        if letter in found:
            gap = new.get((letter, cell), 0) - old.get((letter, cell), 0)
            found[letter] += int(np.sum(np.square(gap)))
    return found


def _added(of_record: Callable[[Any, Record], Sums]) -> Callable[[Any, Sequence[Record]], Sums]:
    """Sums over records, from those of one."""

    def sums(schema: Any, records: Sequence[Record]) -> Sums:
        total: Sums = {}
        for record in records:
            for key, array in of_record(schema, record).items():
                total[key] = total.get(key, 0) + record["times"] * array
        return total

    return sums


def _of_classes(schema: ClassSchema, record: Record) -> Sums:
    small = replace(bare(schema), classes=2, features=2)
    return _wire(exact_moments(small, _rows(schema, [record]), [record["cell"]]))


def _of_targets(schema: RidgeSchema, record: Record) -> Sums:
    target = [[_dense(record["b"], 1)[0] / schema.target_scale]]
    small = replace(bare(schema), features=2, targets=1, folds=1)
    return _wire(exact_moments(small, _rows(schema, [record]), target), record["cell"])


def _of_values(schema: CountSchema, record: Record) -> Sums:
    return _wire(exact_moments(bare(schema), _values(schema, record["values"])))


def _of_places(schema: ScoringSchema, record: Record) -> Sums:
    sizes = (math.prod(schema.shape(table)) for table in schema.tables)
    cells = [np.eye(1, size, place, dtype=np.int64)[0] for size, place in zip(sizes, record["places"], strict=True)]
    return _wire(CountMoments(schema, np.concatenate(cells)))


def _of_rows(schema: MeanSchema, record: Record) -> Sums:
    return _wire(exact_moments(replace(bare(schema), features=2), _rows(schema, [record]), [0]))


def _of_confidence(_: CalibrationSchema, record: Record) -> Sums:
    return {("t", 0): _dense(record["v"])}


def _of_influence(schema: EffectSchema, record: Record) -> Sums:
    cell = record["cell"]
    weight = {("W", cell): _dense(record["o"], 2 if schema.measure else 1)} if "W" in schema.statistics else {}
    further = {(letter, cell): _dense(record[letter]) for letter in INFLUENCES[1 : schema.outcomes]}
    if schema.balance:
        further["b", cell] = _dense(record["b"], schema.width)
    return {("N", cell): np.array([COUNT_SCALE], object), ("e", cell): _dense(record["t"]), **weight, **further}


def _of_direction(_: PartySchema, record: Record) -> Sums:
    return {("P", 0): _dense(record["a"])}


def _of_gradient(_: GradientSchema, record: Record) -> Sums:
    return {("g", 0): np.outer(_dense(record["r"]), _dense(record["x"])), ("k", 0): _dense(record["k"])}


def _of_score(_: ScoreSchema | HazardSchema, record: Record) -> Sums:
    a = _dense(record["a"])
    return {("g", 0): np.outer(_dense(record["x"]), _dense(record["r"])), ("H", 0): np.outer(a, a)}


def _nothing(_: GaussianSchema, __: Sequence[Record]) -> Sums:
    return {}


def _of_sites(schema: SitesSchema, records: Sequence[Record]) -> Sums:
    """What each of two sites sends, added up."""
    total: Sums = {}
    for site in {record["cell"] for record in records}:
        counts, sums, second = _plain([record for record in records if record["cell"] == site])
        small = replace(bare(schema), features=2, groups=1)
        sent = _wire(site_moments(small, int(counts.sum()), sums.sum(axis=0), second))
        for key, array in sent.items():
            total[key] = total.get(key, 0) + array
    return total


def _of_client(schema: WithinSchema, records: Sequence[Record]) -> Sums:
    """What one client sends, also one without records."""
    inner = ClassSchema(2, 2, "NAB", schema.clip_norm, schema.grid_bits)
    counts, sums, second = (part.astype(np.int64) for part in _plain(records))
    return _wire(
        within_moments(replace(bare(schema), classes=2, features=2), ClassMoments(inner, counts, sums, second))
    )


def _plain(records: Sequence[Record]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Counts and sums by cell, and second moments, of records with two features."""
    counts, sums, second = np.zeros(2, object), np.zeros((2, 2), object), np.zeros((2, 2), object)
    for record in records:
        x, times = _dense(record["x"]), record["times"]
        counts[record["cell"]] += times
        sums[record["cell"]] += times * x
        second += times * np.outer(x, x)
    return counts, sums, second


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


@dataclass(frozen=True)
class _Row:
    """How a kind of schema gets its worst case.

    Attributes:
        pairs: a record, and one that it may be exchanged for; the first alone is the worst that is added, in some pair.
        sums: the sums of a data set by letter and cell, in wire steps, as Python integers; whole matrices.
        crowd: many records of the same party, opposed to the one that comes or goes.
        exchanged: the records beside an exchange that are tried.
        halves: whether a client of opposed halves is tried.
        left_out: whether a record that cannot be read is in no sum, so that its exchange is a record that comes.
    """

    pairs: Callable[[Any, Mapping[str, float]], list[tuple[Record, Record]]]
    sums: Callable[[Any, Sequence[Record]], Sums]
    crowd: Callable[[Any], tuple[Record, ...]] = _nobody
    exchanged: Callable[[Any], list[tuple[Record, ...]]] = _alone
    halves: bool = False
    left_out: bool = False


_ROWS: Mapping[str, _Row] = {
    "classes": _Row(_vectors, _added(_of_classes)),
    "ridge": _Row(_with_targets, _added(_of_targets)),
    "counts": _Row(_cells, _added(_of_values)),
    "scoring": _Row(_in_tables, _added(_of_places)),
    "sites": _Row(_vectors, _of_sites, _crowd_of_site, lambda schema: [_crowd_of_site(schema)], halves=True),
    "score": _Row(_scores, _added(_of_score)),
    "hazard": _Row(_persons, _added(_of_score)),
    "effect": _Row(_influences, _added(_of_influence), left_out=True),
    "gradients": _Row(_residuals, _added(_of_gradient)),
    "calibration": _Row(_sure, _added(_of_confidence)),
    "mean": _Row(_vectors, _added(_of_rows)),
    "within": _Row(_vectors, _of_client, _crowd_of_client, lambda schema: [(), _crowd_of_client(schema)]),
    "gaussians": _Row(_no_records, _nothing),
    "party-softmax": _Row(_directions, _added(_of_direction)),
    "party-update": _Row(_directions, _added(_of_direction)),
}
"""A kind without a row is refused by its name: nothing that is written for one kind stands for another."""
