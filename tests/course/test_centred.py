"""A release behind a noisy mean: two sessions under one promise, and no mean where noise hides it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.alone import single_party_plan
from privstats.course.centred import shrunk_mean
from privstats.errors import DataError, HeadError, PlanError, ReleaseError
from tests import made
from tests.course.cases import COHORT, HELPERS, RIDGE, SOFTMAX, C, D, plan_of, promise
from tests.made import refused

OFFSET = 3.0
NAB = replace(SOFTMAX, statistics="NAB")


def shards(seed: int = 0, n: int = 3_000) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows around a point far from 0, so that most of their length is common to all classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, C, n)
    X = rng.normal(size=(n, D)) + 1.5 * np.eye(C, D)[y] + OFFSET
    return [(X[k::5], y[k::5]) for k in range(5)]


def course(*, calibrated: bool = False, **changes: Any) -> ps.Centred:
    return ps.Centred.within(plan_of(cohort=replace(COHORT, max_records=3_000), **changes), calibrated=calibrated)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("unit", [{}, {"unit": "client", "max_records_per_client": 3}])
def test_both_sessions_keep_the_promise_and_the_mean_takes_a_hundredth(adjacency: str, unit: dict[str, Any]) -> None:
    whole = plan_of(epsilon=2.0, adjacency=adjacency if not unit else "add-remove", **unit)
    found = ps.Centred.within(whole)
    assert whole.noise.mu * (1 - 1e-6) < found.mu <= whole.noise.mu
    assert found.first.noise.mu == pytest.approx(whole.noise.mu / 10, rel=1e-6)
    assert found.mu == pytest.approx(math.hypot(*(plan.noise.mu for plan in found.priced if plan.noise)))
    assert found.promise.holds(found.mu)


@pytest.fixture(scope="module")
def released() -> tuple[ps.Centred, list[ps.Release]]:
    made_of = course(epsilon=8.0)
    return made_of, ps.simulate(made_of, shards(), rng=ps.randomness.seeded(2))


def test_rows_of_the_second_release_lie_around_the_noisy_mean(released: Any) -> None:
    found, (first, second) = released
    assert isinstance(first.plan.schema, ps.MeanSchema)
    *before, centre, last = second.plan.schema.transform
    assert (tuple(before), last) == (SOFTMAX.transform, ps.transforms.UnitNorm())
    X = np.vstack([rows for rows, _ in shards()])
    mean = (X / np.linalg.norm(X, axis=1)[:, None]).mean(axis=0)
    assert np.linalg.norm(np.array(centre.centre) - mean) < 0.1
    assert np.linalg.norm(second.moments.A.sum(axis=0)) < 0.3 * np.linalg.norm(first.moments.x)
    assert replace(second.plan, schema=found.plan.schema) == found.plan


def test_a_head_of_both_has_the_promise_of_both(released: Any, tmp_path: Path) -> None:
    found, releases = released
    head = ps.heads.LDA().fit_release(releases)
    alone = ps.heads.LDA().fit_release(releases[1])
    X = np.vstack([rows for rows, _ in shards(1)])
    assert head.predict(X).tolist() == alone.predict(X).tolist()
    assert head.provenance_.epsilon == pytest.approx(found.epsilon(1e-5), rel=1e-6)
    assert alone.provenance_.epsilon == pytest.approx(found.epsilon(1e-5), rel=1e-6)  # the mean is spent too
    assert head.provenance_.releases == tuple(release.digest for release in releases)
    assert ps.heads.LDA().fit_release([None, releases[1]]).provenance_ == alone.provenance_
    for wrong in ([], releases[:1], [releases[0], None]):
        refused(DataError, "its mean .or None., its class sums", ps.heads.LDA().fit_release, wrong)


@pytest.mark.parametrize(
    ("schema", "changes"),
    [
        (ps.MeanSchema(D, 1.0, transform=NAB.transform), {"adjacency": "replace-one"}),
        (ps.MeanSchema(D, 1.0, transform=NAB.transform), {"unit": "client", "max_records_per_client": 100}),
        (ps.MeanSchema(D, 1.0, transform=NAB.transform), {"epsilon": 0.01}),
        (ps.MeanSchema(D + 1, 1.0), {}),
    ],
)
def test_attack_a_mean_of_another_course_lends_its_promise_to_no_sums(schema: Any, changes: Any, released: Any) -> None:
    plan, ones = plan_of(schema, COHORT, **changes), np.ones((9, schema.features))
    mean = ps.session.aggregate_unmasked(plan, [ps.measure(schema, ones, np.zeros(9, int))] * COHORT.clients)
    sums = released[1][1]
    refused(ReleaseError, "is not the next of its course", ps.heads.LDA().fit_release, [mean, sums])
    refused(ReleaseError, "is not the next of its course", ps.heads.LDA().fit_release, [mean, made.unnamed(sums)])


def test_the_centre_is_no_longer_than_a_row() -> None:
    """Where fewer records are declared than there are."""
    assert np.linalg.norm(shrunk_mean(np.array([1000.0, 0.0]), 1.0, 10)) == 1.0


def test_without_noise_the_centre_is_the_mean_of_all_rows() -> None:
    rows = np.concatenate([X for X, _ in shards()])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    *_, centre, _ = ps.Centred.exactly(plan_of(), rows).schema.transform
    np.testing.assert_allclose(centre.centre, rows.mean(axis=0), atol=2**-16)
    refused(PlanError, "a mean is taken out of class sums", ps.Centred.exactly, plan_of(RIDGE), rows)


def test_classes_lie_further_apart_under_the_same_noise(released: Any) -> None:
    """Most of a row's length is common to all classes, and the mean takes it out."""
    found, (_, behind) = released
    plain = ps.simulate(found.plan, shards(), rng=ps.randomness.seeded(2))

    def apart(release: ps.Release) -> float:
        means = release.moments.A / release.moments.N[:, None]
        return float(np.linalg.norm(means - means.mean(axis=0))) / float(release.sigma["A"])

    assert behind.sigma == plain.sigma
    assert apart(behind) > 3 * apart(plain)


