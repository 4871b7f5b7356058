"""Find files that were named twice, or that hold equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from filecmp import cmp
from itertools import combinations
from pathlib import Path


def same_content(paths: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return the first two paths of one file, or of files with equal bytes; None without any.

    Folders, patterns and files that do not exist are compared by their paths alone.

    Example:
        >>> from pathlib import Path
        >>> from privstats.files.same_content import same_content
        >>> for name, text in (("north.csv", "age\\n40\\n"), ("south.csv", "age\\n50\\n"), ("copy.csv", "age\\n40\\n")):
        ...     _ = Path(name).write_text(text)
        ...
        >>> same_content([Path("north.csv"), Path("south.csv")])
        >>> [path.name for path in same_content([Path("north.csv"), Path("south.csv"), Path("copy.csv")])]
        ['north.csv', 'copy.csv']
    """
    for first, second in combinations(paths, 2):
        if first.resolve() == second.resolve() or _equal(first, second):
            return first, second
    return None


def _equal(first: Path, second: Path) -> bool:
    """Return whether both are files with the same bytes, at least one."""
    if not (first.is_file() and second.is_file() and first.stat().st_size):
        return False
    return cmp(first, second, shallow=False)
