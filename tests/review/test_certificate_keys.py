"""No key of a plan has a default in the checker, and none is unknown to it: of every kind, in file, tables and claims.

A certificate of sums within sites that left out ``grid_bits`` was once accepted with a ten-millionth of its noise.
"""

import ast
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache, reduce
from typing import Any

import pytest
import tomli_w

import privstats as ps
from privstats.plan.packages import KEY
from privstats.plan.provers import PROVERS
from privstats.review.certificate_checker import KEYS, KINDS, STEPS, Refused, check
from tests.made import refused
from tests.plan.every_kind import PLANS, certified, keys_of_plans, with_tables
from tests.plan.promised import keeps_the_promise, plan_of
from tests.review.certified import CHECKER

Path = tuple[Any, ...]

FREE = {  # keys that another plan of the same promise has not; every other one must stand there
    *("class_names", "feature_names", "validity", "merge", "spare_bits", "after", "other", "missing", "closed", "open"),
    *("rate", "expected_events", "module", "shares", "among", "edges", "gaps", "unit", "ordered"),
    *("suffix", "censored", "written", "as_text"),
    *(
        "key_agreement",
        "devices",
        "stated_epsilon",
        "words",
        "exact",
        "texts",
        "title",
        "subgroups",
        "entry",
        "negative_binomial",
        "ratios",
        "outcomes",
        "outcome_names",
        "groups",
        "cuts",
        "times",
        "time_unit",
        "left_out",
        "late_entry",
        "rounded",
        "spread",
        "strata",
    ),
}


def tables_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all tables in a document."""
    if isinstance(value, dict):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from tables_in(each, (*path, key))


def at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def without(document: Any, path: Path, key: str) -> Any:
    changed = copy.deepcopy(document)
    del at(changed, path)[key]
    return changed


def with_key(document: Any, path: Path, key: str, value: Any) -> Any:
    changed = copy.deepcopy(document)
    at(changed, path)[key] = value
    return changed


def keys_of(document: Any) -> list[tuple[Path, str]]:
    return [(path, key) for path in tables_in(document) for key in at(document, path)]


def accepted(text: str, certificate: str) -> bool:
    try:
        check(text, certificate)
    except Refused:
        return False
    return True


def kind_of(path: Path, tables: Any) -> Path:
    """Which table of a plan this is: a schema by its task, and those of a list are one."""
    shape = tuple(key for key in path if isinstance(key, str))
    return (*shape, tables["schema"]["task"]) if shape[:1] == ("schema",) else shape


Places = dict[str, list[tuple[Path, str]]]
"""Tables and keys in them, by plan: the keys that no earlier plan has, and under ``NAME, again`` the other keys."""


def met_first(
    places_of: Callable[[str], list[tuple[Path, str]]], kind_of: Callable[[Path, Any], Path] = kind_of
) -> Places:
    """Deal each plan's places out: what a table of this kind has for the first time, and what it had before."""
    met, found = set[tuple[Path, str]](), dict[str, list[tuple[Path, str]]]()
    for name in PLANS:
        tables, places = certified(name).tables, places_of(name)
        found[name] = [(path, key) for path, key in places if (kind_of(path, tables), key) not in met]
        met |= {(kind_of(path, tables), key) for path, key in places}
        found[f"{name}, again"] = [place for place in places if place not in found[name]]
    return found


@cache
def foreign_keys() -> dict[str, Any]:
    """Every key of any plan, with a value that it has in one, and one that no plan has."""
    found: dict[str, Any] = {"notes": "approved"}
    for name in PLANS:
        tables = certified(name).tables
        found |= {key: at(tables, path)[key] for path, key in keys_of(tables)}
    return found


def _lacking(name: str) -> list[tuple[Path, str]]:
    tables = certified(name).tables
    return [
        (path, key)
        for path in tables_in(tables)
        for key in foreign_keys()
        if key not in at(tables, path)
        if path[:2] != ("schema", "transform") or key == "notes"  # ten maps know no key of one another
    ]


@cache
def keys_too_many() -> Places:
    """Every key of any plan in every table that lacks it."""
    return met_first(_lacking)


@cache
def keys_there() -> Places:
    """Every key of a plan, each map and each declared column by its own kind."""
    return met_first(
        lambda name: keys_of(certified(name).tables),
        lambda path, tables: (*kind_of(path, tables), at(tables, path).get("kind")),
    )


@cache
def claims_there() -> Places:
    """Every key of a certificate, by the kind of the plan's sums."""
    return met_first(
        lambda name: keys_of(certified(name).document),
        lambda path, tables: (*(key for key in path if isinstance(key, str)), tables["schema"]["task"]),
    )


BY_DAY_AND_NIGHT = pytest.mark.parametrize(
    "name", [*PLANS, *(pytest.param(f"{name}, again", marks=pytest.mark.nightly) for name in PLANS)]
)
"""Every key in every kind of table; in the night in the tables of every plan."""


