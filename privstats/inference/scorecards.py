"""A model of declared columns as a table that people read: points per cell of each column, which add up to log odds.

Post-processing of the releases that the head was made from; no record is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri, softmax

from privstats.errors import DataError, ReleaseError
from privstats.heads.evidence import Released
from privstats.heads.linear_scores import LinearScores, linear_scores, made_from, under_other_noise
from privstats.inference.counts import require_level
from privstats.inference.summary import Summary, card_summary
from privstats.progress import progress_bar
from privstats.release import Release
from privstats.schema import ClassSchema
from privstats.transforms import Cells, Centre, UnitNorm
from privstats.transforms.columns import Categories, Column, Dates, Numeric, Truth

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["ColumnPoints", "Explanation", "Scorecard", "scorecard"]

_DRAWS = 200
_SURE = 3.0
"""Standard deviations of its noise that a cell's share must exceed to hold records."""


@dataclass(frozen=True, eq=False)
class ColumnPoints:
    """The points of one column.

    Attributes:
        name: of the column.
        cells: names of its cells, the last one that of a gap.
        points: ``(classes, cells)``, log odds (of more than two classes: scores less their mean over the classes); 0 is
            the mean over all records.
        low, high: their bands, ``(classes, cells)``: of noise alone.
        shares: of the records in each cell, ``(cells,)``, noisy where the releases are.
        filled: whether a cell holds more records than noise could show in an empty one, ``(cells,)``: the points of an
            empty cell are no finding, and its band is too narrow.
    """

    name: str
    cells: tuple[str, ...]
    points: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    shares: NDArray[np.float64]
    filled: NDArray[np.bool_]

    @property
    def told(self) -> NDArray[np.bool_]:
        """Whether a cell that holds records has a band without 0, ``(classes, cells)``."""
        return ((self.low > 0) | (self.high < 0)) & self.filled


@dataclass(frozen=True, eq=False)
class Explanation:
    """The points of one record: they add up to its score, exactly.

    Attributes:
        outcome: the class whose score it is.
        base: the score of a record of mean points.
        parts: of each column its name, the cell that the record is in, and the points; the largest first.

    Example:
        >>> parts = (("age", ">= 65", 0.8), ("sodium", "missing", -0.3))
        >>> print(ps.inference.Explanation("ill", -1.0, parts))
        log odds of ill -0.50 (38 %): -1.00, age >= 65 +0.80, sodium missing -0.30
    """

    outcome: str
    base: float
    parts: tuple[tuple[str, str, float], ...]

    @property
    def score(self) -> float:
        """Base and points together."""
        return math.fsum([self.base, *(points for *_, points in self.parts)])

    def __str__(self) -> str:
        said = [f"{column} {cell} {points:+.2f}" for column, cell, points in self.parts]
        chance = f"{100 * float(expit(self.score)):.0f} %"
        return f"log odds of {self.outcome} {self.score:+.2f} ({chance}): {', '.join([f'{self.base:+.2f}', *said])}"

    def plot(self, path: Any = None) -> Any:
        """A bar for every column: see :func:`~privstats.inference.plot_explanation`."""
        from privstats.inference.figure import plot_explanation

        return plot_explanation(self, path)


