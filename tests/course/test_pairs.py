"""Pairs of columns: a record is bounded whatever is published, cells follow from u, and a course finds pairs."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.course.alone import single_party_plan
from privstats.course.base import as_next
from privstats.course.pair_codes import PairCodes
from privstats.course.pair_rounds import Groups, PairRounds, can_have_pairs
from privstats.course.read_recipe import recipe_of
from privstats.estimates import pairs as estimates
from privstats.estimates.denoise import NoisyClassSums
from privstats.heads.rules import PairedRule, WhitenedRule
from privstats.kinds import gradients
from privstats.moments import gradient_map
from privstats.moments.gradient_map import unit_rows
from privstats.randomness import seeded
from privstats.schema.modules import module_of
from privstats.schema.public_values import Published, Values
from privstats.testing import check_module
from tests import made
from tests.course.cases import plan_of

EDGES = (-1.0, -0.5, 0.0, 0.5, 1.0)
CELLS = ps.Cells(
    (
        ps.Numeric("a", EDGES),
        ps.Numeric("b", EDGES),
        ps.Truth("c"),
        ps.Categories("d", ("p", "q", "r", "s", "t")),
        ps.Categories("e", ("low", "mid", "high"), ordered=True),
    ),
    signs=5,
)
J, D, N = len(CELLS.columns), CELLS.width, 3_000
SCHEMA = ps.ClassSchema(2, D, "NAB", 1.0, transform=(CELLS,))
STEPS = 1 << 12


def table(records: int = N, seed: int = 0) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Records whose class follows from the signs of a times b, and from c a little."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, records))
    c = rng.integers(0, 2, records)
    y = (1.5 * np.sign(a * b) + 0.5 * c + rng.logistic(size=records) > 0.25).astype(int)
    gaps = rng.random((2, records)) < 0.05
    columns: dict[str, list[Any]] = {
        "a": np.where(gaps[0], np.nan, a).tolist(),
        "b": b.tolist(),
        "c": c.tolist(),
        "d": rng.choice(["p", "q", "r", "s", "t", "?"], records).tolist(),
        "e": np.where(gaps[1], "", rng.choice(["low", "mid", "high"], records)).tolist(),
    }
    return columns, y


def plan(epsilon: float = 12.0, schema: Any = SCHEMA, **changes: Any) -> ps.Plan:
    return plan_of(schema, ps.Cohort(3, 2, 2 * N), epsilon=epsilon, **changes)


def course(**changes: Any) -> ps.Rounds:
    return ps.Rounds.within(plan(), expected_records=N, **changes)


def shards(records: tuple[dict[str, list[Any]], np.ndarray], parties: int = 3) -> list[tuple[Any, np.ndarray]]:
    columns, y = records
    return [({name: each[i::parties] for name, each in columns.items()}, y[i::parties]) for i in range(parties)]


@pytest.fixture(scope="module")
def releases() -> list[ps.Release]:
    got = ps.simulate(course(), shards(table()), rng=seeded(3))
    return [each for each in got if each is not None]


@pytest.mark.parametrize("bits", [2, 12, 13])
@pytest.mark.parametrize("word", ["pairs/3-3", "pairs/5-12", "pairs/64-1"])
def test_a_row_is_bounded_and_its_own_at_any_published_values(word: str, bits: int) -> None:
    check_module(word, features=7, classes=2, grid_bits=bits)


@given(st.integers(0, 2**32 - 1), st.sampled_from([-8, 0, 10, 19, 40, 64]), st.sampled_from([0.3, 1.0]))
def test_no_published_values_make_a_row_longer_than_the_norm(seed: int, exponent: int, norm: float) -> None:
    """Corners of the 20 bits, exact and spoilt codes, and rows of any length that a map can give."""
    rng, module = np.random.default_rng(seed), PairCodes(4, 6)
    most = (1 << 19) - 1
    values = rng.choice([-most, -1, 0, 1, most], module.values(9, 2))
    units = rng.normal(size=(40, 10)) * rng.choice([0.0, 1.0, 1e3], (40, 10))
    units = np.trunc(units / np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1.0) * (STEPS - 1))
    labels = rng.integers(0, 2, 40)
    terms: dict[str, Any] = {"classes": 2, "norm": norm, "grid_bits": 12}
    rows, kappa = module.gradients(units, labels, Values(values, exponent), **terms)
    assert (rows == np.trunc(rows)).all()
    assert max(sum(int(entry) ** 2 for entry in row) for row in rows) <= STEPS**4
    assert ((kappa >= 0) & (kappa <= STEPS)).all()
    alone = [module.gradients(units[[i]], labels[[i]], Values(values, exponent), **terms) for i in range(8)]
    for place, (row, own) in enumerate(alone):
        assert np.array_equal(row[0], rows[place])
        assert own[0] == kappa[place]


def test_groups_follow_from_u_for_every_cell_behind_any_map() -> None:
    """The published E finds a cell's group in the whitened row, whose length nobody knows; so the row's own code."""
    rng = np.random.default_rng(0)
    codes = np.array([[rng.choice([*each, np.nan]) for each in _codes()] for _ in range(400)])
    rows = CELLS.apply(codes)
    groups = Groups.of(CELLS, rows.mean(axis=0))
    cells = CELLS.indices(codes)
    own = np.column_stack([column.groups[cells[:, j]] for j, column in enumerate(groups.columns)])
    assert {int(each) for each in own.ravel()} == {0, 1, 2, 3, 4}
    module, every = PairCodes(J, math.comb(J, 2)), groups.pairs
    for _ in range(5):
        basis, values = np.linalg.qr(rng.normal(size=(D, D)))[0], np.exp(rng.uniform(-2, 2, D))
        M = Values.rounded((basis * values) @ basis.T)
        unit = unit_rows(_round(module), np.rint(rows * 2.0**16), M)
        w = module.published_of(
            (0.0, 1.0),
            np.zeros(D + 1),
            every,
            np.array([column.codes for column in groups.columns]),
            groups.functionals(np.linalg.inv(M.real)),
        )
        labels = np.zeros(len(unit), np.intp)
        added, _ = module.gradients(unit, labels, Values.rounded(w), classes=2, norm=1.0, grid_bits=12)
        z = np.pad(np.array([column.codes for column in groups.columns]), ((0, 0), (0, 1), (0, 0)))[np.arange(J), own]
        wanted = (z[:, every[:, 0], :, None] * z[:, every[:, 1], None, :]).reshape(len(z), -1)
        lengths = np.maximum(math.sqrt(2) / 2 * np.linalg.norm(wanted, axis=1), 1.0)[:, None]
        assert np.abs(added[:, D + 1 :] / STEPS**2 - math.sqrt(2) / 2 * wanted / lengths).max() < 2e-3


def _codes() -> list[list[float]]:
    return [[-2, -1, -0.7, -0.2, 0.2, 0.7, 3], [-2, 0.2, 0.7], [0, 1], [0, 1, 2, 3, 4, 5], [0, 1, 2]]


def _round(module: PairCodes) -> ps.GradientSchema:
    return ps.GradientSchema(
        D, 2, residual_norm=1.0, expected_records=N, course_mu=1.0, module=f"pairs/{module.columns}-{module.pairs}"
    )


def test_codes_have_norm_1_and_follow_linearly_from_the_row() -> None:
    """The sum over all pairs is within the residual because each code has norm 1; the head reads codes off the row."""
    codes = np.array([[value, 0.2, 1, value % 6, value % 3] for value in range(6)], float)
    codes[0, 0] = codes[1, 1] = codes[2, 3] = np.nan
    rows, cells = CELLS.apply(codes), CELLS.indices(codes)
    groups = Groups.of(CELLS, rows.mean(axis=0))
    slopes, shift = groups.code_maps(range(J))
    slopes, shift = slopes.reshape(J, 3, -1), shift.reshape(J, 3)
    for j, column in enumerate(groups.columns):
        lengths = np.linalg.norm(column.codes[: int(column.groups[:-1].max()) + 1], axis=1)
        np.testing.assert_allclose(lengths, 1.0)
        own = own_codes(column, cells[:, j])
        np.testing.assert_allclose(rows @ slopes[j].T + shift[j], own, atol=2e-3)  # entries are whole steps


def test_the_sums_of_the_session_for_all_pairs_are_those_of_all_records_whoever_holds_them(
    releases: list[ps.Release],
) -> None:
    recipe = recipe_of(releases)
    assert isinstance(recipe, PairRounds)
    schema = recipe.schema_of(recipe.searching)
    published = Published.of(recipe.search_values(releases[:5]))
    columns, y = table()
    whole = ps.measure(schema, columns, y, published=published)
    parts = [ps.measure(schema, *part, published=published) for part in shards((columns, y))]
    assert np.array_equal(whole.g, sum(part.g for part in parts))
    assert whole.k == sum(part.k for part in parts)
    assert not whole.g[0, : D + 1].any()  # alpha is 0
    assert whole.g[0, D + 1 :].any()


def test_a_course_finds_the_pair_that_decides_and_the_head_reads_it(releases: list[ps.Release]) -> None:
    whole = course()
    assert whole.pairs
    assert whole.most == len(releases) == 1 + 7 + 1
    assert whole.mu == pytest.approx(course(pairs=False).mu, rel=1e-6)
    words = [getattr(each.plan.schema, "module", None) for each in releases]
    assert words == [None] * 5 + ["pairs/5-10"] + ["pairs/5-12"] * 3
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    assert head.pairs_[0] == ("a", "b")
    plain = ps.heads.RefinedSoftmax().fit_releases(
        [each for each in ps.simulate(course(pairs=False), shards(table()), rng=seeded(3)) if each]
    )
    columns, y = table(seed=1)
    assert plain.pairs_ == ()
    assert head.score(columns, y) > plain.score(columns, y) + 0.1
    rule = head.rule_
    assert isinstance(rule, PairedRule)
    rows = head.preprocessing_.apply(CELLS.codes(columns))
    groups, cells = Groups.of(CELLS, _mean(releases[0])), CELLS.indices(CELLS.codes(columns))
    tables = recipe_of(releases).tables(releases)  # type: ignore[union-attr]
    scores = WhitenedRule(rule.matrix, rule.coef, rule.intercept).scores(rows)
    for (one, other), weights in zip(tables.walk.pairs, tables.weights.T.reshape(-1, 9, 2), strict=True):
        z = [
            np.pad(groups.columns[j].codes, ((0, 1), (0, 0)))[groups.columns[j].groups[cells[:, j]]]
            for j in (one, other)
        ]
        products = (z[0][:, :, None] * z[1][:, None, :]).reshape(len(z[0]), 9)
        scores = scores + products @ weights / (head.link_[0] * head.temperature_)
    np.testing.assert_allclose(rule.scores(rows), scores, atol=0.02)  # entries of cells are whole steps


def own_codes(column: Any, cells: np.ndarray) -> np.ndarray:
    return np.asarray(np.pad(column.codes, ((0, 1), (0, 0)))[column.groups[cells]])


def _mean(first: ps.Release) -> np.ndarray:
    real: Any = first.moments
    return np.asarray(real.A.sum(axis=0) / real.N.sum())


def test_a_party_computes_every_later_plan_itself(releases: list[ps.Release]) -> None:
    whole = course()
    for place in range(1, whole.most):
        assert ps.course.verify_next(whole, releases[place].plan, releases[:place]).place == place
    lied = releases[5].plan.published
    assert lied is not None
    w = lied.read()["w"]
    other = Values(w.integers[::-1].copy(), w.exponent)
    forged = replace(
        releases[5].plan, published=Published.of({"M": lied.read()["M"], "w": other}, bytes.fromhex(lied.after))
    )
    with pytest.raises(ps.PlanError, match="not the one that follows"):
        ps.course.verify_next(whole, forged, releases[:5])


def test_without_a_pair_or_a_sum_the_linear_rounds_go_on() -> None:
    columns, y = table()
    rng = np.random.default_rng(5)
    quiet = ps.simulate(course(pairs=True), shards((columns, rng.integers(0, 2, N))), rng=seeded(0))
    assert [each.plan.schema.module for each in quiet[1:] if each] == [None] * 4 + ["pairs/5-10"] + [None] * 3
    assert ps.heads.RefinedSoftmax().fit_releases(quiet).pairs_ == ()
    lost = [*quiet[:5], None]
    following = course(pairs=True).next(lost)
    assert following is not None
    assert following.schema.module is None


def test_lost_rounds_spend_the_retries_and_the_search_keeps_its_place() -> None:
    whole = course(pairs=True, retries=2)
    assert whole.most == 1 + 7 + 2 + 1
    releases: list[Any] = []
    words, lost = [], {2, 3}
    while (following := whole.next(releases)) is not None:
        words.append(getattr(following.schema, "module", None))
        got = ps.simulate(following, shards(table()), rng=seeded(len(releases)))
        releases.append(None if len(releases) in lost else as_next(whole, releases, got))
    assert words == [None] * 5 + ["pairs/5-10"] + ["pairs/5-12"] * 5
    assert len(releases) == whole.most
    assert ps.heads.RefinedSoftmax().fit_releases(releases).pairs_[0] == ("a", "b")


def test_a_place_has_one_price_whatever_a_server_says_was_released(releases: list[ps.Release]) -> None:
    """A party that keeps no history may be asked for the same place once only: it must not cost more in another one."""
    whole, (first, *linear) = course(retries=1), releases[:5]
    prices: dict[int, set[float]] = {}
    for lost in range(5):
        told = made.named(whole, [first, *[None] * lost, *linear])
        for place in range(1, len(told) + 1):
            try:
                following = whole.next(told[:place])
            except ps.PlanError:  # a linear round where the search has its place
                continue
            if following is not None:
                prices.setdefault(place, set()).add(round(ps.course.base.mu_of(following), 9))
    assert all(len(each) == 1 for each in prices.values())
    (search,), (other,) = prices[5], prices[4]
    assert search > other


def test_sessions_in_another_order_are_no_course(releases: list[ps.Release]) -> None:
    first, linear, search, joint = releases[0], releases[1:5], releases[5], releases[6:]
    for told in ([first, search], [first, *joint], [first, *linear, search, search], [first, *linear, linear[0]]):
        with pytest.raises(ps.PlanError, match="not of this course"):
            course().next(told)


def test_a_search_without_any_round_before_it_is_read_back() -> None:
    whole = course()
    begun = ps.simulate(whole.first, shards(table()), rng=seeded(0))
    releases: list[Any] = [as_next(whole, [], begun), None, None, None, None]
    following = whole.next(releases)
    assert following is not None
    assert getattr(following.schema, "module", None) == "pairs/5-10"
    releases.append(as_next(whole, releases, ps.simulate(following, shards(table()), rng=seeded(1))))
    assert ps.heads.RefinedSoftmax().fit_releases(releases).pairs_[0] == ("a", "b")


def test_a_recipe_read_from_releases_is_the_course_s(releases: list[ps.Release]) -> None:
    for until in (6, 7, 9):
        assert recipe_of(releases[:until]) == course().recipe


def test_a_first_release_of_false_counts_leads_to_finite_values(releases: list[ps.Release]) -> None:
    groups, zero = Groups.of(CELLS, _mean(releases[0])), np.zeros((2, D))
    sums = NoisyClassSums(np.zeros(2), zero, np.zeros((D, D)), dict.fromkeys("NAB", 1.0))
    alignment = groups.alignment(sums)
    assert np.isfinite(alignment).all()
    assert estimates.crowds(alignment, groups.pairs).min() >= 1  # a step is never longer than Newton's


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, {"rounds": 7}),
        ({}, {"calibrated": True}),
        ({"epsilon": 1.0}, {}),
        ({"schema": ps.ClassSchema(3, D, "NAB", 1.0, transform=(CELLS,))}, {}),
        ({"schema": ps.ClassSchema(2, D, "NAB", 1.0, transform=(CELLS, ps.transforms.UnitNorm()))}, {}),
        ({"schema": ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(ps.Cells(CELLS.columns[:2]),))}, {}),
    ],
    ids=["stated rounds", "calibrated", "small budget", "classes", "another row", "two columns"],
)
def test_pairs_are_on_by_public_numbers_alone(changes: dict[str, Any], options: dict[str, Any]) -> None:
    """Where they are off, the course and its digest are as before there were any."""
    assert course().pairs
    whole = plan(**changes)
    off = ps.Rounds.within(whole, expected_records=N, **options)
    assert not off.pairs
    assert off.digest == ps.Rounds.within(whole, expected_records=N, pairs=False, **options).digest
    assert off.search is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rounds": 3}, "raise rounds"),
        ({"calibrated": True}, "without calibration or proofs"),
        ({"module": "pairs/5-12"}, "set their own module"),
    ],
)
def test_pairs_that_cannot_be_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ps.PlanError, match=said):
        course(pairs=True, **options)
    with pytest.raises(ps.PlanError, match="3 to 64 declared columns and two classes"):
        ps.Rounds.within(plan_of(), pairs=True)
    assert not can_have_pairs(plan_of().schema)


def test_a_module_of_pairs_is_no_model_of_its_own() -> None:
    with pytest.raises(ps.errors.SchemaError, match="leave module out"):
        module_of("pairs/5-12").started(None, None, None)  # type: ignore[arg-type]
    with pytest.raises(ps.errors.SchemaError, match="such as 19-10"):
        module_of("pairs/5")
    with pytest.raises(ps.PlanError, match="set pairs=True"):
        ps.Rounds.within(plan(), module="pairs/5-12")


def test_a_third_class_is_refused_before_any_record_is_read() -> None:
    """A record of it would have raised an error, which tells that it is there."""
    with pytest.raises(ps.errors.SchemaError, match="reads two classes, got 3"):
        ps.GradientSchema(4, 3, residual_norm=1.0, expected_records=N, course_mu=1.0, module="pairs/3-3")


def test_noise_alone_lets_few_pairs_pass_and_an_effect_does() -> None:
    rng, sizes = np.random.default_rng(0), Groups.of(CELLS, np.zeros(D)).sizes(np.array([[0, 1]] * 45))
    passed = 0
    for _ in range(400):
        noise = rng.normal(size=(45, 3, 3)) * np.hypot(0.01, 0.003 * sizes)
        passed += len(estimates.passing(estimates.PairSums(noise, 0.01, 0.003**2, 0.3), sizes))
    assert passed <= 12  # 4 expected at most
    noise[7, 0, 0] = 0.1
    assert estimates.passing(estimates.PairSums(noise, 0.01, 0.003**2, 0.3), sizes).tolist() == [7]


def test_steps_of_pairs_that_are_one_do_not_add_up() -> None:
    """Twelve equal pairs took twelve steps at once, and a table of diamonds got worse the longer it learned."""
    sizes, effect = np.ones((12, 3, 3)), 0.8

    def end(crowd: float) -> float:
        shape, sums, total = estimates.PairShape(sizes, np.full(12, crowd), 0.0), [], 0.0
        for _ in range(4):
            sums.append(estimates.PairSums(np.full((12, 3, 3), 0.3 * (total - effect)), 1e-6, 0.0, 0.3))
            total = float(estimates.walked(sums, shape)[-1].weights[1].reshape(12, 9)[:, 0].sum())
        return abs(total - effect)

    assert end(12.0) < 0.1 * effect
    assert end(1.0) > effect


def test_a_card_adds_up_to_the_head_with_its_pairs(releases: list[ps.Release]) -> None:
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    card = ps.inference.scorecard(head, releases, draws=20)
    columns, _ = table(400, seed=2)
    scores, log_odds = card.scores(columns)[:, 0], np.diff(np.log(head.predict_proba(columns)), axis=1)[:, 0]
    np.testing.assert_allclose(scores, log_odds, atol=1e-9)
    (pair, *_) = card.pairs
    assert pair.names == ("a", "b")
    signs = np.sign(np.outer([-1, -1, 1, 1], [-1, -1, 1, 1]))
    assert (np.sign(pair.points) == signs).all()
    assert ((pair.low < pair.points) & (pair.points < pair.high)).all()
    assert ((pair.low > 0) | (pair.high < 0)).all()
    record = {name: values[0] for name, values in columns.items()}
    parts = card.explain({**record, "a": 2.0, "b": 2.0}).parts
    assert [part[1] for part in parts if part[0] == "a and b"] == [f"{pair.levels[0][-1]}, {pair.levels[1][-1]}"]
    assert not [part for part in card.explain({**record, "a": None}).parts if part[0] == "a and b"]
    assert card.explain(record).score == pytest.approx(float(scores[0]))
    assert "bands do not cover that choice" in " ".join(str(card).split())
    assert len([row for row in card.to_rows() if row["variable"] == "a and b"]) == pair.points.size


def test_the_query_adds_the_points_of_pairs(releases: list[ps.Release]) -> None:
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    card = ps.inference.scorecard(head, releases, draws=2)
    columns, _ = table(400, seed=2)
    typed = pd.DataFrame(columns).replace({"e": {"": None}})
    with sqlite3.connect(":memory:") as base:
        typed.to_sql("visits", base, index=False)
        found = pd.read_sql_query(card.sql("visits"), base)
    assert card.pairs
    wanted = np.diff(np.log(head.predict_proba(columns)), axis=1)[:, 0]
    np.testing.assert_allclose(found["log_odds"], wanted, atol=1e-8)


def test_every_export_and_file_of_a_head_has_its_pairs(releases: list[ps.Release], tmp_path: Path) -> None:
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    columns, _ = table(200, seed=4)
    wanted = head.predict_proba(columns)
    head.save(tmp_path / "head")
    loaded = ps.heads.load(tmp_path / "head")
    np.testing.assert_array_equal(loaded.predict_proba(columns), wanted)
    assert loaded.pairs_ == head.pairs_ != ()
    cards = [ps.inference.scorecard(each, releases, draws=2) for each in (head, loaded)]
    assert str(cards[0]) == str(cards[1])
    runtime = pytest.importorskip("onnxruntime")
    head.to_onnx(tmp_path / "head.onnx")
    session = runtime.InferenceSession(tmp_path / "head.onnx")
    (found,) = session.run(["probabilities"], {"rows": head.preprocessing_.ordered(columns)})
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(head.preprocessing_.ordered(columns))
    scores = ps.heads.to_module(head)(rows).numpy()
    np.testing.assert_allclose(scores, head.rule_.scores(head.preprocessing_.apply(rows.numpy())), atol=1e-9)


def test_a_rule_of_pairs_is_lifted_with_its_scores() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(6, 4)))[0]
    arrays = [rng.normal(size=shape) for shape in ((4, 4), (2, 4), (2,), (4, 9), (9,), (4, 9), (9,), (2, 9))]
    rule, X = PairedRule(*arrays), rng.normal(size=(7, 6))
    np.testing.assert_allclose(rule.lifted(basis).scores(X), rule.scores(X @ basis))


def test_all_rounds_share_mapped_rows_whatever_few_rows_a_search_holds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, y = table()
    given: dict[str, Any] = {"ledger": "uncharged", "allow_reproducible": True}
    whole = ps.Rounds.within(single_party_plan(plan().schema, plan().privacy), expected_records=N, pairs=True)
    before = ps.private_releases(whole, columns, y, rng=seeded(1), **given)
    formed: list[int] = []
    right = gradient_map.unit_rows
    monkeypatch.setattr(
        gradient_map, "unit_rows", lambda schema, rows, *more: formed.append(len(rows)) or right(schema, rows, *more)
    )
    monkeypatch.setattr(gradients, "_ENTRIES", 1 << 10)  # a few rows of all pairs
    after = ps.private_releases(whole, columns, y, rng=seeded(1), **given)
    assert [each.digest for each in after if each] == [each.digest for each in before if each]
    assert sum(formed) == len(y)
