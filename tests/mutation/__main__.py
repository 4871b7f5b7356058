"""The table of bugs and of who sees them, with a verdict: ``python -m tests.mutation``; names after it choose rows.

Exit code 1 when a bug is seen by nobody, or by fewer than it should be. The options are those of every benchmark.
"""

import argparse
import sys
from collections.abc import Iterator

from benchmarks import mutation
from benchmarks.measuring import Row, Rows, command
from tests.mutation.catalogue import MUTANTS

_ENOUGH = 20


def verdict(rows: Rows) -> str:
    """What is not as it should be, or nothing."""
    unseen = [row["bug"] for row in rows if not row["unit tests"] or not _wanted(row) <= set(row["audits"].split(", "))]
    by_audit = sum(bool(row["audits"]) for row in rows)
    if unseen:
        return f"not seen as they should be: {', '.join(unseen)}"
    if len(rows) == len(MUTANTS) and by_audit < _ENOUGH:
        return f"only {by_audit} bugs are seen by an audit; {_ENOUGH} are asked for"
    return ""


def _wanted(row: Row) -> set[str]:
    return set(MUTANTS[row["bug"]].audits)


def main() -> int:
    """Measure, print and judge."""
    rows: list[Row] = []

    def kept(chosen: argparse.Namespace) -> Iterator[tuple[str, Rows]]:
        for title, measured in mutation.tables(chosen):
            rows.extend(measured)
            yield title, measured

    command("mutation", __doc__ or "", kept, mutation.options)
    complaint = verdict(rows)
    seen = sum(bool(row["audits"]) for row in rows)
    print(f"{len(rows)} bugs, {seen} seen by an audit; {complaint or 'all are seen as they should be'}")
    return int(bool(complaint))


if __name__ == "__main__":
    sys.exit(main())
