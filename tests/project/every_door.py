"""Find every door of the library and its attacker, and the classes of their rows, in the text of the modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args, get_origin

from privstats.row_fields import hints_of

ROOT = Path(__file__).parents[2]


def doors(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and rows of each door that a module defines, as its annotation states them."""
    for node in ast.parse(text).body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Subscript(value=ast.Name(id="Door"), slice=row)
            ):
                yield name, ast.unparse(row)


def every_door() -> dict[str, str]:
    """The place of each door of the library and its attacker, with what its rows are."""
    files = [path for package in ("privstats", "threat_models") for path in sorted((ROOT / package).rglob("*.py"))]
    return {
        f"{path.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}:{name}": row
        for path in files
        if "Door(" in (text := path.read_text("utf-8"))
        for name, row in doors(text)
    }


def row_classes() -> list[type[Any]]:
    """Return the dataclasses that rows of doors are, and those that their fields hold or return, by name."""
    found: dict[str, type[Any]] = {}
    named = ((place.partition(":")[0], row) for place, row in every_door().items() if row.isidentifier())
    waiting = [resolve_name(f"{module}:{row}") for module, row in named]
    while waiting:
        cls = waiting.pop()
        if cls.__name__ not in found:
            found[cls.__name__] = cls
            waiting += [each for hint in hints_of(cls).values() for each in _classes_in(hint)]
    return [found[name] for name in sorted(found)]


def _classes_in(hint: Any) -> Iterator[type[Any]]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for part in () if get_origin(hint) is type else get_args(hint):  # a field that holds a class holds no row
        for each in part if isinstance(part, list) else [part]:
            yield from _classes_in(each)
