"""Tabulate a model of declared columns: points per cell that add up to log odds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri, softmax

from privstats.errors import DataError
from privstats.estimates.denoise import Array
from privstats.heads.evidence import Released
from privstats.inference.cell_design import Intervals
from privstats.inference.description import Count, Description
from privstats.inference.pair_points import PairPoints, pair_points
from privstats.inference.releases import reckoned_sigma, require_level
from privstats.inference.reporting import Source, listed
from privstats.inference.row_lengths import Discrepancies, Lengths, sampled_discrepancies
from privstats.inference.scorecard_points import (
    Rows,
    by_outcome,
    cell_points,
    class_sums,
    generator,
    half_widths,
    lengths,
    linear_scores,
    noisy,
    releases_behind,
    shares,
)
from privstats.inference.scorecard_sql import scorecard_sql
from privstats.inference.summary import RowTable, Summary, ends_of
from privstats.intake.tables import as_table, names_of_columns
from privstats.records.table import codes_of
from privstats.release import Release
from privstats.transforms import Cells

_BANDS = (
    "Bands cover the points of these records without noise: the noise's spread, and the head's bias under it. They do "
    "not cover other records."
)

_OF_PAIRS = (
    "Points of a pair add to those of its two columns; a record with either value missing has none. These pairs were "
    "chosen because their sums exceeded noise and chance, and bands do not cover that choice."
)


@dataclass(frozen=True, eq=False)
class ColumnPoints:
    """One column's points, per code: a cell, or a part of one on a ramp.

    Attributes:
        points: ``(classes, codes)``, log odds (for more than two classes, scores minus their mean); 0 is the mean
            record.
        low, high: bands for noise, ``(classes, codes)``.
        shares: of the records, possibly noisy.
        filled: whether a cell exceeds noise; an empty cell's points are no finding, and its band is too narrow.
        discrepancy: what the sum of points misses in records of each cell, root mean square ``(classes, cells)``; 0
            where points add up.
    """

    name: str
    intervals: Intervals
    points: Array
    low: Array
    high: Array
    shares: Array
    filled: NDArray[np.bool_]
    discrepancy: Array

    @property
    def cells(self) -> tuple[str, ...]:
        """Cell names, missing values last."""
        return self.intervals.names

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Whether a filled cell's bands exclude 0, ``(classes, cells)``."""
        low, high = self.within(self.low, np.min), self.within(self.high, np.max)
        return ((low > 0) | (high < 0)) & self.filled

    def within(self, values: Array, take: Any) -> Array:
        """Return ``take`` of each cell's codes in ``values``, ``(classes, codes)``."""
        cells = self.intervals.of_codes
        return np.stack([take(values[:, cells == place], axis=1) for place in range(len(self.cells))], axis=1)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The points of one record, the largest first; base and points add up to the head's score.

    Attributes:
        factor: on the card's points, where the head divides each record by its length.

    Example:
        >>> parts = (("age", ">= 65", 0.8), ("sodium", "missing", -0.3))
        >>> print(ps.inference.Explanation("ill", -1.0, parts))
        log odds of ill -0.50 (38 %): -1.00, age >= 65 +0.80, sodium missing -0.30
    """

    outcome: str
    base: float
    parts: tuple[tuple[str, str, float], ...]
    factor: float = 1.0

    @property
    def score(self) -> float:
        """Base and points together."""
        return math.fsum([self.base, *(points for *_, points in self.parts)])

    def __str__(self) -> str:
        parts = [f"{column} {cell} {points:+.2f}" for column, cell, points in self.parts]
        chance = f"{100 * float(expit(self.score)):.0f} %"
        length = "" if self.factor == 1 else f" (the card's points times {self.factor:.2f}, by this record's length)"
        total = f"log odds of {self.outcome} {self.score:+.2f} ({chance})"
        return f"{total}: {', '.join([f'{self.base:+.2f}', *parts])}{length}"

    def plot(self, path: Any = None) -> Any:
        """Draw :func:`~privstats.inference.plot_explanation`'s bars."""
        from privstats.inference.figures import plot_explanation

        return plot_explanation(self, path)


