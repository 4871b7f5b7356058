"""The size of what a promise rests on: ``python -m tests.project.core_measure`` prints it beside its budget.

The road of a kind is what a reader reads who wants to be sure of one plan of it: every module that the machines, the
measurement, the plan and the noise reach by an import that runs when a module is loaded, or by a name of a lazy room
that a function uses. An import inside a function is not followed; one may stand there only where a plan without its
section never runs it. Code lines have no blanks, comments and docstrings. ``core.toml`` holds the budget. Small
files and long functions are counted without ``privstats.contrib``.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGET = Path(__file__).with_name("core.toml")
PACKAGE = "privstats"
_SILENT = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip
_LOADED = """
import sys
import numpy as np
import privstats as ps

schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0)
privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
ps.private_release(schema, privacy, np.full((20, 2), 0.1), np.array([0, 1] * 10), ledger="uncharged")
print(sum(name.partition(".")[0] == "privstats" for name in sys.modules))
"""
_VISITED = """
import sys
import numpy as np
import privstats as ps

def note(frame, event, _):
    name = frame.f_code.co_filename
    if event != "call" or not name.startswith(ps.__path__[0]):
        return
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame.f_code.co_filename == "<string>":  # and not while a module is imported
        visited.add(name)

visited = set()
head, X, y = ps.heads.LDA(), np.full((20, 2), 0.1), np.array([0, 1] * 10)
promise = {"epsilon": 1.0, "delta": 1e-5, "clip_norm": 1.0, "adjacency": "add-remove", "ledger": "uncharged"}
sys.setprofile(note)
head.fit_private(X, y, classes=(0, 1), **promise)
sys.setprofile(None)
print(len(visited))
"""
_LONG, _SHORT = 30, 40
"""A function with more code lines than the first is long, a file with fewer than the second is short."""


@dataclass(frozen=True)
class Module:
    """A module's name, its text and tree, and whether it is a package."""

    name: str
    text: str
    tree: ast.Module
    is_room: bool

    @classmethod
    def read(cls, path: Path, root: Path) -> Module:
        """The module in a file below ``root``."""
        text = path.read_text(encoding="utf8")
        parts = path.relative_to(root).with_suffix("").parts
        is_room = parts[-1] == "__init__"
        return cls(".".join(parts[:-1] if is_room else parts), text, ast.parse(text), is_room)

    @cached_property
    def code(self) -> frozenset[int]:
        """The numbers of its lines of code."""
        return _numbers(self.text, self.tree)

    @cached_property
    def run(self) -> tuple[ast.AST, ...]:
        """What of it runs at some time."""
        return tuple(_run(self.tree))

    @property
    def lines(self) -> int:
        """How many lines of code it has."""
        return len(self.code)

    @property
    def long_functions(self) -> list[str]:
        """Its functions with more than 30 lines of code."""
        each = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return [
            node.name for node in each if len(self.code.intersection(range(node.lineno, node.end_lineno + 1))) > _LONG
        ]

    @property
    def lazy(self) -> dict[str, tuple[str, str]]:
        """Of a lazy room the public names, and where each is from."""
        if not self.is_room or not any(_imported(node) == "privstats.lazy_names" for node in self.tree.body):
            return {}
        below = (node for under in self.tree.body if _is_for_types(under) for node in getattr(under, "body", ()))
        rows = ((alias, node.module) for node in below if isinstance(node, ast.ImportFrom) for alias in node.names)
        return {alias.name: (module or "", alias.name) for alias, module in rows if alias.asname == alias.name}


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines without blanks, comments and docstrings.

    Example:
        >>> code_lines('"Title."\\n\\nx = 1  # one\\n# two\\n', ast.parse('"Title."\\n\\nx = 1\\n'))
        1
    """
    return len(_numbers(text, tree))


def _numbers(text: str, tree: ast.Module) -> frozenset[int]:
    """Tokens are read only where a text of several lines has a line that may be a comment or blank: that takes long."""
    lines = text.split("\n")
    silent = {number for number, line in enumerate(lines, 1) if line.strip()[:1] in ("", "#", "\\")}
    docstrings: set[int] = set()
    texts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    held = _of_tokens(text) if silent & texts - docstrings else {*range(1, len(lines) + 1)} - silent
    return frozenset(held - docstrings)


def _of_tokens(text: str) -> set[int]:
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            held.update(range(token.start[0], token.end[0] + 1))
    return held


@dataclass(frozen=True)
class Graph:
    """The modules of a package, and which of them a module runs."""

    modules: Mapping[str, Module]

    @classmethod
    def read(cls, root: Path = ROOT, package: str = PACKAGE) -> Graph:
        """A package below ``root``."""
        modules = (Module.read(path, root) for path in sorted((root / package).rglob("*.py")))
        return cls({each.name: each for each in modules})

    @cached_property
    def _lazy(self) -> dict[str, dict[str, tuple[str, str]]]:
        return {name: each.lazy for name, each in self.modules.items() if each.lazy}

    @cached_property
    def edges(self) -> dict[str, set[str]]:
        """By module, the others that it runs."""
        return {name: set(self._run_by(each)) - {name} for name, each in self.modules.items()}

    def reach(self, starts: Iterable[str]) -> set[str]:
        """The modules that these run, and they themselves."""
        seen: set[str] = set()
        ahead = list(starts)
        while ahead:
            name = ahead.pop()
            if name not in seen:
                seen.add(name)
                ahead += self.edges[name]
        return seen

    def lines(self, names: Iterable[str]) -> int:
        """Code lines of some modules together."""
        return sum(self.modules[name].lines for name in names)

    def below(self, rooms: Iterable[str]) -> set[str]:
        """The modules of whole rooms."""
        wanted = tuple(rooms)
        return {name for name in self.modules if any(name == room or name.startswith(room + ".") for room in wanted)}

    @cached_property
    def named(self) -> dict[str, set[str]]:
        """By module, the others that it names in any way: also inside functions, and in a text such as
        ``import_module("privstats.heads")``."""
        return {
            name: {*self._run_by(each, each.run), *self._in_texts(each.tree)} - {name}
            for name, each in self.modules.items()
        }

    def _run_by(self, module: Module, imported: Iterable[ast.AST] | None = None) -> Iterator[str]:
        bound: dict[str, str] = {}
        for node in _at_load(module.tree) if imported is None else imported:
            bound |= _packages_in(node)
            for source, alias in _names_in(node):
                if found := self._resolved(source, alias.name):
                    yield found
                if source in self.modules and source not in self._lazy:
                    yield source
                if f"{source}.{alias.name}" in self.modules:
                    bound[alias.asname or alias.name] = f"{source}.{alias.name}"
            yield from (name for name in _modules_in(node) if name in self.modules)
        for node in module.run:
            if isinstance(node, ast.Attribute):
                yield from self._along(bound, node)

    def _along(self, bound: Mapping[str, str], node: ast.Attribute) -> Iterator[str]:
        """The modules that ``privstats.room.name`` goes through, each where it is defined."""
        names = [node.attr]
        below = node.value
        while isinstance(below, ast.Attribute):
            names.append(below.attr)
            below = below.value
        source = bound.get(below.id) if isinstance(below, ast.Name) else None
        while source in self.modules and names:
            name = names.pop()
            if found := self._resolved(source, name):
                yield found
            source = f"{source}.{name}"

    def _in_texts(self, tree: ast.Module) -> Iterator[str]:
        """The modules whose names are in the module as a text of their own, with or without a name behind them."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
                source, _, name = node.value.replace(":", ".").rpartition(".")
                if found := self._resolved(source, name):
                    yield found

    def _resolved(self, source: str, name: str) -> str | None:
        """The module that defines a name, through lazy rooms; None where it is not of the package."""
        while name in self._lazy.get(source, ()) and self._lazy[source][name][0] != source:
            source, name = self._lazy[source][name]
        return next((each for each in (f"{source}.{name}", source) if each in self.modules), None)


