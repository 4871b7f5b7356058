"""Three kinds of pages, each page of one kind, and measurements next to their benchmarks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = sorted((ROOT / "benchmarks").rglob("*numbers.md"))
GROUPS = ("models", "rounds", "deploy", "assurance")
DOORS = ("start", "rehearsal", "tutorial", "effects", "officer", "engineer", "researcher")
BESIDE = ("index", "cli", "glossary", "faq", "specification", "evidence", *GROUPS)


def members(page: str) -> list[str]:
    (listed,) = re.findall(r"```{toctree}\n(?::.*\n)*\n(.*?)```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL)
    return listed.split()


GUIDES = [*DOORS, *(page for group in GROUPS for page in members(group))]


def test_every_page_is_of_one_kind() -> None:
    listed = [*BESIDE, *GUIDES, *members("specification"), *members("evidence")]
    measured = [path.relative_to(ROOT).with_suffix("").as_posix() for path in MEASURED]
    assert sorted(listed) == sorted([*(path.stem for path in DOCS.glob("*.md")), *measured])


def test_measurements_are_stored_next_to_the_benchmarks_and_listed_as_evidence() -> None:
    assert list(DOCS.rglob("*numbers.md")) == []
    assert len(MEASURED) >= 10
    assert all((page.parent / "__init__.py").is_file() for page in MEASURED)
    listed = {page for page in members("evidence") if page.endswith("numbers")}
    assert listed >= {"benchmarks/heads/numbers", "benchmarks/inference/numbers"}
