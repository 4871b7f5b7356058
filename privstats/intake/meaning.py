"""Read one value as a number, a text or nothing.

No function here knows a container, a column or another value.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from itertools import product
from numbers import Real
from typing import Any, SupportsFloat, TypeAlias, TypeGuard

import numpy as np

from privstats.errors import SchemaError

Meaning: TypeAlias = float | str | None
"""A finite number, a text, or None where nothing is given."""

_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
_NAMED = ("#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>", "n/a", "na", "nan")
MISSING = frozenset(("", *_NAMED, "nat", "none", "null")) | _INFINITE
"""Texts, in lower case, that mean a missing value: those that readers of tables know, and infinities."""

UNREADABLE = "\x01"
"""The reading of a value that is not one single value. No public value equals it, because those are printable."""

LOST = "\ufffd"
"""The character that decoders write for bytes that are invalid in the declared encoding (U+FFFD). Different texts may
become equal with it. So no public value and no id holds it, and a value that holds it matches no listed value."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}.*)?")
_OF_A_DATE = 10
_DURATION = re.compile(
    r"-?[0-9]+ us|-?[0-9]+ days?(?:,? [-+]?[0-9:.]+)?|-?P(?=T?[0-9])(?:[0-9.]+[YMWD])*(?:T(?:[0-9.]+[HMS])+)?"
)
_INTERVAL = re.compile(r"([\[(])([^,()\[\]]+),([^,()\[\]]+)([\])])")
LONGEST = 1024
"""Maximum characters of a text: longer than any public name; the time to normalise grows with the square."""

