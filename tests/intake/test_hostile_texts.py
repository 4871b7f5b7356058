"""A text of one patient changes no other record and counts as at most one, in files of well-behaved programs.

Otherwise the file is refused, with its line. The night checks every text of :mod:`tests.intake.hostile_texts`.
"""

from __future__ import annotations

import re
from itertools import product

import pytest

from privstats.errors import DataError
from tests.intake.hostile_texts import CASES, NEIGHBOURS, PROGRAMS, RFC_4180, TEXTS, of
from tests.intake.test_csv_records import of_records, summed, written

_SOME = 29
pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
OWN = [of_records([("50", note, ill)]) for note, ill in product(("fever", "cough", "x", ""), ("no", "yes"))]
"""Whatever the hostile record may be read as, where its program escapes: one record of this age."""


def check(folder, program, neighbours, texts):
    """The neighbours' sums stay, and the hostile record adds at most its own; return how many files were refused."""
    before, after = NEIGHBOURS[neighbours]
    others, refused = of_records([*before, *after]), 0
    for text in texts:
        path = written(folder, PROGRAMS[program]([*before, of(text), *after]))
        exact = others + of_records([of(text)])
        if program in RFC_4180:
            assert summed(path, quoted=True) == exact, text
        try:
            found = summed(path)
        except DataError as refusal:
            assert re.search(r"\blines? [0-9]", str(refusal)), (text, str(refusal))
            assert "--lines" in str(refusal)
            refused += 1
            continue
        assert found in ([exact] if program in RFC_4180 else [others, *(others + own for own in OWN)]), text
    return refused


@pytest.mark.parametrize(("program", "neighbours"), CASES)
def test_some_hostile_texts_change_no_other_record(tmp_path, program, neighbours):
    some = TEXTS[::_SOME]
    assert check(tmp_path, program, neighbours, some) < len(some)


@pytest.mark.nightly
@pytest.mark.parametrize(("program", "neighbours"), CASES)
def test_every_hostile_text_changes_no_other_record(tmp_path, program, neighbours):
    assert check(tmp_path, program, neighbours, TEXTS) < len(TEXTS)


def test_a_program_that_neither_quotes_nor_escapes_is_what_no_reader_can_mend(tmp_path):
    """The check sees it: further lines are further records, as docs/proofs/reading.md states."""
    text = "fever\n50,cough,yes\n50,cough"
    before, after = NEIGHBOURS["plain"]
    rows = "".join(",".join(each) + "\n" for each in [("age", "note", "ill"), *before, of(text), *after])
    assert summed(written(tmp_path, rows)).records > len(before) + len(after) + 1
