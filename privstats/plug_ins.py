"""What other packages announce: commands, findings, heads and rules, attacks, rivals, modules, each in its own group.

Rooms of ``privstats.contrib`` are announced alike: nothing else of the library knows one.

Nothing is imported before it is asked for, and the environment is looked through once per process.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from privstats.errors import PrivstatsError


def announced(group: str) -> list[EntryPoint]:
    """What installed packages announce under a group, by name; what is announced twice alike is one.

    Args:
        group: such as ``"privstats.commands"``.

    Example:
        >>> [entry.name for entry in announced("privstats.findings")]  # the package threat_models brings them
        ['attack', 'audit']
    """
    return sorted(set(_every().select(group=group)), key=lambda entry: (entry.name, entry.value))


def loaded(entry: EntryPoint, noun: str, error: type[PrivstatsError]) -> Any:
    """What an entry point names; its module is imported now.

    Args:
        entry: from :func:`announced`.
        noun: what it announces, for the message.
        error: what is raised.

    Raises:
        PrivstatsError: of the kind ``error``, where a package's module cannot be imported or lacks the name; one that
            the module raises by itself is passed on.
    """
    if (
        entry.dist is None or entry.dist.name == "privstats"
    ):  # one of ours: what it raises is our own fault, and shown with its lines
        return entry.load()
    try:
        return entry.load()
    except PrivstatsError:
        raise
    except Exception as fault:
        raise error(
            f"the {noun} {entry.name!r} of {brought_by(entry)} cannot be loaded: {type(fault).__name__}: {fault}; mend "
            "or uninstall that package"
        ) from fault


def of_contrib(name: str, by: str, error: type[PrivstatsError] = PrivstatsError) -> Any:
    """Load what a room of ``privstats.contrib`` brings to the library; as :func:`named` of that group.

    Example:
        >>> of_contrib("cluster", "privstats http lead --cluster").__name__
        'Cluster'
    """
    return named("privstats.contrib", name, by, error)


def named(group: str, name: str, by: str, error: type[PrivstatsError]) -> Any:
    """Load what one room of the library brings to another that must not import it.

    Args:
        group: such as ``"privstats.contrib"``.
        name: such as ``"cluster"``.
        by: what asks for it, for the message.
        error: what is raised.

    Raises:
        PrivstatsError: of the kind ``error``, where this installation does not announce it, or it cannot be loaded.

    Example:
        >>> named("privstats.published", "scoring", "a plan of a score", ps.PlanError).__module__
        'privstats.heads.scoring'
    """
    for entry in announced(group):
        if entry.name == name:
            return loaded(entry, "part", error)
    raise error(f"{by} needs {name!r} of {group}, which this installation does not announce; install privstats again")


def brought_by(entry: EntryPoint) -> str:
    """The package that announces an entry point, for messages: its name and version."""
    return f"{entry.value} (no package)" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


@cache
def _every() -> Any:  # EntryPoints; in Python 3.11 a table of them, which answers alike
    return entry_points()
