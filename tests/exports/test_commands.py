"""What the command line prints for exports of each program: the sentence that a person needs."""

from __future__ import annotations

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
    ("name", "sentences"),
    [
        ("pandas", ["not read column 1: it has no name"]),
        ("r_write_csv2", ["north.csv --separator ';' --decimal , --plan plan.toml"]),
        (
            "excel_german",
            [
                'form of größe written = "DD.MM.YYYY"',
                "crp: of 60 values, read as a gap: #DIV/0! (7); is that so?",
                "north.csv --encoding cp1252 --separator ';' --decimal , --thousands . --plan plan.toml",
            ],
        ),
        ("excel_serial_days", ["if they are Excel's dates, state kind dates, written = 'days since 1899-12-30' in"]),
        ("redcap_missing_codes", ["age: of 60 values, read as a gap: NASK (4), ASKU (3); is that so?"]),
        ("stata_codes", ["crp: of 60 values, read as a gap: . (4), .a (3); is that so?"]),
        ("spss", ["crp: of 60 values, read as a gap: #NULL! (7); is that so?"]),
        ("sas", ["age: of 60 values, read as a gap: . (7)", 'form of seen written = "DDMONYYYY"']),
        (
            "epic_like",
            ["RESULT: values such as <0.5 (3) are read as just below that number; is that what your study wants?"],
        ),
        (
            "laboratory",
            ["troponin: values such as <0,01 (13) and >500 (5) are read as just below and just above that number; is"],
        ),
        ("sql_server", ["north.csv: 1 records do not fit its names and are excluded, first: "]),
        ("icd_9", ["form of code as_text = true"]),
        ("charges", ["not read cost: 60 of 60 look like numbers with a sign of money: write the number alone"]),
        (
            "times_of_berlin",
            [
                "seen: all are at 23:00. If that is midnight of your time zone, these are dates, and dates without a "
                'zone of another hospital differ from them: state written = "ISO in Europe/Berlin"'
            ],
        ),
    ],
)
def test_the_sentence_that_matters_is_printed(privstats, tmp_path, monkeypatch, name, sentences):
    monkeypatch.setenv("COLUMNS", "400")  # no cell of a table is broken into lines
    done = privstats("try", *files_of(tmp_path, name), cwd=tmp_path, code=0)
    for sentence in sentences:
        assert sentence in said(done), done.stdout


@pytest.mark.parametrize("name", [name for name, export in EXPORTS.items() if export.refused])
def test_a_refusal_is_one_sentence_with_the_cause(privstats, tmp_path, name):
    done = privstats("try", *files_of(tmp_path, name), cwd=tmp_path)
    assert done.returncode != 0
    assert EXPORTS[name].refused in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "try.html").exists()
