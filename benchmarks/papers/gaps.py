"""What can be compared across backbones: how far the rows of a table lie above one of them, printed and here.

Not the numbers themselves, which say nothing about a method where the backbone is another. From the values of a run to
cells whose verdict is that of any other number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.papers.cells import Cell, Published, Sheet

__all__ = ["above", "gap_sheet"]

_WHY = "another backbone"


def gap_sheet(sheet: Sheet, base: str) -> Sheet:
    """The sheet of the points above ``base`` in the table of ``sheet``: neither way is better."""
    return Sheet(sheet.paper, f"{sheet.table}, points above {base}", sheet.about, trials=sheet.trials)


def above(
    sheet: Sheet,
    base: str,
    printed: Mapping[str, str],
    found: Mapping[str, Sequence[float]],
    column: str,
    why: str = _WHY,
) -> list[Cell]:
    """A cell per row other than ``base``: its points above ``base``, paired over the seeds.

    Args:
        sheet: of the gaps.
        base: the row to compare with.
        printed: by row, as printed; rows that are not printed are left out.
        found: by row, one value per seed, or one value where no seed changes it.
        column: as printed.
        why: the reason, in case a gap differs.
    """
    rows = [name for name in found if name in printed and name != base]
    start = np.asarray(found[base])
    return [
        sheet.cell(name, column, _difference(printed[name], printed[base]), np.asarray(found[name]) - start, why=why)
        for name in rows
    ]


def _difference(text: str, base: str) -> str:
    """Of two printed numbers, as it would be printed: with their digits and, where both have one, their spread."""
    one, other = Published.of(text), Published.of(base)
    places = max(0, -round(math.log10(2 * min(one.rounding, other.rounding))))
    told = f"{one.value - other.value:+.{places}f}"
    if one.spread is None or other.spread is None:
        return told
    return f"{told}±{math.hypot(one.spread, other.spread):.{places}f}"
