"""A course of one release that ends in a calibration: three sessions, and LDA whose probabilities can be trusted."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError, HeadError, PlanError, ReleaseError
from privstats.schema.public_values import Published, Values
from tests.course.cases import COHORT, SOFTMAX, C, D, plan_of
from tests.course.test_centred import course, shards
from tests.made import refused, unnamed


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("unit", [{}, {"unit": "client", "max_records_per_client": 3}])
def test_mean_and_calibration_take_a_hundredth_each_and_the_whole_keeps_its_promise(adjacency, unit):
    whole = plan_of(epsilon=8.0, adjacency=adjacency if not unit else "add-remove", **unit)
    found = ps.Centred.within(whole, calibrated=True)
    mean, _, last = (plan.noise for plan in found.priced)
    assert whole.noise.mu * (1 - 1e-6) < found.mu <= whole.noise.mu
    assert mean.mu == last.mu == pytest.approx(whole.noise.mu / 10, rel=1e-6)
    assert found.mu == pytest.approx(math.hypot(*(plan.noise.mu for plan in found.priced if plan.noise)))
    if not unit:
        worst = ps.dp.sensitivity(found.priced[-1].schema, "t", adjacency)  # type: ignore[arg-type]
        assert last.sigma["t"] == pytest.approx(worst / last.mu)


@pytest.fixture(scope="module")
def released() -> tuple[ps.Centred, list[ps.Release]]:
    made_of = course(calibrated=True, epsilon=30.0)
    return made_of, ps.simulate(made_of, shards(), rng=ps.randomness.seeded(2))


def outcomes(lost: set[int]) -> list[str]:
    """What each session measured, with those at ``lost`` without a sum."""
    found = course(calibrated=True, epsilon=30.0)
    step = found.first.masking.upload_step
    dropouts = [{step: {0, 1}} if place in lost else {} for place in range(found.most)]
    releases = ps.simulate(found, shards(), dropouts=dropouts, rng=ps.randomness.seeded(4))
    return ["-" if each is None else each.plan.schema.task for each in releases]


@pytest.mark.ci
def test_it_follows_the_sums_whatever_became_of_the_mean() -> None:
    assert outcomes(set()) == ["mean", "classes", "calibration"]
    assert (outcomes({0}), outcomes({2})) == (["-", "classes", "calibration"], ["mean", "classes", "-"])
    assert outcomes({1}) == ["mean", "-"]  # nothing to calibrate


def test_the_published_scores_are_those_of_the_head(released: Any) -> None:
    """Up to what all classes share, for rows of norm 1 behind the centre."""
    _, (_, sums, last) = released
    assert last.plan.schema.transform == sums.plan.schema.transform
    assert [type(step) for step in last.plan.schema.transform[-2:]] == [ps.transforms.Centre, ps.transforms.UnitNorm]
    values = {name: each.real for name, each in last.plan.published.read().items()}
    head = ps.heads.LDA().fit_release(sums)
    X = np.random.default_rng(0).normal(size=(50, D)) + 3.0
    rows = head.preprocessing_.apply(X)
    units = np.column_stack([math.sqrt(0.99) * rows, np.full(50, 0.1)])
    assert np.array_equal(values["M"], np.eye(D))
    scores, own = 4 * units @ values["W"].T, rows @ head.coef_.T + head.intercept_
    np.testing.assert_allclose(scores + (own - scores).mean(axis=1, keepdims=True), own, atol=1e-3)


def test_a_party_admits_it_at_the_scores_that_follow_and_at_no_others(released: Any) -> None:
    found, releases = released
    plan = releases[2].plan
    assert ps.course.verify_next(found, plan, releases[:2]).place == 2
    values = dict(plan.published.read())
    values["W"] = Values(values["W"].integers[::-1].copy(), values["W"].exponent)
    other = replace(plan, published=Published.of(values, bytes.fromhex(plan.published.after)))
    for wrong, history in ((other, releases[:2]), (plan, [None, releases[1]]), (found.calibration, releases[:2])):
        refused(PlanError, "", ps.course.verify_next, found, wrong, history)
    refused(PlanError, "has ended", ps.course.verify_next, found, plan, releases)
    assert found.next([releases[0], None]) is None


def test_the_head_divides_its_scores_and_predicts_as_before(released: Any, tmp_path: Path) -> None:
    found, releases = released
    X = np.vstack([rows for rows, _ in shards(1)])
    for priors in ("counts", "uniform"):
        with_it = ps.heads.LDA(priors=priors).fit_release(releases)
        without = ps.heads.LDA(priors=priors).fit_release(releases[:2])
        assert without.temperature_ == ps.heads.LDA().fit_release([*releases[:2], None]).temperature_ == 1.0
        assert with_it.temperature_ != 1.0
        assert with_it.predict(X).tolist() == without.predict(X).tolist()
        np.testing.assert_allclose(
            with_it.decision_function(X) * with_it.temperature_, without.decision_function(X), rtol=1e-9, atol=1e-9
        )
    assert with_it.provenance_.epsilon == pytest.approx(found.epsilon(1e-5), rel=1e-6)
    assert with_it.provenance_.releases == tuple(each.digest for each in releases)
    with_it.save(tmp_path / "head")
    again = ps.heads.load(tmp_path / "head")
    np.testing.assert_array_equal(again.predict_proba(X), with_it.predict_proba(X))
    assert f"scores are divided by {with_it.temperature_:.3g}." in with_it.card()
    assert "not calibrated" not in again.card()  # which does not know
    assert ps.heads.LDA().fit(X, np.arange(len(X)) % 2).temperature_ == 1.0


def test_confidence_comes_to_the_share_of_hits() -> None:
    """Of two clusters in one class a discriminant is too sure."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, C, 6_000)
    X = rng.normal(size=(6_000, D)) / 4 + np.eye(C, D)[(y + (rng.random(6_000) < 0.3)) % C] + 2.0
    parts = [(X[k::5], y[k::5]) for k in range(5)]
    whole = plan_of(cohort=replace(COHORT, max_records=6_000), epsilon=30.0)
    releases = ps.simulate(ps.Centred.within(whole, calibrated=True), parts, rng=ps.randomness.seeded(1))
    before, after = (ps.heads.LDA().fit_release(releases[:end]) for end in (2, 3))
    off = [abs(head.predict_proba(X).max(axis=1).mean() - head.score(X, y)) for head in (before, after)]
    assert off[0] > 0.02
    assert off[1] < off[0] / 2
    assert ps.heads.log_likelihood(after, X, y) > ps.heads.log_likelihood(before, X, y)


