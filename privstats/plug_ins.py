"""Load what packages announce by entry point: commands, findings, heads, rules, attacks, rivals, modules.

Rooms of ``privstats.contrib`` are announced in the same way; no other module imports them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from privstats.errors import PrivstatsError


def announced(group: str) -> list[EntryPoint]:
    """Return a group's entry points, sorted by name; identical ones count once.

    Example:
        >>> [entry.name for entry in announced("privstats.findings")]  # the package threat_models brings them
        ['attack', 'audit']
    """
    return list(_groups().get(group, ()))


def loaded(entry: EntryPoint, noun: str, error: type[PrivstatsError]) -> Any:
    """Import an entry point's module and return the named object."""
    if entry.dist is None or is_ours(entry):  # what it raises is our own fault, and shown with its lines
        return entry.load()
    try:
        return entry.load()
    except PrivstatsError:
        raise
    except Exception as fault:
        raise error(
            f"the {noun} {entry.name!r} of {dist_name(entry)} cannot be loaded: {type(fault).__name__}: {fault}; mend "
            "or uninstall that package"
        ) from fault


def of_contrib(name: str, by: str, error: type[PrivstatsError] = PrivstatsError) -> Any:
    """Load a part of ``privstats.contrib``, as :func:`named` does.

    Example:
        >>> of_contrib("parts", "a collection of Dask").__name__
        'measure'
    """
    return named("privstats.contrib", name, by, error)


def named(group: str, name: str, by: str, error: type[PrivstatsError]) -> Any:
    """Load what one room offers to another that must not import it.

    Args:
        error: raised where the part is not announced or cannot be loaded.

    Example:
        >>> named("privstats.modules", "pairs", "a course with pairs", ps.PlanError).__module__
        'privstats.course.pair_codes'
    """
    for entry in announced(group):
        if entry.name == name:
            return loaded(entry, "part", error)
    raise error(f"{by} needs {name!r} of {group}, which this installation does not announce; install privstats again")


def is_ours(entry: EntryPoint) -> bool:
    """Return whether this library's own distribution announces an entry point."""
    return entry.dist is not None and entry.dist.name == "privstats"


def dist_name(entry: EntryPoint) -> str:
    """Return the name and version of an entry point's package, for messages."""
    return f"{entry.value} (no package)" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


@cache
def _groups() -> Mapping[str, Sequence[EntryPoint]]:
    return grouped(entry_points())


def grouped(entries: Any) -> Mapping[str, Sequence[EntryPoint]]:
    """Sort entry points into groups, and each group by name; identical ones count once."""
    groups = {group: set(entries.select(group=group)) for group in entries.groups}
    return {group: sorted(each, key=lambda entry: (entry.name, entry.value)) for group, each in groups.items()}
