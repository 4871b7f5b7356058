"""What a head sets while it is fitted is read by somebody: by the library, a test, a benchmark or a page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADS = "privstats/heads"


def attributes(context: type[ast.expr_context]) -> Iterator[str]:
    """What the heads' own modules set, or read."""
    for path in (ROOT / HEADS).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, context):
                yield node.attr


def elsewhere() -> Iterator[str]:
    """Everything of the form ``.name_`` in other code: no other code sets one."""
    for folder in ("privstats", "threat_models", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if not path.is_relative_to(ROOT / HEADS):
                yield from re.findall(r"\.([a-z]\w*_)\b(?!\s*=[^=])", path.read_text("utf-8"))


def test_every_fitted_attribute_is_read_somewhere():
    fitted = {name for name in attributes(ast.Store) if re.fullmatch(r"[a-z]\w*_", name)}
    read = {*attributes(ast.Load), *elsewhere()}
    pages = " ".join(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))
    assert "rule_" in fitted
    assert {name for name in fitted - read if not re.search(rf"\b{name}\b", pages)} == set()
