"""State how a CSV file is written: its party declares it, because a guess would follow from all records together."""

from __future__ import annotations

import codecs
import re
import string
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

from privstats.errors import DataError
from privstats.intake.meaning import UNREADABLE, meaning_of

Marks: TypeAlias = Literal["number", "affixed", "text"]
"""What a column's declaration lets a field be: a number, a number with other signs around it, or a text as it is."""

SEPARATORS = ",;\t|:"  # the commonest first
THOUSANDS = {".": "[.]", ",": "[,]", "'": "['\u2019]", " ": "[ \u00a0\u2009\u202f]"}
"""The characters that each thousands sign stands for."""
_NUMBER = "[+-]?[0-9](?:[0-9.,'\u2019 \u00a0\u2009\u202f]*[0-9])?"
_AFFIXED = re.compile(f"([<>\u2264\u2265]=?\\s*)?({_NUMBER})(\\s*[^0-9\\s].*)?")
_LONGEST_NUMBER = 64
_ASCII = string.ascii_letters + string.digits + "\n\r\t ,;|.+-_\"' \\n \\u0041"


@dataclass(frozen=True)
class Dialect:
    """A CSV file's format, as its party declares it.

    Attributes:
        encoding: a Python codec name: UTF-16, or one in which lines end with the bytes of ASCII.
        separator: ``, ; | :`` or a tab, also called "tab".
        decimal: a point or a comma. With a comma, "1.5" is no number: it may be one and a half or fifteen hundred.
        thousands: the sign between groups of three digits: ``. , '`` or a space; "" for none.
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
    thousands: str = ""
    lines: bool = False
    quoted: bool = False

    def __post_init__(self) -> None:
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        if not isinstance(self.encoding, str) or not (_is_plain(self.encoding) or is_wide(self.encoding)):
            raise DataError(
                f"encoding {self.encoding!r} has other line ends than ASCII, or is unknown; name one such as utf-8, "
                "cp1252, latin-1 or utf-16, or write the file again as utf-8"
            )
        if not isinstance(self.separator, str) or len(self.separator) != 1 or self.separator not in SEPARATORS:
            raise DataError(f"separator must be one of , ; | : or tab, got {self.separator!r}")
        if self.decimal not in (".", ","):
            raise DataError(f"decimal must be a point or a comma, got {self.decimal!r}")
        if self.thousands not in ("", *THOUSANDS):
            raise DataError(f"thousands must be one of {' '.join(map(repr, THOUSANDS))}, got {self.thousands!r}")
        if self.thousands == self.decimal:
            raise DataError(f"decimal and thousands are both {self.decimal!r}; name the sign of each")
        if self.lines not in (False, True) or self.quoted not in (False, True):
            raise DataError(f"lines and quoted must be True or False, got {self.lines!r} and {self.quoted!r}")
        if self.lines and self.quoted:
            raise DataError(
                "lines and quoted are both set: with lines each line is one record, with quoted a quoted text may span "
                "lines; set one of them"
            )

    @property
    def line_encoding(self) -> str:
        """The encoding of single lines, once a file is split: a file of UTF-16 is converted to UTF-8 first."""
        return "utf-8" if is_wide(self.encoding) else self.encoding

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and not self.thousands

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        return re.compile(rf"[+-]?[0-9]{{1,3}}(?:{THOUSANDS[self.thousands]}[0-9]{{3}})+(?:[{self.decimal}][0-9]*)?")

    def read(self, text: str, marks: Marks = "number") -> str:
        """Return a field with a decimal point and without thousands signs, or UNREADABLE."""
        if self.is_plain or not text or marks == "text":
            return text
        if marks == "affixed" and len(text) <= _LONGEST_NUMBER and (parts := _AFFIXED.fullmatch(text)):
            number = self.read(parts[2])
            return number if number == UNREADABLE else f"{parts[1] or ''}{number}{parts[3] or ''}"
        if self.thousands and self._grouped.fullmatch(text):
            return re.sub(THOUSANDS[self.thousands], "", text).replace(self.decimal, ".")
        if self.decimal == ".":
            return text
        if "," in text:
            pointed = text.replace(",", ".")
            return pointed if "." not in text and isinstance(meaning_of(pointed), float) else text
        return UNREADABLE if "." in text and isinstance(meaning_of(text), float) else text


@lru_cache
def is_wide(encoding: str) -> bool:
    """Return whether an encoding is UTF-16, in either order of bytes.

    Example:
        >>> from privstats.intake.csv_dialect import is_wide
        >>> is_wide("UTF-16LE"), is_wide("utf-8")
        (True, False)
    """
    try:
        return codecs.lookup(encoding).name in ("utf-16", "utf-16-le", "utf-16-be")
    except (LookupError, ValueError):
        return False


def _is_plain(encoding: str) -> bool:
    """Return whether ASCII bytes, and so line ends, keep their meaning in an encoding."""
    try:
        return _ASCII.encode("ascii").decode(encoding, "replace") == _ASCII
    except (LookupError, UnicodeError, ValueError):
        return False
