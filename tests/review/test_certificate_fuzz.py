"""Every number, letter and table of a plan and its certificate, changed: refused, or a promise of the library's.

Twelve changes of each plan by default, drawn from its name; in the night a hundred and twenty and pairs of
changes, and under the profile nightly all of each leaf.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
import tomli_w

import privstats as ps
from privstats.review.certificate_checker import Refused, check, read, unit_bound
from tests.lengths import sized
from tests.plan.every_kind import PLANS, certified, with_tables
from tests.plan.promised import keeps_the_promise, mu_of, plan_of

Change = tuple[tuple[Any, ...], Any]
LETTERS = "abcxyzNABSDTFgHqQLVMP0123456789/-.eE \"'\\\0é"
WORDS = (
    *("central", "distributed", "local", "panel", "none", "record", "client", "add-remove", "replace-one", "logistic"),
    *("poisson", "interactive", "split", "NA", "NABSD", "NQ", "left", "transport", *ps.kinds.KINDS),
)
CLAIMED = ("model", "unit", "adjacency", "epsilon", "delta")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The places in a document and what is there, tables and lists too."""
    if path:
        yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from leaves(each, (*path, key))


def others(value: Any, chance: random.Random) -> list[Any]:
    """Values in the place of one."""
    match value:
        case bool():
            return [not value, int(value), str(value), None, [value]]
        case int():
            near = [value + 1, value - 1, -value, 2 * value, 10 * value, value << 20, value - (1 << 32)]
            return [*near, 0, 1, 4, 10**9, 10**30, 10**400, float(value), value + 0.5, str(value), True, None]
        case float():
            near = [value * (1 + 1e-9), value * (1 - 1e-6), value / 2, 2 * value, 1e3 * value, 1e-3 * value, -value]
            return [*near, 0, 0.0, 1, 5e-324, 1e308, float("inf"), float("nan"), str(value), None]
        case str() if value and set(value) <= set("0123456789/"):
            number = Fraction(value) if not value.endswith("/0") and len(value) < 64 else Fraction(1)
            parts = [
                Fraction(1, 10**9),
                Fraction(-1, 10**9),
                Fraction(1, 10**6),
                Fraction(-1, 10**6),
                Fraction(-1, 2),
                1,
            ]
            return [
                *(str(number * (1 + part)) for part in parts),
                "0",
                f"-{value}",
                "1/0",
                f"{value}.0",
                *typos(value, chance),
            ]
        case str():
            return [*WORDS, "", 0, None, [value], *typos(value, chance)]
        case list():
            cut = [value[:place] + value[place + 1 :] for place in range(len(value))]
            return [[], value * 2, value[::-1], *cut, None, {}, "x", [*value, 0]]
        case dict():
            return [{}, [], None, "x"]  # a key less or more: test_certificate_keys
    raise TypeError(type(value))


def typos(text: str, chance: random.Random) -> list[str]:
    place, letter = chance.randrange(len(text) + 1), chance.choice(LETTERS)
    return [
        text[:place] + letter + text[place:],
        text[:place] + letter + text[place + 1 :],
        text[:place] + text[place + 1 :],
    ]


def changed(document: Any, change: Change) -> Any:
    path, value = change
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def changes_of(document: Any, chance: random.Random) -> list[Change]:
    return [(path, other) for path, value in leaves(document) for other in others(value, chance)]


def forgeries(name: str, chance: random.Random, change: Change, *, of_plan: bool) -> Iterator[tuple[str, str]]:
    """Plan file and certificate with one change: in the one, in the tables, in both, with claims that follow."""
    _, text, tables, document = certified(name)
    if not of_plan:
        yield text, json.dumps(changed(document, change))
        return
    other = changed(tables, change)
    claims = dict(document)
    if isinstance(other.get("privacy"), dict):
        told = {key: other["privacy"].get(key) for key in CLAIMED}
        number = (int, float)
        exact = {k: str(Fraction(repr(v))) for k, v in told.items() if type(v) in number and abs(v) < 1e300}
        claims |= told | exact
    yield text, with_tables(document, other)
    try:
        file = tomli_w.dumps(other)
    except (TypeError, ValueError, AttributeError):
        return  # no TOML says that
    yield file, json.dumps(document)
    yield file, with_tables(document, other)
    yield file, with_tables(claims, other)


