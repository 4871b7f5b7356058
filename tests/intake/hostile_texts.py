"""Texts with which one patient could try to pass for several, or to move a neighbour, and programs that write them.

``python -m tests.intake.hostile_texts FOLDER`` writes the files of all texts and programs, each with its text's number.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

from tests.intake.test_csv_escapes import PROGRAMS as ESCAPING
from tests.intake.test_csv_records import quoting

Record: TypeAlias = tuple[str, str, str]

_PIECES = ('"', '""', '\\"', "\\", ",", "\n", "\r\n", "\r", "50,cough,yes", "x")
_LONGEST = 3
_BEGIN = ("", '"', '""', 'x"', '",yes', 'a",yes', "\\", '\\"', '\\",yes', 'x\\"', "a,b")
_END = ("", '"', '""', '"x', '70,"', '70,"x', "\\", '\\"', '70,\\"x', ",yes", "u,v")
_RECORDS = "\n50,cough,yes\n50,cough,yes\n"
TEXTS = tuple(
    dict.fromkeys(
        (
            *("".join(pieces) for length in range(_LONGEST + 1) for pieces in product(_PIECES, repeat=length)),
            *(f"{begin}{_RECORDS}{end}" for begin, end in product(_BEGIN, _END)),
        )
    )
)
"""Each short sequence of what a reader of CSV minds, and records between two such pieces."""

RFC_4180 = {
    "quotes where needed": quoting,
    "quotes everywhere": partial(quoting, quoting=csv.QUOTE_ALL),
    "quotes where needed, CRLF": partial(quoting, end="\r\n"),
    "quotes everywhere, CRLF": partial(quoting, end="\r\n", quoting=csv.QUOTE_ALL),
}
PROGRAMS: dict[str, Callable[[Sequence[Record]], str]] = {
    **RFC_4180,
    **ESCAPING,
    "csv with escapes": partial(quoting, doublequote=False, escapechar="\\"),
    "csv with escapes everywhere": partial(quoting, doublequote=False, escapechar="\\", quoting=csv.QUOTE_ALL),
}
"""How programs write records, by their own rules: RFC 4180 doubles quotes, the others escape by a backslash."""

BEFORE: tuple[Record, ...] = (("30", "fever", "no"), ("70", "cough", "yes"))
AFTER: tuple[Record, ...] = (("60", "fever", "yes"), ("30", "cough", "no"), ("70", "other", "no"))
NOTED: Record = ("60", "left\nhome", "yes")
NEIGHBOURS = {"plain": (BEFORE, AFTER), "with a note": ((*BEFORE, NOTED), (*AFTER, NOTED))}
"""Records before and after the hostile one."""
CASES = tuple(case for case in product(PROGRAMS, NEIGHBOURS) if case != ("MySQL", "with a note"))
"""Each program with each neighbours; what MySQL writes of a line break is refused without any hostile text."""


def of(text: str) -> Record:
    """The hostile patient's record."""
    return "50", text, "no"


if __name__ == "__main__":
    for program, write in PROGRAMS.items():
        for place, text in enumerate(TEXTS):
            file = Path(sys.argv[1]) / f"{program.replace(' ', '_')}_{place}.csv"
            file.write_bytes(write([*BEFORE, of(text), *AFTER]).encode())
