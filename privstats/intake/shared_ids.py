"""Find ids that may stand for several persons, such as ``unknown``: for the data holder's warning, never for a sum.

Rows with one id are one person's, however many they are. Whether an id names a person follows from that id alone
(``intake.person_ids``), so neither a frequency nor a guess excludes a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.intake.accepted import ColumnLike
from privstats.intake.gap_words import is_gap_word
from privstats.intake.person_ids import names_of, persons_of, typed_ids

# An id is remarked from this number of rows on, where it also has more than _TIMES as many as 95 % of the others have.
_MIN_ROWS, _TIMES, _USUAL = 10, 10, 0.95
_MIN_ROWS_OF_A_WORD = 2
_MAX_SHOWN = 3


@dataclass(frozen=True, repr=False)
class SharedId:
    """An id that many rows share.

    Attributes:
        rows: number of rows with the id.
        is_word: whether it is a word that studies write for a gap.
    """

    id: str
    rows: int
    is_word: bool

    def remark(self, *, named: bool = True) -> str:
        """Return the warning for the data holder.

        Args:
            named: whether to name an id that is no gap word, which only the data holder's own screen may show.
        """
        name = f", {self.id!r}," if named or self.is_word else ""
        return (
            f"{self.rows:,} rows share one id{name} and count as ONE person under a promise per person. If it stands "
            "for ids that are not known, empty those fields: rows without an id are excluded"
        )


def shared_ids(ids: ColumnLike, codes: NDArray[np.intp] | None = None) -> tuple[SharedId, ...]:
    """Return the ids that may stand for several persons, most rows first, three at most.

    Such an id is a gap word of two rows or more; or it has at least 10 rows, and over 10 times as many as 95 in 100 of
    the other ids have.

    Args:
        ids: see :func:`~privstats.intake.person_ids.persons_of`.
        codes: that function's result, if known.

    Example:
        >>> from privstats.intake.shared_ids import shared_ids
        >>> [(each.id, each.rows) for each in shared_ids(["a", "unknown", "b", "unknown", "b", "b"])]
        [('unknown', 2)]
    """
    plain = typed_ids(ids)
    codes = persons_of(ids) if codes is None else codes
    sizes = np.bincount(codes[codes >= 0])
    if not len(sizes):
        return ()
    values, firsts = np.unique(codes, return_index=True)
    firsts = firsts[values >= 0]  # by code
    several = np.flatnonzero(sizes >= _MIN_ROWS_OF_A_WORD).tolist()
    words = {code for code in several if _is_word(plain[int(firsts[code])])}
    usual = np.quantile(np.sort(sizes)[:-1], _USUAL, method="lower") if len(sizes) > 1 else np.inf
    often = np.flatnonzero((sizes >= _MIN_ROWS) & (sizes > _TIMES * usual)).tolist()
    most = sorted(words | set(often), key=lambda code: (-sizes[code], code))[:_MAX_SHOWN]
    named = names_of([plain[int(firsts[code])] for code in most])
    return tuple(SharedId(name or "", int(sizes[code]), code in words) for code, name in zip(most, named, strict=True))


def _is_word(value: object) -> bool:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return isinstance(text, str) and is_gap_word(text)
