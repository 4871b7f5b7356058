"""The table of bugs and of who sees them: ``python -m tests.mutation``; names after it choose rows.

Exit code 1 when a bug is seen by nobody, or by fewer than it should be.
"""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table

from tests.mutation.catalogue import MUTANTS
from tests.mutation.measuring import audits_under, evidence, failures_under

_ENOUGH = 20


def main(names: list[str]) -> int:
    """Measure and print."""
    console = Console(width=150)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("bug", "unit test that fails", "audit that sees it", "evidence", "attack"):
        table.add_column(heading, overflow="fold")
    wrong, by_audit = [], 0
    for name in names or list(MUTANTS):
        failed = failures_under(name)
        seen = {audit: report for audit, report in audits_under(name).items() if report.violated}
        by_audit += bool(seen)
        if not failed or not set(MUTANTS[name].audits) <= set(seen):
            wrong.append(name)
        found = "; ".join(f"{audit} {evidence(report)}" for audit, report in seen.items())
        table.add_row(name, ", ".join(failed) or "-", ", ".join(seen) or "-", found or "-", "")
        console.print(f"[dim]{name}: {len(failed)} unit tests, {len(seen)} audits[/]", highlight=False)
    console.print(table)
    console.print(
        f"{len(names or MUTANTS)} bugs, {by_audit} seen by an audit; not as they should be: {wrong or 'none'}"
    )
    return int(bool(wrong) or (not names and by_audit < _ENOUGH))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
