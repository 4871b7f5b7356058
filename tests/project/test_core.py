"""What a promise rests on stays within its budget, which only falls; the measure counts what it says."""

from __future__ import annotations

import pytest

from tests.lacking import needs
from tests.project.core_measure import (
    PACKAGE,
    Graph,
    Module,
    core_of,
    drawers,
    loaded_by_a_release,
    measured,
    read_budget,
    table,
)

pytestmark = pytest.mark.ci  # it reads every module, and CI prints its table

_SLACK = 0.02
"""How far under its budget a row may be before the budget is to be lowered."""


@pytest.fixture(scope="module")
def found() -> dict[str, int]:
    return measured(Graph.read(), read_budget()) | {"modules that a release loads": loaded_by_a_release()}


def test_what_a_promise_rests_on_is_within_its_budget(found, capsys) -> None:
    most = read_budget()["most"]
    with capsys.disabled():
        print("\n" + table(found, most))
    assert found.keys() == most.keys()
    over = {name: f"{value} of {most[name]}" for name, value in found.items() if value > most[name]}
    assert not over, f"tests/project/core.toml allows less, and its numbers only fall: {over}"


def test_the_budget_falls_with_what_it_is_of(found) -> None:
    most = read_budget()["most"]
    loose = {name: value for name, value in found.items() if value < (1 - _SLACK) * most[name]}
    assert not loose, f"lower these rows of tests/project/core.toml to what is measured now: {loose}"


def test_the_core_imports_the_core_alone() -> None:
    """Also inside functions, and through names of lazy rooms; what still leaves it is listed, and that list shrinks."""
    needs("importlinter")
    import grimp

    graph, rooms = Graph.read(), read_budget()["core"]
    imports = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    core = core_of(graph, read_budget())
    support = graph.below(f"{PACKAGE}.{name}" for name in rooms["support"]) | {PACKAGE}
    leaving = {
        f"{name} -> {other}".replace(f"{PACKAGE}.", "")
        for name in core
        for other in (imports.find_modules_directly_imported_by(name) | graph.edges[name]) - core - support
    }
    assert sorted(leaving) == rooms["leaving"]


FILES = {
    "__init__.py": "from privstats.lazy_names import lazy_names\n"
    "if TYPE_CHECKING:\n    from privstats.two import f as f\n    from privstats.one import g as g\n",
    "one.py": "import privstats\nfrom privstats import deep\nfrom privstats.three import x\n"
    "def g(a: deep.h) -> deep.h:\n    from privstats.two import f\n    return deep.h()\n",
    "two.py": "def f():\n    return 1\n",
    "three.py": '"""Title."""\n\nx = 1  # one\n# two\n',
    "deep/__init__.py": "from privstats.lazy_names import lazy_names\n"
    "if TYPE_CHECKING:\n    from privstats.deep.four import h as h\n    from privstats.deep.five import k as k\n",
    "deep/four.py": "def h():\n    return dp.draw_share()\n",
    "deep/five.py": "def k():\n    return 1\n",
}


@pytest.fixture
def small(tmp_path) -> Graph:
    for name, text in FILES.items():
        (tmp_path / "privstats" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "privstats" / name).write_text(text)
    return Graph.read(tmp_path)


def test_a_road_follows_what_runs_and_lazy_names_that_functions_use(small) -> None:
    """Not an import inside a function, an annotation, or a name of a lazy room that nobody uses."""
    assert small.reach(["privstats.one"]) == {f"privstats.{name}" for name in ("one", "three", "deep", "deep.four")}


def test_lines_are_code(small) -> None:
    assert small.modules["privstats.three"].lines == 1
    assert small.lines(["privstats.two", "privstats.three"]) == 3


def test_who_draws_noise_is_seen(small) -> None:
    assert drawers(small) == {"privstats.deep.four"}


def test_a_module_is_named_by_its_file(tmp_path) -> None:
    path = tmp_path / "privstats" / "room" / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n")
    read = Module.read(path, tmp_path)
    assert (read.name, read.is_room, read.lazy) == ("privstats.room", True, {})
