"""Shares of a variable's cells as a table for publication."""

from __future__ import annotations

from collections.abc import Mapping

from privstats.inference.counts.table import Interval
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import Summary, ends_of
from privstats.release import Release

__all__ = ["proportions_summary"]


def proportions_summary(shares: Mapping[str, Interval], release: Release, alpha: float) -> Summary:
    """Shares of the cells of one variable."""
    rows = [
        (cell, f"{share.value:.4f}", f"{share.low:.4f}", f"{share.high:.4f}")
        if share.told
        else (cell, HIDDEN, "0", "1")
        for cell, share in shares.items()
    ]
    source = Source(release, alpha, "independent records, honest clients")
    return Summary(
        title=source.title("Proportions"),
        promise=source.promise,
        head=(),
        columns=("", "proportion", *ends_of(alpha)),
        rows=tuple(rows),
        foot=tuple(source.foot),
        methods=source.methods("Shares of records have Wilson's intervals, widened by the noise of the counts."),
    )
