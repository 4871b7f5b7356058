"""Read and write a plan's TOML, and the canonical bytes behind its digest.

The digest is over canonical JSON, so comments and key order do not change it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import TYPE_CHECKING, Any

import msgspec
import tomli_w

from privstats import transforms
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import PlanError
from privstats.files.atomic import read_bounded
from privstats.files.text import toml_tables
from privstats.files.typed_tables import unknown_keys
from privstats.kinds import KINDS
from privstats.plan import packages, settings
from privstats.plan.cohort import Cohort
from privstats.plan.position import Position
from privstats.python_values import unstated
from privstats.schema import Schema
from privstats.schema.checks import REQUIRED

if TYPE_CHECKING:
    from privstats.plan.plan import Plan
    from privstats.schema.public_values import Published
    from privstats.transforms import Transform

FORMAT_VERSION = 1

_DECIMAL_COMMA = re.compile(r"^[ \t]*(\w+)[ \t]*=[ \t]*([-+]?\d+),(\d+)[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_MAX_CHARACTERS = 1 << 20
_MAX_INTEGER = 1 << 53

_SECTIONS = ("schema", "cohort", "privacy", "aggregation", "published", "validity", "devices")
_SESSION = "session"
"""The table of a file alone: which session of a course the plan is for. No digest covers it."""
_POSITION = ("course", "step", "place", "spent", "mu")


def to_toml(tables: Mapping[str, Any], position: Position | None = None) -> str:
    """Write the plan's tables (see :func:`tables_of`), and the session that it is for, as TOML."""
    session = {} if position is None else {_SESSION: position.table}
    return tomli_w.dumps({**tables, **session})


def tables_of(plan: Plan) -> dict[str, Any]:
    """Return a plan as nested tables of plain values, without None."""
    parts = {name: part for name, part in (("validity", plan.validity), ("devices", plan.devices)) if part is not None}
    bare = isinstance(plan.privacy, NoPrivacy)
    return {
        "version": FORMAT_VERSION,
        "schema": schema_table(plan.schema),
        "cohort": settings.table_of("cohort", plan.cohort),
        "privacy": {"model": "none"} if bare else settings.table_of("privacy", plan.privacy),
        "aggregation": settings.table_of("aggregation", plan),
        **({"published": dict(plan.published.table)} if plan.published else {}),
        **{name: settings.table_of(name, part) for name, part in parts.items()},
    }


def schema_table(schema: Schema) -> dict[str, Any]:
    """Return a schema as the table of a plan file."""
    stated = {name: value for name, value in _plain(schema).items() if value != schema.unstated.get(name)}
    tables = zip(transforms.to_builtins(schema.transform), schema.transform, strict=True)
    maps = [{**table, **packages.keyed(packages.of_map(map_))} for table, map_ in tables]
    own = {"task": schema.task, **packages.keyed(packages.of_schema(schema))}
    table = {**own, **stated, **schema.plain_fields()}
    return {**(table if packages.KEY in own else packages.bare(table)), **own, "transform": maps}


def check_read_back(plan: Plan) -> None:
    """Refuse a kind or a map of another package with a value that its plan's file, and so the digest, lacks."""
    schema = plan.schema
    others = [map_ for map_ in schema.transform if packages.of_map(map_)]
    if packages.of_kind(schema) or others or packages.of_module(schema):
        for value in (schema, *others) if packages.of_kind(schema) else others:
            if names := unstated(value):
                what = f"{type(value).__name__} holds {', '.join(names)}"
                raise PlanError(f"{what}, which no plan states; make it a field, or omit it")
        again = from_toml(to_toml(plan.tables))[0]["schema"]
        pairs = zip((schema, *schema.transform), (again, *again.transform), strict=True)
        # Fields are compared, since == of a class may omit some.
        if again != schema or not all(type(a) is type(b) and _plain(a) == _plain(b) for a, b in pairs):
            raise PlanError(
                f"the file of a plan of this {type(schema).__name__} gives back another one: each value that decides "
                "the sums must be a field of the kind or map"
            )


def unnamed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's tables without the packages of others."""
    schema = {**tables["schema"], "transform": [packages.bare(map_) for map_ in tables["schema"]["transform"]]}
    return {**tables, "schema": packages.bare(schema)}


