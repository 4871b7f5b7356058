"""The facts that `privstats try` prints about an export, and how it refuses one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.test_try import said
from tests.exports.programs import EXPORTS

ASKED = ("--epsilon", "3", "--test", "0.5")


def files_of(folder: Path, name: str) -> tuple[str, ...]:
    """Two hospitals with this export, and the options that name its target."""
    for party in ("north", "south"):
        (folder / f"{party}.csv").write_bytes(EXPORTS[name].data)
    return "north.csv", "south.csv", "--target", EXPORTS[name].target, *ASKED


@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("pandas", [("not read", "column 1", "no name")]),
        (
            "excel_german",
            [
                ("form of größe", 'written = "DD.MM.YYYY"'),
                ("crp: of 60 values", "gap: #DIV/0! (7)"),
                ("north.csv --encoding cp1252 --separator ';' --decimal , --thousands . --plan plan.toml",),
            ],
        ),
        ("excel_serial_days", [("kind dates", "written = 'days since 1899-12-30'")]),
        ("redcap_missing_codes", [("age: of 60 values", "gap: NASK (4), ASKU (3)")]),
        ("laboratory", [("troponin", "<0,01 (13) and >500 (5)", "just below and just above")]),
        ("sql_server", [("north.csv: 1 line", "excluded, first: ")]),
        ("icd_9", [("form of code", "as_text = true")]),
        ("charges", [("not read cost: 60 of 60", "sign of money", "write the number alone")]),
        ("times_of_berlin", [("seen: all are at 23:00", "time zone", 'written = "ISO in Europe/Berlin"')]),
    ],
)
def test_a_person_is_shown_what_was_read_and_what_to_state(privstats, tmp_path, monkeypatch, name, facts):
    """One export for each kind of sentence; test_exports.py has every program."""
    monkeypatch.setenv("COLUMNS", "400")  # no cell of a table is broken into lines
    done = privstats("try", *files_of(tmp_path, name), cwd=tmp_path, code=0)
    for words in facts:
        assert re.search(".*".join(map(re.escape, words)), said(done)), done.stdout


def test_a_refusal_is_one_sentence_with_the_cause(privstats, tmp_path):
    done = privstats("try", *files_of(tmp_path, "r_write_table"), cwd=tmp_path)
    assert done.returncode != 0
    assert EXPORTS["r_write_table"].refused in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "try.html").exists()
