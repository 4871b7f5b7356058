"""Public names that load on first use: every room lists each name once, and each is there."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import privstats as ps
from tests.lacking import needs

PACKAGE = Path(ps.__file__).parent
OPTIONAL = {"testing": "hypothesis"}


def text_of(init: Path) -> str:
    return init.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return ".".join(("privstats", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


LAZY = sorted(path for path in PACKAGE.rglob("*.py") if "import lazy_names\n" in text_of(path))
ROOMS = [name_of(path) for path in LAZY]


def run(program: str, **options: object) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def room(name: str):
    for needed in OPTIONAL.values():
        needs(needed)
    return importlib.import_module(name)


def test_rooms_are_found():
    assert {"privstats", "privstats.dp", "privstats.heads", "privstats.extend.kinds"} <= set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_every_name_of_a_room_is_there_and_no_other(name):
    module = room(name)
    assert module.__all__
    assert all(getattr(module, each) is not None for each in module.__all__)
    assert set(module.__all__) <= set(dir(module))
    assert not {"TYPE_CHECKING", "Any", "lazy_names"}.intersection(dir(module)), "what the room uses itself"
    with pytest.raises(AttributeError, match=rf"module '{name}' has no attribute 'magic'"):
        _ = module.magic


def twice(text: str) -> set[str]:
    """Names that a module imports more than once, or imports and lists by hand."""
    tree = ast.parse(text)
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    listed = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {name for name in imported if imported.count(name) > 1 or name in listed}


@pytest.mark.parametrize("path", sorted({*PACKAGE.rglob("__init__.py"), *LAZY}), ids=name_of)
def test_no_room_writes_a_public_name_twice(path):
    assert not twice(text_of(path))


def test_a_name_that_is_written_twice_is_found():
    assert twice("from privstats.plan import Plan as Plan\n__all__ = ['Plan']") == {"Plan"}
    assert twice("from privstats.plan import Plan\nfrom privstats.plan.plan import Plan") == {"Plan"}


@pytest.mark.parametrize("name", ROOMS)
def test_no_public_name_is_that_of_a_module(name):
    """The import system binds a submodule to its package by its name, in the place of a function of that name."""
    module = room(name)
    both = {found.name for found in pkgutil.iter_modules(getattr(module, "__path__", []))}.intersection(module.__all__)
    assert {each for each in both if getattr(module, each) is not importlib.import_module(f"{name}.{each}")} == set()


@pytest.mark.ci
def test_a_star_import_brings_what_the_room_lists():
    names = run("from privstats.plan import *; print(*sorted(name for name in dir() if name[0] != '_'))")
    assert names.split() == ps.plan.__all__
    run("import sys; from privstats import *; Plan; sys.exit('hypothesis' in sys.modules)")


def test_a_submodule_loads_as_an_attribute():
    run("import privstats; assert privstats.course.document.write; assert privstats.plan.plan.calibrate")


def test_a_private_name_is_never_looked_for():
    with pytest.raises(AttributeError, match="no attribute '_secret'"):
        _ = ps._secret


def test_a_name_without_as_is_for_the_room_alone(tmp_path):
    (tmp_path / "brought.py").write_text(
        "from typing import TYPE_CHECKING\nfrom privstats.lazy_names import lazy_names\n"
        "if TYPE_CHECKING:\n    from privstats.plan import Cohort, Plan as Plan\n"
        "else:\n    __getattr__, __dir__ = lazy_names(__name__)\n"
    )
    run("import brought; assert brought.__all__ == ['Plan'] and not hasattr(brought, 'Cohort')", cwd=tmp_path)


def test_a_module_without_its_text_is_refused(tmp_path):
    source = tmp_path / "bare.py"
    source.write_text("from privstats.lazy_names import lazy_names\n__getattr__, __dir__ = lazy_names(__name__)\n")
    run(f"import py_compile; py_compile.compile({str(source)!r}, cfile='bare.pyc')", cwd=tmp_path)
    source.unlink()
    program = "import bare\ntry:\n    bare.name\nexcept ImportError as error:\n    print(error)"
    assert "install privstats with its sources" in run(program, cwd=tmp_path)


def test_a_room_offers_what_a_module_holds_now(monkeypatch):
    right = ps.plan.Cohort
    monkeypatch.setattr("privstats.plan.cohort.Cohort", int)
    assert ps.plan.Cohort is int
    monkeypatch.undo()
    assert ps.plan.Cohort is right
