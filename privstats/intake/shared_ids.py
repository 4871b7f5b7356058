"""Find ids that may stand for several persons: for the data holder's warning, never for a sum.

Such are words for a gap, such as ``unknown``, and numbers that lost digits, as Excel writes 70000112345 as
``7.00001E+10``. Rows with one id are one person's, however many they are. Whether an id names a person follows from
that id alone (``intake.person_ids``), so neither a frequency nor a guess excludes a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.intake.accepted import ColumnLike
from privstats.intake.gap_words import is_gap_word
from privstats.intake.person_ids import first_unsure, identity, names_of, persons_of, typed_ids

# An id is remarked from this number of rows on, where it also has more than _TIMES as many as 95 % of the others have.
_MIN_ROWS, _TIMES, _USUAL = 10, 10, 0.95
_MIN_ROWS_OF_A_WORD = 2
_MAX_SHOWN = 3
_SAMPLED = 1 << 12
"""Ids that are searched for lost digits."""
# Digits that are left of long numbers, and from how many digits a number is long: by Excel's form with an exponent, and
# by the 15 digits that it stores.
_LEFT = {6: 8, 15: 16}
_NEARLY_ALL, _MOSTLY, _MIN_NUMBERS = 0.95, 0.5, 3
_FIRST_UNSURE = first_unsure(np.dtype(np.float64))


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


def id_remarks(ids: ColumnLike, codes: NDArray[np.intp] | None = None, *, named: bool = True) -> tuple[str, ...]:
    """Return warnings for the data holder about ids that may stand for several persons.

    Args:
        ids, codes: as for :func:`shared_ids`.
        named: as for :meth:`SharedId.remark`.

    Example:
        >>> from privstats.intake.shared_ids import id_remarks
        >>> id_remarks(["7.00001E+10", "7.00002E+10", "7.00013E+10"])[0].partition(":")[0]
        'the ids are long numbers with at most 6 digits that are not zero, as where Excel rounded them'
    """
    codes = persons_of(ids) if codes is None else codes
    remarks = [shared.remark(named=named) for shared in shared_ids(ids, codes)]
    plain, sampled = typed_ids(ids), np.flatnonzero((codes >= 0) & (codes < _SAMPLED))
    firsts = sampled[np.unique(codes[sampled], return_index=True)[1]]
    numbers = [each for first in firsts.tolist() if isinstance(each := identity(plain[first]), float)]
    if left := digits_left(np.array(numbers, np.float64)):
        persons, rows = int(codes.max()) + 1, int((codes >= 0).sum())
        remarks.append(
            f"the ids are long numbers with at most {left} digits that are not zero, as where Excel rounded them: "
            f"{rows:,} rows have {persons:,} ids, and several persons may count as ONE. Export the ids as texts"
        )
    return tuple(remarks)


def digits_left(numbers: NDArray[np.float64]) -> int:
    """Return how many digits are left of long integers that lost others, as in Excel or in float64; 0 if none did.

    Integers from 2**53 on have lost digits in float64, which distinguishes 15 of them. Others have if nearly all are
    long and end in zeros behind the same number of digits.

    Args:
        numbers: ``(n,)``; NaN for no number.

    Example:
        >>> from privstats.intake.shared_ids import digits_left
        >>> digits_left(np.array([7.00001e10, 7.00002e10, 7.00013e10])), digits_left(np.array([250e6, 310e6, 4e6]))
        (6, 0)
    """
    known = np.unique(np.abs(numbers[np.isfinite(numbers)]))
    if len(known) == 0 or (known % 1).any():
        return 0
    if np.mean(known >= _FIRST_UNSURE) > _MOSTLY:
        return max(_LEFT)
    texts = [f"{number:.0f}" for number in known[:: 1 + len(known) // _SAMPLED].tolist()]
    lengths = np.array([len(text) for text in texts])
    digits = np.array([len(text.rstrip("0")) for text in texts])
    for left, long in _LEFT.items():
        rounded = np.mean((lengths >= long) & (digits <= left)) >= _NEARLY_ALL
        if rounded and np.mean(digits >= left - 1) >= _MOSTLY and len(known) >= _MIN_NUMBERS:
            return left
    return 0


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
