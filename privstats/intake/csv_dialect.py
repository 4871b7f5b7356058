"""State how a CSV file is written: its party declares it, because a guess would follow from all records together."""

from __future__ import annotations

import string
from dataclasses import dataclass

from privstats.errors import DataError
from privstats.intake.meaning import UNREADABLE, reading

SEPARATORS = ",;\t|:"  # the commonest first
_ASCII = string.ascii_letters + string.digits + "\n\r\t ,;|.+-_\"' \\n \\u0041"


@dataclass(frozen=True)
class Dialect:
    """A CSV file's format, as its party declares it.

    Attributes:
        encoding: a Python codec name; lines must end with the bytes of ASCII.
        separator: ``, ; | :`` or a tab, also called "tab".
        decimal: a point or a comma. With a comma, "1.5" is no number: it may be one and a half or fifteen hundred.
        lines: each line is one record; a line break in quotes ends it, too.
        quoted: the exporting program doubles quotes within quotes, as RFC 4180 does. Without this promise a file is
            refused whose quoted line breaks could be stray quotes in several records.

    Example:
        >>> from privstats.intake.csv_dialect import Dialect
        >>> Dialect("cp1252", ";", ",").read("3,5")
        '3.5'
    """

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    lines: bool = False
    quoted: bool = False

    def __post_init__(self) -> None:
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        if not isinstance(self.encoding, str) or not _is_plain(self.encoding):
            raise DataError(
                f"encoding {self.encoding!r} has other line ends than ASCII, or is unknown; name one such as utf-8, "
                "cp1252 or latin-1, or write the file again as utf-8"
            )
        if not isinstance(self.separator, str) or len(self.separator) != 1 or self.separator not in SEPARATORS:
            raise DataError(f"separator must be one of , ; | : or tab, got {self.separator!r}")
        if self.decimal not in (".", ","):
            raise DataError(f"decimal must be a point or a comma, got {self.decimal!r}")
        if self.decimal == self.separator:
            raise DataError("decimal and separator are both the comma; name the character that separates fields")
        if self.lines not in (False, True) or self.quoted not in (False, True):
            raise DataError(f"lines and quoted must be True or False, got {self.lines!r} and {self.quoted!r}")
        if self.lines and self.quoted:
            raise DataError(
                "lines and quoted are both set: with lines each line is one record, with quoted a quoted text may span "
                "lines; set one of them"
            )

    def read(self, text: str) -> str:
        """Return a field with a decimal point, or UNREADABLE."""
        if self.decimal == "." or not text:
            return text
        if "," in text:
            pointed = text.replace(",", ".")
            return pointed if "." not in text and isinstance(reading(pointed), float) else text
        return UNREADABLE if "." in text and isinstance(reading(text), float) else text


def _is_plain(encoding: str) -> bool:
    """Return whether ASCII bytes, and so line ends, keep their meaning in an encoding."""
    try:
        return _ASCII.encode("ascii").decode(encoding, "replace") == _ASCII
    except (LookupError, UnicodeError, ValueError):
        return False