def test_noise_that_hides_the_mean_leaves_the_plan_as_it_stands() -> None:
    found = course(epsilon=0.05)
    few = [(X[:4], y[:4]) for X, y in shards()]
    assert found.plan in [
        second.plan for _, second in (ps.simulate(found, few, rng=ps.randomness.seeded(k)) for k in range(4))
    ]


def test_a_mean_of_noise_alone_is_short_however_strong_the_noise_is() -> None:
    """Rows moved by several times their length would all point the same way."""
    rng = np.random.default_rng(1)
    for sigma in (1e2, 1e3, 1e5):
        lengths = [np.linalg.norm(shrunk_mean(sigma * rng.normal(size=8), sigma, 100)) for _ in range(200)]
        assert max(lengths) < 1
        assert np.mean(np.square(lengths)) < 0.1


def test_a_first_session_without_a_sum_leaves_the_plan_as_it_stands() -> None:
    found = course(epsilon=8.0)
    step = found.first.masking.upload_step
    first, second = ps.simulate(found, shards(), dropouts=[{step: {0, 1}}], rng=ps.randomness.seeded(3))
    assert first is None
    assert second.plan == found.plan
    assert found.next([None, second]) is None


def test_the_factor_is_the_share_of_the_square_that_noise_does_not_explain() -> None:
    rng = np.random.default_rng(0)
    truth = np.full(400, 2.0)
    noisy = truth + 3.0 * rng.normal(size=400)
    kept = 1000 * shrunk_mean(noisy, 3.0, 1000) @ noisy / (noisy @ noisy)
    assert kept == pytest.approx(4 / 13, abs=0.05)
    assert np.linalg.norm(1000 * shrunk_mean(noisy, 3.0, 1000) - truth) < np.linalg.norm(noisy - truth) / 1.5
    assert not shrunk_mean(np.zeros(3), 1.0, 10).any()
    assert np.array_equal(shrunk_mean(noisy, 0.0, 100), np.rint(noisy / 100 * 2**16) / 2**16)
    order = rng.permutation(400)
    assert np.array_equal(shrunk_mean(noisy[order], 3.0, 7), shrunk_mean(noisy, 3.0, 7)[order])


