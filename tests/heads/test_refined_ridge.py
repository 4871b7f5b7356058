"""Refined ridge: any prefix of a course is a head, never much worse than the first release alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError, HeadError, ReleaseError
from privstats.randomness import seeded
from privstats.transforms import ConstantFeature
from tests.course.cases import RIDGE, D, plan_of, rounds, shards

Released = list[ps.Release]
Records = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def records() -> tuple[np.ndarray, np.ndarray]:
    X, y = zip(*shards(RIDGE), strict=True)
    return np.concatenate(X), np.concatenate(y)


@pytest.fixture(scope="module")
def releases() -> list[ps.Release]:
    return ps.simulate(rounds(RIDGE, 4, epsilon=2.0), shards(RIDGE), rng=seeded(1))


@pytest.mark.ci
def test_rounds_improve_on_the_release_they_start_from(records: Records) -> None:
    X, y = records
    course, scores = rounds(RIDGE, 4, epsilon=2.0), []
    for seed in range(5):
        releases = ps.simulate(course, shards(RIDGE), rng=seeded(seed))
        scores.append([ps.heads.RefinedRidge().fit_releases(releases[:k]).score(X, y) for k in (1, 5)])
    first, last = np.mean(scores, axis=0)
    assert last > first + 0.02
    assert last > 0.9


def test_without_noise_it_is_near_least_squares(records: Records) -> None:
    X, y = records
    exact, least = ps.heads.RefinedRidge().fit(X, y), ps.heads.Ridge(penalty=0.0, solver="plain").fit(X, y)
    np.testing.assert_allclose(exact.coef_, least.coef_, atol=0.03)
    assert exact.intercept_ == pytest.approx(least.intercept_, abs=0.03)
    noisy = ps.heads.RefinedRidge().fit_releases(ps.simulate(rounds(RIDGE, 4, epsilon=99.0), shards(RIDGE)))
    assert noisy.score(X, y) > exact.score(X, y) - 0.01
    through = ps.heads.RefinedRidge(fit_intercept=False).fit(X, y)
    assert through.intercept_ == 0.0


@pytest.mark.parametrize(("n", "short"), [(100, True), (400, True), (10_000, False)])
@pytest.mark.parametrize("name", ["Ridge", "RefinedRidge"])
def test_a_head_that_noise_keeps_short_of_least_squares_states_its_clip(
    name: str, n: int, short: bool, tmp_path: Path
) -> None:
    """100 records follow a fixed schedule, 400 have filters whose clip is below two deviations."""
    rng, path = np.random.default_rng(0), tmp_path / "a.head"
    terms = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove", "ledger": "uncharged"}
    public = {"clip_norm": 1.0, "target_bound": 5.0, "expected_records": n}
    X, y = rng.uniform(-0.5, 0.5, (n, 3)), rng.exponential(size=n)
    head = getattr(ps.heads, name)().fit_private(X, y, **terms, **public)
    head.save(path)
    assert (head.width_ is not None) is short
    for each in (head, ps.heads.load(path)):
        assert each.width_ == head.width_
        assert ("Huber's estimate" in repr(each)) is short
        assert ("It may miss the mean of skewed targets" in each.card()) is short


def test_every_prefix_is_a_head_that_knows_its_surface(releases: Released) -> None:
    for rounds_ in range(5):
        head = ps.heads.RefinedRidge().fit_releases(releases[: rounds_ + 1])
        assert head.rounds_ == rounds_
        assert head.coef_.shape == (D - 1,), "the constant is the intercept"
        assert 0 < head.clip_ <= 6.0
        assert head.preprocessing_.transform == (ConstantFeature(1.0),)
    alone = ps.heads.RefinedRidge().fit_release(releases[0])
    np.testing.assert_array_equal(alone.coef_, ps.heads.RefinedRidge().fit_releases(releases[:1]).coef_)


def test_a_file_and_a_module_predict_as_the_head_does(releases: Released, records: Records, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    X, _ = records
    head = ps.heads.RefinedRidge().fit_releases(releases)
    head.save(tmp_path / "head")
    np.testing.assert_array_equal(ps.heads.load(tmp_path / "head").predict(X), head.predict(X))
    with torch.no_grad():
        np.testing.assert_allclose(ps.heads.to_module(head)(torch.tensor(X)).numpy()[:, 0], head.predict(X), atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_party_fits_a_whole_course(fit_intercept: bool, records: Records) -> None:
    X, y = records
    head = ps.heads.RefinedRidge(rounds=2, fit_intercept=fit_intercept)
    terms = {"epsilon": 9.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 2.0, "target_bound": 3.0}
    terms["ledger"] = "uncharged"
    head.fit_private(X, y, **terms)
    assert [release.plan.schema.task for release in head.releases_] == ["ridge", "gradients", "gradients"]
    assert head.score(X, y) > 0.5
    mine = head.fit_private(X, y, **terms, transform=(ConstantFeature(1.0),), expected_records=400)
    assert mine.releases_[1].plan.schema.expected_records == 400


def test_what_is_no_course_is_refused_with_a_sentence(releases: Released, records: Records) -> None:
    head = ps.heads.RefinedRidge()
    classes = ps.simulate(rounds(), shards())
    with pytest.raises(ReleaseError, match="RefinedSoftmax"):
        head.fit_releases(classes)
    with pytest.raises(DataError, match="must be a list"):
        head.fit_releases(releases[0])
    with pytest.raises(DataError, match="batches cannot be given"):
        head.fit_private([records], epsilon=1.0, delta=1e-5, adjacency="add-remove", clip_norm=1.0, target_bound=1.0)
    with pytest.raises(HeadError, match="rounds must be"):
        ps.heads.RefinedRidge(rounds=0).fit(*records)


def test_releases_without_a_constant_give_a_warning_and_no_intercept() -> None:
    schema = ps.RidgeSchema(D - 1, clip_norm=2.0, target_bound=3.0)
    course = ps.Rounds.within(plan_of(schema), 1)
    releases = ps.simulate(course, shards(RIDGE), rng=seeded(4))
    with pytest.warns(UserWarning, match="no constant feature"):
        head = ps.heads.RefinedRidge().fit_releases(releases)
    assert head.intercept_ == 0.0
    assert head.n_features_in_ == D - 1
    ps.heads.RefinedRidge(fit_intercept=False).fit_releases(releases)
