"""Three kinds of pages, each page of one kind, and guides that a reader can finish."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = sorted((ROOT / "benchmarks").rglob("*numbers.md"))
GROUPS = ("models", "rounds", "deploy", "assurance")
DOORS = ("start", "rehearsal", "tutorial", "effects", "officer", "engineer", "researcher")
BESIDE = ("index", "cli", "glossary", "faq", "specification", "evidence", *GROUPS)
MOST_WORDS = 2_400


def members(page: str) -> list[str]:
    (listed,) = re.findall(r"```{toctree}\n(?::.*\n)*\n(.*?)```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL)
    return listed.split()


def prose(page: str) -> int:
    """Words beside code, tables, drawings and comments."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    text = re.sub(r"^```.*?^```|<!--.*?-->|<svg.*?</svg>", "", text, flags=re.DOTALL | re.MULTILINE)
    return sum(len(line.split()) for line in text.splitlines() if not line.startswith(("|", "    ", ":")))


GUIDES = [*DOORS, *(page for group in GROUPS for page in members(group))]


def test_every_page_is_of_one_kind() -> None:
    listed = [*BESIDE, *GUIDES, *members("specification"), *members("evidence")]
    measured = [path.relative_to(ROOT).with_suffix("").as_posix() for path in MEASURED]
    assert sorted(listed) == sorted([*(path.stem for path in DOCS.glob("*.md")), *measured])


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_has_no_more_words_than_one_reads(page: str) -> None:
    assert prose(page) <= MOST_WORDS


def test_all_guides_together_can_be_read_in_a_day() -> None:
    assert sum(map(prose, GUIDES)) <= 25_000


def test_the_map_of_the_code_is_a_map() -> None:
    assert len((DOCS / "architecture.md").read_text("utf-8").split()) <= 1_500


def test_measurements_are_stored_next_to_the_benchmarks_and_listed_as_evidence() -> None:
    assert list(DOCS.rglob("*numbers.md")) == []
    assert len(MEASURED) >= 10
    assert all((page.parent / "__init__.py").is_file() for page in MEASURED)
    listed = {page for page in members("evidence") if page.endswith("numbers")}
    assert listed >= {"benchmarks/heads/numbers", "benchmarks/inference/numbers"}
