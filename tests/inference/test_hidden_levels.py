"""A declared level, stratum or bin that few records or none have costs its own rows alone, in every table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import privstats as ps
from privstats import inference as inf
from privstats.inference.declared_levels import declared_levels
from privstats.inference.hidden_levels import HiddenLevels
from privstats.inference.releases import column_names
from privstats.transforms import Centre, ConstantFeature, Interactions, Levels, Scale
from tests import made
from tests.inference.level_worlds import ARM, EFFECT, MEASURED, TABLES, World
from tests.inference.test_score import played
from tests.lengths import sized

_WITH_PRODUCTS = "logit, arm by ward"
_OF_CAUSES = "subdistribution hazards"
"""The table whose ratio is no parameter of the worlds."""
_KINDS: dict[str, Callable[[int], World]] = {
    "nobody": lambda seed: World(0, seed),
    "3 persons": lambda seed: World(3, seed),
    "no event": lambda seed: World(400, seed, events=False),
    "shorter": lambda seed: World(2_000, seed, until=6),
}
_WIDEST = {"no event": 2.5}
"""Largest width over that of the table without the level, where it is not 1.25."""
_CASES = [(name, kind) for name in TABLES for kind in _KINDS]
_UNTRUE = ("plan more", "plan six", "larger epsilon", "or release more")


def _check(name: str, kind: str, levels: str, seed: int) -> bool:
    """Check one table in one world: only rows that compare with ward C may lack, and sentences name it.

    Return whether the arm's interval misses.
    """
    world = _KINDS[kind](seed)
    found, without = (TABLES[name](world, each, 8.0) for each in (levels, "undeclared"))
    said, reported = " ".join(found.notes), dict(zip(found.names, found.reported.tolist(), strict=True))
    if (name, levels) == (_WITH_PRODUCTS, "first") and kind != "shorter":
        assert "ward: C" in said, "with products, the arm's row is its effect in the first ward"
        return False
    (low, high), (lowest, highest) = (each.conf_int()[each.names.index("arm")] for each in (found, without))
    assert reported["arm"], (name, kind, found.notes)
    assert high - low < _WIDEST.get(kind, 1.25) * (highest - lowest), (name, kind, found.notes)
    assert found.converged or "cells" in name
    undeclared = (": other", ": missing")
    lacking = [each for each, is_reported in reported.items() if not is_reported and not each.endswith(undeclared)]
    own = ("ward: C", "region: Z") if levels == "last" else ("ward", "region")
    assert all(any(each.startswith((level, f"arm x {level}")) for level in own) for each in lacking), lacking
    if lacking:
        assert "ward: C" in said or "region: Z" in said
    if kind == "nobody":
        assert len(lacking) == sum(each.split("x ")[-1].startswith(own) for each in reported)
    for note in found.notes:
        assert not any(untrue in note for untrue in _UNTRUE) or "ward: C" in note, note
    truth = EFFECT if name in MEASURED else ARM
    return name != _OF_CAUSES and not low < truth < high


@pytest.mark.parametrize(("name", "kind"), _CASES[:: len(_KINDS) + 1])
def test_what_no_record_informs_costs_its_own_row_alone(name: str, kind: str) -> None:
    """A table in one world each, by turns; every table in every world runs at night."""
    assert not _check(name, kind, "last", 11)


@pytest.mark.nightly
@pytest.mark.parametrize("levels", ["last", "first"])
@pytest.mark.parametrize(("name", "kind"), _CASES)
def test_nightly_what_no_record_informs_costs_its_own_row_alone(name: str, kind: str, levels: str) -> None:
    assert sum(_check(name, kind, levels, seed) for seed in range(8)) <= binom.ppf(0.9999, 8, 0.05)


def _schema(texts: tuple[int, ...], *, centred: bool, products: bool) -> ps.ScoreSchema:
    """Return a plan of declared columns of so many texts, and a number."""
    columns = tuple(ps.Categories(f"c{place}", tuple(f"t{text}" for text in range(n))) for place, n in enumerate(texts))
    names = (*(each.name for each in columns), "age")
    read = Levels(columns, (), tuple(place for place, n in enumerate(texts) if n > 2))
    width = read.outputs(len(names))
    assert width is not None
    scaled = (Centre((0.5,) * width), Scale((0.5,) * width)) if centred else (Scale((2.0,) * width),)
    crossed = (Interactions.between(names, (("c0", "c1"),), read),) if products else ()
    features = width + 1 + (len(crossed[0].pairs) if crossed else 0)
    maps = (read, *scaled, *crossed, ConstantFeature(1.0))
    return ps.ScoreSchema(features, features**0.5, transform=maps, feature_names=names, grid_bits=20)


def _rows(schema: ps.ScoreSchema, texts: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of every combination of texts, ``(n, columns)``, and rows as a session maps them."""
    codes = np.array(list(itertools.product(*map(range, texts))) * 3)
    raw = np.column_stack([codes, rng.uniform(0, 1, len(codes))])
    return codes, np.rint(ps.transforms.apply(schema.transform, raw) * schema.scale) / schema.scale


