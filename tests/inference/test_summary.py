"""The printed table, its file and its paragraph: every form holds the same cells, the promise and the assumptions."""

import csv
import html
import io
import re
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.errors import MissingExtraError, PrivstatsError, ReleaseError
from privstats.inference.reporting import Source
from privstats.randomness import seeded
from privstats.version import __version__
from tests import made
from tests.hazard import worlds as hazards
from tests.inference import test_effects as effects
from tests.inference.test_counts import exact as counted
from tests.inference.test_counts import noisy as counted_noisy
from tests.inference.test_counts import people
from tests.inference.test_first_table import groups, released
from tests.inference.test_regression import exact, noisy, records

NAMES = ("a_very_long_column_name_of_a_hospital_s_own", "50%_dose & more", "x<y>")


def test_the_text_is_80_columns_wide_and_names_claim_promise_and_plan():
    X, y = records()
    release = noisy(X, y, 8.0, feature_names=NAMES)
    text = str(inf.ols(release).summary())
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "interval that misses",
        "epsilon 8",
        "unit record",
        release.plan.digest[:16],
        "TEST NOISE",
        "Assumed",
    ):
        assert words in text


@pytest.mark.parametrize("sessions", [1, 3])
def test_delta_counts_the_masking_of_every_session_on_a_random_graph(sessions):
    """The table stated the plan's delta, without the chance that masking fails; the number is rounded up."""
    plan = made.plan(
        ps.ClassSchema(2, 4, "NA", clip_norm=1.0),
        ps.Cohort(1_000, 900, 10_000, colluders=100),
        made.promise("distributed", delta=1e-9),
    )
    release = ps.Release(plan, np.zeros(plan.layout.size, np.int64), tuple(range(1_000)))
    source = Source(release, 0.05, "independent records", plans=(plan, *[None] * (sessions - 1)))
    stated = {1: "1.00017e-09", 3: "1.0005e-09"}[sessions]
    assert float(stated) >= 1e-9 + sessions * plan.masking.failure > 1e-9
    assert f"delta {stated}" in source.promise
    assert f"delta = {stated}" in source.methods("A table.")


def test_a_parameter_that_is_not_told_shows_no_estimate():
    table = inf.ols(exact(np.c_[records()[0], records()[0][:, 0]], records()[1]))
    rows = {row[0]: row for row in table.summary().rows}
    assert rows["x0"][1:5] == ("-",) * 4
    assert rows["x0"][-2:] == ("-inf", "inf")
    assert rows["x1"][1] != "-"


def test_nor_do_its_numbers():
    pytest.importorskip("pandas", reason="makes a DataFrame, and pandas is not installed")
    table = inf.ols(exact(np.c_[records()[0], records()[0][:, 0]], records()[1]))
    assert table.reported.any()
    assert not table.reported.all()
    assert np.array_equal(np.isnan(table.params), ~table.reported)
    assert np.array_equal(table.to_frame()["estimate"].isna(), ~table.reported)
    each = [table.t_test(row) for row in np.eye(len(table.names))]
    assert np.array_equal([np.isnan(one.value) for one in each], ~table.reported)
    assert np.isfinite(table.errors.estimate).all()


def test_a_level_hides_what_it_does_not_tell():
    pytest.importorskip("pandas", reason="makes a DataFrame, and pandas is not installed")
    table = inf.ols(noisy(*records(), 8.0))
    assert np.array_equal(np.isfinite(table.to_frame()["estimate"]), table.reported)
    assert np.array_equal(np.isfinite(table.to_frame(1e-9)["estimate"]), table.errors.reported(1e-9))
    assert table.reported.sum() > table.errors.reported(1e-9).sum()


def test_small_p_values_are_bounded_and_not_printed_as_nothing():
    rows = inf.ols(exact(*records())).summary().rows
    assert rows[1][5] == "<.0001"


def test_every_form_holds_the_same_cells():
    X, y = records()
    summary = inf.ols(exact(X, y, feature_names=NAMES)).summary(alpha=0.1)
    table = list(csv.reader(io.StringIO(summary.as_csv())))
    assert [row[1:] for row in table[1:]] == [[cell.replace(",", "") for cell in row[1:]] for row in summary.rows]
    assert table[0] == ["name", *summary.columns[1:-2], "90% low", "90% high"]
    assert [row[0] for row in table[1:]] == [row[0] for row in summary.rows]
    assert summary.columns[-2] == "[90%"
    html = summary.as_html()
    assert html == summary._repr_html_()
    assert "x&lt;y&gt;" in html
    assert "x<y>" not in html
    latex = summary.as_latex()
    assert r"50\%\_dose \& more" in latex
    assert latex.count(r"\\") == 1 + len(summary.rows)
    assert r"P\textgreater{}\textbar{}t\textbar{}" in latex
    assert not set("<>|") & set(latex), "LaTeX prints these as other characters"


def test_a_frame_holds_the_numbers():
    pytest.importorskip("pandas", reason="makes a DataFrame, and pandas is not installed")
    table = inf.ols(exact(*records()))
    frame = table.to_frame()
    assert list(frame["term"]) == list(table.names)
    assert np.array_equal(frame["estimate"], table.params)
    assert frame["reported"].all()


