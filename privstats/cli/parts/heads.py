"""Names of heads and tables as people type them, for every command that takes ``--head`` or ``--for``."""

from __future__ import annotations

from collections.abc import Iterable

from privstats.errors import DataError
from privstats.heads.registry import HEADS
from privstats.workflows.readers import TABLES

__all__ = ["spelled", "spelled_readers"]


def spelled(names: Iterable[str]) -> tuple[str, ...]:
    """The heads' names as the registry has them, each once; upper and lower case are the same.

    Raises:
        DataError: no head has that name.
    """
    return _known(names, HEADS, f"--head {{}} is unknown; the heads are {', '.join(HEADS)}")


def spelled_readers(names: Iterable[str]) -> tuple[str, ...]:
    """Names of heads and of the readers of ``privstats table``, likewise.

    Raises:
        DataError: neither has that name.
    """
    every = (*TABLES, *HEADS)
    return _known(names, every, f"--for {{}} is unknown; the readers are {', '.join(every)}")


def _known(names: Iterable[str], every: Iterable[str], refusal: str) -> tuple[str, ...]:
    known = {name.lower(): name for name in every}
    names = tuple(names)
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise DataError(refusal.format(unknown[0]))
    return tuple(dict.fromkeys(known[name.lower()] for name in names))
