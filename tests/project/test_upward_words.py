"""The core names no row that a contributed room or the attacker brings: in no call, no import and no word."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.without import WHOLE

ROOT = Path(__file__).parents[2]
ABOVE = ("privstats.contrib", "threat_models")
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
BROUGHT = {name for rows in POINTS.values() for name, value in rows.items() if value.startswith(ABOVE)}
ORDINARY = {
    "moments": "the exact sums",
    "norm": "the length of a vector",
    "rows": "the rows of a table",
    "sites": "the sites of a regression",
}
"""Words of the library that are a row's name, too; they are ordinary words except as the key of a table."""
PLAIN = {
    ("__init__.py", "privstats.contrib.alignment"): "a public name, loaded on use",
    ("__init__.py", "privstats.contrib.streams"): "a public name, loaded on use",
    ("domains.py", "privstats-personal-head"): "every label under which a file is checked is listed once",
    ("engines/flower/replaced_names.py", "stream"): "a parameter of Flower's",
    ("intake/frames.py", "dask"): "a package of records",
    ("optional_dependencies.py", "dask"): "an extra",
    ("heads/fitting/least_squares.py", "evidence"): "a choice of lambda",
    ("heads/ridge.py", "evidence"): "a choice of lambda",
}
"""Words that are a row's name by chance, or a name that stays, by file; each with the reason."""


def reaches(text: str, brought: set[str]) -> Iterator[str]:
    """Yield what a module's code names of the rooms above: an import, a text ``module:name``, or a row's name."""
    tree = ast.parse(text)
    documented = (node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    docstrings = {id(node.body[0].value) for node in documented if node.body and isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(word)) if id(node) not in docstrings:
                if word in brought or word.startswith(tuple(f"{each}." for each in ABOVE)):
                    yield word
            case (
                ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=word))
                | ast.Call(
                    func=ast.Attribute(value=ast.Name(id=table), attr="get" | "needed"),
                    args=[ast.Constant(value=word), *_],
                )
            ) if table.isupper() and word in brought:
                yield f"{table}: {word}"  # a row, also where its name is an ordinary word
            case ast.ImportFrom(module=str(module)) if f"{module}.".startswith(tuple(f"{each}." for each in ABOVE)):
                yield module
            case ast.Import(names=names):
                yield from (
                    each.name for each in names if f"{each.name}.".startswith(tuple(f"{one}." for one in ABOVE))
                )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("row = DOOR['evidence']\n", ["DOOR: evidence", "evidence"]),
        ("row = DOOR.get('evidence')\n", ["DOOR: evidence", "evidence"]),
        ("row = DOOR.needed('evidence', 'a plan')\n", ["DOOR: evidence", "evidence"]),
        ("def f():\n    from privstats.contrib.evidence import cbom\n", ["privstats.contrib.evidence"]),
        ("X = 'privstats.contrib.evidence:cbom'\n", ["privstats.contrib.evidence:cbom"]),
        ("import threat_models.cli\n", ["threat_models.cli"]),
        ("def f():\n    'evidence'\n", []),
    ],
)
def test_each_form_of_a_reach_upward_is_found(text: str, found: list[str]) -> None:
    assert list(reaches(text, {"evidence"})) == found


@WHOLE
def test_no_module_below_contrib_names_what_is_brought_from_above() -> None:
    package = ROOT / "privstats"
    files = [path.relative_to(package).as_posix() for path in sorted(package.rglob("*.py"))]
    seen = {
        (file, word)
        for file in files
        if not file.startswith("contrib/")
        for word in reaches((package / file).read_text("utf-8"), BROUGHT)
        if word not in ORDINARY
    }
    assert seen - set(PLAIN) == set(), "a key comes from a plan, a file or a user: read it there, through a door"
    assert set(PLAIN) - seen == set(), "these words are gone: delete their lines"
