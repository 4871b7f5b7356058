"""Draw synthetic rows from a course's releases alone, and state their distance from released tables."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privstats.contrib.synthetic.columns import Column, restored
from privstats.contrib.synthetic.course import Pairs, Synthetic
from privstats.contrib.synthetic.distances import Distance
from privstats.contrib.synthetic.fit import fit_of
from privstats.contrib.synthetic.model import Codes
from privstats.course import Releases
from privstats.errors import ReleaseError
from privstats.extend.courses import total_of
from privstats.extend.support import atomic_write, optional_dependencies
from privstats.intake.column_names import SYNTHETIC_MARK
from privstats.plan.exclusions import assumed_of_excluded
from privstats.schema import Bins, Variable

NO_INTERVALS = (
    "No interval, test or standard error may be computed from these rows as if they were records: they hold the noise "
    "of the released tables and the errors of a model, and as many rows can be drawn as anyone wants."
)
_MAX_ROWS = 10_000_000


@dataclass(frozen=True, eq=False)
class SyntheticRows(Mapping[str, list[Any]]):
    """Synthetic rows as a mapping from column names to values.

    Attributes:
        drawn: each column's values: None is missing, ``"other"`` a value that the plan does not list.
        promise: of all sessions, in words.
        pairs: with a measured joint table.
        distances: of every released table.
        records: estimated number of records.
        assumed: of records that the plan excludes; empty if it excludes none.

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
    assumed: str = ""

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
        assumed = f" Assumed: {self.assumed}." if self.assumed else ""
        return f"Synthetic rows, no records: {self.promise}. Pairs measured: {measured}.{assumed} {NO_INTERVALS}"

    def summary(self) -> str:
        """Return the note, and a line per released table."""
        lines = [
            f"{' x '.join(each.columns)}: distance {each.exact_text} from the exact table, {each.value:.3f} from the "
            f"released one with its noise (session {each.session})" + (f"; {each.merged_text}" if each.merged else "")
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
    assumed = assumed_of_excluded(course.plan)
    return SyntheticRows(values, promise_of(course), fit.pairs, distances, fit.model.records, assumed)


def promise_of(course: Synthetic) -> str:
    """Return the promise of all sessions with its condition, in words."""
    total, privacy = total_of(course), course.plan.privacy
    return (
        f"for one {privacy.unit} ({privacy.adjacency}) over {total.sessions} sessions, "  # type: ignore[union-attr]
        f"{total.claim}"
    )


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
