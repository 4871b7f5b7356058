"""Rows drawn from a synthetic course, in worlds that differ in one unit alone.

The attacker knows the course, every other record, the measured pairs and how rows are drawn, and sees rows alone, as
many as it likes. Sessions come from the library's own measuring, contribution and release, each the worst session that
its plan admits. A unit is what the plan promises about: a record, all rows of a person, or all records of a client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.synthetic.course import Synthetic
from privstats.contrib.synthetic.fit import fit_of
from privstats.course.base import Releases, as_next
from privstats.encoding import flatten
from privstats.errors import PlanError
from privstats.intake.columns import read
from privstats.randomness import Generator, uniform
from privstats.records.cells import cells_in
from privstats.release import Release
from threat_models.audits.counts import records_at
from threat_models.audits.target import Target
from threat_models.one_missing import measured, rows_of

Columns = Mapping[str, Sequence[Any]]
Codes = NDArray[np.intp]

ROWS_PER_RECORD = 20
"""Rows cost nothing, and with many the sampling error of their shares vanishes."""
_KNOWN = 60
_CROWDED = 0.6
"""Known records fill the first part of each column's cells, so that a unit in the others is as visible as can be."""
_NEAREST = 100


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """What an attacker sees of a synthetic course.

    Attributes:
        rows: cells of the plan's variables, ``(rows, columns)``.
        pairs: columns of each measured pair.
        sigma: noise standard deviation of a count, in the first session's tables and in those of pairs.
    """

    rows: Codes
    pairs: Sequence[tuple[int, int]]
    sigma: tuple[float, float]

    @classmethod
    def of(cls, course: Synthetic, releases: Releases, count: int, rng: Generator) -> DrawnRows:
        """Draw ``count`` rows from the model that a course's releases yield."""
        fit = fit_of(course, releases)
        own = np.random.default_rng(int(uniform(1, rng)[0] * 2**53))
        names = [variable.name for variable in fit.fine]
        pairs = [(names.index(a), names.index(b)) for a, b in fit.pairs]
        sigmas = [0.0 if each is None else each.sigma["T"] for each in (releases[0], releases[-1])]
        return cls(fit.fine_cells(fit.model.draw(count, own), own), pairs, (sigmas[0], sigmas[1]))

    @property
    def tables(self) -> Iterator[tuple[list[int], float]]:
        """The columns of each measured table, and its noise."""
        yield from (([column], self.sigma[0]) for column in range(self.rows.shape[1]))
        yield from ((list(pair), self.sigma[1]) for pair in self.pairs)

    def nearness(self, own: Codes) -> float:
        """Return minus the mean number of columns that differ from a record, over the nearest hundredth of the rows."""
        differing = np.sort((self.rows != own).sum(axis=1))
        return -float(differing[: max(1, len(self.rows) // _NEAREST)].mean())


def cells_of(course: Synthetic, records: Columns) -> Codes:
    """Return records in cells of the plan's variables, ``(records, columns)``."""
    return np.column_stack([cells_in(each, read(records[each.name])) for each in course.schema.variables])


@dataclass(frozen=True, eq=False)
class RowsWorld:
    """A course over known records, next to one of several units, or to none.

    Attributes:
        course: the course under attack.
        records: the known records, then the units', by column.
        known: number of known records.
    """

    course: Synthetic
    records: Columns
    known: int

    @classmethod
    def drawn(cls, course: Synthetic, units: int, rng: Generator) -> RowsWorld:
        """Draw known records, and units of which no two have the same cells.

        Raises:
            PlanError: fewer than two units differ.
        """
        plan = course.first
        rows, columns = rows_of(plan), len(course.schema.variables)
        known = min(_KNOWN, plan.cohort.max_records - rows)
        places = uniform((known + units * rows) * columns, rng).reshape(-1, columns)
        places[:known] *= _CROWDED
        records = records_at(course.schema, places)
        of_units = cells_of(course, records)[known:].reshape(units, -1)
        first = np.sort(np.unique(of_units, axis=0, return_index=True)[1])
        if len(first) < 2:
            raise PlanError("no two made-up units of this course have different cells, so none can be recognised")
        kept = [*range(known), *(known + unit * rows + row for unit in first for row in range(rows))]
        return cls(course, {name: [column[at] for at in kept] for name, column in records.items()}, known)

    @cached_property
    def cells(self) -> Codes:
        """The known records' cells, ``(known, columns)``."""
        return cells_of(self.course, self.records)[: self.known]

    @cached_property
    def units(self) -> Codes:
        """The units' cells, ``(units, rows, columns)``."""
        cells = cells_of(self.course, self.records)[self.known :]
        return cells.reshape(-1, rows_of(self.course.first), cells.shape[1])

    def exchange(self) -> tuple[int, int | None]:
        """Return the unit with the fewest known records in its cells, and under replace-one the least like it."""
        beside = (self.cells[:, None, None] == self.units[None]).sum(axis=(0, 2, 3))
        mine = int(beside.argmin())
        if getattr(self.course.first.privacy, "adjacency", "") != "replace-one":
            return mine, None
        alike = (self.units == self.units[mine]).sum(axis=(1, 2)) + beside / (beside.max() + 1.0)
        alike[mine] = np.inf
        return mine, int(alike.argmin())

    def seen(self, unit: int | None, rng: Generator) -> DrawnRows:
        """Return rows of the course over the known records and a unit, or over the known records alone.

        Raises:
            PlanError: a session aborts.
        """
        releases: list[Release | None] = []
        while (plan := self.course.next(releases) if releases else self.course.first) is not None:
            releases.append(as_next(self.course, releases, self._released(Target(plan), unit, rng)))
        return DrawnRows.of(self.course, releases, ROWS_PER_RECORD * max(1, self.known), rng)

    def evidence(self, seen: DrawnRows) -> NDArray[np.float64]:
        """Return each unit's Gaussian log-likelihood of the rows' tables less that of the known records alone."""
        found = np.zeros(len(self.units))
        for columns, sigma in seen.tables:
            every = np.concatenate([seen.rows, self.cells, self.units.reshape(-1, seen.rows.shape[1])])[:, columns]
            place = np.unique(np.ravel_multi_index(every.T, every.max(axis=0) + 1), return_inverse=True)[1]
            size, rows = int(place.max()) + 1, len(seen.rows)
            shares = np.bincount(place[:rows], minlength=size) / rows
            others = np.bincount(place[rows : rows + self.known], minlength=size)
            variance = sigma**2 + (others + 1) / ROWS_PER_RECORD

            def misfit(counts: NDArray[np.int64], shares: Any = shares, variance: Any = variance) -> float:
                return float(((shares * counts.sum() - counts) ** 2 / (2 * variance)).sum())

            moved = place[rows + self.known :].reshape(len(self.units), -1)
            without = misfit(others)
            found += [without - misfit(others + np.bincount(each, minlength=size)) for each in moved]
        return found

    def _released(self, target: Target, unit: int | None, rng: Generator) -> Release:
        """Return the worst session's release; the known records come without noise of their own."""
        plan, rows = target.plan, rows_of(self.course.first)
        mine = target.empty
        if unit is not None:
            start = self.known + unit * rows
            mine = measured(plan, (self.records, None), [*range(start, start + rows)], 0)
        total = target.sum_of([mine, *[target.empty] * max(0, target.worst_noise - 1)], rng)
        others = measured(plan, (self.records, None), [*range(self.known)], self.known)
        total.add(plan.ring.encode(flatten(others.for_client(0))))
        seen = target.seen(total, rng, minimum=True)
        if isinstance(seen, str):
            raise PlanError(f"a session of this course aborts over {self.known + rows} records: {seen}")
        return seen
