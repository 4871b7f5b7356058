"""A mean between the first release of a regression and its rounds: one more session under the same promise."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.base import exceeds
from privstats.course.read_recipe import recipe_of
from privstats.estimates.recipes import RidgeRecipe
from privstats.randomness import seeded
from tests import made
from tests.course.cases import HELPERS, RIDGE, N, plan_of, rounds, shards
from tests.course.test_phases import opened
from tests.made import refused

TERMS: dict[str, Any] = {"epsilon": 8.0, "expected_records": 12}  # few, so that the recipe takes noise for strong


def with_mean(many: int = 3, **terms: Any) -> ps.Rounds:
    course = rounds(RIDGE, many, **{**TERMS, **terms})
    assert course.mean is not None
    return course


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("retries", [0, 2])
def test_the_mean_takes_a_twentieth_and_the_whole_keeps_its_promise(adjacency: str, retries: int) -> None:
    course = with_mean(retries=retries, adjacency=adjacency)
    whole = plan_of(RIDGE, adjacency=adjacency, epsilon=TERMS["epsilon"]).noise
    assert whole.mu * (1 - 1e-6) < course.mu <= whole.mu
    assert course.most == len(course.priced) == 5 + retries
    first, mean, *rest = (plan.noise for plan in course.priced)
    assert (first.mu / whole.mu) ** 2 == pytest.approx(1 / 64, rel=1e-6)
    assert (mean.mu / whole.mu) ** 2 == pytest.approx(1 / 20, rel=1e-6)
    assert len({noise.mu for noise in rest if noise}) == 1
    worst = ps.dp.sensitivity(course.recipe.mean, "x", adjacency)  # type: ignore[arg-type]
    assert mean.sigma["x"] == pytest.approx(worst / mean.mu)
    alone = ps.Rounds(course.first, 3, retries=retries, expected_records=12)
    assert alone.mu == pytest.approx(course.mu, rel=1e-6)
    assert alone.mean is not None


def test_what_it_sums_are_the_rows_directions() -> None:
    """Behind the first plan's transform; its grid is a mean's own, because the first one may be too coarse for it."""
    schema = with_mean().mean.schema
    assert schema.transform == (ps.transforms.ConstantFeature(1.0), ps.transforms.UnitNorm())
    X, y = shards(RIDGE)[0]
    rows = np.column_stack([X, np.ones(len(X))])
    found = ps.measure(schema, X, y).real().x
    np.testing.assert_allclose(found, (rows / np.linalg.norm(rows, axis=1)[:, None]).sum(axis=0), atol=len(X) / 4096)
    assert rounds(replace(RIDGE, grid_bits=4), 3, **TERMS).mean is not None


def test_heads_read_the_recipe_off_the_releases_with_it_or_where_it_is_missing() -> None:
    for lost in (set[int](), {1}, {2}, {1, 2}):
        course = with_mean(1, retries=1)
        step = course.first.masking.upload_step
        dropouts = [{step: {0, 1}} if place in lost else {} for place in range(course.most)]
        releases = ps.simulate(course, shards(RIDGE), dropouts=dropouts, rng=seeded(1))
        kinds = "".join("-" if each is None else each.plan.schema.task[0] for each in releases)
        assert kinds == {0: "rmg", 1: "r-mg", 2: "rm-g", 3: "r--g"}[sum(lost)]
        have = [each for each in releases if each is not None]
        recipe = recipe_of(have)
        assert (recipe.mu, recipe.rounds, recipe.mean_share) == (course.recipe.mu, 2, 0.05)
        head = ps.heads.RefinedRidge().fit_releases(releases)
        assert head.rounds_ == 1
        own = course.recipe.states(have)  # type: ignore[attr-defined]
        np.testing.assert_array_equal(own[0].published(own[1][-1].weights), head.rule_.coef[0])


def test_a_mean_without_a_sum_is_asked_for_again_while_retries_last() -> None:
    course = with_mean(2, retries=2)

    def names(*lost: int) -> list[str]:
        return [phase.name for phase in opened(course.phases, frozenset(lost))[1:]]

    assert names() == ["mean", "round", "round"]
    assert names(1) == ["mean", "mean", "round", "round"]
    assert names(1, 2) == ["mean", "mean", "mean", "round", "round"]
    assert names(1, 2, 3) == names(1, 2)
    assert names(1, 3) == ["mean", "mean", "round", "round", "round"]
    first = ps.simulate(course, shards(RIDGE), rng=seeded(1))[0]
    assert course.next([first, None]) == course.mean


def test_a_mean_that_costs_more_than_a_round_has_one_place() -> None:
    """A retry's place is priced as a round: the mean would break the promise there."""
    course = with_mean(20, retries=2)
    assert exceeds(course.mean, course.template)  # type: ignore[arg-type]
    assert [phase.name for phase in opened(course.phases, frozenset({1}))] == ["first release", "mean", *["round"] * 20]
    assert course.most == 24


