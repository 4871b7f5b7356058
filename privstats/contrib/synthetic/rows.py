"""Draw synthetic rows from a course's releases alone, and state their distance from released tables."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privstats import optional_dependencies
from privstats.contrib.synthetic.cells import lump, occupied
from privstats.contrib.synthetic.columns import Column, restored
from privstats.contrib.synthetic.course import Pairs, Synthetic, tables_of
from privstats.contrib.synthetic.junction_tree import Array, JunctionTree
from privstats.contrib.synthetic.model import Codes, Model, fitted, margins, systematic
from privstats.course.base import Releases
from privstats.course.promise import total_of
from privstats.errors import ReleaseError
from privstats.files.atomic import atomic_write
from privstats.intake.column_names import SYNTHETIC_MARK
from privstats.schema import Bins, Variable

NO_INTERVALS = (
    "No interval, test or standard error may be computed from these rows as if they were records: they hold the noise "
    "of the released tables and the errors of a model, and as many rows can be drawn as anyone wants."
)
_MAX_ROWS = 10_000_000
_LEVEL_NOISE, _LEVEL_TOTAL = 1.959963984540054, 2.241402727604947
"""Normal quantiles at 97.5 %, one-sided and two-sided: an interval's two parts hold together with 95 %."""


@dataclass(frozen=True, eq=False)
class Distance:
    """Distance of the synthetic rows from the records in one released table.

    Attributes:
        columns: one or two names.
        session: from 0.
        value: total variation distance between rows and released table, 0 to 1.
        low, high: 95 % interval for the distance from the exact table, for noise alone; it holds although the rows were
            fitted to that noise.
        cells: names of cells, per column.
        released: released shares, in the table's shape; some may be negative.
        rows: the rows' shares.
        noise: noise standard deviation of a released share.
        merged: columns whose declared cells this table merges, each with its number of merged and of declared cells.
            The distance between tables in declared cells may be larger, and its interval does not hold for it.
    """

    columns: tuple[str, ...]
    session: int
    value: float
    low: float
    high: float
    cells: tuple[tuple[str, ...], ...]
    released: Array
    rows: Array
    noise: float
    merged: tuple[tuple[str, int, int], ...] = ()

    @property
    def merged_text(self) -> str:
        """In which merged cells the distance is, or empty."""
        return "; ".join(f"{name} in {few} cells merged from {many}" for name, few, many in self.merged)