def test_attack_a_calibration_of_other_sums_is_refused(released: Any) -> None:
    """One measured after other releases, or of a course that spent otherwise, tells nothing of these sums."""
    found, releases = released
    for wrong in ([*releases[:2], ps.simulate(found, shards(), rng=ps.randomness.seeded(9))[2]], [None, *releases[1:]]):
        refused((DataError, PlanError), "other releases|no Centred course", ps.heads.LDA().fit_release, wrong)
    plain = ps.simulate(course(epsilon=30.0), shards(), rng=ps.randomness.seeded(2))
    wrong = [*plain, releases[2]]
    refused(ReleaseError, "not the next of its course", ps.heads.LDA().fit_release, wrong)
    refused(ReleaseError, "it names no course", ps.heads.LDA().fit_release, list(map(unnamed, wrong)))
    turned = [releases[0], releases[2], releases[1]]
    refused(ReleaseError, "not the next of its course", ps.heads.LDA().fit_release, turned)
    refused(ReleaseError, "it names no course", ps.heads.LDA().fit_release, list(map(unnamed, turned)))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (ps.heads.NaiveBayes(), "has no calibration"),
        (ps.heads.LDA(shrinkage=0.2), "calibrates LDA.. as the course computed it"),
        (ps.heads.LDA(covariance="total"), "calibrates LDA.. as the course computed it"),
        (ps.heads.LDA(subspace=2), "calibrates LDA.. as the course computed it"),
    ],
)
def test_only_the_discriminant_that_was_measured_takes_the_temperature(head: Any, said: str, released: Any) -> None:
    _, releases = released
    refused(HeadError, said, head.fit_release, releases)
    assert not hasattr(head, "classes_")
    head.fit_release([*releases[:2], None])


def test_a_course_without_one_has_the_file_that_it_had(tmp_path: Path) -> None:
    ps.course.write(tmp_path / "plain.toml", course())
    assert "calibrated" not in (tmp_path / "plain.toml").read_text()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: ps.Centred.within(plan_of(replace(SOFTMAX, statistics="NAS")), calibrated=True),
            "N, A and B, not N, A, S"),
        (lambda: ps.Centred.within(replace(plan_of(), min_count=5), calibrated=True), "no min_count: set it to 0"),
        (lambda: ps.Centred.within(plan_of(replace(SOFTMAX, features=8_191)), calibrated=True),
            "at most 67,108,864, which 8,191 features and"),
        (lambda: ps.Centred.within(plan_of(replace(SOFTMAX, transform=())), calibrated=True),
            r"end the transform in UnitNorm\(\)"),
        (lambda: ps.Centred.within(plan_of(), calibrated=1), "calibrated must be True or False"),
    ],
)  # fmt: skip
def test_what_no_discriminant_follows_from_is_refused(wrong: Any, said: str) -> None:
    refused(PlanError, said, wrong)
