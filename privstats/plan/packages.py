"""State which packages of others a plan's sums rest on: they bring its kind, its maps of records or its module.

Their names and versions are keys of the plan's tables, so that the digest covers them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privstats.errors import PlanError
from privstats.kinds.registry import KINDS, is_registered
from privstats.plug_ins import announced, definer
from privstats.schema.modules import MODULES, module_of

if TYPE_CHECKING:
    from privstats.schema import Schema
    from privstats.transforms import Transform

KEY = "package"
"""The key, in the table of the schema or of a map, of the package that brings what the table names."""

_FORM = re.compile(
    r"[a-z0-9]+(?:-[a-z0-9]+)* [A-Za-z0-9][A-Za-z0-9_.!+-]{0,63}( \(in place\))?|"
    r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199} \(no package\)"
)
"""A package's normal name (PEP 503) and its version, marked if its code may change, or the place of what is in none."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def of_kind(schema: Schema) -> str:
    """Return name and version of the package that brings a schema's kind; empty for ours.

    Raises:
        PlanError: the schema's class is not the kind of its task.
    """
    if not is_registered(schema):
        raise PlanError(f"{type(schema).__name__} is not the class of task {schema.task!r:.80}; use the registered one")
    package, what = KINDS.origin(schema.task), f"the task {schema.task!r}"
    if any(entry.name == schema.task for entry in announced(KINDS.group)):  # also of what calls itself privstats
        _check_defined(type(schema), package, what)
    if package:
        _check_bases(type(schema), package)
    return _checked(package, what)


def _check_bases(cls: type, package: str) -> None:
    """Refuse a class built on another package's class, whose version no plan would state."""
    for base in cls.__mro__:
        of_python = base.__module__.partition(".")[0] in sys.stdlib_module_names
        if not of_python and (own := definer(base)) not in ("", package):
            raise PlanError(
                f"{cls.__name__} of {package} derives from {base.__name__} of {own}, and a plan states one package for "
                "a class; copy that class"
            )


def of_module(schema: Schema) -> str:
    """Return the package that brings the module of one of our schemas; empty for ours, and without a module."""
    word = getattr(schema, "module", None)
    if word is None or of_kind(schema):  # the module of another's kind is that kind's matter
        return ""
    package, what = MODULES.origin(str(word).partition("/")[0]), f"the module {word!r:.80}"
    _check_defined(type(module_of(word)), package, what)
    return _checked(package, what)


def _check_defined(cls: type, package: str, what: str) -> None:
    """Refuse a class that is in other files than those of the package that announces it."""
    if (defined := definer(cls)) != package:
        raise PlanError(
            f"{what} is announced by {package or 'privstats'}, and its class is in the files of "
            f"{defined or 'privstats'}: uninstall one, or start where no file of that name shadows the package"
        )


def of_schema(schema: Schema) -> str:
    """Return the package that brings a schema's kind, or else its module."""
    return of_kind(schema) or of_module(schema)


def of_map(map_: Transform) -> str:
    """Return name and version of the package that defines a map's class; empty for ours."""
    if own := definer(type(map_)):
        _check_bases(type(map_), own)
    package = _checked(own, f"the map {map_.kind!r:.80}")
    if package and not _NAME.fullmatch(map_.kind):
        raise PlanError(
            f"the map of {package} has the kind {map_.kind!r:.80}; choose 1 to 64 letters, digits, '.', '_' and '-'"
        )
    return package


def of_maps(schema: Schema) -> dict[str, list[str]]:
    """Return the module and the kinds of maps that other packages bring, by package."""
    pairs = [(of_module(schema), getattr(schema, "module", ""))]
    pairs += [(of_map(map_), map_.kind) for map_ in schema.transform]
    several: dict[str, list[str]] = {}
    for package, name in dict.fromkeys(pairs):
        if package:
            several.setdefault(package, []).append(name)
    return several


def states_bound(schema: Schema) -> bool:
    """Return whether a kind states a bound itself; that of ``ClippedRows`` is proved here."""
    from privstats.kinds.clipped_rows import is_clipped

    return not is_clipped(type(schema))


def keyed(package: str) -> dict[str, str]:
    """Return the key of a table; nothing for what privstats brings."""
    return {KEY: package} if package else {}


def bare(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without the key."""
    return {name: value for name, value in table.items() if name != KEY}


def taken(table: dict[str, Any]) -> str:
    """Remove the key from a table of a file, and return its text; empty without it."""
    text = table.pop(KEY, "")
    if not isinstance(text, str):
        raise PlanError(f"{KEY} must be a text such as 'name 1.0', got {type(text).__name__}; write it in quotes")
    return text


def check_stated(stated: str, here: str, what: str) -> None:
    """Refuse another package than a plan states.

    Args:
        stated: the package in the plan's file; empty where a person omitted it.
        here: the package of this installation; empty for privstats itself.
        what: what the package brings, for the message.
    """
    if not stated or stated == here:
        return
    if not here:
        raise PlanError(f"{what} is of privstats itself, and the plan states {stated!r:.200}; omit {KEY} there")
    raise PlanError(
        f"the plan rests on {stated!r:.200} for {what}, and {here} is installed here; all parties install the agreed "
        "package, on which the promise rests"
    )


def lacking(stated: str, what: str) -> str:
    """Return the refusal of what only the stated package brings; empty where a plan states none."""
    return f"{what} is of {stated!r:.200}, which is not here; install that package, as all parties do" if stated else ""


def _checked(package: str, what: str) -> str:
    name, _, version = package.partition(" ")
    if not version.startswith("("):
        package = f"{re.sub('[-_.]+', '-', name).lower()} {version}".strip()
    if package and not _FORM.fullmatch(package):
        raise PlanError(
            f"{what} is of {package!r:.200}, which is no name and version of a package; repair its metadata"
        )
    return package
