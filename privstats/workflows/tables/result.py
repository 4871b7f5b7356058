"""Hold a reader's table with its rows of data and its drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privstats.inference import Summary
from privstats.printable import csv_text


class TableResult(NamedTuple):
    """A table, its rows of numbers, whether noise leaves any readable, and its drawing.

    Attributes:
        tests: rows of the tests that the table prints besides its estimates: interactions and declared margins.
        hides: whether noise hides a row that is not reported; a scorecard shows all its points, which are the model's.

    Example:
        >>> from privstats.workflows.tables import TableResult
        >>> rows = [{"name": "a", "estimate": 0.5, "reported": True}, {"name": "b", "estimate": 0.2, "reported": False}]
        >>> TableResult(None, rows, reported=True).csv.splitlines()
        ['name,estimate,reported', 'a,0.5,TRUE', 'b,NA,FALSE']
    """

    summary: Summary
    rows: list[dict[str, object]]
    reported: bool
    draw: Callable[[Path], Any] | None = None
    hides: bool = True
    tests: tuple[Mapping[str, object], ...] = ()

    @property
    def data(self) -> list[dict[str, object]]:
        """The rows, without any number of one that noise hides."""
        return [_without_numbers(row) if self.hides and not row.get("reported", True) else row for row in self.rows]

    @property
    def csv(self) -> str:
        """The rows as data: numbers in full, one in each cell; NA for none, TRUE and FALSE, as R reads them."""
        names = list(dict.fromkeys(name for row in (*self.rows, *self.tests) for name in row))
        return csv_text([names, *([_cell(row.get(name)) for name in names] for row in (*self.data, *self.tests))])


def _without_numbers(row: Mapping[str, object]) -> dict[str, object]:
    return {
        name: None if isinstance(value, Number) and not isinstance(value, bool) else value
        for name, value in row.items()
    }


def _cell(value: object) -> object:
    """A bool as R and others read it; a number in the fewest digits that give it back."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "NA"
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else "Inf" if value > 0 else "-Inf"
    return value
