"""Log loss of the ways of ``cells`` and ``rivals``, with today's recipe, on five splits.

    python -m benchmarks.raw_tables.losses --save --keep

Their AUC was measured on 25 splits, with the recipe of that time; where it is shown, this log loss stands beside it.
"""

from __future__ import annotations

import argparse

from benchmarks.measuring import Tables, command
from benchmarks.raw_tables import cells, rivals
from benchmarks.raw_tables.running import Ways, options, tables_of

__all__ = ["WAYS"]

WAYS = Ways(
    private={**cells.WAYS.private, **rivals.WAYS.private},
    exact={**cells.WAYS.exact, **rivals.WAYS.exact},
    left_out=rivals.WAYS.left_out,
)
"""By name."""


def _options(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.set_defaults(splits=5)


def tables(chosen: argparse.Namespace) -> Tables:
    """As ``running`` has them."""
    yield from tables_of(WAYS, "raw_tables.losses", chosen)


if __name__ == "__main__":
    command("raw_tables.losses", __doc__, tables, _options)