def test_the_map_of_the_rounds_follows_from_the_mean() -> None:
    course = with_mean(epsilon=2.0, expected_records=60)
    releases = ps.simulate(course, [(X + 2.0, y) for X, y in shards(RIDGE)], rng=seeded(1))
    told, _ = course.recipe.states(releases[:2])  # type: ignore[attr-defined]
    missing, _ = course.recipe.states(releases[:1])  # type: ignore[attr-defined]
    assert np.ptp(told.values) > 0
    assert np.ptp(missing.values) == 0
    published = releases[2].plan.published.read()["M"].real
    np.testing.assert_allclose(published, told.matrix, rtol=1e-4, atol=1e-5)


def test_without_any_round_the_head_is_the_first_releases() -> None:
    releases = ps.simulate(with_mean(), shards(RIDGE), rng=seeded(1))
    heads = [ps.heads.RefinedRidge().fit_releases(releases[:k]) for k in (1, 2)]
    np.testing.assert_allclose(heads[0].coef_, heads[1].coef_)
    assert [head.rounds_ for head in heads] == [0, 0]


def test_rounds_behind_another_mean_than_is_given_are_refused() -> None:
    """Forgotten, of other records, or of a course of an older version, which had none: never a head of a wrong map."""
    course = with_mean()
    releases, others = (ps.simulate(course, shards(RIDGE, seed=seed), rng=seeded(seed)) for seed in (1, 2))
    for wrong in ([releases[0], *releases[2:]], [releases[0], others[1], *releases[2:]], [others[0], *releases[1:]]):
        with pytest.raises(ps.ReleaseError, match="not measured behind this first release"):
            recipe_of([each for each in wrong if each is not None])
    refused(ps.ReleaseError, "of its course", recipe_of, [releases[0], releases[2], releases[1]])
    plain = ps.simulate(rounds(RIDGE, 3), shards(RIDGE), rng=seeded(1))
    refused(ps.ReleaseError, "not measured behind|of its course", recipe_of, [plain[0], releases[1], *plain[1:]])


