"""Every snippet in the README and the docs runs, top to bottom, one namespace per page."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import privstats as ps
from tests.project.test_pages import MEASURED
from tests.without import WHOLE

ROOT = Path(__file__).parents[2]
ROOMS = ("privstats", "threat_models", "benchmarks", "tests")
DOCS = [*(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "reference"), *MEASURED]
_LONG = {
    *("CONTRIBUTING", "alignment", "attacks", "between_machines", "cells", "effects", "engineer", "heads", "operating"),
    *("audits", "interactive", "refinement", "researcher", "site_levels", "streams", "sweep", "tables"),
    "testing",
}
"""Pages whose snippets take seconds of a processor, which the night runs."""
PAGES = [
    ROOT / "README.md",
    *(
        pytest.param(page, marks=pytest.mark.nightly if page.stem in _LONG else pytest.mark.ci)
        for page in (*DOCS, ROOT / "CONTRIBUTING.md")
    ),
]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED, NUMBER = "<!-- printed -->\n```text", re.compile(r"[<>]?[-+]?\.?\d[\d.,]*")
RUN_BY_CI = re.compile(r"<!-- command: (\w+) -->\n```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """Return the page's path in the repository, which no second page has."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    text = RUN_BY_CI.sub("", page.read_text("utf-8")).replace(PRINTED, "```printed")
    return [(language, body) for language, body in FENCE.findall(text) if language in languages]


def commands(body: str) -> list[list[str]]:
    joined = body.replace("\\\n", " ")
    return [
        shlex.split(line, comments=True) for line in joined.splitlines() if line.strip() and not line.startswith("#")
    ]


def without_numbers(text: str) -> str:
    """A table as words alone: noise is in every number, and in how wide its column is."""
    return " ".join(word for word in NUMBER.sub("#", text).split() if set(word) - set("-="))


def python(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A program's own process; one of pytest finds its tests, which run in the suite itself."""
    found = {**os.environ, "PYTEST_ADDOPTS": "--collect-only"}
    return subprocess.run([sys.executable, *words], cwd=cwd, env=found, capture_output=True, text=True)


@WHOLE
@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.usefixtures("few_draws")
def test_python_and_shell_snippets_run_in_order(page, privstats, tmp_path, monkeypatch):
    """All in this process, but for ``python -m`` and for programs that the page wrote; forecasts are of three draws.

    What a page marks as printed are lines of what the commands above it print, numbers apart.
    """
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for language, body in blocks(page, "python", "bash", "printed"):
        if language == "python":
            exec(compile(body, str(page), "exec"), namespace)
            continue
        if language == "printed":
            assert [line for line in body.splitlines() if without_numbers(line) not in printed] == []
            continue
        printed = ""
        for words in commands(body):
            assert words[0] in {"privstats", "python"}, (
                f"{page.name}: {words[0]!r} is no command that the tests can run"
            )
            run = privstats if words[0] == "privstats" else python
            place = ROOT if words[:2] == ["python", "-m"] else tmp_path
            done = run(*words[1:], cwd=place)
            assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
            printed += f" {without_numbers(done.stdout)}"


@WHOLE
@pytest.mark.parametrize(
    "page", [ROOT / "docs" / "architecture.md", ROOT / "docs" / "how_to_add.md"], ids=lambda page: page.name
)
def test_every_module_that_a_page_sends_a_reader_to_is_there(page):
    there = [path.as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    named = set(re.findall(r"`([\w/]+\.py)", page.read_text("utf-8")))
    assert {name for name in named if not any(path.endswith(f"/{name}") for path in there)} == set()


def test_the_map_lists_every_contributed_room():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    listed = page.partition("### Inside contrib\n")[2].partition("\n##")[0]
    rooms = {each.parent.name for each in (ROOT / "privstats" / "contrib").glob("*/__init__.py")}
    assert rooms - {*re.findall(r"`(\w+)`", listed)} == set()


@WHOLE
@pytest.mark.parametrize("page", ["architecture", "core", "how_to_add"])
def test_every_name_that_a_page_sends_a_reader_to_stands_in_the_code(page):
    """A name that has another today would be written, and nothing would read it."""
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")] + [ROOT / "pyproject.toml"]
    files += (ROOT / "clients" / "javascript" / "src").glob("*.js")
    known = {word for path in files for word in (path.stem, *re.findall(r"\w+", path.read_text("utf-8")))}
    text = re.sub(r"^```.*?^```", "", (ROOT / "docs" / f"{page}.md").read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    named = {word for span in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", span)}
    assert len(named) > 50
    assert {word for word in named if re.search("[_A-Z]", word)} - known == set()


def test_the_readme_names_the_two_commands_that_ci_runs():
    named = dict(RUN_BY_CI.findall((ROOT / "README.md").read_text("utf-8")))
    assert set(named) == {"demo", "test"}
    assert all(len(body.strip().splitlines()) == 1 for body in named.values())


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/files_to_a_model.md", "docs/officer.md"])
def test_a_page_that_installs_activates_too_and_brings_what_its_commands_need(page):
    text = (ROOT / page).read_text("utf-8")
    first, _, after = text.partition("pip install")
    installs = first[-200:] + after[:200]
    assert ". .venv/bin/activate" in installs
    extras = set(re.search(r"\[([a-z,]+)\]", after)[1].split(","))
    used = {words[1] for _, body in blocks(ROOT / page, "bash") for words in commands(body) if words[0] == "privstats"}
    assert used & {"report", "flower"} <= extras


def test_the_glossary_has_every_column_of_the_tables_that_people_meet():
    plan = ps.Plan(
        schema=ps.ClassSchema(2, 2, "NAB", clip_norm=1.0),
        cohort=ps.Cohort(clients=3, min_survivors=3, max_records=9),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5),
    )
    columns = set(re.findall(r"[a-z]+(?: alone)?", str(plan.budget()).splitlines()[2]))
    columns |= {"between", "TPR@1%", "advantage", "gone", "survivors", "honest", "ceiling", "baseline", "verdict"}
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    terms = {term for line in glossary.splitlines() if line[:1].strip() for term in line.split(", ")}
    assert columns - terms == set()
