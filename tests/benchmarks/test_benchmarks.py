"""Every benchmark runs, in its quick form, and every number table of the documentation is its results'."""

import json
import re
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from benchmarks import sentences, tables
from benchmarks.measuring import RESULTS
from tests.forks import beside
from tests.without import WHOLE

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if "command(" in path.read_text().partition('if __name__ == "__main__":')[2]
)
_LONG = (  # even in their quick forms: one paper is many tables, and an attack or a proof many sessions
    "benchmarks.papers.",
    "benchmarks.peers.",
    "benchmarks.alignment.",
    "benchmarks.attacks.",
    "benchmarks.core.lines",
    "benchmarks.dp.noise",
    "benchmarks.engines.crowd",
    "benchmarks.engines.faults",
    "benchmarks.heads.ridge_tables",
    "benchmarks.heads.sparse_groups",
    "benchmarks.inference.forecasts",
    "benchmarks.inference.hazards",
    "benchmarks.inference.imputation",
    "benchmarks.inference.levels",
    "benchmarks.inference.peers",
    "benchmarks.inference.persons",
    "benchmarks.inference.site_levels_logit",
    "benchmarks.inference.three_hospitals",  # test_three_hospitals.py walks it in every run
    "benchmarks.moments.dask",
    "benchmarks.moments.device",
    "benchmarks.moments.engines",
    "benchmarks.moments.sums",
    "benchmarks.moments.tables",
    "benchmarks.mutation",
    "benchmarks.raw_tables.cells",
    "benchmarks.raw_tables.finer_ends",
    "benchmarks.raw_tables.interactions",
    "benchmarks.raw_tables.losses",
    "benchmarks.raw_tables.mean_probability",
    "benchmarks.raw_tables.probabilities",
    "benchmarks.raw_tables.rare",
    "benchmarks.refinement.missing",
    "benchmarks.refinement.module_rounds",
    "benchmarks.speed",
    "benchmarks.streams.audit",
    "benchmarks.synthetic.attacks",
)
PAGES = tables.PAGES
_NUMBER = re.compile(r"(?=.*(\.\d|\d\d))[\d.,^e-]*\d[\d.,^e-]*( ?(%|ns|ms|s|B|kB|KiB|MiB|GB|±.*|/.*))?")
FOUND = "At epsilon 1 it is 2 in 100, at epsilon 3 about 5, at epsilon 10 about 37."
_MANY = 8  # cells that are numbers from which on a table counts as results


@pytest.mark.ci
@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=[pytest.mark.nightly] * each.startswith(_LONG)) for each in COMMANDS]
)
def test_quick_runs_and_saves_what_it_prints(command, tmp_path):
    path = tmp_path / "results.json"
    done = beside(run, tmp_path, command, "--quick", "--json", str(path))
    done.join()
    printed = (tmp_path / "printed").read_text()
    assert done.exitcode == 0, printed
    saved = json.loads(path.read_text())
    assert saved.pop("machine")["python"]
    assert saved
    assert all(rows and all(isinstance(row, dict) for row in rows) for rows in saved.values())
    assert all(title in printed for title in saved)


def run(folder: Path, command: str, *words: str) -> None:
    """The command as ``python -m`` runs it, in a fork, which has numpy and the rest loaded already."""
    sys.argv = [command, *words]
    with (folder / "printed").open("w") as printed, redirect_stdout(printed):
        runpy.run_module(command, run_name="__main__", alter_sys=True)


@WHOLE
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_tables_say_what_the_committed_results_say(page):
    text = page.read_text("utf-8")
    assert tables.rewritten(text) == text, "run python -m benchmarks.tables --write"


def _shows_results(table: str) -> bool:
    """Whether many cells are numbers, not all of them in the first column, which may number the rows."""
    rows = [[bool(_NUMBER.fullmatch(cell.strip())) for cell in row.split("|")[1:]] for row in table.split("\n")]
    return sum(map(sum, rows)) >= _MANY and any(any(row[1:]) for row in rows)


def test_a_table_shows_results_if_numbers_stand_beside_its_first_column():
    kinds = "\n".join(f"| {place} | `Open` |" for place in range(10, 10 + _MANY))
    assert not _shows_results(kinds)
    assert _shows_results(f"{kinds}\n| 18 | 0.25 |")
    assert not _shows_results("| 10 | 20 |\n" * (_MANY // 2 - 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_table_of_numbers_stands_without_its_results(page):
    lines = page.read_text("utf-8").split("\n")
    for place, line in enumerate(lines):
        if line.startswith("|") and not lines[place - 1].startswith("|"):
            body = "\n".join(lines[place:]).partition("\n\n")[0]
            if _shows_results(body):
                above = lines[place - 1] or lines[place - 2]
                assert above.startswith("<!-- table: "), f"line {place + 1} of {page.name} has numbers from nowhere"


def test_every_sentence_with_numbers_that_is_made_stands_in_a_page_and_follows(tmp_path):
    named = [name for page in PAGES for name in sentences.in_page(page.read_text("utf-8"))]
    assert sorted(named) == sorted(sentences.SENTENCES)
    assert "at epsilon 3 about 5, at epsilon 10 about 37" in sentences.found_of_a_hundred()
    drifted = "Guessing: <!-- sentence: found_of_a_hundred -->At epsilon 1 it is 2 in\n100.<!-- end --> And on."
    assert tables.rewritten(drifted) == f"Guessing: <!-- sentence: found_of_a_hundred -->{FOUND}<!-- end --> And on."
    broken = drifted.replace("At epsilon 1 it is 2 in\n100.", FOUND.replace(", ", ",\n"))
    assert tables.rewritten(broken) == broken  # lines may break anywhere


def test_the_officer_reads_no_number_of_epsilon_that_nothing_checks():
    prose = re.sub(
        r"```.*?```|<!-- sentence: .*?<!-- end -->", "", (ROOT / "docs" / "officer.md").read_text(), flags=re.DOTALL
    )
    assert re.findall(r"epsilon [\d.]+", prose) == []


def test_every_table_stands_in_a_page_and_has_its_results():
    named = [name for page in PAGES for name in tables.in_page(page.read_text("utf-8"))]
    assert sorted(named) == sorted(tables.TABLES)
    for file in RESULTS.glob("*.json"):
        assert f"benchmarks.{file.stem}" in COMMANDS, f"{file.name} is no benchmark's"
