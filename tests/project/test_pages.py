"""Each page is in one place of the side bar, and measurements are next to their benchmarks, linked as evidence."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = sorted((ROOT / "benchmarks").rglob("*numbers.md"))
GENERATED = {"auto_gallery/index"}
"""Entries of the side bar without a page in the repository."""


def listed(page: Path) -> Iterator[str]:
    """Yield the pages in a page's own part of the side bar, by path in ``docs/``."""
    for entries in re.findall(r"```{toctree}\n(?::[^\n]*\n)*\n?(.*?)```", page.read_text("utf-8"), re.DOTALL):
        for entry in entries.split():
            yield (page.parent / entry).resolve().relative_to(DOCS).as_posix()


def test_every_page_is_in_one_place_of_the_side_bar() -> None:
    """A page that moved, and only leads to its new place, states that it is in none."""
    pages = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in DOCS.rglob("*.md")}
    orphans = {name for name, path in pages.items() if path.read_text("utf-8").startswith("---\norphan: true\n")}
    places = sorted(entry for path in pages.values() for entry in listed(path))
    assert places == sorted({*pages, *GENERATED} - orphans - {"index"})


def test_measurements_are_stored_next_to_the_benchmarks_and_linked_as_evidence() -> None:
    assert list(DOCS.rglob("*numbers.md")) == []
    assert len(MEASURED) >= 10
    assert all((page.parent / "__init__.py").is_file() for page in MEASURED)
    linked = set(re.findall(r"\]\(\.\./(benchmarks/[^)#]*numbers\.md)", (DOCS / "evidence.md").read_text("utf-8")))
    assert linked == {page.relative_to(ROOT).as_posix() for page in MEASURED}
