"""Tables as comma-separated text that a spreadsheet shows and does not run.

A cell that begins like a formula is one to Excel, LibreOffice and Google Sheets, quoted or not, and names of columns
and groups are other people's. Results that are written as CSV go through here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["csv_text"]

_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # with the wide forms, which spreadsheets take for the same
_TEXT = "'"
_WITH_ENDS = re.compile(r"-?[0-9]+\.[0-9]+ \(-?[0-9]+\.[0-9]+ to -?[0-9]+\.[0-9]+\)")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """The rows as comma-separated lines; before a text that a spreadsheet would run comes an apostrophe.

    Numbers stay as they are, also where a text is one, and so does a sign alone.

    Example:
        >>> from privstats.files.csv_text import csv_text
        >>> print(csv_text([["name", "mean"], ["=1+1", -1.5], ["-2", "-inf"], ["-", "@ulm"]]), end="")
        name,mean
        '=1+1,-1.5
        -2,-inf
        -,'@ulm
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip().startswith(_FORMULA) or _is_harmless(value.strip()):
        return value
    return _TEXT + value


def _is_harmless(text: str) -> bool:
    """Whether a text is a number, with commas between its thousands too, with an interval behind it, or one sign."""
    if _WITH_ENDS.fullmatch(text):
        return True
    try:
        float(text.replace(",", ""))
    except ValueError:
        return len(text) == 1
    return "_" not in text
