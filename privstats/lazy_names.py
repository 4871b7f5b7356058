"""Load public names on first use, listed once: in the imports that type checkers read.

The ``else`` calls :func:`lazy_names`, which reads the block above it from the module's text:

.. code-block:: python

    if TYPE_CHECKING:
        from privstats.plan.cohort import Cohort as Cohort
    else:
        __getattr__, __dir__ = lazy_names(__name__)

The call is in the ``else``, so that a checker still reports a name that does not exist.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazy_names(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module's ``__getattr__`` and ``__dir__``, from its imports under ``TYPE_CHECKING``.

    The first block's names are its ``__all__``; further blocks load alike, but no star import loads them. No public
    name may be a submodule's, because the import system binds that name. ``dir()`` lists the names of all blocks,
    and no name that the module imports for its own use.

    Raises:
        ImportError: at the first name, where the module's text is missing.

    Example:
        >>> from privstats import plan
        >>> "Cohort" in plan.__all__, plan.Cohort is ps.Cohort
        (True, True)
    """
    module = sys.modules[room]

    @cache
    def listed() -> tuple[dict[str, str], list[str]]:
        return _listed(module)

    def load(name: str) -> Any:
        sources, starred = listed()
        if name == "__all__":
            return starred
        source = sources.get(name, room)
        if source != room:
            return getattr(import_module(source), name)  # not cached: a replacement in the module takes effect here
        if name in sources or _is_submodule(module, name):
            return import_module(f"{room}.{name}")
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*(name for name in vars(module) if name.startswith("__")), *listed()[0]})

    return load, names


def _listed(module: ModuleType) -> tuple[dict[str, str], list[str]]:
    import ast  # loaded with the first name, not with the package
    from linecache import getlines

    text = "".join(getlines(str(module.__file__), vars(module)))  # from a file, or an archive
    blocks = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            lines = [line for line in node.body if isinstance(line, ast.ImportFrom)]
            public = [
                (each.name, str(line.module)) for line in lines for each in line.names if each.asname == each.name
            ]
            blocks.append(dict(public))
    if not blocks:
        raise ImportError(f"{module.__name__} reads its public names from its text: install privstats with its sources")
    return {name: source for block in blocks for name, source in block.items()}, sorted(blocks[0])


def _is_submodule(module: ModuleType, name: str) -> bool:
    if name.startswith("_") or not hasattr(module, "__path__"):
        return False
    return find_spec(f"{module.__name__}.{name}") is not None
