"""Every public name with its parameters, in ``docs/public_names.txt``: what a script may call from version to version.

After a change of a public name or of a parameter, this command writes the file anew, and CHANGELOG.md needs a line:

.. code-block:: sh

    python -m tests.project.public_names
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from privstats.extend import VERSION

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs" / "public_names.txt"
_VERSION = f"# privstats.extend, version {VERSION}: a name leaves with the next version alone.\n"
_HEAD = """# Public names of privstats and their parameters, written by: python -m tests.project.public_names
# name=: the parameter has a default. After *: pass it by name. CONTRIBUTING.md states what a change of a line means.
"""


def public_modules() -> list[str]:
    """Return ``privstats`` and the rooms of the reference: packages that list their names in ``__all__``."""
    pages = (path.read_text("utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    shown = {"privstats", *(name for page in pages for name in re.findall(r"automodule:: (\S+)", page))}
    return sorted(name for name in shown if hasattr(importlib.import_module(name), "__all__"))


def lines_of(module: str) -> list[str]:
    """Return one line for each name in a module's ``__all__``."""
    loaded = importlib.import_module(module)
    return [f"{module}.{name}{parameters(getattr(loaded, name))}" for name in loaded.__all__]


def parameters(value: Any) -> str:
    """Return the parameters of a function or class, ``(a, b=, *, c=)``; nothing for what is not called with any."""
    if not _is_called(value):
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:  # a class of the interpreter's own kind states none
        return ""
    words, by_name = [], False
    for each in signature.parameters.values():
        if each.kind is each.VAR_POSITIONAL:
            by_name = True
        elif each.kind is each.KEYWORD_ONLY and not by_name:
            words.append("*")
            by_name = True
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        words.append(f"{star}{each.name}{'' if each.default is each.empty else '='}")
    return f"({', '.join(words)})"


def _is_called(value: Any) -> bool:
    """Return whether scripts call it with parameters of ours: no constant, alias of types, protocol, error or enum."""
    if isinstance(value, type):
        return not issubclass(value, BaseException | enum.Enum) and not getattr(value, "_is_protocol", False)
    return inspect.isroutine(value)


def text() -> str:
    """Return the file's text."""
    return _HEAD + _VERSION + "".join(f"{line}\n" for module in public_modules() for line in sorted(lines_of(module)))


def lost(listed: str, there: str) -> set[str]:
    """Return the names that left ``privstats.extend`` between two texts of the file, if its version stayed."""
    names = [set(re.findall(r"^privstats\.extend\.[\w.]+", each, re.MULTILINE)) for each in (listed, there)]
    versions = [re.findall(r"^# privstats\.extend, version (\d+)", each, re.MULTILINE) for each in (listed, there)]
    return names[0] - names[1] if versions[0] == versions[1] else set()


if __name__ == "__main__":
    if left := lost(LIST.read_text("utf-8"), text()):
        raise SystemExit(f"raise VERSION in privstats/extend/__init__.py, because names leave: {sorted(left)}")
    LIST.write_text(text(), "utf-8")