def test_exact_sums_are_called_so():
    text = str(inf.ols(exact(*records())).summary())
    assert "no differential privacy" in text
    assert "noisy" not in text
    assert ps.inference is inf


def test_a_long_name_of_a_row_has_a_line_of_its_own():
    cells = tuple(["0.12345678"] * 5)
    rows = (("recovered age: under 55", *cells), ("b", *cells), (" ".join(["word"] * 30), *cells))
    lines = inf.Summary("T", (), ("", *"cdefg"), rows, ()).as_text().splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index("recovered age: under 55")
    assert lines[at + 1].split() == [*cells]
    assert lines[at + 2].split() == ["b", *cells]
    assert lines[at + 1].rindex("0.1") == lines[at + 2].rindex("0.1")
    assert " ".join(lines[at + 3 : at + 5]).split() == ["word"] * 30
    assert lines[at + 5].split() == [*cells]


def test_a_long_heading_of_rows_is_one_line_and_keeps_its_indent():
    rows = (("h" * 50, *[""] * 5), (f"  {'c' * 50}", *["0.12345678"] * 5), ("  d", *["0.12345678"] * 5))
    lines = inf.Summary("T", (), ("", *"cdefg"), rows, ()).as_text().splitlines()
    at = lines.index("h" * 50)
    assert lines[at + 1] == f"  {'c' * 50}"
    assert lines[at + 2].split() == ["0.12345678"] * 5
    assert lines[at + 3].startswith("  d ")


def test_headings_stand_for_themselves_and_numbers_have_no_commas_in_csv():
    rows = (("age", "1,234", "-0.01 (-0.02 to 0.01)", "1", "1,234,567.5"),)
    shown = inf.Summary("t", (), ("", "n", "SMD", "[95%", "]"), rows, ())
    assert shown.as_csv() == "name,n,SMD,95% low,95% high\nage,1234,-0.01 (-0.02 to 0.01),1,1234567.5\n"
    assert r" & n & SMD & 95\% low & 95\% high \\" in shown.as_latex()
    assert "<th>95% low</th><th>95% high</th>" in shown.as_html()
    assert "[95%" in shown.as_text()


PROMISE = (
    "Privacy: epsilon 3, delta 1e-06, unit record, adjacency add-remove, model central, while the server adds its "
    "noise and keeps the exact sum secret; masks hide each party's sums while no party works with the server."
)


@pytest.fixture(scope="module")
def table() -> inf.Summary:
    return inf.table_one(counted_noisy(people(2_000), 3.0, 1), by="sex").summary()


