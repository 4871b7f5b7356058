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
from tests.project import lazy_tables

PACKAGE = Path(ps.__file__).parent
OPTIONAL = {"testing": "hypothesis"}


def text_of(init: Path) -> str:
    return init.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return ".".join(("privstats", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


LAZY = lazy_tables.rooms()
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


@pytest.mark.parametrize("path", sorted({*PACKAGE.rglob("__init__.py")}.difference(LAZY)), ids=name_of)
def test_no_other_room_writes_a_public_name_twice(path):
    assert not twice(text_of(path))


@pytest.mark.parametrize("path", LAZY, ids=name_of)
def test_a_room_loads_what_type_checkers_read(path):
    text = text_of(path)
    tables = lazy_tables.written(text)
    assert tables == lazy_tables.imported(text), "python -m tests.project.lazy_tables"
    names = [name for table in tables for several in table.values() for name in several]
    assert len(names) == len(set(names))


def test_tables_follow_the_imports():
    """A name without ``as`` is for the room's own types."""
    text = (
        "if TYPE_CHECKING:\n    from privstats.plan import Budget, Cohort as Cohort, Plan as Plan\n"
        "else:\n    __getattr__, __dir__ = lazy_names(__name__, {'privstats.plan': ['Cohort']})\n"
    )
    assert lazy_tables.written(text) != lazy_tables.imported(text) == [{"privstats.plan": ["Cohort", "Plan"]}]
    assert lazy_tables.written(lazy_tables.anew(text)) == lazy_tables.imported(text)


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


def test_a_module_without_its_text_loads_its_names(tmp_path):
    source = tmp_path / "bare.py"
    source.write_text(
        "from privstats.lazy_names import lazy_names\n"
        "__getattr__, __dir__ = lazy_names(__name__, {'math': ['pi']}, {'json': ['loads']})\n"
    )
    run(f"import py_compile; py_compile.compile({str(source)!r}, cfile='bare.pyc')", cwd=tmp_path)
    source.unlink()
    program = "import bare; print(bare.pi, bare.__all__, hasattr(bare, 'loads'), hasattr(bare, 'name'))"
    assert run(program, cwd=tmp_path).split() == ["3.141592653589793", "['pi']", "True", "False"]


def test_a_room_offers_what_a_module_holds_now(monkeypatch):
    right = ps.plan.Cohort
    monkeypatch.setattr("privstats.plan.cohort.Cohort", int)
    assert ps.plan.Cohort is int
    monkeypatch.undo()
    assert ps.plan.Cohort is right
