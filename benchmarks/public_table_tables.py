"""The number tables of public data sets beside statsmodels and lifelines, on benchmarks/inference/numbers.md.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.inference.printed_numbers import AGREES, APART, IN_ERRORS, NO_RIVAL, group_of
from benchmarks.measuring import Row
from benchmarks.table import Cells, Shown, Table, Tables, by_name, titled

__all__ = ["TABLES"]

_EXACT, _NAME = "exact sums: ", "inference.public_tables"


def public_exact() -> Cells:
    """How many numbers each table prints, and how many are the rival's."""
    head = ["table", "numbers printed", "the rival's", "other by design", "no rival has it", "beside"]
    return [head, *(_line(name, rows) for name, rows in titled(_NAME, _EXACT))]


def _line(name: str, rows: Sequence[Row]) -> list[str]:
    counts = [sum(group_of(row) == each for row in rows) for each in (AGREES, APART, NO_RIVAL)]
    beside = sorted({row["source"].partition(",")[0] for row in rows if row["source"]})
    return [name, *map(str, (len(rows), *counts)), ", ".join(beside)]


def public_design() -> Cells:
    """Which numbers differ by design, by how much at most, and why."""
    head = ["table", "columns", "numbers", "largest difference, in the rival's standard errors", "why"]
    return [head, *(line for name, rows in titled(_NAME, _EXACT) for line in _reasons(name, rows))]


def _reasons(name: str, rows: Sequence[Row]) -> Iterator[list[str]]:
    apart = [row for row in rows if group_of(row) == APART]
    for place, reason in enumerate(dict.fromkeys(row["by design"] for row in apart)):
        own = [row for row in apart if row["by design"] == reason]
        columns = ", ".join(dict.fromkeys(str(row["column"]).replace("|", "\\|") for row in own))
        largest = max((row[IN_ERRORS] for row in own if row[IN_ERRORS] is not None), default=None)
        shown = "-" if largest is None else f"{largest:.2f}"
        yield [name if not place else "", columns, str(len(own)), shown, reason]


def _of(part: str, all_: str) -> str:
    return f"{{{part}}} of {{{all_}}}"


_PRIVATE: dict[str, Shown] = {
    "epsilon": "{epsilon:g}",
    "table": "{table}",
    "releases": "{releases}",
    "intervals hidden": lambda row: f"{row['hidden']} of {row['intervals'] + row['hidden']}",
    "intervals that hold the rival's number": _of("hold the rival's", "intervals"),
    "width over the rival's": lambda row: (
        "-" if row["width over the rival's"] is None else "{:.2f}".format(row["width over the rival's"])
    ),
    "numbers within 1.96 standard errors of the noise": lambda row: (
        "-" if not row["numbers with noise"] else f"{row['within 1.96 of its error']} of {row['numbers with noise']}"
    ),
}

TABLES: Tables = {
    **by_name(public_exact, public_design),
    "public_private": Table(_NAME, "private releases", _PRIVATE),
}
