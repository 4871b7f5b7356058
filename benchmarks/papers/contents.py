"""What the four papers show, as data: ``contents.toml`` beside this module, item by item.

The page of the papers is held to it (``tests/benchmarks/test_contents.py``), and its tables of what is left out are
made from it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

__all__ = ["Item", "contents"]

_FILE = Path(__file__).with_name("contents.toml")
_EVERYTHING = "all"


@dataclass(frozen=True)
class Item:
    """One table, figure or theorem of a paper, or a part of one.

    Attributes:
        paper: its short name, with which its section of the page begins.
        item: as the paper numbers it.
        tables: markers of the page's tables that have its numbers.
        pictures: files of docs/images, without their ending.
        rows, columns: names as the page has them; empty where the tables are looked at whole.
        missing: by row, by column, by ``"row, column"``, or for ``"all"``: why nothing is measured.
    """

    paper: str
    item: str
    tables: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> Iterator[tuple[str, str]]:
        """Every row and column."""
        return product(self.rows, self.columns)

    def reason(self, row: str, column: str) -> str | None:
        """Why a cell has no number; None where it has to have one."""
        return next((self.missing[name] for name in (f"{row}, {column}", row, column) if name in self.missing), None)

    def reasons(self) -> Mapping[str, list[str]]:
        """What is left out, by the reason."""
        found: dict[str, list[str]] = {}
        for name, reason in self.missing.items():
            found.setdefault(reason, []).append("" if name == _EVERYTHING else name)
        return found


@cache
def contents() -> tuple[Item, ...]:
    """All items of all papers, in the order of the file.

    Raises:
        TypeError: an entry has a key that no item has.
    """
    read = tomllib.loads(_FILE.read_text("utf-8"))
    return tuple(_item(paper, **entry) for paper, entries in read.items() for entry in entries)


def _item(paper: str, item: str, missing: Mapping[str, str] | None = None, **lists: Sequence[str]) -> Item:
    return Item(paper, item, missing=missing or {}, **{name: tuple(each) for name, each in lists.items()})