def test_the_checker_knows_the_keys_of_a_plan_file_and_no_others() -> None:
    """A new key was refused by the checker, and no test saw it, until a plan in ``every_kind.py`` used the key."""
    plans = keys_of_plans()
    known = {name: {key.partition("=")[0].rstrip("?") for key in KEYS[name].split()} for name in plans}
    assert known == plans, "add the key to KEYS in review/certificate_checker.py"
    for task, kind in ps.kinds.KINDS.items():
        own = {each.name for each in fields(kind) if each.init}
        keys = {key.partition("=")[0].rstrip("?") for key in KINDS[task].keys.split()}
        assert keys - {KEY} == own, f"add the key to the class of {task} in review/certificate_checker.py"


@BY_DAY_AND_NIGHT
def test_tables_that_leave_out_a_key_are_refused(name: str) -> None:
    """Also where the plan file leaves it out, too, and the digest is that of such tables."""
    _, text, tables, document = certified(name.removesuffix(", again"))
    for path, key in keys_there()[name]:
        less = without(tables, path, key)
        held = [accepted(file, with_tables(document, less)) for file in (tomli_w.dumps(less), text)]
        kind = reduce(lambda table, step: table[step], path, tables).get("kind")
        free = FREE | {"values"} if kind == "truth" else FREE  # whose two texts need no declaration
        assert not any(held) or key in free, (path, key)
        if key == "grid_bits":  # a file without it means 12; noise for steps of 1 would be 4,096 times too small
            refused(Refused, "lacks grid_bits", check, tomli_w.dumps(less), with_tables(document, less))
        if held[0]:
            keeps_the_promise(tomli_w.dumps(less), with_tables(document, less))


@BY_DAY_AND_NIGHT
def test_a_file_may_leave_out_what_has_a_default_in_plans(name: str) -> None:
    plan, _, tables, document = certified(name.removesuffix(", again"))
    certificate = json.dumps(document)
    for path, key in keys_there()[name]:
        short = tomli_w.dumps(without(tables, path, key))
        try:
            same = plan_of(short).digest == plan.digest
        except (ps.PlanError, ps.SchemaError):
            same = False
        # What is installed here, a program on another machine cannot know: it refuses a file that names no package.
        assert accepted(short, certificate) is (same and key != KEY), (path, key)


@BY_DAY_AND_NIGHT
def test_a_key_too_many_is_refused(name: str) -> None:
    """An optional key of the same kind makes another plan, whose promise the certificate must still keep."""
    _, text, tables, document = certified(name.removesuffix(", again"))
    for path, key in keys_too_many()[name]:
        more = with_key(tables, path, key, foreign_keys()[key])
        file, certificate = tomli_w.dumps(more), with_tables(document, more)
        assert not accepted(text, certificate), (path, key)
        assert not accepted(file, json.dumps(document)) or plan_of(file) == plan_of(text)
        if accepted(file, certificate):
            assert key in FREE or path == ("aggregation", "merge"), (path, key)
            keeps_the_promise(file, certificate)


@BY_DAY_AND_NIGHT
def test_a_certificate_with_a_key_less_or_more_is_refused(name: str) -> None:
    _, text, _, document = certified(name.removesuffix(", again"))
    for path, key in claims_there()[name]:
        refused(Refused, "", check, text, json.dumps(without(document, path, key)))
    for path in tables_in(document):
        refused(Refused, "", check, text, json.dumps(with_key(document, path, "notes", "1")))


def test_the_checker_has_a_row_for_every_kind_of_schema_and_no_other() -> None:
    assert set(KINDS) == set(ps.kinds.KINDS)
    ours = {kind for kind, step in ps.transforms.base.kinds().items() if step.__module__.startswith("privstats.")}
    assert set(STEPS) == ours  # other tests bring maps of their own


def test_every_key_that_a_plan_can_have_stands_in_one_of_these_plans() -> None:
    """So that the tests above leave out each."""
    PROVERS.needed("moments", "a plan of each kind")
    known = {
        key.partition("=")[0].rstrip("?")
        for keys in (*KEYS.values(), *(kind.keys for kind in KINDS.values()), *STEPS.values())
        for key in keys.split()
    }
    assert known - {key for name in PLANS for _, key in keys_of(certified(name).tables)} == set()


def test_no_function_of_the_checker_has_a_default() -> None:
    for node in ast.walk(ast.parse(CHECKER.read_text())):
        if isinstance(node, ast.arguments):
            assert not node.defaults, node.defaults[0].lineno
            assert not [default for default in node.kw_defaults if default is not None]
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("get", "setdefault"), node.lineno
        if isinstance(node, ast.Name):
            assert node.id not in ("defaultdict", "getattr"), node.lineno
