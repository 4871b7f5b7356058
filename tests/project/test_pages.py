"""Three kinds of pages, each page of one kind, volumes in folders, and measurements next to their benchmarks."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = sorted((ROOT / "benchmarks").rglob("*numbers.md"))
GROUPS = ("models", "rounds", "deploy", "assurance")
DOORS = ("start", "rehearsal", "tutorial", "effects", "officer", "engineer", "researcher")
VOLUMES = ("proofs", "wire")
BESIDE = ("index", "cli", "glossary", "faq", "specification", "evidence", *GROUPS)


def members(page: str) -> list[str]:
    (listed,) = re.findall(r"```{toctree}\n(?::.*\n)*\n(.*?)```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL)
    return listed.split()


GUIDES = [*DOORS, *(page for group in GROUPS for page in members(group))]
CHECKER = (ROOT / "privstats" / "review" / "certificate_checker.py").read_text("utf-8")
MOVED = set(re.findall(r"docs/(\w+)\.md", CHECKER)) - {*BESIDE, *GUIDES, *members("specification")}
"""Pages that the program of certificates still names: one line says where each is now."""


def test_every_page_is_of_one_kind() -> None:
    listed = [*BESIDE, *GUIDES, *members("specification"), *members("evidence"), *MOVED]
    measured = [path.relative_to(ROOT).with_suffix("").as_posix() for path in MEASURED]
    volumes = [f"{volume}/index" for volume in VOLUMES]
    assert sorted(listed) == sorted([*(path.stem for path in DOCS.glob("*.md")), *volumes, *measured])


@pytest.mark.parametrize("volume", VOLUMES)
def test_every_page_of_a_volume_is_listed_in_its_front(volume: str) -> None:
    pages = {path.stem for path in (DOCS / volume).glob("*.md")} - {"index"}
    assert sorted(members(f"{volume}/index")) == sorted(pages)
    rows = re.findall(r"^\|.*\|$", (DOCS / volume / "index.md").read_text("utf-8"), re.MULTILINE)
    assert {page for row in rows for page in re.findall(r"\]\((\w+)\.md", row)} == pages


@pytest.mark.parametrize("page", sorted(MOVED))
def test_a_page_that_moved_is_in_no_side_bar_and_links_to_where_it_is(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    assert text.startswith("---\norphan: true\n---\n")
    assert "](" in text
    assert len(text.split()) < 40


def test_measurements_are_stored_next_to_the_benchmarks_and_listed_as_evidence() -> None:
    assert list(DOCS.rglob("*numbers.md")) == []
    assert len(MEASURED) >= 10
    assert all((page.parent / "__init__.py").is_file() for page in MEASURED)
    listed = {page for page in members("evidence") if page.endswith("numbers")}
    assert listed >= {"benchmarks/heads/numbers", "benchmarks/inference/numbers"}