@given(
    st.lists(st.integers(2, 5), min_size=2, max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_levels_are_singled_out_and_bounds_hold_for_every_row(
    texts: tuple[int, ...], centred: bool, products: bool, seed: int
) -> None:
    schema, rng = _schema(texts, centred=centred, products=products), np.random.default_rng(seed)
    declared, (codes, X) = declared_levels(schema), _rows(schema, texts, rng)
    levels = {level.name: level for level in declared.levels}
    assert len(levels) == (texts[0] * texts[1] if products else texts[0] + texts[1]) + sum(texts[2:])
    for name, level in levels.items():
        parts = [each.split(": ") for each in name.split(", ")]
        has = np.all([codes[:, int(column[1:])] == int(text[1:]) for column, text in parts], axis=0)
        assert X @ level.direction == pytest.approx(has * 1.0, abs=1e-4)
        lines = rng.normal(size=(4, X.shape[1]))
        assert (np.abs(lines @ X[has].T).max(axis=1) <= declared.largest(lines, level) + 1e-9).all()
    G = (X * rng.uniform(0, 1, len(X))[:, None]).T @ X
    assert declared.possible(G) == pytest.approx(G, abs=1e-3)
    noise = rng.normal(size=G.shape)
    noise = noise + noise.T
    assert np.linalg.norm(declared.possible(noise)) <= np.linalg.norm(noise)
    assert declared.possible(declared.possible(noise)) == pytest.approx(declared.possible(noise))


@given(st.integers(0, 2**32 - 1), st.floats(-6, 6), st.sampled_from(["logistic", "poisson"]))
def test_what_a_hidden_level_adds_is_bounded_by_its_own_score(seed: int, shift: float, family: str) -> None:
    """Without noise, and whatever the shift: the score along a line is off by at most M times the level's score."""
    rng, texts = np.random.default_rng(seed), (2, 4)
    schema = _schema(texts, centred=True, products=False)
    declared, (codes, X) = declared_levels(schema), _rows(schema, texts, rng)
    level = next(each for each in declared.levels if each.name == "c1: t3")
    hidden = HiddenLevels(declared, (level,))
    mean = np.exp if family == "poisson" else lambda eta: 1 / (1 + np.exp(-eta))
    fitted = X @ rng.normal(size=X.shape[1]) / 2
    score = X.T @ (mean(fitted + shift * (codes[:, 1] == 3)) - mean(fitted))
    lines = np.stack([hidden.without(each) for each in rng.normal(size=(5, X.shape[1]))])
    found = hidden.scored(np.zeros((len(score),) * 2), score, np.zeros(len(score)))
    assert (np.abs(lines @ score) <= hidden.largest(lines) @ found.scores * (1 + 1e-3) + 1e-9).all()


def test_levels_of_two_columns_that_share_records_are_bounded_by_both_scores() -> None:
    """Shifts of opposite sign cancel in the score of one level: its own bound alone would be too small."""
    rng, texts = np.random.default_rng(0), (2, 3, 3)
    schema = _schema(texts, centred=True, products=False)
    declared, (codes, X) = declared_levels(schema), _rows(schema, texts, rng)
    hidden = HiddenLevels(declared, tuple(each for each in declared.levels if each.name in ("c1: t2", "c2: t2")))
    first, second = codes[:, 1] == 2, codes[:, 2] == 2
    nothing, own = np.zeros((X.shape[1],) * 2), []
    worlds = [(rng.choice([0, 1, 20], len(X)), rng.normal(size=2)) for _ in range(200)]
    only, both = (first & ~second & (codes[:, 0] == 1)), (first & second & (codes[:, 0] == 0))
    worlds.append((10 * only + 20 * both, np.array([1.0, -2.0])))  # all first ones of one arm cancel all of the other
    for numbers, shifts in worlds:
        score = X.T @ (numbers * (shifts[0] * first + shifts[1] * second))
        lines = np.stack([hidden.without(each) for each in (*rng.normal(size=(5, X.shape[1])), *np.eye(X.shape[1]))])
        scores = hidden.scored(nothing, score, nothing[0]).scores
        assert (np.abs(lines @ score) <= hidden.largest(lines) @ scores * (1 + 1e-3) + 1e-9).all()
        bounds = np.column_stack([declared.largest(lines, level) for level in hidden.levels]) @ scores
        own.append((np.abs(lines @ score) <= bounds * (1 + 1e-3) + 1e-9).all())
    assert not own[-1]


@given(st.integers(0, 2**32 - 1), st.floats(-6, 6))
def test_of_two_levels_that_hold_the_same_records_the_difference_is_hidden(seed: int, shift: float) -> None:
    """Of 200 records in both levels and a few in one alone, at any shift of the one, without noise in the scores."""
    rng, texts = np.random.default_rng(seed), (3, 3)
    schema = _schema(texts, centred=True, products=False)
    declared, (codes, X) = declared_levels(schema), _rows(schema, texts, rng)
    alike = (codes[:, 0] == 2) == (codes[:, 1] == 2)
    numbers = np.where(alike, 200, rng.integers(0, 2, len(X)))
    hidden = declared.hidden((X * numbers[:, None]).T @ X, sigma=10.0, sure=3.0)
    assert (hidden.names, hidden.alike) == ([], ["c0: t2 and c1: t2"])
    score = X.T @ (numbers * shift * ((codes[:, 0] == 2) * 1.0 - (codes[:, 1] == 2)))
    lines = np.stack([hidden.without(each) for each in rng.normal(size=(5, X.shape[1]))])
    found = hidden.scored(np.zeros((len(score),) * 2), score, np.zeros(len(score)))
    assert (np.abs(lines @ score) <= hidden.largest(lines) @ found.scores * (1 + 1e-3) + 1e-9).all()
    rows = np.eye(X.shape[1])[: X.shape[1] - 1]
    assert hidden.compared(rows).tolist() == [name in ("c0: t2", "c1: t2") for name in column_names(schema, len(rows))]


def test_no_row_compares_with_a_first_text_that_nobody_has() -> None:
    """Where b is noise over noise, a row may look known: only the public direction shows that nobody informs it."""
    texts = tuple(f"t{place}" for place in range(14))
    names = ("arm", "ward")
    read = Levels((ps.Categories("arm", (0, 1)), ps.Categories("ward", texts)), (), (1,))
    maps = (read, Centre((0.5,) * 14), Scale((0.5,) * 14), ConstantFeature(1.0))
    schema = ps.ScoreSchema(15, 15**0.5, transform=maps, feature_names=names)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"arm": rng.integers(0, 2, 3_000), "ward": rng.choice(texts[1:], 3_000)})
        y = rng.integers(0, 2, 3_000)
        course = ps.Newton.start(schema, ps.Cohort(2, 2, 6_000), made.promise(epsilon=8.0, delta=1e-6))
        table = inf.logit(played(course, X, y, seed))
        assert table.reported.tolist() == [False, True] + [False] * 13
        assert "ward: t0" in table.notes[0]


