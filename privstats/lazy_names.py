"""Load public names on first use, from a table of the modules that define them.

The ``if`` is for type checkers, and the ``else`` for Python:

.. code-block:: python

    if TYPE_CHECKING:
        from privstats.plan.cohort import Cohort as Cohort
    else:
        __getattr__, __dir__ = lazy_names(__name__, {"privstats.plan.cohort": ["Cohort"]})

``python -m tests.project.lazy_tables`` writes the tables from the imports, and a test compares both. The call is in the
``else``, so that a checker still reports a name that does not exist.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Any

Table = Mapping[str, Iterable[str]]
_NONE: Table = MappingProxyType({})


def lazy_names(
    room: str, table: Table, unlisted: Table = _NONE
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module's ``__getattr__`` and ``__dir__``.

    No public name may be a submodule's, because the import system binds that name; a submodule's own name has the room
    as its module. ``dir()`` lists the names of both tables, and no name that the module imports for its own use.

    Args:
        room: the module's name.
        table: names by the module that defines them: the room's ``__all__``.
        unlisted: further names, which load alike, but no star import loads them.

    Example:
        >>> from privstats import plan
        >>> "Cohort" in plan.__all__, plan.Cohort is ps.Cohort
        (True, True)
    """
    module = sys.modules[room]
    starred = {name: source for source, names in table.items() for name in names}
    sources = {name: source for source, names in unlisted.items() for name in names} | starred

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(starred)
        source = sources.get(name, room)
        if source != room:
            return getattr(import_module(source), name)  # not cached: a replacement in the module takes effect here
        if name in sources or _is_submodule(module, name):
            return import_module(f"{room}.{name}")
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*(name for name in vars(module) if name.startswith("__")), *sources})

    return load, names


def _is_submodule(module: ModuleType, name: str) -> bool:
    if name.startswith("_") or not hasattr(module, "__path__"):
        return False
    return find_spec(f"{module.__name__}.{name}") is not None
