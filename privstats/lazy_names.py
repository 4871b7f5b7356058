"""Public names that load on first use, written once: in the imports that type checkers read.

A room lists its names under ``if TYPE_CHECKING:``, each as ``from module import Name as Name``, the form by which type
checkers, too, know a public name. The ``else`` calls :func:`lazy_names`, which reads that block from the module's text:

.. code-block:: python

    if TYPE_CHECKING:
        from privstats.plan.cohort import Cohort as Cohort
    else:
        __getattr__, __dir__, __all__ = lazy_names(__name__)

In the ``else``, so that a checker still reports a name that does not exist. ``lazy_loader.attach_stub`` (SPEC 1 of
Scientific Python) reads a stub beside each ``__init__.py`` instead: a second file per room that import-linter does not
see, a dependency before everything else, and every submodule in ``__all__``, where ``testing`` would need Hypothesis.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from linecache import getlines
from types import ModuleType
from typing import Any, TypeGuard

__all__ = ["lazy_names"]


def lazy_names(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a module, from the imports under its first ``TYPE_CHECKING``.

    Names of further such blocks load alike, and no star import loads them. A submodule loads when it is asked for as an
    attribute. No public name may be a submodule's: the import system binds each to its package by its name.

    Args:
        room: the module's ``__name__``, while it is imported.

    Raises:
        ImportError: the module comes without its text.

    Example:
        >>> from privstats import plan
        >>> "Cohort" in plan.__all__, plan.Cohort is ps.Cohort
        (True, True)
    """
    module = sys.modules[room]
    sources, starred = _listed(module)

    def load(name: str) -> Any:
        source = sources.get(name, room)
        if source != room:
            return getattr(import_module(source), name)  # not kept: what replaces it there is what the room offers
        if name in sources or _is_submodule(module, name):
            return import_module(f"{room}.{name}")
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return load, lambda: sorted({*vars(module), *sources}), starred


def _listed(module: ModuleType) -> tuple[dict[str, str], list[str]]:
    """Each public name's module, and the names of the first block in order."""
    text = "".join(getlines(str(module.__file__), vars(module)))  # from a file, or an archive
    blocks = [dict(_names_of(node)) for node in ast.parse(text).body if _is_of_types(node)]
    if not blocks:
        raise ImportError(f"{module.__name__} reads its public names from its text: install privstats with its sources")
    return {name: source for block in blocks for name, source in block.items()}, sorted(blocks[0])


def _is_of_types(node: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _names_of(block: ast.If) -> Iterator[tuple[str, str]]:
    for line in block.body:
        if isinstance(line, ast.ImportFrom) and line.module is not None:
            yield from ((each.name, line.module) for each in line.names if each.asname == each.name)


def _is_submodule(module: ModuleType, name: str) -> bool:
    if name.startswith("_") or not hasattr(module, "__path__"):
        return False
    return find_spec(f"{module.__name__}.{name}") is not None
