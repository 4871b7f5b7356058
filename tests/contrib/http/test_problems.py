"""The codes of refusals: the page's table is the library's, and a machine's words are among them."""

import re
from pathlib import Path

import msgspec

from privstats.contrib.http.exchange import CODES, problem_of

PAGE = Path(__file__).parents[3] / "docs" / "wire" / "http.md"


def test_the_page_has_every_code_with_its_status_and_whether_to_ask_again() -> None:
    rows = re.findall(r"^\| ((?:`\w+` ?)+) \| `(\d{3})` \| (yes|no) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    told = {code: (int(status), again == "yes") for codes, status, again in rows for code in re.findall(r"\w+", codes)}
    assert told == {code: (row.status, row.retry) for code, row in CODES.items()}


def test_who_may_ask_again_is_told_when_only_where_asking_again_helps() -> None:
    assert all(row.retry for row in CODES.values() if row.after is not None)
    assert all(row.title.endswith(".") for row in CODES.values())


def test_a_document_takes_further_members() -> None:
    assert msgspec.json.decode(problem_of("over", end="00"))["end"] == "00"
