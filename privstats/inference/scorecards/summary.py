"""A scorecard as a table for publication: words and columns only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.inference.reporting import Source, listed
from privstats.inference.summary import Summary, ends_of

if TYPE_CHECKING:  # a scorecard brings its own summary
    from privstats.inference.scorecards.table import ColumnPoints, Scorecard

__all__ = ["card_summary"]


def card_summary(card: Scorecard) -> Summary:
    """Points per column and cell; those of a cell that may be empty stand in parentheses, without a band."""
    rows = []
    for row, outcome in enumerate(card.outcomes):
        for column in card.columns:
            first = column.name if len(card.outcomes) == 1 else f"{outcome}: {column.name}"
            for place, cell in enumerate(column.cells):
                share = f"{100 * max(column.shares[place], 0.0):.0f} %"
                rows.append((first if not place else "", cell, share, *_points(column, row, place)))
    release, bands = (
        card.releases[0],
        (
            "Bands are about what these records would have given without noise, its spread and the head's own bias "
            "under it: not about what other records would have given."
        ),
    )
    source = Source(release, card.alpha, "", tuple(each.plan for each in card.releases))
    return Summary(
        title=source.title("Scorecard"),
        promise=f"Privacy: {card.promise}.",
        head=tuple(
            (f"base, {outcome}", f"{value:+.3f}") for outcome, value in zip(card.outcomes, card.base, strict=True)
        ),
        columns=("", "cell", "records", "points", *ends_of(card.alpha)),
        rows=tuple(rows),
        foot=(
            "A record's score is the base and its points: "
            + ("log odds." if len(card.outcomes) == 1 else "the softmax of all scores gives the probabilities."),
            *(() if card.exact else ("Rows are taken at one length; the head divides each by its own.",)),
            "Points in parentheses: noise alone could show so few records, so they are no finding.",
            bands,
            f"Privacy: {card.promise}.",
            f"Plan {release.plan.digest[:16]}, {len(release.survivors)} of {release.plan.cohort.clients} clients.",
        ),
        methods=source.methods(
            f"Points of {listed([column.name for column in card.columns])}: the log odds that a classifier from sums "
            "over cells of the columns gives each cell, less their mean over all records.",
            claim=bands,
            privacy=f"Privacy: {card.promise}.",
        ),
    )


def _points(column: ColumnPoints, row: int, place: int) -> tuple[str, str, str]:
    """The points of a cell and its band; of several steps the first and the last, and the band of all."""
    steps = column.intervals.of_steps == place
    points = [f"{value:+.2f}" for value in column.points[row, steps]]
    said = points[0] if points[0] == points[-1] else f"{points[0]} to {points[-1]}"
    if not column.filled[place]:
        return f"({said})", "", ""
    return said, f"{column.low[row, steps].min():+.2f}", f"{column.high[row, steps].max():+.2f}"
