"""State which records a table excludes, how many where the release shows it, and what the table assumes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privstats.inference.counts.table import count_table
from privstats.inference.releases import reckoned_sigma
from privstats.inference.summary import count_of
from privstats.plan.exclusions import ASSUMED, assumed_of_excluded, excludes_records
from privstats.release import Release

_UNREADABLE = "Excluded are records that a party cannot read, such as records with a gap: "
_REMEDY = (
    "If exclusion depends on more than is assumed, estimates are of the records analysed alone: impute gaps, on sums "
    "or through cells of counts."
)


def assumed_of(release: Release, columns: Sequence[Sequence[str]]) -> str:
    """Return what a table assumes of excluded records; empty if none is excluded.

    Args:
        columns: for count tables, variables of which a reader uses the known values alone, by table.

    Example:
        >>> from privstats.inference.exclusions import assumed_of
        >>> sex = ps.Categories("sex", ("f", "m"), missing=True)
        >>> schema = ps.CountSchema((sex,), (("sex",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"sex": ["f", "m", None]}))
        >>> assumed_of(release, [["sex"]])
        'whether a record is excluded as unreadable does not depend on its values'
        >>> assumed_of(release, [])
        ''
    """
    if any(_with_gaps(release, names) for names in columns):
        return ASSUMED.format(release.plan.schema.ignorable)
    return assumed_of_excluded(release.plan)


def notes_on_excluded(release: Release, columns: Sequence[Sequence[str]]) -> list[str]:
    """Return sentences on excluded records: how many, where the release shows it, and what to do; none without any.

    Args:
        columns: as for :func:`assumed_of`.

    Example:
        >>> from privstats.inference.exclusions import notes_on_excluded
        >>> sex = ps.Categories("sex", ("f", "m"), missing=True)
        >>> schema = ps.CountSchema((sex,), (("sex",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"sex": ["f", "m", None]}))
        >>> notes_on_excluded(release, [["sex"]])[0]
        'Excluded here are released records with a gap: in sex 1.'
    """
    notes = []
    if excludes_records(release.plan):
        notes.append(f"{_UNREADABLE}{_counted(release) or 'each party knows how many of its own'}.")
    if gaps := [_missing(release, names) for names in columns if _with_gaps(release, names)]:
        notes.append(f"Excluded here are released records with a gap: {'; '.join(gaps)}.")
    return [*notes, _REMEDY] if notes else []


def _with_gaps(release: Release, names: Sequence[str]) -> list[str]:
    schema: Any = release.plan.schema
    return [name for name in names if schema.variable(name).missing]


def _missing(release: Release, names: Sequence[str]) -> str:
    """Return the number of records with a gap in one of these variables, from the table that crosses them."""
    table = count_table(release, *names)
    known = table.known()
    sigma = table.sigma * math.sqrt(table.counts.size - known.counts.size)
    *others, last = _with_gaps(release, names)
    return f"in {', '.join(others)}{' or ' * bool(others)}{last} {_number(table.total - known.total, sigma)}"


def _counted(release: Release) -> str:
    """Return the number of excluded records that an effect's plan counts; empty if it counts none."""
    if not getattr(release.plan.schema, "left_out", None):
        return ""
    counts = np.maximum(np.rint(release.moments.O), 0.0)
    return _number(float(counts.sum()), reckoned_sigma(release).get("O", 0.0) * math.sqrt(counts.size))


def _number(value: float, sigma: float) -> str:
    return count_of(value) + (f" (standard error of the noise {sigma:,.1f})" if sigma else "")
