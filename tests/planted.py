"""Plant a row in a read-only table for one test."""

from collections.abc import Mapping
from typing import Any

import pytest

from privstats.doors import Door
from privstats.tables import LazyRows

__all__ = ["plant"]


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