_NAMED = re.compile(rf"{PACKAGE}(\.\w+)+(:\w+)?")


def _packages_in(node: ast.AST) -> dict[str, str]:
    """What ``import privstats.room`` binds: the package, or the room under another name."""
    aliases = node.names if isinstance(node, ast.Import) else []
    ours = (alias for alias in aliases if alias.name.partition(".")[0] == PACKAGE)
    return {alias.asname or PACKAGE: alias.name if alias.asname else PACKAGE for alias in ours}


def _modules_in(node: ast.AST) -> Iterator[str]:
    """The modules that ``import privstats.room`` runs; the package alone runs none of its rooms."""
    for alias in node.names if isinstance(node, ast.Import) else []:
        parts = alias.name.split(".")
        yield from (".".join(parts[:end]) for end in range(2, len(parts) + 1))


def _imported(node: ast.AST) -> str | None:
    return node.module if isinstance(node, ast.ImportFrom) else None


def _names_in(node: ast.AST) -> Iterator[tuple[str, ast.alias]]:
    if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").partition(".")[0] == PACKAGE:
        yield from ((node.module or "", alias) for alias in node.names)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _at_load(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is loaded."""
    for child in ast.iter_child_nodes(node):
        if _is_for_types(child) or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield child
        yield from _at_load(child)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """What runs at some time: everything but annotations, which are never read."""
    ahead = [node]
    while ahead:
        below = [child for each in _fields(ahead.pop()) for child in each if not _is_for_types(child)]
        yield from below
        ahead += below


def _fields(node: ast.AST) -> Iterator[list[ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            yield [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)]


def core_of(graph: Graph, budget: Mapping[str, dict[str, object]]) -> set[str]:
    """The modules that a promise rests on: whole rooms, less what lies there beside it."""
    rooms: Mapping[str, list[str]] = budget["core"]  # type: ignore[assignment]
    return graph.below(f"{PACKAGE}.{room}" for room in rooms["rooms"]) - {
        f"{PACKAGE}.{name}" for name in rooms["beside"]
    }


def leaving(graph: Graph, budget: Mapping[str, dict[str, object]]) -> set[str]:
    """What the core names outside of the core and its support, as ``module -> module``."""
    rooms: Mapping[str, list[str]] = budget["core"]  # type: ignore[assignment]
    core = core_of(graph, budget)
    known = core | graph.below(f"{PACKAGE}.{name}" for name in rooms["support"]) | {PACKAGE}
    return {f"{name} -> {other}" for name in core for other in graph.named[name] - known}


def asking(graph: Graph, budget: Mapping[str, dict[str, object]]) -> set[str]:
    """The modules of the core that look for entry points, through ``plug_ins`` or by themselves."""
    direct = importers(graph, ["importlib.metadata.entry_points", "importlib.metadata.distributions"])
    through = {name for name, others in graph.named.items() if f"{PACKAGE}.plug_ins" in others}
    return core_of(graph, budget) & (direct | through)


def held(graph: Graph, budget: Mapping[str, dict[str, object]]) -> set[str]:
    """The modules outside the core that a promise rests on, too: what lies in the rooms of ``[holds]``."""
    return graph.below(f"{PACKAGE}.{name}" for name in budget["holds"])


def roads_of_plans(budget: Mapping[str, dict[str, object]]) -> dict[str, list[str]]:
    """By plan, the modules that its road starts from; ``spine`` stands for all of the spine."""
    spine: list[str] = budget["road"]["spine"]  # type: ignore[assignment]
    plans: Mapping[str, list[str]] = budget["road"]["plans"]  # type: ignore[assignment]
    return {
        plan: [f"{PACKAGE}.{name}" for start in starts for name in (spine if start == "spine" else [start])]
        for plan, starts in plans.items()
    }


def measured(graph: Graph, budget: Mapping[str, dict[str, object]]) -> dict[str, int]:
    """Every row of the table but what a process loads."""
    core = core_of(graph, budget)
    spine = [f"{PACKAGE}.{name}" for name in budget["road"]["spine"]]  # type: ignore[attr-defined]
    kinds: Mapping[str, list[str]] = budget["road"]["kinds"]  # type: ignore[assignment]
    roads = {kind: graph.reach([*spine, *(f"{PACKAGE}.{name}" for name in own)]) for kind, own in kinds.items()}
    together: set[str] = set().union(*roads.values())
    plans = {name: graph.reach(starts) for name, starts in roads_of_plans(budget).items()}
    sizes: dict[str, Callable[[set[str]], int]] = {"modules": len, "lines": graph.lines}
    apart = graph.modules.keys() - graph.below([f"{PACKAGE}.contrib"])
    modules = [graph.modules[name] for name in apart]
    tests = Graph.read(package="tests")
    return {
        "the core, modules": len(core),
        "the core, lines": graph.lines(core),
        "road of a classes plan, modules": len(roads["classes"]),
        "road of a classes plan, lines": graph.lines(roads["classes"]),
        "longest road of a kind, lines": max(map(graph.lines, roads.values())),
        "roads of all kinds, modules": len(together),
        "roads of all kinds, lines": graph.lines(together),
        **{f"road of {name}, {what}": size(road) for name, road in plans.items() for what, size in sizes.items()},
        "modules beside dp that draw noise": len(sampler_users(graph)),
        "files": len(graph.modules),
        "lines": graph.lines(graph.modules),
        "files, without contrib": len(apart),
        "lines, without contrib": graph.lines(apart),
        "files under 40 lines": sum(each.lines < _SHORT and not each.is_room for each in modules),
        "functions over 30 lines": sum(len(each.long_functions) for each in modules),
        "code lines of the tests": tests.lines(tests.modules),
    }


def run() -> dict[str, int]:
    """What one party's release loads, and in how many files of the package ``fit_private`` calls a function."""
    scripts = {"modules that a release loads": _LOADED, "files that fit_private visits": _VISITED}
    options = {"cwd": ROOT, "capture_output": True, "text": True, "check": True}
    return {
        name: int(subprocess.run([sys.executable, "-c", script], **options).stdout) for name, script in scripts.items()
    }


SAMPLERS = frozenset({f"{PACKAGE}.dp.mechanisms", f"{PACKAGE}.dp.samplers"})
"""The modules of ``dp`` that draw."""


def _public_functions(modules: Iterable[str]) -> Iterator[str]:
    for module in modules:
        text = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield node.name


DRAWS = frozenset({"sampler", *_public_functions(SAMPLERS)})
"""Names that sample noise: the public functions of these modules, and the field of a trust model."""


def sampler_users(graph: Graph) -> set[str]:
    """Modules outside ``dp`` that can sample noise: by a sampler's name, an alias of it, or ``trust.sampler``."""
    return {
        name
        for name, each in graph.modules.items()
        if not f"{name}.".startswith(f"{PACKAGE}.dp.") and (graph.named[name] & SAMPLERS or any(map(_match, each.run)))
    }


def _match(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=str(name)):
            return name in DRAWS
    return False


KEYS = tuple(
    f"cryptography.hazmat.primitives.{each}" for each in ("asymmetric.ed25519", "asymmetric.x25519", "kdf.hkdf")
)
"""What signs, agrees on a secret, or derives keys from one."""


def importers(graph: Graph, sources: Iterable[str]) -> set[str]:
    """The modules that import something from one of these, also inside functions."""
    wanted = set(sources)
    return {
        name
        for name, each in graph.modules.items()
        if any(wanted.intersection(_sources(node)) for node in ast.walk(each.tree))
    }


def _sources(node: ast.AST) -> Iterator[str]:
    """The modules that a line of import may name, in each form of it."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def table(values: Mapping[str, int], most: Mapping[str, int]) -> str:
    """The rows beside their budget."""
    rows = [f"{name:48} {value:8,} of {most[name]:,}" for name, value in values.items()]
    return "\n".join(["what a promise rests on", *rows])


def read_budget() -> dict[str, dict[str, object]]:
    """The file of the budget."""
    return tomllib.loads(BUDGET.read_text(encoding="utf8"))


if __name__ == "__main__":
    _budget = read_budget()
    print(table(measured(Graph.read(), _budget) | run(), _budget["most"]))  # type: ignore[arg-type]
