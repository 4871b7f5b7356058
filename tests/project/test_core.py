"""The core imports the core alone, one module samples noise, and each module that holds a promise is listed."""

import re
import tomllib
from pathlib import Path

import pytest

from privstats.kinds import KINDS
from tests.lacking import needs
from tests.project.core_graph import (
    KEYS,
    PACKAGE,
    ROOT,
    Graph,
    Module,
    asking,
    core_of,
    held,
    importers,
    leaving,
    read_core,
    sampler_users,
)

pytestmark = pytest.mark.ci  # it reads every module, and CI prints its table


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.read()


def _headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {head.lower().replace(" ", "-") for head in heads}


def test_every_kind_has_a_section_on_its_sensitivity() -> None:
    proofs = ROOT / "docs" / "proofs"
    page = (proofs / "sensitivity.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = {name for line in rows for name in re.findall(r"`(\w+Schema)`", line)}
    assert listed == {kind.__name__ for kind in KINDS.values()}
    links = {link for line in rows for link in re.findall(r"\]\((\w+\.md)#([\w-]+)\)", line)}
    assert len(links) >= len(rows)
    assert {link for link in links if link[1] not in _headings(proofs / link[0])} == set()


def test_the_core_imports_the_core_alone(graph: Graph) -> None:
    """Also inside functions, through names of lazy rooms, and by a text; and what lists of support name."""
    needs("importlinter")
    import grimp

    listed = read_core()
    imports = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    core = core_of(graph, listed)
    support = graph.below(f"{PACKAGE}.{name}" for name in listed["core"]["support"]) | {PACKAGE}
    seen = {f"{name} -> {other}" for name in core for other in imports.find_modules_directly_imported_by(name)}
    inside = {f"{name} -> {other}" for name in core for other in core | support}
    edges = (seen - inside) | leaving(graph, listed)
    assert edges == set(), "edges out of the core: move the module into the core, or pass the function as an argument"


def test_the_entry_points_that_the_core_reads_are_listed_and_their_modules_hold(graph: Graph) -> None:
    """An entry point is no import, so each group that the core reads is listed, and our modules there hold promises."""
    listed = read_core()
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert asking(graph, listed) == {f"{PACKAGE}.{name}" for name in listed["asked"]}
    for text in listed["asked"].values():
        answering = {value.partition(":")[0] for value in groups.get(str(text), {}).values()}
        assert answering <= held(graph, listed), text


def test_one_module_samples_the_noise_of_a_plan(graph: Graph) -> None:
    listed = read_core()
    assert sampler_users(graph) == {f"{PACKAGE}.{name}" for name in listed["core"]["drawers"]}


def test_modules_that_request_noise_are_listed_and_each_is_core_or_under_holds(graph: Graph) -> None:
    listed = read_core()
    samplers = {f"{PACKAGE}.{name}" for name in listed["core"]["drawers"]}
    users = {name for name, others in graph.named.items() if others & samplers}
    assert users == {f"{PACKAGE}.{name}" for name in listed["noise"]}
    assert users <= core_of(graph, listed) | held(graph, listed)


def test_keys_of_parties_are_used_in_one_place(graph: Graph) -> None:
    """Keys that sign or agree on masks. TLS certificates of an engine, and keys that seal files, are other keys."""
    named = importers(graph, KEYS)
    outside = {name for name in named if not name.startswith(f"{PACKAGE}.secagg.")}
    assert outside == {f"{PACKAGE}.files.signing", f"{PACKAGE}.files.locked_key"}


def test_modules_under_holds_are_outside_the_core_and_listed_on_the_page(graph: Graph) -> None:
    listed = read_core()
    page = (ROOT / "docs" / "core.md").read_text("utf-8")
    for name, promise in {**listed["holds"], **listed["answers"]}.items():
        assert graph.below([f"{PACKAGE}.{name}"]) - core_of(graph, listed), name
        assert promise, name
        assert f"`{name.replace('.', '/')}" in page, name
    support: list[str] = listed["core"]["support"]  # type: ignore[assignment]
    beside: list[str] = listed["core"]["beside"]  # type: ignore[assignment]
    named = [*support, *(f"{name.replace('.', '/')}.py" for name in beside)]
    assert [name for name in named if f"`{name}" not in page] == []


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
OUT = "privstats.release -> privstats.course.alone"
PLANTED = {
    "a package's attribute": ("import privstats\n\ndef f():\n    return privstats.course.alone.g()\n", OUT),
    "another name of it": ("def f():\n    import privstats as ps\n\n    return ps.course.alone.g()\n", OUT),
    "a room's attribute": ("from privstats import course as c\n\ndef f():\n    return c.alone.g()\n", OUT),
    "a module": ("import privstats.course.alone\n", OUT),
    "a public name": ("def f():\n    from privstats import course\n\n    return course.g\n", OUT),
    "a text": ("from importlib import import_module\n\nimport_module('privstats.course.alone')\n", OUT),
    "a text with a name": ("ROWS = {'one': 'privstats.course.alone:g'}\n", OUT),
}
SAMPLING = {
    "its name": "from privstats import dp\n\ndp.draw_share(1)\n",
    "an alias": "from privstats.dp import draw_share as share\n\nshare(1)\n",
    "the module": "import privstats.dp.samplers as s\n\ns.anything(1)\n",
    "the room's module": "from privstats import dp\n\ndef f():\n    return dp.samplers.anything(1)\n",
    "a model's sampler": "def f(noise):\n    return noise.trust.sampler(1.0, 2)\n",
    "a stored sampler": "def f(trust):\n    draw = trust.sampler\n    return draw(1.0, 2)\n",
    "a text": "def f(trust):\n    return getattr(trust, 'sampler')(1.0, 2)\n",
}


@pytest.fixture
def small(tmp_path) -> Graph:
    for name, text in FILES.items():
        (tmp_path / "privstats" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "privstats" / name).write_text(text)
    return Graph.read(tmp_path)


def _planted(folder, files: dict[str, str]) -> Graph:
    """Return a small package with some of its files replaced."""
    room = {
        "__init__.py": "from privstats.lazy_names import lazy_names\n"
        "if TYPE_CHECKING:\n    from privstats import course as course\n    from privstats import dp as dp\n",
        "course/__init__.py": "from privstats.lazy_names import lazy_names\n"
        "if TYPE_CHECKING:\n    from privstats.course.alone import g as g\n",
        "course/alone.py": "def g():\n    return 1\n",
        "dp/__init__.py": "from privstats.lazy_names import lazy_names\n"
        "if TYPE_CHECKING:\n    from privstats.dp.mechanisms import draw_share as draw_share\n",
        "dp/mechanisms.py": "def draw_share(x):\n    return x\n",
        "dp/samplers.py": "def anything(x):\n    return x\n",
    }
    for name, text in {**room, **files}.items():
        (folder / "privstats" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "privstats" / name).write_text(text)
    return Graph.read(folder)


@pytest.mark.parametrize("form", PLANTED)
def test_an_edge_out_of_the_core_is_found_in_every_form(tmp_path, form: str) -> None:
    text, edge = PLANTED[form]
    assert edge in leaving(_planted(tmp_path, {"release.py": text}), read_core())


@pytest.mark.parametrize(
    "text",
    [
        "from privstats.doors import Door\n\nHEADS = Door('privstats.heads', 'head', ValueError, callable)\n",
        "def f():\n    from privstats import plug_ins\n\n    return plug_ins.announced('privstats.heads')\n",
        "from importlib.metadata import entry_points\n\nentry_points(group='privstats.heads')\n",
    ],
)
def test_a_core_module_that_reads_entry_points_is_found_in_every_form(tmp_path, text: str) -> None:
    ways = {"plug_ins.py": "def announced(*_):\n    return []\n", "doors.py": "class Door:\n    pass\n"}
    graph = _planted(tmp_path, {**ways, "release.py": text})
    assert asking(graph, read_core()) == {"privstats.release"}


@pytest.mark.parametrize("form", SAMPLING)
def test_an_engine_that_samples_noise_is_found_in_every_form(tmp_path, form: str) -> None:
    graph = _planted(tmp_path, {"engines/one.py": SAMPLING[form]})
    assert sampler_users(graph) == {"privstats.engines.one"}


@pytest.mark.parametrize(
    "line",
    [
        "from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey",
        "from cryptography.hazmat.primitives.asymmetric import x25519",
        "import cryptography.hazmat.primitives.asymmetric.x25519 as x",
    ],
)
def test_a_module_that_uses_keys_is_found_in_every_form(tmp_path, line: str) -> None:
    assert importers(_planted(tmp_path, {"engines/one.py": f"{line}\n"}), KEYS) == {"privstats.engines.one"}


def test_reach_follows_what_runs_and_lazy_names_that_functions_use(small) -> None:
    """It follows no import inside a function, no annotation, and no unused name of a lazy room."""
    assert small.reach(["privstats.one"]) == {f"privstats.{name}" for name in ("one", "three", "deep", "deep.four")}


def test_imports_inside_functions_are_found(small) -> None:
    assert importers(small, ["privstats.two"]) == {"privstats", "privstats.one"}


def test_a_module_that_samples_noise_is_found(small) -> None:
    assert sampler_users(small) == {"privstats.deep.four"}


def test_a_module_is_named_by_its_file(tmp_path) -> None:
    path = tmp_path / "privstats" / "room" / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n")
    read = Module.read(path, tmp_path)
    assert (read.name, read.lazy) == ("privstats.room", {})
