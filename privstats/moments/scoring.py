"""Counts of what a published head says of records: each is scored by itself and counts in one cell of every table.

The head comes as bytes among the plan's published values. Its reader stands above this room and is found by name, as
the package of a brought module is; it gives scores and probabilities of rows, one row at a time. What follows from
these is arithmetic on one record: no other record decides its cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import RecordError
from privstats.moments.code_rows import cells_of
from privstats.moments.counts import CountMoments, counted_terms
from privstats.moments.gradients import pieces
from privstats.moments.record_terms import RecordTerms
from privstats.schema.public_values import Values
from privstats.schema.scoring import ScoringSchema, bytes_of

__all__ = ["Said", "cells_of_scores", "measured_scoring", "scoring_terms"]

_READER = "privstats.heads.scoring:reader"
_WINDOW = 4096
Real: TypeAlias = NDArray[np.float64]
Said: TypeAlias = tuple[Real, Real]
"""Scores and probabilities of rows, ``(n, C)`` each; of a class that the head does not know -inf and 0."""


def measured_scoring(
    schema: ScoringSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> CountMoments:
    """Counts of records under the published head.

    Guarantee:
        What a record adds follows from the record, the head and the machine: it is scored in an array of one row, so
        no rounding of another record's changes its cell. On another machine a score within rounding of an edge may lie
        in the next bin, which moves no other record. One that the head's maps make infinite counts nowhere.

    Raises:
        DataError: arrays that are no records of this schema.
        RecordError: a row has NaN or infinite entries; never of declared columns.
        PlanError: the published head is another one, or not of the schema's classes and columns.
    """
    total = np.zeros(schema.sizes["cell"], np.int64)
    for _, places in _scored(schema, X, y, values, progress):
        for table, cells in zip(schema.tables, places, strict=True):
            there = schema.place(table)
            total[there] += np.bincount(cells, minlength=there.stop - there.start)
    return CountMoments(schema, total)


def scoring_terms(schema: ScoringSchema, X: Any, y: Any, values: Mapping[str, Values], *_: Any) -> RecordTerms:
    """What each record adds.

    Raises:
        DataError, RecordError, PlanError: as :func:`measured_scoring`.
    """
    several = _scored(schema, X, y, values, progress=False)
    return RecordTerms.joined(counted_terms(schema, known, places) for known, places in several)


def _scored(
    schema: ScoringSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool
) -> Iterator[tuple[NDArray[np.bool_], list[NDArray[np.intp]]]]:
    """Which records of a piece count, and the cells of those in every table."""
    read: Callable[[NDArray[Any]], Said] = resolve_name(_READER)(schema, bytes_of(values))
    for rows, labels in pieces(schema.rows, X, y, progress, _WINDOW):
        if cells_of(schema) is None and not np.isfinite(rows).all():
            raise RecordError("X has NaN or infinite entries; drop or impute these records, or leave them out")
        scores, shares = read(rows)
        known = np.asarray(~np.isnan(scores).all(axis=1))
        yield known, cells_of_scores(schema, scores[known], shares[known], labels[known].astype(np.intp))


def cells_of_scores(
    schema: ScoringSchema, scores: Real, shares: Real, labels: NDArray[np.intp]
) -> list[NDArray[np.intp]]:
    """The cell of every record in every table, ``(n,)`` each.

    Args:
        schema: the schema.
        scores, shares: ``(n, C)``, :data:`Said`.
        labels: ``(n,)``, 0..C-1.

    Guarantee:
        Every number gives a cell, NaN and infinities too, and each follows from its own row.

    Example:
        >>> from privstats.moments.scoring import cells_of_scores
        >>> schema = ps.ScoringSchema("0" * 64, 1, classes=2, features=2, score_bins=4)
        >>> shares = np.array([[0.9, 0.1], [0.3, 0.7]])
        >>> [cells.tolist() for cells in cells_of_scores(schema, np.log(shares), shares, np.array([0, 0]))]
        [[0, 2]]
    """
    best, bins = scores.argmax(axis=1), schema.score_bins
    values = _margins(scores) if schema.score == "margin" else shares
    low, high = schema.edges[0], schema.edges[-1]
    if schema.classes == 2:
        half = schema.first_half
        found = _bins(values[:, 1], low, high, bins) if schema.cuts is None else _between(values[:, 1], schema.cuts)
        score = np.clip(found, np.where(best == 1, half, 0), np.where(best == 1, bins - 1, half - 1))
        return [labels * bins + score]
    sure = _bins(values[np.arange(len(best)), best], schema.sure_edges[0], schema.sure_edges[-1], bins)
    places = [labels * schema.classes + best, (labels == best) * bins + sure]
    for place in range(schema.classes if schema.by_class else 0):
        places.append((labels == place) * bins + _bins(values[:, place], low, high, bins))
    return places


def _margins(scores: Real) -> Real:
    """The score of each class less the largest of the others, ``(n, C)``."""
    with np.errstate(invalid="ignore", over="ignore"):
        ordered = np.sort(scores, axis=1)
        first = scores.argmax(axis=1)
        others = np.repeat(ordered[:, -1:], scores.shape[1], axis=1)
        others[np.arange(len(first)), first] = ordered[:, -2]
        return np.asarray(scores - others)


def _between(values: Real, cuts: tuple[float, ...]) -> NDArray[np.intp]:
    """The bin of every value between given cuts; what is no number lies in the first."""
    return np.asarray(np.searchsorted(cuts, np.nan_to_num(values, nan=0.0), side="right"), np.intp)


def _bins(values: Real, low: float, high: float, bins: int) -> NDArray[np.intp]:
    """The bin of every value; what is beyond the edges lies in the outer bins, and what is no number in the first."""
    with np.errstate(invalid="ignore", over="ignore"):
        place = np.floor((values - low) * (bins / (high - low)))
    place = np.clip(np.nan_to_num(place, nan=0.0, posinf=bins, neginf=0.0), 0, bins - 1)
    return np.asarray(place, np.intp)