def stands(text: str, certificate: str) -> bool:
    """Whether the checker accepts; then the promise must be the plan's."""
    try:
        check(text, certificate)
    except Refused as refusal:
        assert str(refusal).isprintable()
        return False
    keeps_the_promise(text, certificate)
    return True


Sample = Callable[[list[Any], random.Random], list[Any]]


def few(changes: list[Any], chance: random.Random) -> list[Any]:
    return chance.sample(changes, 12)


def of_the_night(changes: list[Any], chance: random.Random) -> list[Any]:
    """Sample a part of each plan's changes in a slice, return all of them in the whole."""
    return sized(chance.sample(changes, min(120, len(changes))), changes)


SAMPLES = pytest.mark.parametrize("sample", [few, pytest.param(of_the_night, marks=pytest.mark.nightly)])


def of_both(name: str, chance: random.Random) -> list[tuple[Change, bool]]:
    found = certified(name)
    plan, claims = changes_of(found.tables, chance), changes_of(found.document, chance)
    return [*((change, True) for change in plan), *((change, False) for change in claims)]


@SAMPLES
@pytest.mark.parametrize("name", PLANS)
def test_a_change_is_refused_or_keeps_the_promise(name: str, sample: Sample) -> None:
    chance = random.Random(f"{name}, {sample.__name__}")
    for change, of_plan in sample(of_both(name, chance), chance):
        for text, certificate in forgeries(name, chance, change, of_plan=of_plan):
            stands(text, certificate)


@SAMPLES
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_is_changed_is_read_as_the_library_reads_it(name: str, sample: Sample) -> None:
    """A forger fits noise and claims to what the program reads, so that must be what the file means."""
    chance = random.Random(f"{name}, {sample.__name__}")
    for change in sample(changes_of(certified(name).tables, chance), chance):
        for text, certificate in forgeries(name, chance, change, of_plan=True):
            is_read_alike(text, certificate)


def is_read_alike(text: str, certificate: str) -> None:
    """Fail where the bound of the plan's unit is another one than the library's."""
    try:
        mine, theirs = read(text, json.loads(certificate)), plan_of(text)
    except (Refused, ps.PrivstatsError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return
    schema, privacy = theirs.schema, theirs.privacy
    assert isinstance(privacy, ps.Privacy)
    for weights in ({s: 1.0 + place for place, s in enumerate(schema.statistics)}, {schema.statistics[-1]: 3.0}):
        grid = {s: Fraction(weight) / Fraction(schema.scale_of(s)) ** 2 for s, weight in weights.items()}
        bound = mu_of(theirs, privacy, {s: weight**-0.5 for s, weight in weights.items()}) ** 2
        assert float(unit_bound(mine, grid)) == pytest.approx(bound, rel=1e-9), text


@pytest.mark.parametrize("name", PLANS)
def test_a_letter_changed_in_a_text_is_refused_or_keeps_the_promise(name: str) -> None:
    _, text, _, document = certified(name)
    certificate, chance = json.dumps(document), random.Random(name)
    for _ in range(12):
        stands(typos(text, chance)[0], certificate)
        stands(text, typos(certificate, chance)[1])


@pytest.mark.nightly
@pytest.mark.parametrize("name", PLANS)
def test_two_changes_are_refused_or_keep_the_promise(name: str) -> None:
    chance = random.Random(name)
    tables = certified(name).tables
    every = changes_of(tables, chance)
    for _ in range(sized(100, 2000)):
        first, second = chance.sample(every, 2)
        try:
            both = changed(changed(tables, first), second)
            file = tomli_w.dumps(both)
        except (TypeError, ValueError, AttributeError, LookupError):
            continue
        stands(file, with_tables(certified(name).document, both))