def from_toml(text: str) -> tuple[dict[str, Any], Position | None]:
    """Parse a plan file into the arguments of ``Plan``, and the session that it is for."""
    tables = _parsed(text)
    if not tables:
        raise PlanError("the plan is empty; `privstats plan init --example` writes a commented one")
    if "course" in tables:
        raise PlanError("this is a course, not a plan; `privstats course check` reads it")
    version = tables.pop("version", None)
    if version is None:
        raise PlanError(f"the plan lacks its format; add the line: version = {FORMAT_VERSION}")
    if version != FORMAT_VERSION:
        raise PlanError(
            f"version must be {FORMAT_VERSION}, got {version!r}; write the plan anew with `privstats plan init`"
        )
    _refuse_unknown("the plan", tables, (*_SECTIONS, _SESSION))
    sections = {name: _section(tables, name) for name in _SECTIONS[:3]}
    published = _table(tables, "published")
    arguments = {
        **{section: _late(section, _table(tables, section)) for section in ("validity", "devices")},
        "published": None if published is None else _published(published),
        "schema": _schema(sections["schema"]),
        "cohort": _settings(Cohort, "cohort", sections["cohort"]),
        "privacy": _privacy(sections["privacy"]),
        **_arguments("aggregation", _table(tables, "aggregation") or {}),
    }
    return arguments, _position(_table(tables, _SESSION))


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a plan file, UTF-8; a byte-order mark is dropped."""
    if not isinstance(path, str | os.PathLike):
        raise PlanError(f"Plan.read needs the path of a plan file, got {type(path).__name__}; give a str or a Path")
    if isinstance(path, str) and "\n" in path:
        raise PlanError("Plan.read needs the path of a plan file, got text of several lines; use Plan.from_toml(text)")
    data = read_bounded(path, PlanError, "`privstats plan init` or `privstats course init`", 4 * _MAX_CHARACTERS)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError(f"cannot read {path}: it is not UTF-8 text; save it as UTF-8") from None


def plan_beside(path: str | os.PathLike[str], text: str) -> str:
    """Return the end of a refusal of a course's file that names the plan next to it; "" for another file."""
    plan = Path(path).with_suffix(".plan.toml")
    course = any(line.strip() == "[course]" for line in text.splitlines())
    return f"; its plan is {plan}" if course and plan.is_file() else ""


