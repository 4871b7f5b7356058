"""Names of heads as people type them, for every command that takes ``--head``."""

from __future__ import annotations

from collections.abc import Iterable

from privstats.errors import DataError
from privstats.heads.registry import HEADS

__all__ = ["spelled"]


def spelled(names: Iterable[str]) -> tuple[str, ...]:
    """The names as the registry has them, each once; upper and lower case are the same.

    Raises:
        DataError: no head has that name.
    """
    known = {name.lower(): name for name in HEADS}
    names = tuple(names)
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise DataError(f"--head {unknown[0]} is unknown; the heads are {', '.join(HEADS)}")
    return tuple(dict.fromkeys(known[name.lower()] for name in names))
