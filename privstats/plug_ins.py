"""Load what packages announce by entry point: commands, findings, heads, rules, attacks, rivals, modules.

Rooms of ``privstats.contrib`` are announced in the same way; no other module imports them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distribution, entry_points, packages_distributions
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
        >>> of_contrib("cluster", "privstats http lead --cluster").__name__
        'Cluster'
    """
    return named("privstats.contrib", name, by, error)


def named(group: str, name: str, by: str, error: type[PrivstatsError]) -> Any:
    """Load what one room offers to another that must not import it.

    Args:
        error: raised where the part is not announced or cannot be loaded.

    Example:
        >>> named("privstats.published", "scoring", "a plan of a score", ps.PlanError).__module__
        'privstats.heads.scoring'
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


def announcer(group: str, name: str) -> str:
    """Return name and version of the package that announces an entry point; empty for ours, and without one.

    Example:
        >>> announcer("privstats.courses", "stream")  # privstats announces its own
        ''
    """
    found = next((entry for entry in announced(group) if entry.name == name), None)
    return "" if found is None or is_ours(found) else dist_name(found)


def definer(cls: type) -> str:
    """Return name and version of the package whose files define a class; empty for ours.

    A class that its module does not hold under its own name, and a module of no package, have "(no package)".

    Example:
        >>> import numpy
        >>> definer(ps.transforms.UnitNorm), definer(numpy.ndarray).partition(" ")[0]
        ('', 'numpy')
    """
    module = cls.__module__
    top = module.partition(".")[0]
    # A class states the name of its module itself, so that name alone is no evidence.
    stated = _held(module, cls.__qualname__) is cls
    if stated and top == "privstats":
        return ""
    names = _packages().get(top, []) if stated else []
    packages = {name: distribution(name) for name in sorted(set(names))}
    if len(packages) > 1:  # parts of one namespace
        packages = {name: each for name, each in packages.items() if _has(each, module)}
    if set(packages) == {"privstats"}:
        return ""
    return " and ".join(f"{name} {each.version}" for name, each in packages.items()) or f"{module} (no package)"


@cache
def _packages() -> Mapping[str, list[str]]:
    return packages_distributions()


def _held(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _has(package: Distribution, module: str) -> bool:
    path = module.replace(".", "/")
    return any(str(file) in (f"{path}.py", f"{path}/__init__.py") for file in package.files or ())


@cache
def _groups() -> Mapping[str, Sequence[EntryPoint]]:
    return grouped(entry_points())


def grouped(entries: Any) -> Mapping[str, Sequence[EntryPoint]]:
    """Sort entry points into groups, and each group by name; identical ones count once."""
    groups = {group: set(entries.select(group=group)) for group in entries.groups}
    return {group: sorted(each, key=lambda entry: (entry.name, entry.value)) for group, each in groups.items()}
