"""How the files of a rehearsal are written: found in each file itself, and said, because a study's parties say it.

In a study nothing of it is guessed, for a guess follows from all records together. A rehearsal may look at its files.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from privstats.moments import RecordFile
from privstats.moments.csv_lines import Dialect
from privstats.workflows.rehearsal.held_tables import Source

__all__ = ["found_dialect", "options_of", "written_as"]

_LINES = 1 << 12
_SEPARATORS = ",;\t|:"  # of equally many names the first
_NAMES = ("encoding", "separator", "decimal")
_COMMA, _POINT = re.compile(r"[+-]?[0-9]+,[0-9]+"), re.compile(r"[+-]?[0-9]+\.[0-9]+")


def written_as(file: RecordFile, said: Sequence[str | None]) -> RecordFile:
    """The file with the encoding, separator and decimal mark that were said, and found where they were not.

    Args:
        file: of any kind; a Parquet file says it itself.
        said: encoding, separator and decimal mark, None for what was not said.
    """
    path = Path(file.path)
    if path.suffix.lower() == ".parquet" or not path.is_file():  # who reads it says so
        given: Any = {name: each for name, each in zip(_NAMES, said, strict=True) if each is not None}
        return replace(file, **given)
    found = found_dialect(path)
    usual = (found.encoding, found.separator, found.decimal)
    chosen: Any = {name: each or other for name, each, other in zip(_NAMES, said, usual, strict=True)}
    if chosen["decimal"] == chosen["separator"] and said[2] is None:
        chosen["decimal"] = "."
    return replace(file, **chosen)


def found_dialect(path: Path) -> Dialect:
    """The separator that parts the first line into most names, a decimal comma where values have one, and UTF-8 unless
    its bytes are none."""
    with path.open("rb") as file:
        lines = [line.rstrip(b"\r\n") for line in islice(file, _LINES)]
    text = b"\n".join(lines).removeprefix(codecs.BOM_UTF8)
    try:
        shown, encoding = text.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        shown, encoding = text.decode("cp1252", "replace"), "cp1252"
    header, *rows = shown.split("\n")
    separator = max(_SEPARATORS, key=lambda each: len(Dialect(encoding, each).fields(header) or ()))
    fields = [field for row in rows for field in row.split(separator)]
    commas, points = (sum(map(bool, map(mark.fullmatch, map(str.strip, fields)))) for mark in (_COMMA, _POINT))
    return Dialect(encoding, separator, "," if separator != "," and commas > points else ".")


def options_of(file: Source) -> str:
    """The options that tell any command how the file is written, with a space before each; nothing of a usual one."""
    usual, said = Dialect(), file.dialect
    options = {"encoding": said.encoding, "separator": {"\t": "tab"}.get(said.separator, said.separator)}
    options["decimal"] = said.decimal
    return "".join(f" --{name} {quote(each)}" for name, each in options.items() if each != getattr(usual, name))
