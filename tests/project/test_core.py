"""What a promise rests on stays within its budget, which only falls; the measure counts what it says."""

import re

import pytest

from tests.lacking import needs
from tests.project.core_measure import (
    KEYS,
    PACKAGE,
    ROOT,
    Graph,
    Module,
    core_of,
    drawers,
    importers,
    measured,
    read_budget,
    run,
    table,
)

pytestmark = pytest.mark.ci  # it reads every module, and CI prints its table

_SLACK = 0.02
"""How far under its budget a row may be before the budget is to be lowered."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.read()


@pytest.fixture(scope="module")
def values(graph: Graph) -> dict[str, int]:
    return measured(graph, read_budget()) | run()


def test_what_a_promise_rests_on_is_within_its_budget(values, capsys) -> None:
    most = read_budget()["most"]
    with capsys.disabled():
        print("\n" + table(values, most))
    assert values.keys() == most.keys()
    over = {name: f"{value} of {most[name]}" for name, value in values.items() if value > most[name]}
    assert not over, f"tests/project/core.toml allows less, and what is of the core only falls: {over}"


def test_the_budget_falls_with_what_it_is_of(values) -> None:
    most = read_budget()["most"]
    loose = {name: value for name, value in values.items() if value < (1 - _SLACK) * most[name]}
    assert not loose, f"lower these rows of tests/project/core.toml to what is measured now: {loose}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_command_for_the_tests_of_the_core_names_all_of_them(page: str) -> None:
    command = re.search(r"pytest -n auto tests/\{(.*?)\} tests/test_\{(.*?)\}\.py", (ROOT / page).read_text("utf-8"))
    assert command, page
    rooms: list[str] = read_budget()["core"]["rooms"]  # type: ignore[assignment]
    assert command[1].split(",") == [room for room in rooms if (ROOT / "tests" / room).is_dir()]
    assert command[2].split(",") == [room for room in rooms if (ROOT / "tests" / f"test_{room}.py").is_file()]


def test_the_core_imports_the_core_alone(graph: Graph) -> None:
    """Also inside functions, and through names of lazy rooms; and what lists of support name."""
    needs("importlinter")
    import grimp

    rooms = read_budget()["core"]
    imports = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    core = core_of(graph, read_budget())
    support = graph.below(f"{PACKAGE}.{name}" for name in rooms["support"]) | {PACKAGE}
    leaving = {
        f"{name} -> {other}"
        for name in core
        for other in (imports.find_modules_directly_imported_by(name) | graph.edges[name]) - core - support
    }
    assert not leaving, "move what is needed into the core, or pass in what it does"


def test_the_noise_of_a_plan_is_drawn_in_one_place(graph: Graph) -> None:
    outside = {name for name in graph.modules if not name.startswith(f"{PACKAGE}.dp.")}
    sources = {f"{PACKAGE}.dp.mechanisms", f"{PACKAGE}.dp.samplers"}
    named = {name for name in outside if graph.edges[name] & sources} | (importers(graph, sources) & outside)
    assert named - {f"{PACKAGE}.dp"} == drawers(graph) == {f"{PACKAGE}.session.noise"}


def test_keys_of_parties_are_used_in_one_place(graph: Graph) -> None:
    """Of who signs and who agrees on masks. A TLS certificate of an engine, and what seals a file, are other keys."""
    named = importers(graph, KEYS)
    assert {name for name in named if not name.startswith(f"{PACKAGE}.secagg.")} == {f"{PACKAGE}.files.signing"}


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


def test_who_imports_is_seen_inside_functions_too(small) -> None:
    assert importers(small, ["privstats.two"]) == {"privstats", "privstats.one"}


def test_a_long_function_is_seen_by_its_code(tmp_path) -> None:
    lines = ["    x = 1"] * 28 + ["", "    # a comment", '    """A text."""']
    path = tmp_path / "long.py"
    path.write_text("\n".join(["def a():", *lines, "    x = 2", "def b():", *lines, "    x = 2", "    x = 3"]))
    assert Module.read(path, tmp_path).long_functions == ["b"]


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
