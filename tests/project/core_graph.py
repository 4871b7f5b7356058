"""The imports of the package, and which modules a promise rests on, as ``core.toml`` lists them.

A module names another by an import, by a name of a lazy room that a function uses, or by a text such as
``import_module("privstats.heads")``.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = Path(__file__).with_name("core.toml")
PACKAGE = "privstats"


@dataclass(frozen=True)
class Module:
    """A module's name, its text and tree."""

    name: str
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path, root: Path) -> Module:
        """The module in a file below ``root``."""
        text = path.read_text(encoding="utf8")
        parts = path.relative_to(root).with_suffix("").parts
        return cls(".".join(parts).removesuffix(".__init__"), text, ast.parse(text))

    @cached_property
    def run(self) -> tuple[ast.AST, ...]:
        """What of it runs at some time."""
        return tuple(_run(self.tree))

    @property
    def lazy(self) -> dict[str, tuple[str, str]]:
        """The public names of a lazy room, or of a module of ``extend``, and where each is from."""
        if not any(_imported(node) == "privstats.lazy_names" for node in self.tree.body):
            return {}
        below = (node for under in self.tree.body if _is_for_types(under) for node in getattr(under, "body", ()))
        rows = ((alias, node.module) for node in below if isinstance(node, ast.ImportFrom) for alias in node.names)
        return {alias.name: (module or "", alias.name) for alias, module in rows if alias.asname == alias.name}


@dataclass(frozen=True)
class Graph:
    """The modules of a package, and which of them a module runs."""

    modules: Mapping[str, Module]

    @classmethod
    @cache
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

    def below(self, rooms: Iterable[str]) -> set[str]:
        """The modules of whole rooms."""
        wanted = tuple(rooms)
        return {name for name in self.modules if any(name == room or name.startswith(room + ".") for room in wanted)}

    @cached_property
    def named(self) -> dict[str, set[str]]:
        """By module, the others that it names in any way: also inside functions, and in a text such as
        ``import_module("privstats.heads")``."""
        return {
            name: {*self._run_by(each, each.run), *self._in_texts(each.run)} - {name}
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

    def _in_texts(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        """The modules whose names are in the module as a text of their own, with or without a name behind them."""
        for node in nodes:
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


def core_of(graph: Graph, listed: Mapping[str, dict[str, object]]) -> set[str]:
    """The modules that a promise rests on: whole rooms, less what lies there beside it."""
    rooms: Mapping[str, list[str]] = listed["core"]  # type: ignore[assignment]
    return graph.below(f"{PACKAGE}.{room}" for room in rooms["rooms"]) - {
        f"{PACKAGE}.{name}" for name in rooms["beside"]
    }


def leaving(graph: Graph, listed: Mapping[str, dict[str, object]]) -> set[str]:
    """What the core names outside of the core and its support, as ``module -> module``."""
    rooms: Mapping[str, list[str]] = listed["core"]  # type: ignore[assignment]
    core = core_of(graph, listed)
    known = core | graph.below(f"{PACKAGE}.{name}" for name in rooms["support"]) | {PACKAGE}
    return {f"{name} -> {other}" for name in core for other in graph.named[name] - known}


def asking(graph: Graph, listed: Mapping[str, dict[str, object]]) -> set[str]:
    """The modules of the core that look for entry points, through ``doors`` or ``plug_ins``, or by themselves."""
    direct = importers(graph, ["importlib.metadata.entry_points", "importlib.metadata.distributions"])
    through = {name for name, others in graph.named.items() if others & {f"{PACKAGE}.doors", f"{PACKAGE}.plug_ins"}}
    return core_of(graph, listed) & (direct | through)


def held(graph: Graph, listed: Mapping[str, dict[str, object]]) -> set[str]:
    """The modules outside the core that a promise rests on, too: what lies in the rooms of ``[holds]``."""
    return graph.below(f"{PACKAGE}.{name}" for name in listed["holds"])


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


def read_core() -> dict[str, dict[str, object]]:
    """Return what ``core.toml`` lists."""
    return tomllib.loads(CORE.read_text(encoding="utf8"))
