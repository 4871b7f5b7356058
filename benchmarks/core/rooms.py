"""The rooms of a checkout, from the top of the tower to its bottom, and which of them are core.

``pyproject.toml`` orders the rooms, and ``tests/project/core.toml`` lists the core.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PACKAGE", "ROOT", "Rooms", "is_contributed", "module_of"]

ROOT = Path(__file__).parents[2]
PACKAGE = "privstats"
_CONTRIB = "contrib"


@dataclass(frozen=True)
class Rooms:
    """The rooms of one checkout.

    Attributes:
        order: rooms from the top of the tower to its bottom.
        core: rooms on which every promise rests.
        support: what the core may import in addition.
        beside: modules of core rooms on which no promise rests.
    """

    order: tuple[str, ...]
    core: frozenset[str]
    support: frozenset[str]
    beside: frozenset[str]

    @classmethod
    def read(cls, root: Path = ROOT) -> Rooms:
        """Read the lists of a checkout."""
        project = _toml(root / "pyproject.toml")["tool"]["importlinter"]["contracts"]
        (floors,) = (each["layers"] for each in project if each.get("containers") == [PACKAGE])
        listed = _toml(root / "tests" / "project" / "core.toml")["core"]
        parts = (frozenset(listed[name]) for name in ("rooms", "support", "beside"))
        return cls(tuple(room for floor in floors for room in re.split(r"\s*[|:]\s*", floor)), *parts)

    def room(self, module: str) -> str:
        """Return a module's room; a module of a core room on which no promise rests is a room of its own.

        Args:
            module: the name below ``privstats``, such as ``kinds.classes``.
        """
        first, *rest = module.split(".")
        if module in self.beside:
            return module
        return f"{first}.{rest[0]}" if first == _CONTRIB and rest else first

    def part(self, module: str) -> str:
        """Return ``"core"``, ``"support"`` or ``"outside"``."""
        room = self.room(module)
        return "core" if room in self.core else "support" if room in self.support else "outside"

    def floor(self, room: str) -> int:
        """Return a room's position from the top; ``privstats/__init__.py`` is above all rooms."""
        first = room.partition(".")[0]
        return self.order.index(first) if first in self.order else -1


def module_of(file: str) -> str:
    """Return the name below ``privstats`` of a module's file: ``kinds`` for ``kinds/__init__.py``."""
    return ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")


def is_contributed(module: str) -> bool:
    """Return whether a module belongs to a room of ``contrib``."""
    return module.startswith(f"{_CONTRIB}.")


def _toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))
