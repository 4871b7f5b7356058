"""Find files that were named twice, or that hold equal bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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
    sizes = [path.stat().st_size if path.is_file() else None for path in paths]
    seen: dict[object, Path] = {}
    for path, size in zip(paths, sizes, strict=True):
        keys: list[object] = [path.resolve()]
        if size and sizes.count(size) > 1:
            with path.open("rb") as file:
                keys.append(hashlib.file_digest(file, "sha256").digest())
        for key in keys:
            if key in seen:
                return seen[key], path
        seen |= dict.fromkeys(keys, path)
    return None
