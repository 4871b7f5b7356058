"""Count missing values by column, and by arm, from tables of counts with a cell for what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from privstats.errors import ReleaseError
from privstats.inference.counts.table import Interval, count_table, ratio, z_of
from privstats.inference.description import Count, Description
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import RowTable, Summary, ends_of, framed
from privstats.kinds import CountSchema
from privstats.release import Release
from privstats.schema import narrowed


class MissingValues(NamedTuple):
    """Missing values of one column in one group.

    Attributes:
        column, group: names; an empty group is all records.
        missing, records: noisy counts.
        share: of the group's records, with its interval.
        missing_sigma, records_sigma: standard errors of the noise in both counts.

    Example:
        >>> bmi, arm = ps.Bins("bmi", (15, 25, 45), missing=True), ps.Categories("arm", ("a", "b"))
        >>> schema = ps.CountSchema((arm, bmi), (("arm", "bmi"),))
        >>> records = {"arm": ["a", "b"] * 50, "bmi": [20.0, None, 30.0, 22.0] * 25}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> first, second = ps.inference.missing_values(release, by="arm")
        >>> (first.group, first.share.value), (second.group, second.share.value)
        (('a', 0.0), ('b', 0.5))
    """

    column: str
    group: str
    missing: float
    records: float
    share: Interval
    missing_sigma: float = 0.0
    records_sigma: float = 0.0


@dataclass(frozen=True, eq=False)
class MissingTable(RowTable):
    """Missing values by column and group, as :func:`missing_values` returns them.

    Example:
        >>> bmi = ps.Bins("bmi", (15, 25, 45), missing=True)
        >>> schema = ps.CountSchema((bmi,), (("bmi",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"bmi": [20.0, None, 30.0, 22.0] * 25}))
        >>> table = ps.inference.missing_values(release)
        >>> table.to_rows()[0]["proportion"], len(table)
        (0.25, 1)
    """

    values: tuple[MissingValues, ...]
    release: Release = field(repr=False)
    alpha: float

    def __iter__(self) -> Iterator[MissingValues]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def reported(self) -> bool:
        """Whether any share is reported."""
        return any(each.share.reported for each in self.values)

    def to_rows(self) -> list[dict[str, object]]:
        """Return a row per column and group."""
        return [
            {
                "variable": each.column,
                "group": each.group,
                "n": each.missing,
                "n_std_error": each.missing_sigma,
                "n_group": each.records,
                "n_group_std_error": each.records_sigma,
                "proportion": each.share.value if each.share.reported else math.nan,
                "conf_low": each.share.low,
                "conf_high": each.share.high,
                "reported": each.share.reported,
            }
            for each in self.values
        ]

    def to_frame(self) -> Any:
        """Return a ``DataFrame`` of :meth:`to_rows`."""
        return framed(self.to_rows())

    def summary(self) -> Summary:
        """Return the table."""
        grouped = any(each.group for each in self.values)
        source = Source(self.release, self.alpha, "independent records, honest clients")
        return source.summary(
            "Missing values by column" + " and group" * grouped,
            ("column", *(["group"] if grouped else []), "missing", "records", "share", *ends_of(self.alpha)),
            [_cells(each, grouped=grouped) for each in self.values],
            about=Description(noisy_rows=any(each.missing_sigma > 0 for each in self.values)),
            notes=(
                "Each share is of a column's own missing values: a record with two of them is in both rows, so rows do "
                "not add up to the records that an analysis of complete cases leaves out.",
                "Whether values are missing at random cannot be seen in these counts.",
            ),
            methods="Missing values were counted by column"
            + " and group" * grouped
            + "; intervals of shares are Wilson's, inverted with the noise of the counts.",
        )


def _cells(missing: MissingValues, *, grouped: bool) -> tuple[str, ...]:
    share = missing.share
    shown = f"{100 * share.value:.1f}%" if share.reported else HIDDEN
    number = Count("missing", missing.missing, missing.missing_sigma)
    counts = (number.short, Count("records", missing.records, missing.records_sigma).short)
    ends = (f"{100 * share.low:.1f}%", f"{100 * share.high:.1f}%")
    return (missing.column, *([missing.group] if grouped else []), *counts, shown, *ends)


def missing_values(release: Release, *, by: str | None = None, alpha: float = 0.05) -> MissingTable:
    """Return how many values of each column are missing, in all records or by group, at no privacy cost.

    Each column is a variable with ``missing=True``. With ``by`` it is read from a table that crosses both. Intervals of
    shares are those of :func:`proportions`, for the population that the records sample.

    Args:
        release: of a :class:`~privstats.CountSchema`.
        by: variable of groups, such as the arm.

    Raises:
        ReleaseError: no variable has a cell for missing values, or no table crosses one with ``by``.

    Example:
        >>> bmi, arm = ps.Bins("bmi", (15, 25, 45), missing=True), ps.Categories("arm", ("a", "b"))
        >>> schema = ps.CountSchema((arm, bmi), (("arm", "bmi"),))
        >>> records = {"arm": ["a", "b"] * 50, "bmi": [20.0, None, 30.0, 22.0] * 25}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> [(each.group, each.missing) for each in ps.inference.missing_values(release, by="arm")]
        [('a', 0.0), ('b', 25.0)]
    """
    z = z_of(alpha)
    refusal = ReleaseError("missing_values reads count tables; measure a CountSchema of variables with missing=True")
    schema = narrowed(release.plan.schema, CountSchema, refusal)
    wanted = () if by is None else (by,)
    tables = [table for table in schema.tables if set(wanted) <= set(table)]
    columns = [
        each.name
        for each in schema.variables
        if each.missing and each.name != by and any(each.name in table for table in tables)
    ]
    if not columns:
        crossed = "" if by is None else f" and is crossed with {by!r}"
        raise ReleaseError(
            f"no variable of this plan has a cell for missing values{crossed}: declare missing=True, and a table of "
            "the column" + ("" if by is None else f" and {by!r}")
        )
    return MissingTable(tuple(each for name in columns for each in _of_column(release, name, by, z)), release, alpha)


def _of_column(release: Release, name: str, by: str | None, z: float) -> Iterator[MissingValues]:
    table = count_table(release, *(() if by is None else (by,)), name)
    groups = [""] if by is None else list(table.variables[0].cells)
    for group, cells in zip(groups, table.counts.reshape(len(groups), -1), strict=True):
        missing, records = float(cells[-1]), float(cells.sum())
        share = ratio(missing, records, (1, len(cells) - 1), table.sigma, z)
        yield MissingValues(name, group, missing, records, share, table.sigma, table.sigma * math.sqrt(len(cells)))