def test_a_party_admits_the_centre_that_follows_and_no_other(released: Any) -> None:
    found, releases = released
    plan = releases[1].plan
    assert ps.course.verify_next(found, plan, releases[:1]).place == 1
    *before, centre, last = plan.schema.transform
    moved = ps.transforms.Centre((centre.centre[0] + 2.0**-16, *centre.centre[1:]))
    other = replace(plan, schema=replace(plan.schema, transform=(*before, moved, last)))
    for wrong, history in ((other, releases[:1]), (plan, [None]), (found.plan, releases[:1])):
        refused(PlanError, "not the one that follows", ps.course.verify_next, found, wrong, history)
    refused(PlanError, "release 0 is not of this course's session 'mean'", found.next, [releases[1]])


def test_a_release_from_a_file_gives_the_same_plan(released: Any, tmp_path: Path) -> None:
    found, releases = released
    releases[0].save(tmp_path / "mean.safetensors")
    assert found.next([ps.Release.load(tmp_path / "mean.safetensors")]) == releases[1].plan


def test_one_party_alone_is_charged_for_both(tmp_path: Path) -> None:
    X, y = (np.concatenate(each) for each in zip(*shards(), strict=True))
    ledger = made.ledger(tmp_path / "ledger.sqlite", epsilon=3.0)
    terms: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 1.0}
    head = ps.heads.LDA().fit_private(
        X, y, centred=True, expected_records=3_000, classes=range(C), ledger=ledger, **terms
    )
    assert [release.plan.schema.task for release in head.releases_] == ["mean", "classes"]
    assert head.release_ is head.releases_[1]
    assert head.provenance_.epsilon == pytest.approx(2.0, rel=1e-6)
    assert head.provenance_.course is not None
    assert ledger.account("ward").spent == pytest.approx(2.0, rel=1e-6)
    head.save(tmp_path / "head")
    assert ps.heads.load(tmp_path / "head").predict(X).tolist() == head.predict(X).tolist()
    wrapped = ps.heads.Private(
        ps.heads.LDA(), centred=True, expected_records=3_000, classes=range(C), ledger="uncharged", **terms
    )
    assert len(wrapped.fit(X, y).head_.releases_) == 2
    with pytest.raises(HeadError, match="serves centred=True alone"):
        ps.heads.LDA().fit_private(X, y, expected_records=9, classes=range(C), ledger="uncharged", **terms)


@pytest.mark.parametrize(("label", "entry", "said"), [(C, 0.0, "labels outside"), (0, np.nan, "NaN")])
def test_records_that_a_session_would_refuse_cost_nothing(label: int, entry: float, said: str, tmp_path: Path) -> None:
    """The mean reads no labels, so the first session would be over before a wrong one is found."""
    X, y = (np.concatenate(each) for each in zip(*shards(), strict=True))
    X[7, 0], y[7] = entry, label
    whole = single_party_plan(replace(NAB, transform=(ps.transforms.UnitNorm(),)), promise(model="central"))
    ledger = made.ledger(tmp_path / "ledger.sqlite", epsilon=99.0)
    refused(DataError, said, ps.private_releases, ps.Centred.within(whole), X, y, ledger=ledger)
    assert not ledger.accounts()[0].entries


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: ps.Centred.within(plan_of(RIDGE)), "plan of a ClassSchema, got RidgeSchema"),
        (lambda: ps.Centred.within(plan_of(replace(NAB, clip_norm=2.0))), "clip_norm=1.0"),
        (lambda: ps.Centred.within(plan_of(replace(NAB, nonnegative=True))), "leave nonnegative out"),
        (lambda: ps.Centred(plan_of(), expected_records=0), "expected_records must be"),
        (lambda: ps.Centred("plan.toml"), "plan must be a Plan"),  # type: ignore[arg-type]
        (lambda: ps.Centred.within(made.plan(NAB, COHORT)), "differential privacy"),
        (lambda: ps.Centred(made.plan(NAB, COHORT)), "differential privacy"),
    ],
)
def test_what_has_no_mean_to_take_out_is_refused(wrong: Any, said: str) -> None:
    refused(PlanError, said, wrong)


@pytest.mark.filterwarnings("ignore:validity is experimental")
def test_a_plan_with_proofs_is_refused_by_name() -> None:
    validity = ps.plan.Validity("moments", most_records=50)
    plan = ps.Plan(schema=NAB, cohort=COHORT, privacy=promise(), protocol="split", panel=HELPERS, validity=validity)
    refused(PlanError, "leave validity out", ps.Centred.within, plan)
