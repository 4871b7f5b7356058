"""A course that ends in a calibration: one more sum under the same promise, and probabilities that can be trusted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import read, verify_next, write
from privstats.course.read_recipe import recipe_of
from tests.course.cases import RIDGE, C, D, plan_of, rounds, shards
from tests.made import refused

TERMS: dict[str, Any] = {"epsilon": 30.0, "calibrated": True}


def sharp(classes: int = 3, n: int = 4_000) -> tuple[np.ndarray, np.ndarray]:
    """Rows of overlapping classes."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, D)) + 1.2 * np.eye(classes, D)[y], y


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("retries", [0, 2])
def test_the_calibration_takes_a_hundredth_and_the_whole_keeps_its_promise(adjacency: str, retries: int) -> None:
    whole = plan_of(epsilon=30.0, adjacency=adjacency)
    course = ps.Rounds.within(whole, 3, retries=retries, calibrated=True)
    assert whole.noise.mu * (1 - 1e-6) < course.mu <= whole.noise.mu
    assert course.most == len(course.priced) == 5 + retries
    last = course.priced[-1].noise
    assert last.mu == pytest.approx(whole.noise.mu / 10, rel=1e-6)
    worst = ps.dp.sensitivity(course.priced[-1].schema, "t", adjacency)  # type: ignore[arg-type]
    assert last.sigma["t"] == pytest.approx(worst / last.mu)
    alone = ps.Rounds(course.first, 3, retries=retries, calibrated=True)
    assert alone.mu == pytest.approx(course.mu, rel=1e-6)


def test_a_calibration_dearer_than_a_round_is_refused() -> None:
    """It may come in place of each retry, so a party without a history could be asked for it again and again."""
    many = {"retries": 64, "calibrated": True}
    refused(
        ps.PlanError,
        "promise says epsilon 30 .* and all rounds together cost epsilon",
        ps.Rounds.within,
        plan_of(epsilon=30.0),
        64,
        **many,
    )
    course = ps.Rounds.within(plan_of(epsilon=30.0), 40, retries=40, calibrated=True)
    assert course.priced[-1].noise.mu <= min(plan.noise.mu for plan in course.priced)


def outcomes(course: ps.Rounds, lost: set[int]) -> list[str]:
    """What each place measured, with the rounds at ``lost`` without a sum."""
    step = course.first.masking.upload_step
    dropouts = [{step: {0, 1}} if place in lost else {} for place in range(course.most)]
    releases = ps.simulate(course, shards(), dropouts=dropouts, rng=ps.randomness.seeded(4))
    return ["-" if each is None else each.plan.schema.task[0] for each in releases]


@pytest.mark.ci
def test_it_follows_the_last_round_whatever_failed_before_and_is_held_again_while_places_last() -> None:
    assert outcomes(rounds(**TERMS), set()) == ["c", "g", "g", "c"]
    assert outcomes(rounds(**TERMS), {1, 2}) == ["c", "-", "-", "c"]
    assert outcomes(rounds(**TERMS), {3}) == ["c", "g", "g", "-"]
    assert outcomes(rounds(**TERMS, retries=1), set()) == ["c", "g", "g", "c"]
    assert outcomes(rounds(**TERMS, retries=1), {3}) == ["c", "g", "g", "-", "c"]
    assert outcomes(rounds(**TERMS, retries=1), {3, 4}) == ["c", "g", "g", "-", "-"]
    assert outcomes(rounds(**TERMS, retries=1), {1, 4}) == ["c", "-", "g", "g", "-"]
    assert outcomes(rounds(**TERMS, retries=1), {1}) == ["c", "-", "g", "g", "c"]
    assert outcomes(rounds(**TERMS, retries=1), {1, 2}) == ["c", "-", "-", "g", "c"]


@pytest.fixture(scope="module")
def released() -> tuple[ps.Rounds, list[ps.Release]]:
    course = rounds(**TERMS)
    return course, ps.simulate(course, shards(), rng=ps.randomness.seeded(5))


def test_a_party_admits_it_at_the_weights_that_follow_and_at_no_others(released: Any) -> None:
    course, releases = released
    assert verify_next(course, releases[3].plan, releases[:3]).place == 3
    for early in (releases[:1], releases[:2]):
        refused(ps.PlanError, "not the one that follows", verify_next, course, releases[3].plan, early)
    refused(ps.PlanError, "has ended", verify_next, course, releases[3].plan, releases)


def test_releases_with_a_calibration_are_one_course(released: Any) -> None:
    course, releases = released
    assert recipe_of(releases).mu == course.recipe.mu
    assert recipe_of([releases[0], releases[3]]).mu == course.recipe.mu  # every round failed
    for wrong in ([releases[0], releases[3], releases[1]], [*releases, releases[3]]):
        refused(ps.ReleaseError, "of its course", recipe_of, wrong)


def test_the_head_divides_its_scores_and_predicts_as_before(released: Any) -> None:
    _, releases = released
    X = np.random.default_rng(0).normal(size=(50, D))
    for priors in ("counts", "uniform"):
        with_it = ps.heads.RefinedSoftmax(priors=priors).fit_releases(releases)
        without = ps.heads.RefinedSoftmax(priors=priors).fit_releases(releases[:3])
        assert (with_it.rounds_, without.rounds_, without.temperature_) == (2, 2, 1.0)
        assert with_it.temperature_ != 1.0
        assert with_it.predict(X).tolist() == without.predict(X).tolist()
        np.testing.assert_array_equal(with_it.weights_, without.weights_)
        np.testing.assert_allclose(
            with_it.decision_function(X) * with_it.temperature_, without.decision_function(X), rtol=1e-12
        )


def test_confidence_comes_to_the_share_of_hits(tmp_path: Path) -> None:
    X, y = sharp()
    rows = {"classes": range(C), "expected_records": len(X)}
    promise = {"epsilon": 3.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged"}
    head = ps.heads.RefinedSoftmax(rounds=2, calibrated=True).fit_private(X, y, **promise, **rows)
    assert isinstance(head.releases_[-1].plan.schema, ps.CalibrationSchema)
    assert head.predict_proba(X).max(axis=1).mean() == pytest.approx(head.score(X, y), abs=0.03)
    head.save(tmp_path / "head")
    np.testing.assert_array_equal(ps.heads.load(tmp_path / "head").predict_proba(X), head.predict_proba(X))
    exact = ps.heads.RefinedSoftmax(calibrated=True).fit(X, y)
    assert exact.predict_proba(X).max(axis=1).mean() == pytest.approx(exact.score(X, y), abs=0.005)
    plain = ps.heads.RefinedSoftmax().fit(X, y)
    assert (plain.temperature_, plain.predict(X).tolist()) == (1.0, exact.predict(X).tolist())


def test_a_course_without_one_has_the_file_that_it_had(tmp_path: Path) -> None:
    plain = ps.Rounds(rounds(epsilon=0.3).first)
    write(tmp_path / "plain.toml", plain)
    assert "calibrated" not in (tmp_path / "plain.toml").read_text()
    course = rounds(**TERMS)
    write(tmp_path / "course.toml", course)
    assert "calibrated = true" in (tmp_path / "course.toml").read_text()
    assert read(tmp_path / "course.toml") == course
    assert course.digest != replace(course, calibrated=False).digest


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: rounds(RIDGE, **TERMS), "a regression has none"),
        (lambda: ps.Rounds(plan_of(), calibrated=1), "calibrated must be True or False"),
    ],
)
def test_what_has_no_probabilities_is_refused(wrong: Any, said: str) -> None:
    refused(ps.PlanError, said, wrong)