_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
_TRUTHS = {"true": 1.0, "false": 0.0}
_TRUTH_WORDS = {**_TRUTHS, "yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
TRUTH_TEXTS: Mapping[str, float] = {
    "".join(letters): truth
    for word, truth in _TRUTH_WORDS.items()
    for letters in product(*zip(word, word.upper(), strict=True))
}
"""Texts that mean 1 or 0 where a plan declares a truth, in any case. Elsewhere only ``true`` and ``false`` do."""


def meaning_of(value: object) -> Meaning:
    """Read one value as a number, a text, or None where nothing is given.

    - None, NaN, pandas' NA and NaT, infinities, masked values, and the texts :data:`MISSING` are nothing.
    - Numbers become float64; booleans are 1 and 0.
    - A text is normalised (NFC) and stripped. A plain decimal is its number (``007``, ``7.0`` and ``7e0`` are one
      value); ``true`` and ``false`` in any case are 1 and 0. ISO dates and intervals have one form: ``(0.0, 10.0]`` is
      ``(0, 10]``.
    - Dates are their ISO text, zoned ones in UTC; any other single value is its text.
    - Several values in one, a text of more than 1,024 characters, and a value with failing methods are
      :data:`UNREADABLE`, which equals no public value. Nothing is raised.

    Example:
        >>> from privstats.intake.meaning import meaning_of
        >>> values = "007", 7, 7.0, " True", "n/a", None, "stage II", np.datetime64("2020-01-02")
        >>> [meaning_of(value) for value in values]
        [7.0, 7.0, 7.0, 1.0, None, None, 'stage II', '2020-01-02']
    """
    try:
        return _meaning_of(value)
    except Exception:  # from its methods, or from deep recursion: no value may stop the reading of others
        return UNREADABLE


def text_meaning_of(value: object) -> Meaning:
    """Read one value as :func:`meaning_of` does, but as a text where it is a number or a truth.

    Example:
        >>> from privstats.intake.meaning import text_meaning_of
        >>> [text_meaning_of(value) for value in (" 042", "1E30", 42, "true", "n/a")]
        ['042', '1E30', '42', 'true', None]
    """
    read = meaning_of(value)
    if not isinstance(read, float):
        return read
    if isinstance(value, bytes | bytearray):
        value = value.decode("utf-8", "replace")
    return unicodedata.normalize("NFC", value.replace("\0", "")).strip() if isinstance(value, str) else f"{read:.15g}"


def local_time(value: object, zone: tzinfo) -> object:
    """Return a time with a zone as its time in another zone, without a zone; any other value as it is.

    Example:
        >>> from zoneinfo import ZoneInfo
        >>> from privstats.intake.meaning import local_time
        >>> local_time("2019-03-27T23:00:00Z", ZoneInfo("Europe/Berlin")), local_time("2019-03-28", ZoneInfo("UTC"))
        (datetime.datetime(2019, 3, 28, 0, 0), '2019-03-28')
    """
    try:
        at: Any = value.as_py() if hasattr(value, "as_py") else value
        text = at.decode() if isinstance(at, bytes | bytearray) else at
        if isinstance(text, str):
            text = text.replace("\0", "").strip()
            at = datetime.fromisoformat(text) if _ISO.fullmatch(text) else value
        return value if at.tzinfo is None else at.astimezone(zone).replace(tzinfo=None)
    except Exception:  # no time, or beyond the years that have one; no value may stop the reading of others
        return value


def in_utc(text: str) -> str:
    """Return the reading of a time with a zone as an ISO text that has its zone, which is UTC.

    Example:
        >>> from privstats.intake.meaning import in_utc
        >>> in_utc("2019-03-27"), in_utc("2019-03-27T23:00:00"), in_utc("about noon")
        ('2019-03-27T00:00:00Z', '2019-03-27T23:00:00Z', 'about noon')
    """
    return text if not _ISO.fullmatch(text) else f"{text}Z" if len(text) > _OF_A_DATE else f"{text}T00:00:00Z"


def word_of(value: object) -> str:
    """Return the word of :data:`MISSING` that a text is, in lower case, or "".

    Example:
        >>> from privstats.intake.meaning import word_of
        >>> [word_of(value) for value in (" None", b"NA", None, "light", "")]
        ['none', 'na', '', '', '']
    """
    text = str(value, "utf-8", "replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""
    return word if (word := text.strip().lower()) in MISSING else ""


def same(value: float) -> float:
    """Round a value to 15 significant digits: a decimal of at most 15 digits survives its conversion to float64.

    Example:
        >>> from privstats.intake.meaning import same
        >>> same(0.1 + 0.2) == same(0.3)
        True
    """
    return float(f"{value:.15g}")


def _meaning_of(value: object) -> Meaning:
    match value:
        case str():
            return _of_text(str.__str__(value))
        case bytes() | bytearray():
            return _of_text(value.decode("utf-8", "replace"))
        case _ if value is None or value is np.ma.masked:
            return None
        case np.datetime64() | np.timedelta64():  # before numbers: for numpy a span is an integer
            return None if np.isnat(value) else _of_numpys_time(value)
        case bool() | int() | float() | np.bool_() | Decimal() | Real():
            return of_number(value)
        case date() | timedelta():
            return _of_date(value)
        case complex() | np.complexfloating() if value.imag == 0:
            return of_number(value.real)
        case np.ndarray() if not value.ndim:
            return meaning_of(value[()])
    for name in ("as_py", "item"):  # a scalar of Arrow, or of torch
        if hasattr(value, name) and getattr(value, "ndim", 0) == 0 and not isinstance(value, np.ndarray):
            return meaning_of(getattr(value, name)())
    if hasattr(type(value), "__len__") or hasattr(type(value), "__iter__"):
        return UNREADABLE
    return None if _is_nothing(value) else _of_text(str(value))


def of_number(value: SupportsFloat | str) -> float | None:
    """Return a number of any type as a float; None where it is not finite."""
    try:
        number = float(value)
    except (OverflowError, ValueError):  # an integer beyond every float; a signalling NaN
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0 is 0


def _of_date(value: object) -> Meaning:
    for name in ("to_datetime64", "to_timedelta64"):
        if hasattr(value, name):
            return meaning_of(getattr(value, name)())
    return None if _is_nothing(value) else _of_time(value)


def is_decimal(value: object) -> TypeGuard[str]:
    """Return whether a value is a text of a plain decimal."""
    return type(value) is str and len(value) <= LONGEST and _DECIMAL.fullmatch(value) is not None


def has_decimal_comma(text: str) -> bool:
    """Return whether a text is a number with a decimal comma.

    Example:
        >>> from privstats.intake.meaning import has_decimal_comma
        >>> [has_decimal_comma(text) for text in ("61,5", "61.5", "1,2,3")]
        [True, False, False]
    """
    return _COMMA.fullmatch(text) is not None and isinstance(meaning_of(text.replace(",", ".")), float)


def is_duration(text: str) -> bool:
    """Return whether a text is a duration: a reading of one, or as pandas or ISO 8601 writes it.

    Example:
        >>> from privstats.intake.meaning import is_duration, meaning_of
        >>> spans = np.timedelta64(3, "D"), "3 days 02:00:00", "P3DT2H", "3 mg", "P7"
        >>> [is_duration(str(meaning_of(each))) for each in spans]
        [True, True, True, False, False]
    """
    return _DURATION.fullmatch(text) is not None


def is_date(text: str) -> bool:
    """Return whether a text is an ISO date, with a time or without.

    Example:
        >>> from privstats.intake.meaning import is_date
        >>> is_date("2020-01-31"), is_date("31.01.2020")
        (True, False)
    """
    return _ISO.fullmatch(text) is not None


def _of_text(text: str) -> Meaning:
    if is_decimal(text):  # nearly always, and nothing below changes one
        return of_number(text)
    text = text.replace("\0", "").strip()  # numpy's texts drop zeros (U+0000) at their end
    if len(text) > LONGEST:
        return UNREADABLE
    text = unicodedata.normalize("NFC", text).strip()
    if _DECIMAL.fullmatch(text):
        return of_number(text)
    small = text.lower()
    if small in MISSING:
        return None
    if small in _TRUTHS:
        return _TRUTHS[small]
    if _ISO.fullmatch(text):
        try:
            return _of_time(datetime.fromisoformat(text))
        except ValueError:  # the 31st of April is a text
            return text
    if text[:1] in ("(", "[") and (ends := _INTERVAL.fullmatch(text)):
        first, low, high, last = ends.groups()
        return f"{first}{_of_end(low)}, {_of_end(high)}{last}"
    return text


def _of_end(text: str) -> str:
    end = _of_text(text)
    return text.strip() if end is None else f"{end:.15g}" if isinstance(end, float) else end


def _of_time(value: object) -> str:
    """Return a time's text; beyond 9999 numpy returns an integer."""
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)} us"
    if not isinstance(value, datetime):
        return value.isoformat() if isinstance(value, date) else f"{value} us"
    if value.tzinfo is not None:
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            return str(value.isoformat())
    at = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return at.date().isoformat() if at.time() == time() else at.isoformat()


