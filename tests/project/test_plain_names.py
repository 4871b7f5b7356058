"""Parameters and fields state what they hold: no ``each``, ``said`` or ``strangers``, and a place is an index."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import privstats
import threat_models

VAGUE = {"each", "said", "told", "stranger", "strangers", "thing", "things"}
"""Names that fit a value of any type: what a caller must pass, or what a field holds, does not follow from them."""
ROOTS = [Path(str(package.__file__)).parent for package in (privstats, threat_models)]


def vague(text: str) -> Iterator[str]:
    """Yield each parameter, parameter of a longer lambda, and annotated field that has a vague name."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                if isinstance(node, ast.Lambda) and node.lineno == node.end_lineno:
                    continue
                arguments = node.args
                for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                    if is_vague(argument.arg, argument.annotation):
                        yield f"{argument.lineno}: {argument.arg}"
            case ast.ClassDef():
                for field in node.body:
                    match field:
                        case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if is_vague(name, kind):
                            yield f"{field.lineno}: {name}"


def is_vague(name: str, annotation: ast.expr | None) -> bool:
    """Return whether a name is vague, or names a path or a number that is no index a place."""
    kinds = {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)} if annotation else set()
    return name in VAGUE or (name in ("place", "places") and bool(kinds & {"Path", "float", "slice"}))


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
def test_no_parameter_and_no_field_has_a_name_that_fits_anything(root: Path) -> None:
    paths = (path for path in root.rglob("*.py") if "__pycache__" not in path.parts)
    found = [f"{path.relative_to(root)}:{line}" for path in paths for line in vague(path.read_text("utf-8"))]
    assert not found, "\n".join(["name what it holds, such as option, row or path:", *sorted(found)])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(each: int): ...", 1),
        ("async def f(*, told): ...", 1),
        ("class A:\n    strangers: int = 0", 1),
        ("f = lambda thing: (\n    thing)", 1),
        ("def f(place: Path): ...", 1),
        ("def f(places: Sequence[Path]): ...", 1),
        ("def f(place: int, path: Path): ...", 0),
        ("f = sorted(a, key=lambda each: each[1])", 0),
        ("[each.name for each in fields(row)]", 0),
    ],
)
def test_each_form_of_a_vague_name_is_found(text: str, count: int) -> None:
    assert len([*vague(text)]) == count