@dataclass(frozen=True, eq=False)
class Scorecard(RowTable):
    """Points per cell of every declared column.

    A record's score is ``intercept + k (base - intercept + points)`` plus the points of pairs. k is 1 where ``exact``;
    else it is the typical length of a row over the record's own. :meth:`scores`, :meth:`explain` and :meth:`sql`
    compute k, so they return the head's own score.

    Two classes have one score, the log odds of the second. More have one each, input of a softmax.

    Attributes:
        outcomes: classes of the rows of ``points``.
        base: score of a record of mean points and typical length, per outcome.
        intercept: part of ``base`` that no length changes.
        alpha: 1 minus the level of the bands.
        lengths: the rows' lengths; None where all rows have one.
        discrepancies: what points alone miss; None where they add up.
        pairs: tables of pairs of columns, whose points add to the columns'.

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
    intercept: NDArray[np.float64]
    lengths: Lengths | None = None
    discrepancies: Discrepancies | None = None
    pairs: tuple[PairPoints, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether base and points alone add up to the head's score."""
        return self.lengths is None

    @property
    def noisy(self) -> bool:
        """Whether any release carries noise."""
        return noisy(self.releases)

    def scores(self, table: Any) -> NDArray[np.float64]:
        """Return the head's scores of records, ``(n, outcomes)``."""
        codes = codes_of(self.cells, table)
        places = self.cells.indices(codes)
        out = np.tile(self.base - self.intercept, (len(places), 1))
        for j, column in enumerate(self.columns):
            out += column.points[:, places[:, j]].T
        out *= self._factors(codes)[:, None]
        out += self.intercept
        for pair in self.pairs:
            out[:, 0] += pair.of_cells(*(places[:, j] for j in self._places(pair)))
        return out

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Return class probabilities, ``(n, C)``."""
        scores = self.scores(table)
        if len(self.outcomes) > 1:
            return np.asarray(softmax(scores, axis=1))
        yes = expit(scores[:, 0])
        return np.column_stack([1 - yes, yes])

    def explain(self, record: Any, outcome: str | None = None) -> Explanation:
        """Return the points of one record, the largest first.

        Raises:
            DataError: not one record, or a column is missing.
        """
        row = self._row(outcome)
        named = as_table(record)
        codes = None if names_of_columns(named) is None else codes_of(self.cells, named)
        if codes is None or len(codes) != 1:
            raise DataError("record must be a row of a frame, or a mapping from names of columns to values")
        (places,), (factor,) = self.cells.indices(codes), self._factors(codes)
        parts = [
            (column.name, column.cells[column.intervals.of_codes[place]], float(factor * column.points[row, place]))
            for column, place in zip(self.columns, places, strict=True)
        ]
        for pair in self.pairs:
            first, second = (int(places[j]) for j in self._places(pair))
            if (level := pair.level(first, second)) is not None:
                parts.append((pair.name, level, float(pair.of_cells(np.array([first]), np.array([second]))[0])))
        base = self.intercept[row] + factor * (self.base[row] - self.intercept[row])
        largest = tuple(sorted(parts, key=lambda part: -abs(part[2])))
        return Explanation(self.outcomes[row], float(base), largest, float(factor))

    def sql(self, table: str) -> str:
        """Return a query that adds the head's exact log odds to every row of a typed table.

        A comment in the query states by column what the table must hold, such as times in the declared zone. A gap is
        NULL or a declared code. ``table`` is written as passed.

        Raises:
            HeadError: more than two classes, or too many entries; export to ONNX.
        """
        return scorecard_sql(self, table)

    def summary(self) -> Summary:
        """Return the table."""
        return card_summary(self)

    def to_rows(self) -> list[dict[str, object]]:
        """Return rows by outcome and code."""
        return [
            {
                "class": outcome,
                "variable": column.name,
                "level": column.cells[place],
                "points": float(column.points[row, code]),
                "conf_low": float(column.low[row, code]),
                "conf_high": float(column.high[row, code]),
                "discrepancy": float(column.discrepancy[row, place]),
                "proportion": float(column.shares[place]),
                "reported": bool(column.reported[row, place]),
            }
            for row, outcome in enumerate(self.outcomes)
            for column in self.columns
            for code, place in enumerate(column.intervals.of_codes)
        ] + [
            {
                "class": self.outcomes[0],
                "variable": pair.name,
                "level": f"{first}, {second}",
                "points": float(pair.points[i, j]),
                "conf_low": float(pair.low[i, j]),
                "conf_high": float(pair.high[i, j]),
                "discrepancy": math.nan,
                "proportion": math.nan,
                "reported": bool(pair.low[i, j] > 0 or pair.high[i, j] < 0),
            }
            for pair in self.pairs
            for i, first in enumerate(pair.levels[0])
            for j, second in enumerate(pair.levels[1])
        ]

    def plot(self, path: Any = None, column: str | None = None, outcome: str | None = None) -> Any:
        """Draw all columns or one."""
        from privstats.inference.figures import plot_scorecard

        shown = [each for each in self.columns if column is None or each.name == column]
        if not shown:
            raise DataError(f"{column!r} is no column of the card; it has {', '.join(c.name for c in self.columns)}")
        return plot_scorecard(replace(self, columns=tuple(shown)), path, row=self._row(outcome))

    def _factors(self, codes: NDArray[np.float64]) -> Array:
        return np.ones(len(codes)) if self.lengths is None else self.lengths.factors(self.cells.apply(codes))

    def _places(self, pair: PairPoints) -> list[int]:
        names = [column.name for column in self.columns]
        return [names.index(name) for name in pair.names]

    def _row(self, outcome: str | None) -> int:
        if outcome is None and len(self.outcomes) == 1:
            return 0
        if outcome not in self.outcomes:
            raise DataError(f"outcome must be one of {', '.join(self.outcomes)}, got {outcome!r}")
        return self.outcomes.index(outcome)


def scorecard(
    head: Any, releases: Released | Sequence[Release | None], *, alpha: float = 0.05, draws: int = 200
) -> Scorecard:
    """Return points per cell, with bands, of a head on :class:`~privstats.Cells`.

    ``f_j(cell) = w_j . b_j(cell) - w_j . mean b_j`` with the mean over the records, sum_c A_c / sum_c N_c, and ``base =
    b + sum_j w_j . mean b_j``. Behind ``LDA`` of one release the score is base + sum_j f_j. ``RefinedSoftmax`` divides
    each row by its length after the whitening, and any head of a released mean by the length of the row minus the mean.
    Then points hold for the root mean square length, ``exact`` is False, and :attr:`Scorecard.discrepancies` states
    what their sum misses. ``scores``, ``explain`` and ``sql`` return the head's own score for every head. Pairs of
    columns have tables of their own, :attr:`Scorecard.pairs`.

    Bands are ``points +- (z s + b)``: s is the standard deviation over ``draws`` replicates of the releases' noise, b
    the column's bias, shown by the replicates' mean. **Bands are about these records' points without noise**, not about
    other records or cut points. Where noise hides a direction completely, no replicate shows it
    (benchmarks/raw_tables/numbers.md). Bands of exact releases have no width.

    Args:
        head: fitted on releases: ``LDA``, another head with linear scores, or ``RefinedSoftmax``.
        releases: the head's, in order. After ``fit_private`` they are ``head.releases_``; only a head of one release
            without a course has ``head.release_`` alone.
        alpha: 1 minus the level of each band.
        draws: at least 2; 200 determine s to 5 %.

    Raises:
        ReleaseError: other releases, or rows without declared columns.
        HeadError: scores that are not linear.

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
    if draws < 2:
        raise DataError(f"draws must be at least 2, got {draws}; 200 give a standard deviation to 5 %")
    have, rows = releases_behind(head, releases), Rows.of(head)
    mean, cells = rows.mean(*class_sums(have)), rows.cells
    scores = rows.before(linear_scores(head.rule_, have))
    base, points = cell_points(scores, cells, mean)
    coef, inner = by_outcome(scores)
    intercept, length = inner + coef @ rows.shift, lengths(head.rule_, have, rows)
    reach = float(-ndtri(alpha / 2))
    wide = [np.zeros_like(each) for each in points]
    if noisy(have):
        wide = half_widths(head, have, rows, mean, points, draws, reach)
    intervals, parts, filled = zip(*shares(have, rows, mean), strict=True)
    off = None
    if length is not None:
        off = sampled_discrepancies(length, cells, intervals, parts, coef, inner - intercept, generator(have))
    none = [np.zeros((len(base), len(part))) for part in parts]
    columns = tuple(
        ColumnPoints(column.name, each, own, own - half, own + half, part, full, misses)
        for column, own, half, each, part, full, misses in zip(
            cells.columns, points, wide, intervals, parts, filled, none if off is None else off.cells, strict=True
        )
    )
    outcomes = tuple(map(str, head.classes_[1:] if len(head.classes_) == 2 else head.classes_))
    pairs = tuple(pair_points(head, have, draws, alpha, generator(have)))
    promise = str(head.provenance_)
    return Scorecard(outcomes, base, columns, alpha, cells, tuple(have), promise, intercept, length, off, pairs)