@pytest.mark.ci
@pytest.mark.parametrize(("d", "many", "n"), [(6, 3, 12), (30, 14, 27)], ids=["schedule", "filters"])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_course_of_an_older_version_that_lost_rounds_is_not_taken_for_one_that_lost_its_mean(
    d: int, many: int, n: int, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first round was lost, so the later ones name the same history; what each spent tells them apart."""
    monkeypatch.setattr(RidgeRecipe, "mean_share", 0.0)
    schema = ps.RidgeSchema(d, clip_norm=2.0, target_bound=3.0)
    course = rounds(schema, many, retries=2, epsilon=8.0, expected_records=n)
    assert course.recipe.constants.descends is (d == 6)  # type: ignore[union-attr]
    step, rng = course.first.masking.upload_step, np.random.default_rng(0)
    records = [(rng.normal(size=(20, d)), rng.normal(size=20)) for _ in range(5)]
    releases = ps.simulate(course, records, dropouts=[{}, *[{step: {0, 1}}] * lost], rng=seeded(1))
    assert [each is None for each in releases[1 : lost + 2]] == [*[True] * lost, False]
    monkeypatch.undo()
    assert replace(course).mean is not None
    refused(ps.ReleaseError, "not measured behind this first release", ps.heads.RefinedRidge().fit_releases, releases)


def test_a_party_admits_each_plan_at_its_own_place_alone() -> None:
    course = with_mean()
    releases = ps.simulate(course, shards(RIDGE), rng=seeded(1))
    for place, release in enumerate(releases):
        assert ps.course.verify_next(course, release.plan, releases[:place]).place == place
    for place, plan in ((1, releases[2].plan), (2, releases[1].plan), (3, releases[1].plan)):
        refused(ps.PlanError, "not the one that follows", ps.course.verify_next, course, plan, releases[:place])
    refused(ps.PlanError, "not of this course", course.next, [releases[0], releases[2]])
    with pytest.raises(ps.PlanError, match="not of this course"):
        course.next([ps.simulate(with_mean(epsilon=8.1), shards(RIDGE), rng=seeded(1))[0]])
    refused(ps.PlanError, "release 2 is not of this course", course.next, [releases[0], None, releases[1]])
    assert course.next([None]) is None


@pytest.mark.parametrize(
    "terms",
    [
        {"model": "local", "epsilon": 20.0},
        {"model": "distributed", "unit": "client", "max_records_per_client": 150, "client_clip": 20.0, "epsilon": 90.0},
        {"model": "distributed", "protocol": "split", "panel": HELPERS},
    ],
    ids=["local", "client", "split"],
)
def test_every_model_unit_and_protocol_measures_one(terms: dict[str, Any]) -> None:
    mu = rounds(RIDGE, 2, **{**TERMS, **terms}).recipe.mu
    course = with_mean(2, **terms, expected_records=round(25 / mu))
    releases = ps.simulate(course, shards(RIDGE), rng=seeded(1))
    assert [each.plan.schema.task for each in releases] == ["ridge", "mean", "gradients", "gradients"]
    assert ps.heads.RefinedRidge().fit_releases(releases).rounds_ == 2


def test_where_parties_prove_their_sums_there_is_none() -> None:
    """No statement reads the sum of a mean; the course is then the one that it was."""
    plan = plan_of(RIDGE, epsilon=8.0, protocol="split", panel=HELPERS)
    assert ps.Rounds.within(plan, 3, expected_records=12).mean is not None
    with pytest.warns(UserWarning, match="experimental"):
        proved = replace(plan, validity=ps.plan.Validity("norm", N))
    course = ps.Rounds.within(proved, 3, expected_records=12)
    assert course.mean is None
    assert course.most == 4


@pytest.mark.parametrize("d", [2, 30, 100, 400])
@pytest.mark.parametrize("T", [4, 11, 24])
def test_the_first_plan_alone_gives_the_course_that_the_whole_gives(d: int, T: int) -> None:
    """On both sides of every bound of the recipe; retries count as rounds."""
    schema = ps.RidgeSchema(d, clip_norm=1.0, target_bound=1.0)
    for certainty in (5 * d**0.5, 40, 0.3 * d**1.5):
        for n in (int(certainty / 0.3), math.ceil(certainty / 0.3) + 1):
            whole = ps.Plan(
                schema=schema,
                cohort=ps.Cohort(5, 4, n),
                privacy=plan_of(epsilon=ps.dp.gaussian_epsilon(0.3, 1e-5)).privacy,
            )
            inside = ps.Rounds.within(whole, T, retries=1)
            alone = ps.Rounds(inside.first, T, retries=1)
            assert alone.mu == pytest.approx(inside.mu, rel=1e-6)
            assert (alone.mean is None) is (inside.mean is None)


def test_files_and_ledgers_hold_the_whole_course(tmp_path: Path) -> None:
    course = with_mean(retries=1)
    ps.course.write(tmp_path / "course.toml", course)
    assert ps.course.read(tmp_path / "course.toml").mean == course.mean  # type: ignore[attr-defined]
    ledger = made.ledger(tmp_path / "spent.db", epsilon=9.0)
    assert ps.course.spend(course, ledger, "ward", b"may").nodes == 6
    assert ledger.account("ward").mu == pytest.approx(course.mu)


def test_a_party_alone_measures_one_too() -> None:
    X, y = (np.concatenate([shard[k] for shard in shards(RIDGE)]) for k in (0, 1))
    bounds = {"clip_norm": 2.0, "target_bound": 3.0, "expected_records": 12}
    head = ps.heads.RefinedRidge(rounds=1).fit_private(
        X, y, epsilon=8.0, delta=1e-5, adjacency="add-remove", ledger="uncharged", **bounds
    )
    assert [each.plan.schema.task for each in head.releases_] == ["ridge", "mean", "gradients"]
