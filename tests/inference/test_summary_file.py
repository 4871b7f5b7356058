"""A table as a file: every ending, Word through pandoc or a sentence where it is absent, captions with the promise."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from privstats import inference as inf
from privstats.errors import MissingExtraError, PrivstatsError, ReleaseError
from tests.hazard import worlds as hazards
from tests.inference.test_counts import exact, noisy, people
from tests.inference.test_first_table import groups, released
from tests.inference.test_regression import noisy as of_regression
from tests.inference.test_regression import records

PROMISE = "Privacy: epsilon 3, delta 1e-06, unit record, adjacency add-remove, model central."


@pytest.fixture(scope="module")
def table() -> inf.Summary:
    return inf.table_one(noisy(people(2_000), 3.0, 1), by="sex").summary()


def pandoc_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of this name, which is found before any other."""
    program = folder / "bin" / "pandoc"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_every_ending_holds_the_table_and_the_paragraph(table: inf.Summary, tmp_path: Path) -> None:
    for ending, form in ((".txt", table.as_text()), (".html", table.as_html()), (".tex", table.as_latex())):
        for methods in (False, True):
            table.save(tmp_path / f"table{ending}", methods=methods)
            text = (tmp_path / f"table{ending}").read_text()
            assert form in text
            assert ("were not pooled" in text) is methods
    table.save(tmp_path / "table.CSV")
    assert (tmp_path / "table.CSV").read_text() == table.as_csv()
    for name, methods, words in (
        ("table.csv", True, "no room"),
        ("table.pdf", False, "ends otherwise"),
        ("table", False, "ends"),
    ):
        with pytest.raises(ReleaseError, match=words):
            table.save(tmp_path / name, methods=methods)
    with pytest.raises(PrivstatsError, match="cannot write"):
        table.save(tmp_path / "no folder" / "table.txt")


def test_latex_is_a_float_with_a_caption_and_indented_cells(table: inf.Summary) -> None:
    latex = table.as_latex()
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == latex.count(r"\toprule") == 1
    assert re.search(r"\\caption\{.*epsilon 3, .*unit record, adjacency add-remove", latex)
    assert r"\quad 0..20 & " in latex
    assert latex.count(r"\\" + "\n") == 1 + len(table.rows)


def test_word_without_pandoc_is_a_sentence(table: inf.Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="pandoc, which is not on the PATH.*name a .html file"):
        table.save(tmp_path / "table.docx")
    assert not (tmp_path / "table.docx").exists()


def test_pandoc_is_given_the_page_and_its_failure_is_a_sentence(
    table: inf.Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandoc_in(
        tmp_path, 'for each in "$@"; do case $each in --output=*) cat > "${each#--output=}";; esac; done', monkeypatch
    )
    table.save(tmp_path / "table.docx", methods=True)
    page = (tmp_path / "table.docx").read_text()
    assert table.as_html() in page
    assert "were not pooled" in page
    (tmp_path / "bin" / "pandoc").write_text(
        "#!/bin/sh\ncat > /dev/null\necho one >&2\necho 'disk is full' >&2\nexit 3\n"
    )
    with pytest.raises(ReleaseError, match="table.docx: disk is full"):
        table.save(tmp_path / "table.docx")


@pytest.mark.skipif(shutil.which("pandoc") is None, reason="pandoc is not installed")
def test_a_word_file_holds_every_cell(table: inf.Summary, tmp_path: Path) -> None:
    table.save(tmp_path / "table.docx", methods=True)
    document = zipfile.ZipFile(tmp_path / "table.docx").read("word/document.xml").decode()
    said = re.sub(r"<[^>]+>", "", document)
    assert all(cell.strip().replace("<", "&lt;") in said for row in table.rows for cell in row)
    assert PROMISE in said
    assert "were not pooled" in said


def test_every_table_shows_itself_with_its_promise() -> None:
    """What a notebook shows of every reader: the caption names epsilon, unit and adjacency, or that sums are exact."""
    release, (X, y) = noisy(people(2_000), 3.0, 1), records()
    rounds = hazards.played(hazards.course_of(2_000, 3.0), hazards.world(2_000), 1)
    shown: dict[str, Any] = {
        "curve": inf.kaplan_meier(release, time="months", event="died"),
        "curves": inf.kaplan_meier(release, time="months", event="died", by="sex"),
        "shares": inf.table_one(release, by="sex"),
        "means": inf.table_one(released(*groups(), 3.0)),
        "regression": inf.ols(of_regression(X, y, 3.0)),
        "hazards": inf.hazards(rounds),
    }
    for name, result in shown.items():
        caption = re.search(r"<caption>(.*?)</caption>", result._repr_html_())
        assert caption is not None, name
        for word in ("epsilon 3", "unit record", "adjacency add-remove"):
            assert word in caption.group(1), name
    plain = inf.kaplan_meier(exact(people()), time="months", event="died")
    assert "Exact sums: no differential privacy" in plain._repr_html_().split("</caption>")[0]
