"""Assertions that quote a sentence, counted by room in ``worded.txt``: the counts only shrink.

A test that compares a sentence fails when the sentence is rewritten, although the fact is the same. A new test
compares names, numbers or fields. Sentences that are promises themselves remain: cautions, assumptions, an epsilon.

An assertion is an ``assert``, without its message, or the ``match`` of ``pytest.raises`` and ``pytest.warns``. It
quotes a sentence if one text in it has at least ``WORDS`` words.

After an assertion was changed, this command lowers its room's count; it raises none:

.. code-block:: sh

    python -m tests.project.worded
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.project.public_names import ROOT

LIST = Path(__file__).with_suffix(".txt")
WORDS = 6
_HEAD = f"""# Assertions that quote {WORDS} or more words, by room: the counts only shrink.
# Compare a name, a number or a field; then: python -m tests.project.worded
"""
_NESTED = ("contrib", "threat_models", "engines", "workflows")
"""Folders of which each folder is a room of its own."""


def quotes(text: str) -> Iterator[str]:
    """Yield the first long text of each assertion in a module that has one."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Assert(test=tested) | ast.keyword(arg="match", value=tested):
                yield from [each for each in _texts(tested) if len(each.split()) >= WORDS][:1]


def _texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "#" for part in parts)
        case ast.Constant(value=str(text)):
            yield text
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _texts(child)


def room_of(path: Path) -> str:
    """Return the room of a test file, whose path begins below ``tests``."""
    folders = path.parts[:-1]
    return "/".join(folders[: 1 + (folders[:1] != () and folders[0] in _NESTED)]) or "."


def counted(folder: Path = ROOT / "tests") -> Counter[str]:
    """Return the number of assertions that quote a sentence, by room."""
    found = Counter[str]()
    for path in sorted(folder.rglob("*.py")):
        found[room_of(path.relative_to(folder))] += sum(1 for _ in quotes(path.read_text("utf-8")))
    return +found


def listed() -> Counter[str]:
    """Return the listed counts by room."""
    rows = (line.split() for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#"))
    return Counter({room: int(count) for count, room in rows})


def text(counts: Mapping[str, int]) -> str:
    """Return the file's text."""
    return _HEAD + "".join(f"{count:4d} {room}\n" for room, count in sorted(counts.items()))


if __name__ == "__main__":
    LIST.write_text(text(listed() & counted()), "utf-8")
