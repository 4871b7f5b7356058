"""Read a head's points by cell, and a head's score on records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privstats import heads, inference
from privstats.inference import Scorecard
from privstats.kinds import GradientSchema
from privstats.release import Release
from privstats.workflows.tables.options import Options
from privstats.workflows.tables.result import TableResult


def scorecard(releases: Sequence[Release], options: Options) -> TableResult:
    """Read the points of a classifier on declared columns."""
    if any(isinstance(each.plan.schema, GradientSchema) for each in releases):
        head: Any = heads.RefinedSoftmax().fit_releases(releases)
    else:
        head = heads.LDA().fit_release(releases if len(releases) > 1 else releases[0])
    return _card(inference.scorecard(head, releases, alpha=options.alpha))


def _card(points: Scorecard) -> TableResult:
    """Return points by outcome, column and step; reported where a cell's band excludes 0."""
    rows: list[dict[str, object]] = [
        {"class": outcome, "variable": "", "level": "base", "points": float(base)}
        for outcome, base in zip(points.outcomes, points.base, strict=True)
    ]
    rows += points.to_rows()
    return TableResult(
        points.summary(),
        rows,
        any(bool(column.reported.any()) for column in points.columns),
        points.plot,
        hides=False,
    )


def score(releases: Sequence[Release], options: Options) -> TableResult:
    """Read a head's measures, by name and class."""
    table = inference.head_score(releases[0], alpha=options.alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported, table.plot)
