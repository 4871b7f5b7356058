"""What installed packages announce under a group of entry points.

``importlib.metadata.entry_points`` gives the same names. It imports parsers of e-mail and of archives, a fifth of what
``privstats --help`` takes; here the packages are folders, and one file of each is read.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

__all__ = ["Entry", "entries"]

_FILE = "entry_points.txt"
_KINDS = (".dist-info", ".egg-info")


@dataclass(frozen=True, slots=True)
class Entry:
    """One announcement: a name, and what it stands for.

    Args:
        name: under which it is asked for.
        value: ``module:attribute``.
    """

    name: str
    value: str

    def load(self) -> Any:
        """The object itself; imports its module.

        Raises:
            ImportError: the module is not there.
            AttributeError: the module has no such attribute.
        """
        module, _, attribute = self.value.partition("[")[0].strip().partition(":")
        return reduce(getattr, filter(None, attribute.strip().split(".")), importlib.import_module(module.strip()))


def entries(group: str) -> tuple[Entry, ...]:
    """All entries of a group, in the order of ``sys.path``; of two copies of a package the first counts.

    Example:
        >>> from privstats.announced import entries
        >>> sorted(entry.name for entry in entries("privstats.commands"))
        ['attack', 'audit']
    """
    found: dict[str, Path] = {}
    for folder in sys.path:
        for package in sorted(_packages(Path(folder))):
            found.setdefault(package.name.partition("-")[0].lower(), package / _FILE)
    return tuple(entry for file in found.values() for entry in _read(file, group))


def _packages(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.name.endswith(_KINDS)]
    except OSError:  # an archive, or nothing at all
        return []


def _read(file: Path, group: str) -> Iterator[Entry]:
    try:
        text = file.read_text("utf-8")
    except OSError:
        return
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line[1:-1]
        elif section == group and not line.startswith(("#", ";")):
            name, is_one, value = line.partition("=")
            if is_one:
                yield Entry(name.strip(), value.strip())
