"""How many records could not be read, and why: by column and kind, and never by value.

It stays with the holder of the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["ARM", "GAP", "LABEL", "NO_CELL", "TEXT", "WORD", "LeftOut", "named"]

GAP = "hold nothing"
TEXT = "hold a text where a number belongs"
WORD = "hold neither of the two values that the plan declares"
ARM = "hold an arm that is neither 0 nor 1"
LABEL = "hold nothing that is one of the plan's labels"
NO_CELL = "hold a value that the plan does not list"

_SHOWN = 8


@dataclass(frozen=True)
class LeftOut:
    """Records that are in no sum.

    Attributes:
        records: how many.
        why: by column and what it holds, how many of them; a record may have several reasons.
    """

    records: int = 0
    why: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, fine: NDArray[np.bool_], why: Mapping[tuple[str, str], NDArray[np.bool_]]) -> LeftOut:
        """Of records that are fine, ``(n,)``, and where each reason holds, ``(n,)``."""
        return cls(int((~fine).sum()), {key: int((each & ~fine).sum()) for key, each in why.items()})

    def __add__(self, other: LeftOut) -> LeftOut:
        both = dict(self.why)
        for key, count in other.why.items():
            both[key] = both.get(key, 0) + count
        return LeftOut(self.records + other.records, both)

    def remark(self, *, none_left: bool) -> str:
        """What their holder should know: a sentence for all, one for each column, and what to do."""
        by_column: dict[str, list[str]] = {column: [] for column, _ in self.why}
        for (column, what), count in self.why.items():
            by_column[column] += [f"{count:,} {what}"] if count else []
        by_column = {column: said for column, said in by_column.items() if said}
        shown = [f"{column}: {', '.join(said)}" for column, said in list(by_column.items())[:_SHOWN]]
        more = f"; and {len(by_column) - _SHOWN} columns more" if len(by_column) > _SHOWN else ""
        none = "no record is left: " if none_left else ""
        told = f". {'; '.join(shown)}{more}" if shown else ""
        texts = any(what == TEXT and count for (_, what), count in self.why.items())
        code = ", code texts as numbers or have the plan declare them" if texts else ""
        return (
            f"{none}{self.records:,} of the records cannot be read and are left out of every sum{told}. These numbers "
            f"stay here; correct the file where you can{code}"
        )


def named(names: Sequence[str] | None, columns: int) -> list[str]:
    """What columns are called in a sentence: by the plan's names, which are public, or their place."""
    return [repr(name) for name in names] if names is not None else [f"column {j + 1}" for j in range(columns)]
