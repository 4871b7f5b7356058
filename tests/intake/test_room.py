"""What tells one library from another stands in the room of intake alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "privstats"
WORDS = frozenset(("iloc", "to_numpy", "__array__", "to_pylist"))


def words_in(source: str) -> Iterator[str]:
    """Names, attributes and texts of a module that ask a container for its library's own way."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=str(name)) if name in WORDS:
                yield name
            case ast.FunctionDef(name=name) if name in WORDS:
                yield name


@pytest.mark.ci
def test_libraries_are_told_apart_in_one_room() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    found = {name: sorted(set(words_in(text))) for name, text in files.items() if not name.startswith("intake/")}
    assert {name: words for name, words in found.items() if words} == {}
    assert any(set(words_in(text)) for name, text in files.items() if name.startswith("intake/"))


@pytest.mark.parametrize("source", ["X.iloc[0]", "hasattr(X, 'to_numpy')", "def __array__(self): pass"])
def test_a_planted_word_is_found(source: str) -> None:
    assert list(words_in(source))
