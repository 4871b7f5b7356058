"""Plant a row in a read-only table, or entry points that announce rows, for one test."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, distribution
from typing import Any, NamedTuple

import pytest

from privstats import doors
from privstats.doors import Door
from privstats.tables import LazyRows

__all__ = ["plant", "plant_entries"]


class _Package(NamedTuple):
    """What an entry point states of its distribution."""

    name: str
    version: str = "0.1"

    def read_text(self, filename: str) -> None:
        """It has no further file."""


def plant(patch: pytest.MonkeyPatch, table: Mapping[str, Any], name: str, row: Any) -> None:
    """Give a door, or a table of lazy rows, one row of ours more, or another one of this name."""
    own: Any = table._own if isinstance(table, Door) else table
    if isinstance(own, LazyRows):
        patch.setitem(own._makers, name, lambda: row)
        patch.setitem(own._rows, name, row)
    elif isinstance(table, Door):
        patch.setattr(table, "_own", {**own, name: row})
    else:
        patch.setitem(own, name, row)


def plant_entries(
    patch: pytest.MonkeyPatch, group: str, rows: Mapping[str, str], package: str = "", *, alone: bool = False
) -> None:
    """Let doors find rows at these places, ``"module:name"``, under a group of entry points.

    Args:
        package: the name of the package that announces them; empty: privstats where a place is in it, else none.
        alone: whether the group has no other row.
    """
    entries = [EntryPoint(name, place, group) for name, place in rows.items()]
    known = doors.announced
    for entry in entries:
        own = distribution("privstats") if entry.value.startswith("privstats.") else None
        vars(entry).update(dist=_Package(package) if package else own)

    def found(asked: str) -> list[EntryPoint]:
        if asked != group:
            return known(asked)
        return sorted((*(() if alone else known(asked)), *entries), key=lambda entry: entry.name)

    patch.setattr(doors, "announced", found)
