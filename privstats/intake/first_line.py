"""Decide whether a table's names are a first record, which no message and no file may show.

Exports without a row of names begin with a record. A number or a date where a name belongs is one of a record. Names
that are texts throughout are compared with the records below: no name may be a value of its own column, and in some
column hardly any value may be a text that occurs once. What cannot be decided counts as a record.

Only doors that show or write names ask this question, on the data holder's machine. A session reads the columns that
its plan names, whatever the records hold.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from privstats.intake.columns import values_of
from privstats.intake.gap_words import is_gap_word
from privstats.intake.meaning import meaning_of

FIRST_RECORDS = 1 << 12
"""Number of records that the names are compared with."""
_RARE = 0.05
"""Maximum share of a column's values that could be names, in a column that shows its first cell to be a name."""
_DATE = re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}.*")
_REMEDY = "add a row of names"


def doubt_of(names: Sequence[str], columns: Mapping[str, Any], of: str, hint: str = "") -> str:
    """Return why names may be a record, as a sentence without any of them; "" where they are a row of names.

    Args:
        names: every column's name, "" for a column without one.
        columns: the first records below the names, by name; where there are none, the names alone decide.
        of: the names' place, such as ``"the first line of north.csv"``.
        hint: a further remedy.

    Example:
        >>> from privstats.intake.first_line import doubt_of
        >>> doubt_of(["age", "ill"], {"age": ["50", "60"], "ill": ["no", "yes"]}, "the first line of north.csv")
        ''
        >>> below = {"anna": ["bert", "carl"], "no": ["no", "yes"]}
        >>> doubt_of(["anna", "no"], below, "the first line of north.csv").partition(":")[0]
        'the first line of north.csv may be a record, for a record below has the same text in column 2'
    """
    places = {name: place for place, name in enumerate(names, 1) if name}
    if odd := [place for name, place in places.items() if _is_value(name)]:
        return (
            f"{of} has a number or a date where a name belongs, in column {odd[0]}, and may be a record: {_REMEDY}, or "
            f"rename that column{hint}"
        )
    if not any(map(len, columns.values())):
        return ""
    texts = {name: Counter(map(_plain, values_of(values))) for name, values in columns.items()}
    if again := [places[name] for name, values in texts.items() if name in values]:
        return (
            f"{of} may be a record, for a record below has the same text in column {again[0]}: {_REMEDY}. If it holds "
            f"the names, rename that column, or delete a second row of names{hint}"
        )
    if any(_shows_a_name(name, values) for name, values in texts.items()):
        return ""
    return f"{of} may be a record, for its texts differ from no column below it in kind: {_REMEDY}{hint}"


def _shows_a_name(name: str, values: Counter[Any]) -> bool:
    """Return whether a column's values are numbers, dates or texts that recur, and so its name is none of them."""
    given = {value: count for value, count in values.items() if not _is_gap(value)}
    alone = sum(count == 1 and isinstance(value, str) and not _is_value(value) for value, count in given.items())
    return not is_gap_word(name) and alone <= _RARE * sum(given.values()) > 0


def _plain(value: Any) -> Any:
    """Return a text as names are compared, and any other value as it is read."""
    return unicodedata.normalize("NFC", value.strip()) if isinstance(value, str) else meaning_of(value)


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, str) and is_gap_word(value))


def _is_value(text: str) -> bool:
    """Return whether a text is a number, a date, or digits and signs without a letter, as 39,9% and 28.03.19 are."""
    if isinstance(meaning_of(text), float) or _DATE.fullmatch(text):
        return True
    return any(map(str.isdecimal, text)) and not any(map(str.isalpha, text))
