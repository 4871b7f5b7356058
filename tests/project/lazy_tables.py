"""The tables from which rooms load their public names, as the imports for type checkers state them.

After a change of these imports, this command writes the tables anew:

.. code-block:: sh

    python -m tests.project.lazy_tables
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.project.public_names import ROOT

Tables = list[dict[str, list[str]]]


def rooms() -> list[Path]:
    """Return the files that load names on first use."""
    files = sorted((ROOT / "privstats").rglob("*.py"))
    return [path for path in files if "import lazy_names\n" in path.read_text("utf-8")]


def imported(text: str) -> Tables:
    """Return each block's names by module; a name without ``as`` is for the room's own types."""
    blocks = [node.body for node in ast.parse(text).body if isinstance(node, ast.If) and _is_for_types(node)]
    tables: Tables = []
    for block in blocks:
        table: dict[str, list[str]] = {}
        for source, name in _names(block):
            table.setdefault(source, []).append(name)
        tables.append(table)
    return tables


def written(text: str) -> Tables:
    """Return the tables that a room passes to ``lazy_names``."""
    return [ast.literal_eval(table) for table in _call(text).args[1:]]


def anew(text: str) -> str:
    """Return a room's text with the tables of its imports, unformatted."""
    call = ", ".join(["lazy_names(__name__", *map(repr, imported(text))]) + ")"
    return text.replace(str(ast.get_source_segment(text, _call(text))), call)


def _call(text: str) -> ast.Call:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return next(call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "lazy_names")


def _is_for_types(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _names(block: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for line in block:
        if isinstance(line, ast.ImportFrom):
            yield from ((str(line.module), each.name) for each in line.names if each.asname == each.name)


if __name__ == "__main__":
    changed = [path for path in rooms() if imported(path.read_text("utf-8")) != written(path.read_text("utf-8"))]
    for path in changed:
        path.write_text(anew(path.read_text("utf-8")), "utf-8")
    if changed:
        subprocess.run([sys.executable, "-m", "ruff", "format", *changed], check=True)
