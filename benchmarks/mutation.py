"""Which unit tests and which audits see each deliberate bug of ``tests/mutation``.

    python -m benchmarks.mutation --save    # about seven minutes on one core

Measures only; ``python -m tests.mutation`` is the same with a verdict, for the nightly run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.measuring import Rows, command
from tests.mutation.catalogue import MUTANTS
from tests.mutation.measuring import seen

__all__ = ["TITLE", "options", "tables"]

TITLE = "deliberate bugs and who sees them"
_QUICK = ("noise without sign",)


def tables(chosen: argparse.Namespace) -> Iterator[tuple[str, Rows]]:
    """One row per bug."""
    names = _QUICK if chosen.quick else chosen.bug or tuple(MUTANTS)
    yield TITLE, [seen(name) for name in names]


def options(parser: argparse.ArgumentParser) -> None:
    """Names choose rows."""
    parser.add_argument("bug", nargs="*", choices=[[], *MUTANTS], help="only these bugs; all when omitted")


if __name__ == "__main__":
    command("mutation", __doc__, tables, options)