def test_joint_tests_leave_hidden_levels_out_and_keep_their_level() -> None:
    """Of arm and ward B at their true coefficients, with ten records in ward C."""
    chances, worlds = [], sized(12, 60)
    for seed in range(worlds):
        errors: Any = TABLES["logit"](World(10, seed), "last", 1.0).errors
        rows = np.eye(4)[1:3]
        chances.append(errors.inversion.combined(rows).joint_pvalue(np.array([ARM, 0.0]) - rows @ errors.offset))
        assert errors.combined(np.eye(4)[1:]).joint_pvalue() == 1.0 or errors.identified.all()
    assert np.median(chances) < 0.9
    assert sum(chance < 0.05 for chance in chances) <= binom.ppf(0.999, worlds, 0.05)


_TESTS = {"time": "months", "event": "died", "by": "arm", "strata": "ward", "times": "continuous"}


@pytest.mark.parametrize("test", [inf.logrank_test, inf.proportionality_test])
@pytest.mark.parametrize("world", [World(0, 1), World(2_000, 1, until=6)], ids=["empty", "shorter"])
def test_a_test_of_two_curves_is_over_the_bins_of_each_stratum(test: Any, world: World) -> None:
    """Under noise an empty stratum is in no sum, and a shorter one in those of its own bins."""
    table = TABLES["hazards by stratum"](world, "last", 8.0)
    found = test(table.counted, **_TESTS)
    whole = test(TABLES["hazards by stratum"](world, "undeclared", 8.0).counted, **_TESTS)
    (hidden,) = found.hidden
    assert hidden == "ward: C" if world.few == 0 else hidden == "ward: C from months 6 to 7.5 on"
    assert f"without {hidden}, where" in str(found)
    assert found.reported
    assert not whole.hidden
    shift = math.sqrt(found.test_statistic) - math.sqrt(whole.test_statistic)
    assert abs(shift) < (1.0 if world.few == 0 else 3.0)
    assert "without ward: C" in str(table.summary())


