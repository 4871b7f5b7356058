"""Three kinds of pages, each page of one kind, and measurements next to their benchmarks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = sorted((ROOT / "benchmarks").rglob("*numbers.md"))
GROUPS = ("models", "rounds", "operating", "assurance", "contributing")
DOORS = ("start", "rehearsal", "tutorial", "effects", "officer", "researcher")
BESIDE = ("index", "cli", "glossary", "faq", "specification", "evidence", *GROUPS)


def members(page: str) -> list[str]:
    (listed,) = re.findall(r"```{toctree}\n(?::.*\n)*\n(.*?)```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL)
    return listed.split()


GUIDES = [*DOORS, *(page for group in GROUPS for page in members(group))]


def test_every_page_is_of_one_kind() -> None:
    listed = [*BESIDE, *GUIDES, *members("specification"), *members("evidence")]
    assert sorted(listed) == sorted(path.stem for path in DOCS.glob("*.md"))


def test_measurements_are_stored_next_to_the_benchmarks_and_linked_as_evidence() -> None:
    assert list(DOCS.rglob("*numbers.md")) == []
    assert len(MEASURED) >= 10
    pages = {page.relative_to(ROOT).as_posix() for page in MEASURED}
    assert all((ROOT / page).with_name("__init__.py").is_file() for page in pages)
    text = (DOCS / "evidence.md").read_text("utf-8")
    linked = set(re.findall(r"\]\(\.\./(benchmarks/[^)#]*numbers\.md)", text.partition("\n## Measurements\n")[2]))
    assert linked == pages
