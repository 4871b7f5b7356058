"""Recognise columns that name persons or records by what their values do, and ask a person.

A number of a patient, a case or a row predicts nothing, and a model that holds it may show who was summed. Its name and
its form prove nothing. Such a column has nearly as many values as records; or its records agree in what does not vary,
as visits of one person do; or digits of it are lost. For rehearsals, public files and a holder's look: a study declares
its columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privstats.intake.columns import Readings
from privstats.intake.shared_ids import digits_left
from privstats.transforms import Categories, Column, Numeric
from privstats.workflows.forms import EXCEL, like_excel_days

_FEW = 12
"""Values of a column that are no ids: a rehearsal lists as many as categories."""
_NEARLY_ALL, _MOSTLY = 0.95, 0.5
_MIN_VALUES, _MAX_ROWS, _ALIKE = 20, 10, 0.8
"""Values of which an order or equal numbers of records show visits; records of each on average; share of equal ones."""
_COMMON, _LUCK = 0.8, 1e-3
"""A column in which records agree by chance, and the chance that pairs of records agree in another one."""
_BLOCKS = 2
"""Groups per value from which a column may form blocks, and changes per value up to which it does."""
_MAX_RECORDS = 20_000
_SHOWN = 3


class Question(str):
    """Why a column is not read until a person states whether its values name persons or records."""

    __slots__ = ()


def id_questions(table: Mapping[str, Readings], kinds: Mapping[str, Column | str]) -> dict[str, Question]:
    """Return for each column that may name persons or records what its values do.

    Args:
        table: all columns of a table but the target, by name.
        kinds: what a model would read each column as; integers without a unit and categories are judged.

    Example:
        >>> from privstats.intake.columns import read
        >>> from privstats.workflows.identifiers import id_questions
        >>> table = {"case": read([17, 5, 90, 3, 8, 41, 77, 60, 28, 33, 19, 52, 64]), "age": read([50, 60] * 6 + [70])}
        >>> id_questions(table, {name: ps.Numeric(name) for name in table})
        {'case': '13 different values in 13 records, as numbers of persons or records have'}
    """
    asked = [name for name, kind in kinds.items() if _may_be_ids(kind, table[name])]
    codes = {name: _codes(readings) for name, readings in table.items()} if asked else {}
    reasons = {name: _lost(table[name]) or _reason(name, table[name], codes) for name in asked}
    return {name: Question(why) for name, why in reasons.items() if why}


def _may_be_ids(kind: Column | str, readings: Readings) -> bool:
    if isinstance(kind, Numeric):
        numbers = readings.numbers[~np.isnan(readings.numbers)]
        return not kind.suffix and len(numbers) > 0 and not (numbers % 1).any()
    return isinstance(kind, Categories) and bool(kind.values)


def _lost(readings: Readings) -> str:
    """Return a sentence if digits of a column's numbers are lost; else ""."""
    of_numbers = np.mean(np.isnan(readings.numbers[~readings.missing])) < _MOSTLY
    if not of_numbers or not (left := digits_left(readings.numbers)):
        return ""
    return f"its numbers are long and have at most {left} digits that are not zero, so several ids are one number"


def _reason(name: str, readings: Readings, codes: Mapping[str, NDArray[np.intp]]) -> str:
    """Return a sentence if a column's values behave as ids do; else ""."""
    given = codes[name][codes[name] >= 0]
    sizes = np.bincount(given)
    sizes = sizes[sizes > 0]
    if len(sizes) <= _FEW:
        return ""
    if len(sizes) >= _NEARLY_ALL * len(given):
        days = like_excel_days(readings.numbers[~np.isnan(readings.numbers)])
        return (
            f"{len(sizes):,} different values in {len(given):,} records, as numbers of persons or records have"
            + f", or as Excel's days (of dates state kind dates, written = {EXCEL!r} in columns.toml)" * days
        )
    # A ward may decide its building. So texts name persons only if what does not vary nearly names them, too.
    different = len(sizes) / 2 if readings.are_texts.any() else 0
    if fixed := _fixed_in(name, codes, different):
        more = ", ..." if len(fixed) > _SHOWN else ""
        return f"records with one value agree in {', '.join(fixed[:_SHOWN])}{more}, as those of one person do"
    if len(sizes) < _MIN_VALUES:
        return ""
    usual = int(np.median(sizes))
    if usual > 1 and np.mean(sizes == usual) >= _ALIKE:
        return f"nearly every value is in {usual} records, as with as many visits of each person"
    runs = 1 + int(np.count_nonzero(np.diff(given)))
    if runs == len(sizes) and len(given) <= _MAX_ROWS * len(sizes):
        return "the records of each value follow one another, as visits of one person do"
    return ""


def _fixed_in(name: str, codes: Mapping[str, NDArray[np.intp]], different: float) -> list[str]:
    """Return the columns in which records with one value agree, although these do not follow from the value's size.

    Args:
        different: number of records that those columns together must distinguish.
    """
    every = codes[name]
    some = np.unique(every[every >= 0])[:: 1 + len(every) // _MAX_RECORDS]  # of many records those of some values
    given = np.flatnonzero(np.isin(every, some))
    own = every[given]
    fixed = [
        other
        for other, values in codes.items()
        if other != name and _is_fixed(own, values[given]) and not _is_function(own, values[given])
    ]
    if fixed and different:
        joint = np.unique(np.column_stack([codes[other] for other in fixed]), axis=0)
        return fixed if len(joint) >= different else []
    return fixed


def _is_fixed(own: NDArray[np.intp], values: NDArray[np.intp]) -> bool:
    """Return whether records with one value agree in another column more often than chance explains.

    Args:
        own: each record's value as an integer, ``(n,)``.
        values: each record's value in the other column, ``(n,)``.
    """
    groups, sizes = np.bincount(own), np.bincount(values + 1)  # a gap is -1
    chance = float(((sizes / len(values)) ** 2).sum())
    if chance > _COMMON or chance ** int((groups[groups > 0] - 1).sum()) > _LUCK:
        return False
    both = np.unique(own * len(sizes) + values + 1, return_counts=True)[1]
    return _pairs(both) >= _NEARLY_ALL * _pairs(groups)


def _pairs(sizes: NDArray[np.intp]) -> int:
    """Return the number of pairs within groups of these sizes."""
    return int((sizes * (sizes - 1) // 2).sum())


def _is_function(own: NDArray[np.intp], values: NDArray[np.intp]) -> bool:
    """Return whether a column rises, falls or forms blocks from value to value, as an age group does with an age."""
    of_each = values[np.unique(own, return_index=True)[1]]
    changes, different = np.diff(of_each)[np.diff(of_each) != 0], len(np.unique(of_each))
    rising = np.mean(changes > 0) if len(changes) else 1.0
    in_blocks = _BLOCKS * different <= len(of_each) and len(changes) <= _BLOCKS * different
    return in_blocks or bool(max(rising, 1 - rising) >= _NEARLY_ALL)


def _codes(readings: Readings) -> NDArray[np.intp]:
    """Return values as integers in their order, numbers before texts, ``(n,)``; -1 for a gap."""
    numbers, places = np.unique(readings.numbers, return_inverse=True)
    ranks = np.argsort(np.argsort(np.array([*readings.distinct, ""])))
    codes = np.where(np.isnan(readings.numbers), len(numbers) + ranks[readings.places], places)
    codes[readings.missing] = -1
    return codes.astype(np.intp)
