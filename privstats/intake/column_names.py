"""Match declared names to a table's columns, both normalised (NFC) and stripped: exactly, else in any case."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from privstats.errors import DataError

SYNTHETIC_MARK = "privstats synthetic rows"
"""The column that marks synthetic rows, in every container and file."""


def require_records(names: Iterable[object]) -> None:
    """Refuse a table of synthetic rows, which would be counted as records.

    Example:
        >>> from privstats.intake.column_names import require_records
        >>> require_records(["age", "sex"])
    """
    if SYNTHETIC_MARK in names:
        raise DataError(
            f"the table holds synthetic rows (it has the column {SYNTHETIC_MARK!r}), and only records may be "
            "measured: pass the records themselves"
        )


def place_of(name: str, names: Sequence[object]) -> int | None:
    """Return the index of a plan's column among a table's names, exact or in another case.

    Raises:
        DataError: several names match in some case, and none or more than one of them exactly.

    Example:
        >>> from privstats.intake.column_names import place_of
        >>> place_of("Age", ["sex", "AGE"]), place_of("Age", ["AGE", "Age"]), place_of("Age", ["sex"])
        (1, 1, None)
    """
    return places_in([name], names)[0]


def places_in(wanted: Iterable[str], names: Sequence[object]) -> list[int | None]:
    """Apply :func:`place_of` to each wanted column.

    Example:
        >>> from privstats.intake.column_names import places_in
        >>> places_in(["Age", "dose"], ["sex", "AGE"])
        [1, None]
    """
    require_records(names)
    alike: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        alike.setdefault(_key_of(name), []).append(place)
    return [_one_of(alike.get(_key_of(name), []), name, names) for name in wanted]


def _one_of(alike: Sequence[int], name: str, names: Sequence[object]) -> int | None:
    if len(alike) < 2:
        return alike[0] if alike else None
    exact = [place for place in alike if _plain(names[place]) == _plain(name)]
    if len(exact) != 1:
        raise DataError(f"the table has the column {name!r} twice, perhaps in other letters; keep one")
    return exact[0]


def same_names(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two names that could mean the same column, or None.

    Example:
        >>> from privstats.intake.column_names import same_names
        >>> same_names(["age", "sex", "Age"]), same_names(["age", "sex"])
        (('age', 'Age'), None)
    """
    known: dict[str, str] = {}
    for name in names:
        if (key := _key_of(name)) in known:
            return known[key], name
        known[key] = name
    return None


def _key_of(name: object) -> str:
    return _plain(name).casefold()


def _plain(name: object) -> str:
    return unicodedata.normalize("NFC", str(name)).strip()
