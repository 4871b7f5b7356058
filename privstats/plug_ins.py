"""Find and load what packages announce by entry point; :mod:`privstats.doors` makes tables of it.

Rooms of ``privstats.contrib`` are announced in the same way; no other module imports them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distribution,
    distributions,
    entry_points,
    packages_distributions,
)
from pathlib import Path
from typing import Any

from privstats.errors import PrivstatsError

_NAME = "privstats"
_OWN_PACKAGES = _NAME, "threat_models"
_FOLDER = Path(__file__).parent.resolve()


def announced(group: str) -> list[EntryPoint]:
    """Return a group's entry points, sorted by name; identical ones count once.

    Example:
        >>> [entry.name for entry in announced("privstats.findings")]  # the package threat_models brings them
        ['attack', 'audit']
    """
    found = {_key(entry): entry for entry in _groups().get(group, ())}
    return [found[key] for key in sorted(found)]


def loaded(entry: EntryPoint, noun: str, error: type[PrivstatsError]) -> Any:
    """Import an entry point's module and return the named object."""
    _ = dist_name(entry)  # the version that is loaded now, whatever pip installs later
    if entry.dist is None or is_ours(entry):  # what it raises is our own fault, and shown with its lines
        return entry.load()
    if not entry.pattern.match(entry.value):
        raise error(
            f"the {noun} {entry.name!r} of {dist_name(entry)} cannot be loaded: its entry point is {entry.value!r}, "
            'and must be "module:name"; mend or uninstall that package'
        )
    try:
        return entry.load()
    except (Exception, SystemExit) as fault:  # a script that lacks ``if __name__ == "__main__"`` may exit, with code 0
        own = isinstance(fault, PrivstatsError)  # which says what to do
        raise error(
            f"the {noun} {entry.name!r} of {dist_name(entry)} cannot be loaded: "
            f"{'' if own else f'{type(fault).__name__}: '}{one_line(fault)}; mend or uninstall that package"
        ) from fault


def one_line(fault: BaseException) -> str:
    """Return an error's text without line breaks, for a sentence.

    Example:
        >>> from privstats.plug_ins import one_line
        >>> one_line(ValueError("one\\ntwo"))
        'one two'
    """
    return " ".join(str(fault).split())


def is_ours(entry: EntryPoint) -> bool:
    """Return whether this library's own distribution announces an entry point, in one of its own modules."""
    return entry.dist is not None and _name(entry.dist) == _NAME and _is_own(entry.module)


def dist_name(entry: EntryPoint) -> str:
    """Return the name and version of an entry point's package, as they were at first use."""
    return f"{entry.value} (no package)" if entry.dist is None else _stated(entry.dist)


@cache
def _name(package: Distribution) -> str:
    return package.name


@cache
def _stated(package: Distribution) -> str:
    """Return a package's name and version; what pip installed in place may change under one version, and is marked."""
    return f"{package.name} {package.version}{' (in place)' if _place(package) else ''}"


def _place(package: Distribution) -> str:
    """Return the URL of the folder in which pip installed a package in place; empty for any other package."""
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    return str(origin["url"]) if origin.get("dir_info", {}).get("editable") else ""


def failed_in(fault: BaseException) -> str:
    """Return the package of another author whose code an error passed through; empty for an error of ours alone.

    Example:
        >>> from privstats.plug_ins import failed_in
        >>> failed_in(ValueError("raised nowhere"))
        ''
    """
    package, frames = "", fault.__traceback__
    others = {entry.module.partition(".")[0]: entry for entry in _of_others()}
    while frames is not None:
        module = str(frames.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        package = dist_name(others[module]) if module in others else package
        frames = frames.tb_next
    return package


def _of_others() -> list[EntryPoint]:
    groups = (entries for group, entries in _groups().items() if group.startswith(f"{_NAME}."))
    valid = (entry for entries in groups for entry in entries if entry.pattern.match(entry.value))
    return [entry for entry in valid if not is_ours(entry)]


def definer(cls: type) -> str:
    """Return name and version of the package whose files define a class; empty for ours.

    A class that its module does not hold under its own name, a script, and a module of no package have "(no package)".

    Example:
        >>> import numpy
        >>> definer(ps.transforms.UnitNorm), definer(numpy.ndarray).partition(" ")[0]
        ('', 'numpy')
    """
    module = cls.__module__
    # A class states the name of its module itself, so that name alone is no evidence.
    if module == "__main__" or _held(module, cls.__qualname__) is not cls:
        return f"{module} (no package)"
    file = getattr(sys.modules[module], "__file__", None)
    own = _is_own(module) and file is not None and _is_inside(file)
    return "" if own else _package_of(module)


@cache
def _is_inside(file: str) -> bool:
    """Return whether a file is in this distribution's folder. Each plan asks for each of its maps."""
    return Path(file).resolve().is_relative_to(_FOLDER)


@cache
def _is_own(module: str) -> bool:
    """Return whether a module is this distribution's by its name, and by pip's list of its files where there is one."""
    if module.partition(".")[0] not in _OWN_PACKAGES:
        return False
    path, files = module.replace(".", "/"), _own_files()
    return not files or f"{path}.py" in files or f"{path}/__init__.py" in files


@cache
def _own_files() -> frozenset[str]:
    """Return the files that pip lists of this distribution; empty where it lists none, as of an editable install."""
    try:
        lines = (distribution(_NAME).read_text("RECORD") or "").splitlines()
    except PackageNotFoundError:
        return frozenset()
    files = frozenset(line.partition(",")[0] for line in lines)
    return files if f"{_NAME}/plug_ins.py" in files else frozenset()


@cache
def _package_of(module: str) -> str:
    file = Path(getattr(sys.modules[module], "__file__", None) or module).resolve()
    names = _packages().get(module.partition(".")[0], [])
    # Packages that pip installed in place, and those without a list of files, are in no list by module.
    several = [distribution(name) for name in sorted(set(names))] or [*distributions()]
    found = {_stated(each) for each in several if each.name != _NAME and _has(each, file)}
    return found.pop() if len(found) == 1 else f"{module} (no package)"


@cache
def _packages() -> Mapping[str, list[str]]:
    return packages_distributions()


def _has(package: Distribution, file: Path) -> bool:
    """Return whether a module's file is one of a package's files, or in the folder that pip installed in place."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # slow to load, and for code of others alone

    if place := _place(package):
        return file.is_relative_to(Path(url2pathname(urlsplit(place).path)).resolve())
    if package.read_text("RECORD") is None:
        return file.is_relative_to(Path(str(package.locate_file(""))).resolve())
    alike = (each for each in package.files or () if each.name == file.name)
    return any(Path(str(package.locate_file(each))).resolve() == file for each in alike)


def _held(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@cache
def _groups() -> Mapping[str, Sequence[EntryPoint]]:
    return grouped(entry_points())


def grouped(entries: Any) -> Mapping[str, Sequence[EntryPoint]]:
    """Sort entry points into groups, and read no package's name: that of all packages takes longer than a help page."""
    return {group: [*entries.select(group=group)] for group in entries.groups}


def _key(entry: EntryPoint) -> tuple[str, str, str]:
    return entry.name, entry.value, "" if entry.dist is None else _name(entry.dist)