def card_summary(card: Scorecard) -> Summary:
    """Return points by cell, in parentheses where possibly empty."""
    release, promise = card.releases[0], f"Privacy: {card.promise}."
    source = Source(release, card.alpha, "", tuple(each.plan for each in card.releases))
    shown = source.summary(
        "Scorecard",
        ("", "cell", "share", "points", *ends_of(card.alpha), *(() if card.exact else ("off by",))),
        _rows(card),
        head=((f"base, {outcome}", f"{value:+.3f}") for outcome, value in zip(card.outcomes, card.base, strict=True)),
        about=Description(counts=(_records(card),)),
        methods="",
    )
    meant = "the softmax of all scores gives the probabilities."
    if len(card.outcomes) == 1:
        chance = f"{float(expit(card.base[0])):.1%}"
        meant = f"log odds. The base alone is a probability of {chance}, that of a record with mean points."
    foot = (
        *_of_lengths(card),
        f"A record's score is {'the base and its points' if card.exact else 'about the base and its points'}: {meant}",
        *((_OF_PAIRS,) if card.pairs else ()),
        "Points in parentheses: noise alone could show so few records, so they are no finding.",
        _BANDS,
        promise,
        *source.assumptions,
        f"Plan {release.plan.digest[:16]}, {len(release.survivors)} of {release.plan.cohort.clients} clients.",
    )
    words = source.methods(
        f"Points of {listed([column.name for column in card.columns])}: the log odds that a classifier from sums "
        "over cells of the columns gives each cell, less their mean over all records.",
        claim=_BANDS,
        privacy=promise,
    )
    return replace(shown, promise=promise, foot=foot, methods=words)