@dataclass(frozen=True, eq=False)
class SyntheticRows(Mapping[str, list[Any]]):
    """Synthetic rows as a mapping from column names to values.

    Attributes:
        drawn: each column's values: None is missing, ``"other"`` a value that the plan does not list.
        promise: of all sessions, in words.
        pairs: with a measured joint table.
        distances: of every released table.
        records: estimated number of records.

    Example:
        >>> from privstats.contrib.synthetic.columns import schema_of
        >>> from privstats.contrib.synthetic.course import Synthetic
        >>> from privstats.contrib.synthetic.rows import synthetic
        >>> schema = schema_of([ps.Truth("smoker"), ps.Truth("stroke")])
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
        >>> course = Synthetic.within(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=privacy))
        >>> part = ({"smoker": [0, 1] * 250, "stroke": [0, 0, 0, 1] * 125}, None)
        >>> rows = synthetic(course, ps.simulate(course, [part, part]), rows=4, seed=1)
        >>> list(rows), len(rows["smoker"]), rows.pairs
        (['smoker', 'stroke', 'privstats synthetic rows'], 4, (('smoker', 'stroke'),))
    """

    drawn: Mapping[str, list[Any]]
    promise: str
    pairs: Pairs
    distances: tuple[Distance, ...]
    records: float

    def __getitem__(self, name: str) -> list[Any]:
        if name == SYNTHETIC_MARK:
            return ["yes"] * len(next(iter(self.drawn.values())))
        return self.drawn[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.drawn
        yield SYNTHETIC_MARK

    def __len__(self) -> int:
        return len(self.drawn) + 1

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame, with the column that marks them."""
        return optional_dependencies.load("pandas", by="to_frame").DataFrame(dict(self))

    @property
    def note(self) -> str:
        """The promise, what was measured, and the warning against intervals."""
        measured = ", ".join(" x ".join(pair) for pair in self.pairs)
        return f"Synthetic rows, no records: {self.promise}. Pairs measured: {measured}. {NO_INTERVALS}"

    def summary(self) -> str:
        """Return the note, and a line per released table."""
        lines = [
            f"{' x '.join(each.columns)}: distance {each.value:.3f} from the released table, "
            f"{each.low:.3f} to {each.high:.3f} from the exact one (session {each.session})"
            + (f"; {each.merged_text}: in declared cells it may be larger" if each.merged else "")
            for each in self.distances
        ]
        return "\n".join([self.note, *lines])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV and the summary as ``NAME.txt``, each complete or not at all.

        The CSV's column ``privstats synthetic rows`` makes every reader of records refuse it.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(list(self))
        writer.writerows(zip(*(self[name] for name in self), strict=True))
        atomic_write(Path(path), text.getvalue().encode())
        atomic_write(Path(path).with_suffix(".txt"), (self.summary() + "\n").encode())


def synthetic(
    course: Synthetic, releases: Releases, *, rows: int, seed: int, columns: Sequence[Column] = ()
) -> SyntheticRows:
    """Draw rows from the maximum-entropy model under the released tables.

    Args:
        course: of the releases.
        releases: in order; None for a session without a sum.
        rows: 1 to 10 million.
        seed: an integer; it fixes the rows.
        columns: declarations by which dates and truths are written.

    Raises:
        ReleaseError: no session has a sum, or rows or seed is out of range.
        PlanError: a release is not of this course.
    """
    if type(rows) is not int or not 1 <= rows <= _MAX_ROWS:
        raise ReleaseError(f"rows must be an integer from 1 to {_MAX_ROWS:,}, got {rows!r}; choose one")
    if type(seed) is not int or seed < 0:
        raise ReleaseError(f"seed must be an integer of at least 0, got {seed!r}; choose one")
    fit = fit_of(course, releases)
    rng = np.random.default_rng(seed)
    codes = fit.model.draw(rows, rng)
    fine = fit.fine_cells(codes, rng)
    declared = {column.name: column for column in columns}
    values = {}
    for variable, cells in zip(fit.fine, fine.T, strict=True):
        drawn = _drawn(variable, cells, rng)
        column = declared.get(variable.name)
        values[variable.name] = drawn if column is None else restored(column, drawn)
    distances = tuple(fit.distances(fine))
    return SyntheticRows(values, promise_of(course), fit.pairs, distances, fit.model.records)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model fitted to a course's releases.

    Attributes:
        fine: variables with the first session's cells.
        variables: with the model's cells.
        model: over the model's cells.
        inside: per variable, the weight of each fine cell.
        pairs, releases: of the model.
    """

    fine: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    model: Model
    inside: tuple[Array, ...]
    pairs: Pairs
    releases: Releases

    def fine_cells(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Draw each row's fine cells given its model cells."""
        out = np.empty_like(codes)
        for axis, (fine, own, weights) in enumerate(zip(self.fine, self.variables, self.inside, strict=True)):
            lumps = lump(fine, own)
            table = np.zeros((len(own.cells), len(fine.cells)))
            table[lumps, np.arange(len(fine.cells))] = weights
            out[:, axis] = systematic(codes[:, axis], table, rng)
        return out

    def distances(self, fine: Codes) -> Iterator[Distance]:
        """Return the distance of rows, in fine cells, from each released table."""
        names = [variable.name for variable in self.fine]
        for session, release in enumerate(self.releases):
            if release is None:
                continue
            schema: Any = release.plan.schema
            for table, counts in tables_of(release).items():
                places = [names.index(name) for name in table]
                cells = [
                    lump(self.fine[place], schema.variable(name))[fine[:, place]]
                    for place, name in zip(places, table, strict=True)
                ]
                flat = np.ravel_multi_index(cells, counts.shape)
                shares = np.bincount(flat, minlength=counts.size) / len(fine)
                variables = [schema.variable(name) for name in table]
                sizes = [(each.name, len(each.cells)) for each in variables]
                declared = [len(self.fine[place].cells) for place in places]
                merged = tuple((*few, many) for few, many in zip(sizes, declared, strict=True) if few[1] < many)
                found = distance(variables, session, shares.reshape(counts.shape), counts, release.sigma["T"])
                yield replace(found, merged=merged)


def distance(variables: Sequence[Variable], session: int, shares: Array, counts: Array, sigma: float) -> Distance:
    """Return the total variation distance of shares from noisy counts, with an interval for the exact counts.

    By the triangle inequality the two differ by at most half the sum of ``|noise|`` over the number of records, plus
    half that number's relative error. Each is bounded at 97.5 %: ``|noise|`` has mean ``sigma sqrt(2 / pi)`` and
    variance ``sigma^2 (1 - 2 / pi)``.
    """
    records = max(float(counts.sum()), 1.0)
    value = float(np.abs(shares - counts / records).sum() / 2)
    n = counts.size
    noise = sigma * (n * math.sqrt(2 / math.pi) + _LEVEL_NOISE * math.sqrt(n * (1 - 2 / math.pi)))
    margin = (noise + _LEVEL_TOTAL * sigma * math.sqrt(n)) / 2 / records
    low, high = max(0.0, value - margin), min(1.0, value + margin)
    names, cells = tuple(each.name for each in variables), tuple(each.cells for each in variables)
    return Distance(names, session, min(value, 1.0), low, high, cells, counts / records, shares, sigma / records)


def fit_of(course: Synthetic, releases: Releases) -> Fit:
    """Fit the model to a course's releases.

    Raises:
        ReleaseError, PlanError: as of :func:`synthetic`.
    """
    if not isinstance(course, Synthetic):
        raise ReleaseError(f"course must be a Synthetic course, got {type(course).__name__}; give that of the releases")
    if len(releases) != course.most or not any(releases):
        raise ReleaseError(f"give the releases of all {course.most} sessions, in order, of which one has a sum")
    for place, release in enumerate(releases):
        if release is not None and release.plan != course.next(releases[:place]) and place:
            raise ReleaseError(f"release {place} is not of this course; give those of its own sessions, in order")
    variables, measurements = course.measurements(releases)
    names = [variable.name for variable in variables]
    pairs = course.pairs(releases)
    edges = [(names.index(a), names.index(b)) for a, b in pairs]
    tree = JunctionTree(tuple(len(each.cells) for each in variables), tuple(edges))
    held = [each for each in measurements if tree.holds(each.variables)]
    others = [each for each in measurements if not tree.holds(each.variables)]
    model = fitted(tree, [*held, *margins(others)])
    ones = {} if releases[0] is None else tables_of(releases[0])
    sigma = 0.0 if releases[0] is None else releases[0].sigma["T"]
    inside = tuple(
        _inside(fine, own, *(occupied(fine, ones[fine.name,], sigma) if ones else (None, 0.0)))
        for fine, own in zip(course.schema.variables, variables, strict=True)
    )
    return Fit(course.schema.variables, variables, model, inside, pairs, tuple(releases))


def promise_of(course: Synthetic) -> str:
    """Return the promise of all sessions, in words."""
    total, privacy = total_of(course), course.plan.privacy
    return (
        f"epsilon {total.epsilon:.4g} at delta {total.delta:.3g} for one {privacy.unit} "  # type: ignore[union-attr]
        f"({privacy.adjacency}) over {total.sessions} sessions"  # type: ignore[union-attr]
    )


def _inside(fine: Variable, own: Variable, counts: Array | None, sigma: float) -> Array:
    """Return fine cells' counts, shrunk to their model cell's mean (positive-part James-Stein)."""
    if counts is None:
        return np.ones(len(fine.cells))
    lumps, out = lump(fine, own), np.empty(len(fine.cells))
    for cell in range(len(own.cells)):
        held = counts[lumps == cell]
        apart = held - held.mean() if len(held) else held
        squares = float(np.square(apart).sum())
        shrunk = max(0.0, 1 - (len(held) - 1) * sigma**2 / squares) if squares > 0 else 0.0
        out[lumps == cell] = held - apart * (1 - shrunk)
    return np.maximum(out, 0.0) + 1e-9


def _drawn(variable: Variable, cells: Codes, rng: np.random.Generator) -> list[Any]:
    if not isinstance(variable, Bins):
        named = np.array(
            [*variable.values, *["other"] * bool(variable.other), *[None] * bool(variable.missing)], object
        )
        return list(named[cells])
    edges = np.array(variable.edges)
    low, high = np.append(edges[:-1], 0.0), np.append(edges[1:], 0.0)
    values = rng.uniform(low[cells], high[cells])
    return [None if cell == len(edges) - 1 else value for cell, value in zip(cells, values.tolist(), strict=True)]
