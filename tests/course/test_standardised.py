"""Ranges first: the same regression in narrower bounds, and never in wider ones."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.course.standardised import behind_ranges, ranges
from tests import made
from tests.made import refused

TRUTH = np.array([1.0, 0.8, -0.5])
SCHEMA = ps.RidgeSchema(
    3, clip_norm=3**0.5, target_bound=8.0, transform=(ps.transforms.ConstantFeature(1.0),), grid_bits=16
)


def world(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns that fill a part of their range, with means of their own."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(count, 2)) * [0.2, 0.1] + [0.3, -0.2], -1, 1)
    return X, TRUTH[0] + X @ TRUTH[1:] + rng.normal(size=count) * 0.5


def course_of(records: int, epsilon: float, **changes: Any) -> ps.Standardised:
    privacy = made.promise(epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=replace(SCHEMA, **changes), cohort=ps.Cohort(2, 2, 2 * records), privacy=privacy)
    return ps.Standardised.within(plan)


def played(course: ps.Standardised, X: Any, y: Any, seed: int) -> list[Any]:
    rng = ps.randomness.seeded(seed)

    def release(node: Any) -> ps.Release:
        parts = [ps.measure(node.plan.schema, X[k::2], y[k::2]) for k in range(2)]
        return ps.session.aggregate_unmasked(node.plan, parts, rng)

    return ps.course.run(course, release)


def test_coefficients_behind_ranges_are_those_of_the_same_regression() -> None:
    """The ranges are affine maps, which a contrast undoes: without noise both releases give least squares."""
    X, y = world(4_000)
    whole = ps.Release.exact(SCHEMA, ps.measure(SCHEMA, X, y))
    ranged = behind_ranges(SCHEMA, whole)
    narrow = ps.Release.exact(ranged, ps.measure(ranged, X, y))
    theirs = np.linalg.lstsq(np.c_[np.ones(len(X)), X], y, rcond=None)[0]
    assert np.abs(inf.ols(whole).params - theirs).max() < 1e-3
    assert (np.abs(inf.ols(narrow).params - theirs) < 0.1 * inf.ols(whole).bse).all()  # of rows that are shortened
    assert ranged.target_bound < 0.7 * SCHEMA.target_bound
    assert [step.kind for step in ranged.transform] == ["centre", "scale", "constant-feature"]


@pytest.mark.parametrize("seed", range(4))
def test_maps_that_a_plan_has_are_kept(seed: int) -> None:
    maps = (ps.transforms.Centre((40.0, 0.0)), ps.transforms.Scale((30.0, 1.0)), ps.transforms.ConstantFeature(1.0))
    X, y = world(6_000, seed)
    releases = played(course_of(6_000, 8.0, transform=maps), X * [30, 1] + [40, 0], y, seed)
    found = inf.ols(releases)
    low, high = found.conf_int(0.001).T
    truth = np.array([TRUTH[0] - TRUTH[1] * 40 / 30, TRUTH[1] / 30, TRUTH[2]])
    assert ((low < truth) & (truth < high)).all()
    assert releases[1].plan.schema.transform[:2] == maps[:2]
    assert "all 2" in str(found.summary())
    assert np.array_equal(inf.ols(releases[1]).params, found.params)


def test_ranges_are_never_wider_than_the_plan_says() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        A = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-3, 6)
        sigmas = tuple(10.0 ** rng.uniform(-2, 5, 2))
        found = ranges(A + A.T, rng.normal() * 1e3, sigmas, 1.0, (2.0, 5.0))  # type: ignore[arg-type]
        assert 0 < found.target_bound <= 5
        assert all(0 < per <= (math.sqrt(3) + abs(m)) * 1.001 for m, per in zip(found.centre, found.per, strict=True))
        assert found.clip_norm <= math.sqrt(2.25) * 1.001


def test_intervals_cover_and_are_half_as_wide() -> None:
    missed, ratios = [], []
    for seed in range(25):
        X, y = world(5_000, seed)
        course = course_of(5_000, 1.0)
        found = inf.ols(played(course, X, y, seed))
        plan = replace(course.plan, privacy=made.promise(epsilon=1.0, delta=1e-6))
        wide = inf.ols(
            ps.session.aggregate_unmasked(
                plan, [ps.measure(SCHEMA, X[k::2], y[k::2]) for k in (0, 1)], ps.randomness.seeded(seed)
            )
        )
        low, high = found.conf_int().T
        missed.append((low > TRUTH) | (high < TRUTH))
        ratios.append(np.diff(wide.conf_int())[1:, 0] / np.diff(found.conf_int())[1:, 0])
    assert np.mean(missed) < 0.12
    assert np.median(ratios) > 2


@pytest.mark.parametrize("folds", [1, 8])
def test_a_table_states_the_promise_of_both_sessions_with_folds_or_without(folds: int) -> None:
    X, y = world(4_000)
    text = " ".join(str(inf.ols(played(course_of(4_000, 8.0, folds=folds), X, y, 1))).split())
    assert "epsilon 8, delta 1e-06, all 2 rounds" in text


def test_a_first_session_without_a_sum_leaves_the_public_ranges() -> None:
    course = course_of(500, 1.0)
    assert course.next((None,)) == course.plan
    assert course.next((None, None)) is None


def test_other_releases_are_refused() -> None:
    course = course_of(2_000, 3.0)
    X, y = world(2_000)
    first, last = played(course, X, y, 1)
    assert ps.course.verify_next(course, last.plan, [first]).place == 1
    refused(ps.PlanError, "not of this course", course.next, (last,))
    other = played(course, X, y, 2)[0]
    refused(ps.ReleaseError, "not measured with the first release.s ranges", inf.ols, [other, last])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: course_of(100, 1.0, transform=()), "ends in ConstantFeature"),
        (lambda: course_of(100, 1.0, transform=(ps.transforms.ConstantFeature(1.8),)), "below clip_norm"),
        (lambda: replace(course_of(100, 1.0), share=0.9, promise=None), "share must be a number from .01 to .5"),
        (lambda: ps.Standardised.within("plan"), "whole must be a Plan"),  # type: ignore[arg-type]
        (
            lambda: ps.Standardised(ps.Plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy())),
            "needs differential privacy",
        ),
    ],
)
def test_what_is_no_such_course_is_refused(build: Any, words: str) -> None:
    refused(ps.PlanError, words, build)
