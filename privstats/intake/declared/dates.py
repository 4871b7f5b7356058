"""Read dates in a declared form, such as ``DD.MM.YYYY``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.intake.meaning import shown

EPOCH = datetime(1970, 1, 1)
DAY_MICROSECONDS = 86_400_000_000
"""A day in microseconds, the unit of tables' times."""
_SECONDS = 86_400
_UNITS = {"days": float(_SECONDS), "seconds": 1.0, "milliseconds": 1e-3}
_PIVOT = 69  # POSIX: 69 to 99 are of the last century
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_TOKENS = {"YYYY": "(?P<year>[0-9]{4})", "YY": "(?P<short>[0-9]{2})", "MON": "(?P<name>[A-Za-z]{3})",
           "MM": "(?P<month>[0-9]{1,2})", "DD": "(?P<day>[0-9]{1,2})"}  # fmt: skip
_TOKEN = re.compile("|".join(_TOKENS))
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.][0-9]+)?)?(?: ?(?P<half>[AaPp])[Mm])?"
_TIME = f"(?:[ T:]+{_CLOCK})?"
_LOCAL = re.compile(r"ISO in (\S+)")
_SINCE = re.compile(r"(days|seconds|milliseconds) since ([0-9]{4}-[0-9]{2}-[0-9]{2})")
_LARGEST = 3_000_000.0  # days, the year 8213


@dataclass(frozen=True)
class DateForm:
    """A declared form of dates: a pattern of texts, a count of days or seconds, or the zone of ISO times.

    Attributes:
        pattern: of a text, or None.
        start, unit: day that numbers count from, and seconds of one; unit 0 where numbers are no dates.
        compact: whether a number is a date of eight digits.
        zone: the time zone whose day and hour count for a time that has a zone.
    """

    pattern: re.Pattern[str] | None = None
    start: float = 0.0
    unit: float = 0.0
    compact: bool = False
    zone: tzinfo | None = None

    @classmethod
    def of(cls, name: str, written: str) -> DateForm:
        """Read a declared form; "" is none.

        Example:
            >>> from privstats.intake.declared.dates import DateForm
            >>> form = DateForm.of("born", "DD.MM.YYYY")
            >>> form.days_in("02.01.1970"), form.days_in("31.04.1970")
            (1.0, nan)
        """
        if written == "":
            return cls()
        if isinstance(written, str) and (local := _LOCAL.fullmatch(written)):
            return cls(zone=_zone_of(name, local[1]))
        tokens = sorted(_TOKEN.findall(written)) if isinstance(written, str) else []
        if isinstance(written, str) and (since := _SINCE.fullmatch(written)):
            try:
                start = days_between(datetime.fromisoformat(since[2]))
            except ValueError:
                raise _refused(name) from None
            return cls(start=start, unit=_UNITS[since[1]])
        rest = _TOKEN.sub("", written) if tokens else "?"
        if tokens not in [sorted(("DD", month, year)) for month in ("MM", "MON") for year in ("YYYY", "YY")]:
            raise _refused(name)
        if not set(rest) <= set("./- ,"):
            raise _refused(name)
        form = _TOKEN.sub(lambda token: _TOKENS[token[0]], re.escape(written))
        if not rest and "MON" not in written:
            form = form.replace("{1,2}", "{2}")
        return cls(re.compile(form + _TIME), compact=written == "YYYYMMDD")

    @property
    def reads_numbers(self) -> bool:
        """Whether a number can be a date."""
        return self.unit > 0 or self.compact

    def days_of_numbers(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return days since 1970-01-01, ``(n,)``; NaN for numbers that are no dates."""
        if not self.compact:
            days = self.start + numbers * (self.unit / _SECONDS)
            return np.where(np.abs(days) <= _LARGEST, days, np.nan)
        different, places = np.unique(numbers, return_inverse=True)
        texts = [f"{number:.0f}" if number % 1 == 0 else "" for number in different.tolist()]
        return np.array([*map(self.days_in, texts)], np.float64)[places]

    def days_in(self, text: str) -> float:
        """Return days since 1970-01-01; NaN for a text of another form, or of a day that no month has."""
        parts = self.pattern.fullmatch(text) if self.pattern else None
        if parts is None:
            return math.nan
        of = {key: value for key, value in parts.groupdict().items() if value is not None}
        short = int(of.get("short", "0"))
        year = int(of["year"]) if "year" in of else short + (1900 if short >= _PIVOT else 2000)
        hour = int(of.get("hour", "0"))
        if "half" in of:
            hour = hour % 12 + 12 * (of["half"] in "Pp")
        try:
            month = _MONTHS.index(of["name"].upper()) + 1 if "name" in of else int(of["month"])
            return days_between(
                datetime(year, month, int(of["day"]), hour, int(of.get("minute", "0")), int(of.get("second", "0")))
            )
        except ValueError:  # the 31st of April; also a month without such a name
            return math.nan


def days_between(at: datetime) -> float:
    """Return days from 1970-01-01 to a time without a zone.

    Example:
        >>> from datetime import datetime
        >>> from privstats.intake.declared.dates import days_between
        >>> days_between(datetime(1970, 1, 2, 12))
        1.5
    """
    since = at - EPOCH
    return ((since.days * _SECONDS + since.seconds) * 1_000_000 + since.microseconds) / DAY_MICROSECONDS


def _zone_of(name: str, key: str) -> tzinfo:
    try:
        return ZoneInfo(key)
    except (LookupError, ValueError, OSError):
        raise SchemaError(
            f"written of {name} names the time zone {shown(key)}, which this machine does not know: write a name such "
            "as 'ISO in Europe/Berlin', or install the package tzdata"
        ) from None


def _refused(name: str) -> SchemaError:
    return SchemaError(
        f"written of {name} must name day, month and year, such as 'DD.MM.YYYY', 'MM/DD/YY' or 'DDMONYYYY', or be "
        "'days since 1899-12-30', 'seconds since 1970-01-01' or 'ISO in Europe/Berlin'"
    )