def _of_numpys_time(value: np.datetime64 | np.timedelta64) -> str:
    """Read a time in microseconds; where int64 would wrap, the value is unreadable."""
    micros = value.astype(f"{value.dtype.str[1:3]}[us]")
    coarse = np.datetime_data(value.dtype)[0] not in ("us", "ns", "ps", "fs", "as")
    if coarse and micros.astype(value.dtype).astype(np.int64) != value.astype(np.int64):
        return UNREADABLE
    return _of_time(micros.item())


def _is_nothing(value: object) -> bool:
    try:
        return bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array is something
        return False


_LONGEST_SHOWN, _MAX_SHOWN = 40, 8
_LONGEST_NAME = 200
_LARGEST_INTEGER = 1 << 53  # float64 holds every integer up to here


def checked_names(field: str, names: object, count: int | None = None, of: str = "") -> tuple[str, ...] | None:
    """Return different printable texts as a tuple."""
    if names is None:
        return None
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{field} must be a tuple of texts, for example ('cat', 'dog'), got {shown(names)}")
    for name in names:
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise SchemaError(
                f"{field} holds {shown(name)}; a name has 1 to {_LONGEST_NAME} printable characters, "
                "and no space at either end"
            )
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SchemaError(f"{field} holds {shown(twice)} twice; names must differ: use each once")
    if count is not None and len(names) != count:
        raise SchemaError(f"{field} holds {len(names)} names but {of}={count}; name each once, in order")
    return tuple(str(name) for name in names)


def check_distinct(field: str, values: Sequence[object], *, texts: bool = False) -> None:
    """Refuse public values that no record's value can match.

    Such values read as missing (a blank, None or NaN), as another listed value, or as a number from 2**53 on, or
    contain a character lost in decoding. A word such as ``none`` is a value where it is listed.
    """
    known: dict[Meaning, object] = {}
    for value in values:
        read = word_of(value) or (text_meaning_of(value) if texts else meaning_of(value))
        if read is None:
            raise SchemaError(
                f"{field} holds {shown(value)}, which is read as a missing value, in every container: write another "
                "text, such as 'nothing found'"
            )
        if isinstance(read, str) and LOST in read:
            raise SchemaError(
                f"{field} holds {shown(value)}, which lost a character, so several values may look like it: read the "
                "file again in its own encoding"
            )
        if isinstance(read, float) and abs(read) >= _LARGEST_INTEGER:
            refusal = f"{field} holds {shown(value)}, and numbers from 2**53 on coincide: put a letter before it"
            raise SchemaError(refusal)
        key = same(read) if isinstance(read, float) else read
        if key in known:
            raise SchemaError(
                f"{field} holds {shown(known[key])} and {shown(value)}, which are read as one value, in every "
                "container: put a letter before them"
            )
        known[key] = value


def shown(value: object) -> str:
    """Show a schema's short text or number, which is public; name anything else by its type."""
    if not isinstance(value, str | int | float) or len(repr(value)) > _LONGEST_SHOWN:
        return type(value).__name__
    return repr(str(value)) if isinstance(value, str) else repr(value)  # the repr of numpy's texts names numpy


def listed(names: list[str] | tuple[str, ...]) -> str:
    """Return public names for a message: the first of many."""
    first = ", ".join(map(repr, names[:_MAX_SHOWN]))
    return first if len(names) <= _MAX_SHOWN else f"{first} and {len(names) - _MAX_SHOWN} more"