@dataclass(frozen=True, eq=False)
class Scorecard:
    """Points per cell of every declared column; a record's points and the base add up to its score.

    Two classes have one score, the log odds of the second. More have one each, of which the softmax is taken.

    Attributes:
        outcomes: the classes that the rows of ``points`` are of.
        base: the score of a record of mean points, one per outcome.
        columns: the points of each column.
        alpha: 1 less the level of the bands.
        cells: the declaration, by which values are read.
        releases: what it was read from.
        promise: what is promised for all of it, in words.
        exact: whether these are the scores of the head itself, and not of its rows at one length.

    Example:
        >>> cells = ps.Cells((ps.Numeric("age", (40, 65)), ps.Truth("smoker")))
        >>> schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,), class_names=("well", "ill"))
        >>> table = {"age": [30, 50, 70, 80, 35, 45] * 9, "smoker": [0, 0, 1, 1, 1, 0] * 9}
        >>> moments = ps.measure(schema, table, ["well", "well", "ill", "ill", "ill", "well"] * 9)
        >>> release = ps.Release.exact(schema, moments)
        >>> card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
        >>> old, young = card.scores({"age": [71, 20], "smoker": [True, False]})[:, 0]
        >>> bool(old > young)
        True
    """

    outcomes: tuple[str, ...]
    base: NDArray[np.float64]
    columns: tuple[ColumnPoints, ...]
    alpha: float
    cells: Cells
    releases: tuple[Release, ...]
    promise: str
    exact: bool

    def scores(self, table: Any) -> NDArray[np.float64]:
        """Scores of records, ``(n, outcomes)``: base and points, from a frame or a mapping of columns."""
        places = self.cells.indices(self.cells.codes(table))
        out = np.tile(self.base, (len(places), 1))
        for j, column in enumerate(self.columns):
            out += column.points[:, places[:, j]].T
        return out

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, ``(n, C)``; of two classes the second column is that of ``outcomes``."""
        scores = self.scores(table)
        if len(self.outcomes) > 1:
            return np.asarray(softmax(scores, axis=1))
        yes = expit(scores[:, 0])
        return np.column_stack([1 - yes, yes])

    def explain(self, record: Any, outcome: str | None = None) -> Explanation:
        """The points of one record, the largest first: exact, for the score is their sum.

        Args:
            record: a row of a frame, or a mapping from the columns' names to values.
            outcome: the class to explain; may be left out of two.

        Raises:
            DataError: not one record, or a column is missing.
        """
        row = self._row(outcome)
        named = record.to_dict() if hasattr(record, "to_dict") else record
        if not isinstance(named, dict):
            raise DataError("record must be a row of a frame, or a mapping from names of columns to values")
        (places,) = self.cells.indices(self.cells.codes({name: [value] for name, value in named.items()}))
        parts = [
            (column.name, column.cells[place], float(column.points[row, place]))
            for column, place in zip(self.columns, places, strict=True)
        ]
        return Explanation(
            self.outcomes[row], float(self.base[row]), tuple(sorted(parts, key=lambda part: -abs(part[2])))
        )

    def summary(self) -> Summary:
        """The table for publication: text, HTML, LaTeX, CSV."""
        return card_summary(self)

    def to_frame(self) -> DataFrame:
        """One row per outcome, column and cell: points, low, high, share of the records, told."""
        from pandas import DataFrame

        return DataFrame(
            {
                "outcome": outcome,
                "column": column.name,
                "cell": cell,
                "points": column.points[row, place],
                "low": column.low[row, place],
                "high": column.high[row, place],
                "share": column.shares[place],
                "told": bool(column.told[row, place]),
            }
            for row, outcome in enumerate(self.outcomes)
            for column in self.columns
            for place, cell in enumerate(column.cells)
        )

    def plot(self, path: Any = None, column: str | None = None, outcome: str | None = None) -> Any:
        """The curves of all columns, or of one: see :func:`~privstats.inference.plot_scorecard`."""
        from privstats.inference.figure import plot_scorecard

        shown = [each for each in self.columns if column is None or each.name == column]
        if not shown:
            raise DataError(f"{column!r} is no column of the card; it has {', '.join(c.name for c in self.columns)}")
        return plot_scorecard(replace(self, columns=tuple(shown)), path, row=self._row(outcome))

    def to_python(self, outcome: str | None = None) -> str:
        """A Python file with a function ``score(record)`` that runs without this library."""
        from privstats.inference.card_code import python_of

        return python_of(self, self._row(outcome))

    def to_sql(self, table: str, outcome: str | None = None) -> str:
        """A query that gives the score of every row of a typed table, in standard SQL."""
        from privstats.inference.card_code import sql_of

        return sql_of(self, self._row(outcome), table)

    def _row(self, outcome: str | None) -> int:
        if outcome is None and len(self.outcomes) == 1:
            return 0
        if outcome not in self.outcomes:
            raise DataError(f"outcome must be one of {', '.join(self.outcomes)}, got {outcome!r}")
        return self.outcomes.index(outcome)

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def scorecard(head: Any, releases: Released | Sequence[Release | None], *, alpha: float = 0.05) -> Scorecard:
    """Points per cell, with bands, of a head behind :class:`~privstats.Cells`.

    ``f_j(cell) = w_j . b_j(cell) - w_j . mean b_j`` with the mean over the records, sum_c A_c / sum_c N_c, and ``base =
    b + sum_j w_j . mean b_j``: the score is base + sum_j f_j. LDA's scores are that exactly. RefinedSoftmax divides
    each row by its own length behind the whitening, and a course that releases a mean first by that of the row less it;
    the card takes one length for all, the root of the mean square, and ``exact`` is False.

    Bands are ``points +- z s``, with s the standard deviation over 200 further draws of the releases' noise
    (:mod:`privstats.heads.linear_scores`). **They tell of the spread by noise alone**: what other records or other cut
    points would have given is not in them, nor how far a head that knows its noise shrinks all points toward 0. Of
    exact releases they have no width.

    Args:
        head: fitted on releases: ``LDA``, or another of linear scores, or ``RefinedSoftmax``.
        releases: those that it was made from, in order.
        alpha: 1 less the level of each band.

    Raises:
        ReleaseError: other releases, or rows that are not those of declared columns.
        HeadError: a head whose scores are not linear.

    Example:
        >>> cells = ps.Cells((ps.Numeric("age", (40, 65)), ps.Truth("smoker")))
        >>> schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,), class_names=("well", "ill"))
        >>> table = {"age": [30, 50, 70, 80, 35, 45] * 9, "smoker": [0, 0, 1, 1, 1, 0] * 9}
        >>> moments = ps.measure(schema, table, ["well", "well", "ill", "ill", "ill", "well"] * 9)
        >>> release = ps.Release.exact(schema, moments)
        >>> card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
        >>> card.columns[0].cells, card.columns[1].cells
        (('< 40', '40 to < 65', '>= 65', 'missing'), ('false', 'true', 'missing'))
        >>> card.explain({"age": 71, "smoker": 1}).parts[0][:2]
        ('smoker', 'true')
    """
    require_level(alpha)
    have = made_from(head, releases)
    rows = _Rows.of(head)
    mean = rows.mean(*_class_sums(have))
    scores = linear_scores(head.rule_, have)
    base, points = _points(rows.before(scores), rows.cells, mean)
    shares = _shares(have, rows, mean)
    spread = _spread(head, have, rows, mean) if _noisy(have) else [np.zeros_like(each) for each in points]
    reach, cells = float(-ndtri(alpha / 2)), rows.cells
    columns = tuple(
        ColumnPoints(column.name, _cell_names(column, marks), each, each - reach * s, each + reach * s, *held)
        for column, marks, each, s, held in zip(cells.columns, cells.marks, points, spread, shares, strict=True)
    )
    outcomes = tuple(map(str, head.classes_[1:] if len(head.classes_) == 2 else head.classes_))
    exact = scores.coef is getattr(head.rule_, "coef", None) and rows.length == 1
    return Scorecard(outcomes, base, columns, alpha, cells, tuple(have), str(head.provenance_), exact)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The public map of a head: rows of cells as they are, or less a mean m and scaled to norm 1.

    Rows of cells have norm 1, so that a row less its mean has the mean square 1 - |m|^2: the one length for all.
    """

    cells: Cells
    shift: NDArray[np.float64]
    length: float

    @classmethod
    def of(cls, head: Any) -> _Rows:
        match head.preprocessing_.transform:
            case (Cells() as cells,):
                return cls(cells, np.zeros(cells.width), 1.0)
            case (Cells() as cells, Centre(centre), UnitNorm()):
                shift = np.array(centre)
                return cls(cells, shift, math.sqrt(max(1 - float(shift @ shift), 0.01)))
        raise ReleaseError(
            "a scorecard reads a head behind declared columns: a transform of Cells, or a mean after them"
        )

    def before(self, scores: LinearScores) -> LinearScores:
        """The scores of rows of cells."""
        coef = scores.coef / self.length
        return LinearScores(coef, scores.intercept - coef @ self.shift)

    def mean(self, release: Release, classes: int) -> NDArray[np.float64]:
        """The mean row of cells; the shift where noise leaves no records."""
        kept = [place for place in range(classes) if place not in release.suppressed]
        n = float(release.moments.N[kept].sum())
        return self.shift + (self.length * release.moments.A[kept].sum(axis=0) / n if n >= 1 else 0.0)


