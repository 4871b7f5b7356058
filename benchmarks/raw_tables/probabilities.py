"""The clip of residuals and what it does to probabilities: AUC, log loss and mean probability, table by table.

    python -m benchmarks.raw_tables.probabilities --save --keep

"ours" is the recipe as it comes; "a clip of .3" the same with the clip that it had on all tables before; "calibrated"
with a calibration as its last session; "LDA" the discriminant about a noisy mean; all from the columns alone, a tenth
of the cells missing. DP-EBM gets the same records, true ranges, and the true median for each gap. Noise scatters a mean
probability most on small tables, so every way releases a split four times on tables of fewer than 2,000 records, and
eight times below 1,000; a split's score is the mean over its releases.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from benchmarks.measuring import Tables, command
from benchmarks.raw_tables import rivals
from benchmarks.raw_tables.cells import Array, behind_counts, declared, default, found_by
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.mean_probability import LINES
from benchmarks.raw_tables.running import Ways, once, options, tables_of
from benchmarks.raw_tables.sets import Split
from privstats import heads
from privstats.course.rounds import Rounds
from privstats.estimates.recipes import GRADIENT_CLIP

__all__ = ["WAYS"]

_SPLITS = 10
_RELEASES = ((1_000, 8), (2_000, 4))


def clipped_at_three_tenths(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """Residuals are shortened to .3 on every table."""

    def with_old_clip(course: Rounds) -> Rounds:
        return replace(course, clip=GRADIENT_CLIP)

    return [behind_counts(declared(known), split, epsilon, rest=with_old_clip) for split in splits]


def releases(records: int) -> int:
    """Return how often each way releases a split of a table with so many records."""
    return next((many for below, many in _RELEASES if records < below), 1)


WAYS = Ways(
    private={
        "ours": default,
        "a clip of .3": clipped_at_three_tenths,
        "calibrated": found_by(partial(heads.RefinedSoftmax, calibrated=True), ramp=True),
        "LDA": found_by(heads.LDA, ramp=True),
        "DP-EBM": rivals.WAYS.private["DP-EBM"],
    },
    left_out={name: why for name, why in rivals.WAYS.left_out.items() if name == "DP-EBM"},
    releases=releases,
)
"""By name; all miss a tenth of the cells."""


def _options(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("--releases", type=int, default=1, help="release each split at least so often")
    parser.set_defaults(tables=list(LINES), epsilons=[1.0, 3.0], splits=_SPLITS)


def tables(chosen: argparse.Namespace) -> Tables:
    """As ``running`` has them."""
    ways = replace(WAYS, releases=once if chosen.quick else lambda records: max(chosen.releases, releases(records)))
    yield from tables_of(ways, "raw_tables.probabilities", chosen)


if __name__ == "__main__":
    command("raw_tables.probabilities", __doc__, tables, _options)