def pandoc_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of this name, which is found before any other."""
    program = folder / "bin" / "pandoc"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_every_ending_holds_the_table_and_the_paragraph(table: inf.Summary, tmp_path: Path) -> None:
    forms = {".txt": table.as_text(), ".html": table.as_html(), ".tex": table.as_latex(), ".md": table.as_markdown()}
    for ending, form in forms.items():
        for methods in (False, True):
            table.save(tmp_path / f"table{ending}", methods=methods)
            text = (tmp_path / f"table{ending}").read_text()
            assert form in text
            assert ("were not pooled" in text) is methods
    table.save(tmp_path / "table.CSV")
    assert (tmp_path / "table.CSV").read_text() == table.as_csv()
    for name, methods, words in (
        ("table.csv", True, "cannot hold"),
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
    assert r"\quad under 20 & " in latex
    assert latex.count(r"\\" + "\n") == 1 + len(table.rows)


def test_markdown_prints_every_cell_and_sentence_as_text(table: inf.Summary) -> None:
    """By the parser that rich brings: what it prints is what the table holds, whatever the names are."""
    odd = ("a|b", "*x_1*", "`<b>`", "50 % [y](z)", r"\\", "&lt;", "$a$ ~b~", "# c")
    wild = inf.Summary(
        "T", (("records", odd[0]),), ("", "P>|t|"), tuple((each, each) for each in odd), odd, caution=odd[1]
    )
    for summary in (table, wild):
        printed = _printed_markdown(summary.as_markdown())
        assert printed["th"] == [*summary._headings]
        assert printed["td"] == [cell.strip() for row in summary.rows for cell in row]
        head = [f"{name}: {value}" for name, value in summary.head]
        assert printed["li"] == [" ".join(each.split()) for each in (*head, *summary.foot)]
        assert printed["p"] == [*filter(None, [summary._caption, summary.caution])]


def _printed_markdown(text: str) -> dict[str, list[str]]:
    """Return the texts that a reader sees, by the element that holds them."""
    tokens = pytest.importorskip("markdown_it").MarkdownIt().enable("table").parse(text)
    found: dict[str, list[str]] = {"p": [], "li": [], "th": [], "td": []}
    opened: list[str] = []
    for token in tokens:
        if token.nesting:
            opened = [*opened, token.tag] if token.nesting > 0 else opened[:-1]
        elif token.type == "inline":
            inside = next(each for each in reversed(opened) if each in found and not (each == "p" and "li" in opened))
            found[inside].append("".join(each.content for each in token.children).strip())
    return found


def test_word_without_pandoc_is_a_sentence(table: inf.Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="pandoc, .*name a .html file"):
        table.save(tmp_path / "table.docx")
    assert not (tmp_path / "table.docx").exists()


def test_pandoc_is_given_the_page_and_its_failure_is_a_sentence(table, tmp_path, monkeypatch):
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
    said = html.unescape(re.sub(r"<[^>]+>", "", document))
    assert all(cell.strip() in said for row in table.rows for cell in row)
    assert PROMISE in said
    assert "were not pooled" in said


def test_every_table_shows_itself_with_its_promise() -> None:
    """What a notebook shows of every reader: the caption names epsilon, unit and adjacency, or that sums are exact."""
    release, (X, y) = counted_noisy(people(2_000), 3.0, 1), records()
    rounds = hazards.played(hazards.course_of(2_000, 3.0), hazards.world(2_000), 1)
    shown: dict[str, Any] = {
        "curve": inf.kaplan_meier(release, time="months", event="died", times="discrete"),
        "curves": inf.kaplan_meier(release, time="months", event="died", by="sex", times="discrete"),
        "shares": inf.table_one(release, by="sex"),
        "means": inf.table_one(released(*groups(), 3.0)),
        "regression": inf.ols(noisy(X, y, 3.0)),
        "hazards": inf.hazards(rounds),
    }
    for name, result in shown.items():
        caption = re.search(r"<caption>(.*?)</caption>", result._repr_html_())
        assert caption is not None, name
        for word in ("epsilon 3", "unit record", "adjacency add-remove"):
            assert word in caption.group(1), name
    plain = inf.kaplan_meier(counted(people()), time="months", event="died", times="discrete")
    assert "Exact sums: no differential privacy" in plain._repr_html_().split("</caption>")[0]


def test_of_hazards_it_says_what_a_ratio_is_not_and_the_epsilon_of_all_sessions() -> None:
    releases = hazards.played(hazards.course_of(2_000, 3.0), hazards.world(2_000), 1)
    said = ps.inference.methods(ps.inference.hazards(releases))
    assert said.startswith("TEST NOISE, not private: Hazard ratios of died on arm, age and dose")
    assert "A hazard ratio is not a causal effect, even in a trial" in said
    assert "All 5 sessions together are differentially private with epsilon = 3 and delta = 1e-06" in said
    assert "one record, the adjacency add-remove" in said
    assert releases[-1].plan.digest in said  # type: ignore[union-attr]
    assert said.endswith(f"Software: privstats {__version__}.")


def test_of_an_adjusted_difference_it_says_first_what_no_sum_can_test() -> None:
    schema = effects.observed_schema("overlap", trim=0.1)
    X, y = effects.confounded(4_000, effects.np.random.default_rng(1))
    table = ps.inference.effect(effects.played(effects.course_of(4_000, 8.0, schema), X, y, seeded(1)))
    said = ps.inference.methods(table).removeprefix("TEST NOISE, not private: ")
    assert said.startswith("No unmeasured confounding given the columns named in the plan: no sum can test this.")
    assert "by e (1 - e)" in said
    assert "effect" not in said


def test_the_level_of_the_intervals_is_that_of_the_paper() -> None:
    X, y = records()
    fit = ps.inference.ols(noisy(X, y, 1.0))
    assert "Intervals (90%)" in ps.inference.methods(fit, alpha=0.1)
    exactly = ps.inference.methods(ps.inference.ols(exact(X, y)))
    assert "without differential privacy" in exactly
    assert "include sampling:" in exactly


@pytest.mark.parametrize("what", ["curves", "a plain mapping of curves", "one curve", "table one"])
def test_curves_and_the_first_table_know_their_release(what: str) -> None:
    release, inf = counted(people()), ps.inference
    results: dict[str, Any] = {
        "curves": lambda: inf.kaplan_meier(release, time="months", event="died", by="sex", times="discrete"),
        "a plain mapping of curves": lambda: dict(
            inf.kaplan_meier(release, time="months", event="died", by="sex", times="discrete")
        ),
        "one curve": lambda: inf.kaplan_meier(release, time="months", event="died", times="discrete"),
        "table one": lambda: inf.table_one(release, by="sex"),
    }
    said = inf.methods(results[what]())
    assert release.plan.digest in said
    assert said.endswith(f"Software: privstats {__version__}.")
    assert ("Yang and Dalton" in said) is (what == "table one")


def test_shares_hold_no_release_and_are_given_one() -> None:
    release, inf = counted(people()), ps.inference
    result = inf.proportions(release, "sex")
    assert release.plan.digest in inf.methods(result, release)
    with pytest.raises(ReleaseError, match="second argument"):
        inf.methods(result)


def test_nothing_is_written_of_what_no_reader_returned() -> None:
    with pytest.raises(ReleaseError, match="for a int"):
        ps.inference.methods(3, counted(people()))  # type: ignore[arg-type]