def _records(card: Scorecard) -> Count:
    """Return the number of records in the class sums of the first release that has them."""
    for release in card.releases:
        if isinstance(release, Release) and (N := getattr(release.moments, "N", None)) is not None:
            cells = np.asarray(N, np.float64).reshape(-1)
            return Count("records", float(cells.sum()), reckoned_sigma(release).get("N", 0.0) * math.sqrt(cells.size))
    return Count("records", None, absent="not in these sums")


def _of_lengths(card: Scorecard) -> Iterator[str]:
    if card.discrepancies is None:
        return
    missed = listed([f"{each:.2f}" for each in card.discrepancies.total])
    low, high = card.discrepancies.factors
    yield (
        f"The sum of points is not the head's score: it misses the log odds by about {missed} (root mean square; by "
        "cell in the last column), and by more where columns are correlated: on five tables up to 1.9 times as much. "
        "The head multiplies all points by one factor per record, its typical length over the record's own: "
        f"{low:.2f} to {high:.2f} in nine of ten records. Use scores, explain or sql of the scorecard, or the head "
        "itself, for a record's score; these agree. Misses and factors are those of records sampled from the shares, "
        "columns independent."
    )


def _rows(card: Scorecard) -> Iterator[tuple[str, ...]]:
    for row, outcome in enumerate(card.outcomes):
        for column in card.columns:
            first = column.name if len(card.outcomes) == 1 else f"{outcome}: {column.name}"
            for place, cell in enumerate(column.cells):
                share = f"{100 * max(column.shares[place], 0.0):.0f} %"
                off = () if card.exact else (f"{column.discrepancy[row, place]:.2f}",)
                yield first if not place else "", cell, share, *_points(column, row, place), *off
    for pair in card.pairs:
        for i, j in np.ndindex(pair.points.shape):
            ends = [f"{each[i, j]:+.2f}" for each in (pair.points, pair.low, pair.high)]
            cell, off = f"{pair.levels[0][i]}, {pair.levels[1][j]}", () if card.exact else ("",)
            yield pair.name if not i + j else "", cell, "", *ends, *off


def _points(column: ColumnPoints, row: int, place: int) -> tuple[str, str, str]:
    codes = column.intervals.of_codes == place
    points = [f"{value:+.2f}" for value in column.points[row, codes]]
    text = points[0] if points[0] == points[-1] else f"{points[0]} to {points[-1]}"
    if not column.filled[place]:
        return f"({text})", "", ""
    return text, f"{column.low[row, codes].min():+.2f}", f"{column.high[row, codes].max():+.2f}"
