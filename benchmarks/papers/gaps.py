"""What can be compared across backbones: how far one row lies above another, as printed and as it came out here.

Not a cell: a half sentence for the verdict of one, where absolute numbers say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.papers.cells import Published

__all__ = ["gap"]

Values = float | Sequence[float]


def gap(base: str, printed: tuple[str, str], ours: tuple[Values, Values]) -> str:
    """``"; above BASE: the paper +1.0, here +2.0"``.

    Args:
        base: the row to compare with, in words.
        printed: of this row and of ``base``.
        ours: of this row and of ``base``, one value or a value per seed.
    """
    theirs = Published.of(printed[0]).value - Published.of(printed[1]).value
    here = float(np.mean(ours[0]) - np.mean(ours[1]))
    return f"; above {base}: the paper {theirs:+.1f}, here {here:+.1f}"