def _parsed(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        remedy = "decode it, or use Plan.read(path)" if isinstance(text, bytes) else "use Plan.read(path) for a file"
        raise PlanError(f"Plan.from_toml needs the text of a plan, got {type(text).__name__}; {remedy}")
    text = text.removeprefix("\ufeff")
    if len(text) > _MAX_CHARACTERS:
        raise PlanError(f"the plan has more than {_MAX_CHARACTERS} characters, which no plan needs; give a plan file")
    try:
        tables = toml_tables(text)
    except TOMLDecodeError as error:
        raise PlanError(f"the plan is not valid TOML: {error}{_remedy(text)}") from None
    _refuse_huge(tables)
    return tables


def _remedy(text: str) -> str:
    if "\n" not in text and "=" not in text:
        return "; this looks like a path, so use Plan.read(path)"
    comma = _DECIMAL_COMMA.search(text)
    if comma is not None:
        return f"; write numbers with a decimal point: {comma[1]} = {comma[2]}.{comma[3]}"
    if "[schema]" not in text:
        return (
            "; a plan is a text file with [schema], [cohort] and [privacy]: `privstats plan init --example` writes one"
        )
    return ""


def _refuse_huge(value: Any, where: str = "the plan") -> None:
    """Refuse integers above 2**53; arithmetic on smaller ones is exact."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _refuse_huge(inner, repr(key))
    elif isinstance(value, list):
        for inner in value:
            _refuse_huge(inner, where)
    elif isinstance(value, int) and abs(value) > _MAX_INTEGER:
        raise PlanError(f"{where} holds a number beyond 2**53, which no plan needs; lower it")


def canonical(tables: Mapping[str, Any]) -> bytes:
    """Return the tables as JSON with sorted keys: identical bytes for every party with the same plan."""
    return msgspec.json.encode(tables, order="deterministic")


def digest_of(tables: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of the canonical JSON, 32 bytes."""
    return hashlib.sha256(canonical(tables)).digest()


def digest_of_terms(schema: Schema, terms: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a schema and further terms under which records are measured, 32 bytes."""
    return digest_of({"schema": schema_table(schema), **terms})


def _plain(value: Any) -> dict[str, Any]:
    pairs = ((f.name, getattr(value, f.name)) for f in fields(value) if f.init and f.name != "_")
    return {name: dict(v) if isinstance(v, Mapping) else v for name, v in pairs if v is not None}


def _schema(table: dict[str, Any]) -> Schema:
    task = table.pop("task", None)
    cls = KINDS.get(task) if isinstance(task, str) else None
    package = packages.taken(table)
    if task is None:
        raise PlanError("schema lacks task; add task = 'classes' or task = 'ridge'")
    if cls is None:
        raise PlanError(
            packages.lacking(package, f"the task {task!r:.80}")
            or f"schema.task must be one of {sorted(KINDS)}, got {task!r}"
        )
    maps = table.pop("transform", [])
    if not isinstance(maps, list) or not all(isinstance(map_, dict) for map_ in maps):
        raise PlanError("schema.transform must be a list of tables: write [[schema.transform]]")
    built: Schema = _build(cls, {**cls.unstated, **table, "transform": _maps(maps)})
    what = f"the module {word!r}" if (word := getattr(built, "module", None)) else f"the task {task!r}"
    packages.check_stated(package, packages.of_schema(built), what)
    return built


def _maps(tables: list[dict[str, Any]]) -> tuple[Transform, ...]:
    """Return the maps in their tables, each of the package that its table states."""
    plain = [dict(table) for table in tables]
    stated = [packages.taken(table) for table in plain]
    for table, package in zip(plain, stated, strict=True):
        kind = table.get("kind")
        if package and not transforms.base.is_kind(kind):
            raise PlanError(packages.lacking(package, f"the map {kind!r:.80}"))
    maps = transforms.from_builtins(plain)
    for map_, package in zip(maps, stated, strict=True):
        packages.check_stated(package, packages.of_map(map_), f"the map {map_.kind!r}")
    return maps


def _privacy(table: dict[str, Any]) -> Privacy | NoPrivacy:
    if table.get("model") == "none":
        if len(table) > 1:
            rest = ", ".join(repr(key) for key in table if key != "model")
            raise PlanError(f"privacy.model = 'none' means no differential privacy; delete {rest}, or choose a model")
        return NoPrivacy()
    built: Privacy = _settings(Privacy, "privacy", table)
    return built


def _published(table: dict[str, Any]) -> Published:
    _refuse_unknown("published", table, ("sha256", "after"))
    if "sha256" not in table:
        raise PlanError("published lacks sha256; add it to [published], or delete the table")
    from privstats.schema.public_values import Published

    return Published(**table)


def _position(table: dict[str, Any] | None) -> Position | None:
    if table is None:
        return None
    _refuse_unknown(_SESSION, table, _POSITION)
    return Position.of(table)


def _arguments(table: str, values: dict[str, Any]) -> dict[str, Any]:
    _refuse_unknown(table, values, tuple(settings.SETTINGS[table]))
    return settings.arguments_of(table, values)


def _settings(cls: type[Any], table: str, values: dict[str, Any]) -> Any:
    arguments = _arguments(table, values)
    rows = settings.SETTINGS[table].values()
    _refuse_missing(table, [row.name for row in rows if row.default(cls) is MISSING and row.name not in values])
    return cls(**arguments)


def _refuse_missing(table: str, missing: list[str]) -> None:
    if missing:
        raise PlanError(f"{table} lacks {', '.join(missing)}; add it to [{table}], it has no default on purpose")


def _build(cls: type[Any], table: dict[str, Any]) -> Any:
    known = {f.name: f for f in fields(cls) if f.init and f.name != "_"}
    _refuse_unknown("schema", table, tuple(known))
    needed = [name for name, f in known.items() if f.default in (MISSING, REQUIRED) and f.default_factory is MISSING]
    # Declared columns determine features.
    declared = {name for name in needed if name == "features" and known[name].default is REQUIRED}
    missing = [name for name in needed if name not in table and name not in declared]
    _refuse_missing("schema", missing)
    return cls(**table)


def _section(tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name)
    if not isinstance(table, dict):
        raise PlanError(f"the plan lacks the table [{name}]; `privstats plan init --example` writes a commented one")
    return dict(table)


def _table(tables: dict[str, Any], name: str) -> dict[str, Any] | None:
    table = tables.get(name)
    if table is not None and not isinstance(table, dict):
        raise PlanError(f"{name} must be a table: write [{name}]")
    return table


def _refuse_unknown(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if refusal := unknown_keys(where, table, known):
        raise PlanError(refusal)


# The class Validity or Devices is loaded only for a plan with its table.
def _late(section: str, table: dict[str, Any] | None) -> Any:
    from privstats import plan

    return None if table is None else _settings(getattr(plan, section.capitalize()), section, table)
