"""Every table and figure of the four papers stands on their page, each cell with a number or with a reason."""

import re
from pathlib import Path

import pytest

from benchmarks.papers.contents import Item, contents

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "benchmarks" / "papers" / "numbers.md"
MARKED = re.compile(r"<!-- table: (\w+) -->\n\n?((?:\|.*\n)+)")
ITEMS = [pytest.param(item, id=f"{item.paper}, {item.item}") for item in contents()]


def sections(page: str) -> dict[str, str]:
    """The page's sections by their headings."""
    return {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}


def section_of(item: Item, page: str) -> str:
    """What the page says of a paper."""
    return next(text for heading, text in sections(page).items() if heading.startswith(item.paper))


def table_cells(text: str) -> dict[str, dict[tuple[str, str], str]]:
    """By marker, then by row and column: the cells of a section's tables."""
    found = {}
    for name, body in MARKED.findall(text):
        head, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.strip().split("\n")]
        found[name] = {(line[0], column): cell for line in lines for column, cell in zip(head, line, strict=False)}
    return found


def measured(cell: str) -> bool:
    """Whether a cell of the page has a number of ours: behind the published one, or alone."""
    return any(sign.isdigit() for sign in cell.rpartition(" / ")[2])


def faults(item: Item, page: str) -> list[str]:
    """What the page owes to an item."""
    text = section_of(item, page)
    cells = table_cells(text)
    owed = [f"no table {name}" for name in item.tables if name not in cells]
    owed += [f"no picture {name}" for name in item.pictures if f"(../../docs/images/{name}.png)" not in text]
    owed += [f"its reason is not on the page: {reason}" for reason in item.missing.values() if reason not in text]
    if not re.search(rf"\b{re.escape(item.item)}\b", text, re.IGNORECASE):
        owed.append("not mentioned")
    for row, column in item.cells():
        there = any(measured(cells[name].get((row, column), "")) for name in item.tables if name in cells)
        if there == (item.reason(row, column) is not None):
            owed.append(f"{row}, {column}: " + ("has a number and a reason" if there else "no number and no reason"))
    return owed


@pytest.mark.parametrize("item", ITEMS)
def test_the_page_has_a_number_or_a_reason_for_every_cell(item):
    assert faults(item, PAGE.read_text("utf-8")) == []


def test_every_item_has_something_to_show_and_every_reason_is_of_something():
    for item in contents():
        assert item.tables or item.pictures or item.missing.get("all"), item
        assert set(item.missing) <= {
            "all",
            *item.rows,
            *item.columns,
            *(f"{row}, {column}" for row, column in item.cells()),
        }
        assert all((ROOT / "docs" / "images" / f"{name}.png").is_file() for name in item.pictures), item


def test_all_papers_are_there_with_their_tables_and_figures_in_a_row():
    """As the papers count them: a table that is forgotten leaves a gap."""
    counted = {"GH-OFL": (10, 4), "FedCGS": (4, 4), "One-shot ridge": (7, 5)}
    roman = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6, "VII": 7}
    for paper, (tables, figures) in counted.items():
        named = {tuple(item.item.split()) for item in contents() if item.paper == paper}
        found = {(kind, roman.get(number) or int(number)) for kind, number, *_ in named if kind in ("Table", "Figure")}
        assert found == {("Table", k + 1) for k in range(tables)} | {("Figure", k + 1) for k in range(figures)}