def test_without_noise_strata_that_are_empty_or_of_one_group_change_no_test() -> None:
    cells = ps.Categories("ward", ("A", "B", "C", "D"))
    variables = (ps.Bins("months", tuple(range(0, 25, 6))), ps.Categories("died", (0, 1)), ps.Categories("arm", (0, 1)))
    found = []
    for strata, levels in ((cells, "last"), (replace(cells, values=("A", "B")), "undeclared")):
        table = pd.DataFrame(World(300, 3, events=False).table(levels))
        table["arm"] = np.where(table["ward"] == "C", 1, table["arm"])
        schema = ps.CountSchema((*variables, strata), (("months", "died", "arm", "ward"),))
        release = ps.Release.exact(schema, ps.measure(schema, table))
        found.append([test(release, **_TESTS) for test in (inf.logrank_test, inf.proportionality_test)])
    for each, without in zip(*found, strict=True):
        assert each.test_statistic == pytest.approx(without.test_statistic)
        assert (each.hidden, without.hidden) == (("ward: C", "ward: D"), ())


def test_each_column_has_its_test_of_proportionality_where_a_level_is_empty_or_a_stratum_is() -> None:
    names = ("hazards with a test by column", "hazards by stratum with a test by column")
    for name in names:
        chances, worlds = [], sized(5, 20)
        for seed in range(worlds):
            table = TABLES[name](World(0, seed), "last", 8.0)
            found = table.proportionality_by_column()
            assert found.reported.tolist() == [not each.startswith("ward: C") for each in table.names]
            chances.append(found.p_value[0])
        assert sum(chance < 0.05 for chance in chances) <= binom.ppf(0.999, worlds, 0.05)
        assert np.median(chances) < 0.9
    assert "not reported" in str(table.summary()) or len(table.names) == 1


_SMALL_BUDGETS = [
    ("logit", "last", 1.0),
    ("hazards by stratum", "last", 1.0),
    ("poisson", "first", 4.0),
    ("logit, two columns alike", "last", 2.0),
    ("effect, not randomised", "last", 1.0),
    ("effect, of the treated", "first", 4.0),
    ("effect, missing outcomes", "last", 8.0),
]


@pytest.mark.parametrize(("name", "levels", "epsilon"), _SMALL_BUDGETS)
def test_intervals_cover_with_a_level_of_few_records_at_a_small_budget(name: str, levels: str, epsilon: float) -> None:
    """Over a few worlds; the night has many."""
    _covers(name, levels, epsilon, (0, 10), 5)


@pytest.mark.nightly
@pytest.mark.parametrize("few", [0, 10])
@pytest.mark.parametrize(("name", "levels", "epsilon"), _SMALL_BUDGETS)
def test_nightly_intervals_cover_with_a_level_of_few_records_at_a_small_budget(
    name: str, levels: str, epsilon: float, few: int
) -> None:
    _covers(name, levels, epsilon, (few,), 40)


def _covers(name: str, levels: str, epsilon: float, numbers: tuple[int, ...], worlds: int) -> None:
    """Check that hardly a world is without an interval, and that no more intervals miss than their level says.

    Of so many worlds for each number of records in the level.
    """
    found = [_missed(name, levels, few, epsilon, range(worlds)) for few in numbers]
    missed, reported = map(sum, zip(*found, strict=True))
    assert missed <= binom.ppf(0.999, worlds * len(numbers), 0.05)
    assert reported >= 0.95 * worlds * len(numbers)


def _arm(table: Any) -> tuple[bool, float, float]:
    place = table.names.index("arm")
    low, high = table.conf_int()[place]
    return bool(table.reported[place]), float(low), float(high)


def _missed(name: str, levels: str, few: int, epsilon: float, seeds: Any) -> tuple[int, int]:
    """Return how many worlds report an interval that misses, and how many report one."""
    truth = EFFECT if name in MEASURED else ARM
    found = [_arm(TABLES[name](World(few, seed), levels, epsilon)) for seed in seeds]
    return sum(known and not low < truth < high for known, low, high in found), sum(known for known, _, _ in found)