def _noisy(releases: Sequence[Release]) -> bool:
    return any(level > 0 for release in releases for level in release.sigma.values())


def _class_sums(releases: Sequence[Release]) -> tuple[Release, int]:
    """The release of class sums, and how many classes it has."""
    for release in releases:
        if isinstance(schema := release.plan.schema, ClassSchema):
            return release, schema.classes
    raise ReleaseError("a scorecard reads class sums, and none of the releases has them")


def _shares(
    releases: Sequence[Release], rows: _Rows, mean: NDArray[np.float64]
) -> list[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """Of each column the shares of the records in its cells, and which cells noise cannot have filled.

    The mean of a block is the mean of its cells' rows by their shares, which add up to 1: as many equations as cells.
    With a ramp there are more cells than equations, and the least shares that solve them are taken.
    """
    first, classes = _class_sums(releases)
    total = max(float(first.moments.N.sum()), 1.0)
    noise = rows.length * float(first.sigma["A"]) * math.sqrt(classes) / total
    found = []
    cells = rows.cells
    for block, table in zip(cells.blocks, cells.tables, strict=True):
        solve = np.linalg.pinv(np.vstack([table.T * 2.0**-cells.bits, np.ones(len(table))]))
        shares = solve @ np.append(mean[block], 1.0)
        sure = _SURE * noise * np.linalg.norm(solve[:, :-1], axis=1)
        found.append((shares, shares > np.maximum(sure, 0.5 / total)))
    return found


def _points(
    scores: LinearScores, cells: Cells, mean: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """The base, one per outcome, and of each column ``(outcomes, cells)``."""
    coef, intercept = scores.coef, scores.intercept
    if len(coef) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    else:
        coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
    tables = [table * 2.0**-cells.bits for table in cells.tables]
    points = [coef[:, block] @ (table - mean[block]).T for block, table in zip(cells.blocks, tables, strict=True)]
    return intercept + coef @ mean, points


def _spread(
    head: Any, releases: Sequence[Release], rows: _Rows, mean: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    drawn: list[list[NDArray[np.float64]]] = []
    with progress_bar("bands", _DRAWS) as advance:
        for scores in under_other_noise(head, releases, _DRAWS):
            drawn.append(_points(rows.before(scores), rows.cells, mean)[1])
            advance(1)
    return [np.std(np.stack(each), axis=0, ddof=1) for each in zip(*drawn, strict=True)]


def _cell_names(column: Column, marks: NDArray[np.float64]) -> tuple[str, ...]:
    """Names of a column's cells, the last one that of a gap."""
    match column:
        case Numeric() | Dates():
            said = [column.said(float(mark)) for mark in marks]
            inner = [f"{low} to < {high}" for low, high in pairwise(said)]
            return (f"< {said[0]}", *inner, f">= {said[-1]}", "missing")
        case Truth():
            return ("false", "true", "missing")
        case Categories(values=()):
            return ("given", "missing")
        case Categories():
            return (*map(str, column.values), *(() if column.is_scale else ("other",)), "missing")
