"""The test of proportionality by column: its session, its formulas, and how often it rejects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats import inference as inf
from privstats.course import verify_next
from privstats.course.hazard import check_values, early_schema
from privstats.errors import PlanError, ReleaseError
from privstats.inference.column_proportionality import _Noise, _noise_of_score, _scored, _Sums
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests.hazard.worlds import BETA, EDGES, NAMES, course_of, defined, played, promise, schema, world
from threat_models.audits.hazard_worlds import tally

EARLY = 2
CLOCK = np.tile([1 << 14, 1 << 15, 3 << 14, 1 << 16], len(EDGES) - 1)


@pytest.fixture(scope="module")
def releases() -> list[Any]:
    return played(course_of(8_000, 8.0, early_bins=EARLY), world(8_000), 1)


def test_every_column_has_a_test_and_a_line_in_the_table(releases: list[Any]) -> None:
    table = inf.hazards(releases)
    found = table.proportionality_by_column()
    assert found.names == NAMES
    assert found.split == EDGES[EARLY]
    assert found.reported.all()
    assert (found.p_value > 0.001).all()
    assert np.allclose(found.test_statistic, np.square(found.change / found.std_err))
    text = " ".join(str(table.summary()).split())
    assert "proportional, age" in text
    assert "before and after 6" in text
    assert "unadjusted for age and dose" in text
    assert "So a rejection is no finding about this table's ratios." in text
    assert text.index("So a rejection is no finding") < text.index("The check before and after one time compares each")
    assert "A course with early_bins" not in text
    assert "all 6 sessions" in text
    assert len(str(found).splitlines()) == 3


def test_the_ratios_are_those_of_a_course_without_the_check(releases: list[Any]) -> None:
    with_check, without = inf.hazards(releases), inf.hazards(releases[:-1])
    assert np.array_equal(with_check.params, without.params)
    with pytest.raises(ReleaseError, match="run the course with early_bins="):
        without.proportionality_by_column()


@given(early=st.integers(2, 5), rounds=st.integers(1, 5), retries=st.integers(0, 2), epsilon=st.floats(0.5, 8.0))
def test_the_check_costs_what_a_round_costs(early: int, rounds: int, retries: int, epsilon: float) -> None:
    """Its bound is a round's, whatever the number of bins, and all sessions together keep the promise."""
    course = course_of(8_000, epsilon, early_bins=early, rounds=rounds, retries=retries)
    assert course.most == rounds + retries + 2
    assert course.check is not None
    assert course.check.noise.mu == course.plan.noise.mu  # type: ignore[union-attr]
    assert course.check.schema.bins.edges == EDGES[: early + 1]  # type: ignore[attr-defined]
    assert course.promise is not None
    assert course.promise.holds(course.mu)
    assert course.epsilon(1e-6) == pytest.approx(epsilon, rel=1e-3)


def test_a_course_without_a_check_has_the_price_of_its_rounds() -> None:
    plain, checked = course_of(8_000, 8.0), course_of(8_000, 8.0, early_bins=EARLY)
    assert replace(checked, early_bins=0, promise=None).digest != checked.digest
    assert plain.check is None
    assert plain.most == checked.most - 1
    assert plain.plan.noise.mu > checked.plan.noise.mu  # type: ignore[union-attr]


def test_the_check_follows_the_rounds_at_the_weights_of_the_last_one(releases: list[Any]) -> None:
    course = course_of(8_000, 8.0, early_bins=EARLY)
    for place, release in enumerate(releases):
        verify_next(course, release.plan, releases[:place])
    assert course.next(releases) is None
    last, check = (each.plan.published.values for each in releases[-2:])
    columns = len(NAMES)
    assert np.array_equal(check["w"].integers, last["w"].integers[: columns + EARLY])
    assert np.array_equal(check["c"].integers, last["c"].integers[: 4 * EARLY])


def test_a_check_without_a_sum_is_held_again_if_a_retry_is_left() -> None:
    course = course_of(8_000, 8.0, early_bins=EARLY, retries=1)
    rounds = played(course, world(8_000), 1)[:5]
    assert course.next([*rounds, None]).schema == course.check.schema  # type: ignore[union-attr]
    assert course.next([*rounds, None, None]) is None
    table = inf.hazards([*rounds, None, None])
    assert (table.checked, table.lost) == (None, 2)
    assert "epsilon 8, delta 1e-06, all sessions of its course" in " ".join(str(table.summary()).split())


def test_sums_at_other_weights_are_refused(releases: list[Any]) -> None:
    with pytest.raises(ReleaseError, match="not at the weights of the last round"):
        inf.hazards([*releases[:-2], releases[-1]])


@pytest.mark.parametrize("early", [-1, 1, 6, 2.0, True, "2"])
def test_early_bins_out_of_range_are_refused(early: Any) -> None:
    with pytest.raises(PlanError, match="early_bins must be an integer from 2 to 5"):
        course_of(8_000, 8.0, early_bins=early)


def of_bins(count: int, strata: int = 1) -> tuple[_Sums, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sums without noise by their definition, near the truth; also the score and information of both."""
    plan, table = schema(times="continuous"), world(count, 3)
    w = np.r_[BETA * 0.8, np.full(6, np.log(0.06))]
    g, H = defined(plan, table, w, CLOCK)
    early_w = np.r_[w[:3], w[3 : 3 + EARLY]]
    early_g, early_H = defined(early_schema(plan, EARLY), table, early_w, CLOCK[: 4 * EARLY])
    early = np.arange(6) < EARLY
    sums = _Sums(
        early_g[:3], g[:3] - early_g[:3], early_H[:3, :3], H[:3, :3] - early_H[:3, :3], g[3:], np.diag(H)[3:],
        H[:3, 3:], early,
    )  # fmt: skip
    return sums, g, H, early_g, early_H


def no_noise() -> _Noise:
    return _Noise(0.0, 0.0, 0.0, 0.0, np.zeros(6), np.zeros(6), np.zeros(6))


def test_without_noise_it_is_the_score_test_of_a_further_column() -> None:
    """The column after the split and 0 before it, in the model with all columns and bins."""
    sums, g, H, early_g, early_H = of_bins(400)
    late = H[:3].copy()
    late[:, :3] -= early_H[:3, :3]
    late[:, 3 : 3 + EARLY] = 0
    score = g[:3] - early_g[:3] - late @ np.linalg.solve(H, g)
    information = late[:, :3] - late @ np.linalg.solve(H, late.T)
    found = _scored(sums, no_noise(), np.eye(3))
    assert found is not None
    assert np.allclose(found.changed, score)
    assert np.allclose(found.information, np.diag(information))
    assert np.array_equal(found.variance, found.information)
    assert np.array_equal(found.spread, np.zeros(3))


def test_the_variance_of_the_noise_is_that_of_many_noisy_sums() -> None:
    sums, *_ = of_bins(400)
    level = 0.01
    noise = _Noise(level, level, level, level, *np.full((2, 6), level), np.full(6, level / 2))
    rng, drawn = np.random.default_rng(1), []

    def symmetric() -> np.ndarray:
        entries = rng.normal(size=(3, 3)) * level**0.5
        return (entries + entries.T) / 2

    for _ in range(1_000):
        (full_g, early_g), (full, early) = rng.normal(size=(2, 3)) * level**0.5, (symmetric(), symmetric())
        noisy = sums._replace(
            early_score=sums.early_score + early_g,
            late_score=sums.late_score + full_g - early_g,
            early_xx=sums.early_xx + early,
            late_xx=sums.late_xx + full - early,
            r=sums.r + rng.normal(size=6) * level**0.5,
            v=sums.v + rng.normal(size=6) * level**0.5,
            vx=sums.vx + rng.normal(size=(3, 6)) * (level / 2) ** 0.5,
        )
        drawn.append(_scored(noisy, no_noise(), np.eye(3)))
    changed, information = (np.array([getattr(each, name) for each in drawn]) for name in ("changed", "information"))
    found = _scored(sums, noise, np.eye(3))
    assert found is not None
    assert np.allclose(changed.var(axis=0), found.noise, rtol=0.15)
    assert (found.variance > found.information + found.noise).all()
    assert np.allclose(information.std(axis=0), found.spread, rtol=0.1)


def test_a_ratio_that_changes_is_found_in_its_column_alone() -> None:
    """Dose has no effect before month 6 and triples the rate after; arm and age are proportional."""
    rng, n = np.random.default_rng(4), 12_000
    X = np.c_[rng.integers(0, 2, n), rng.uniform(-1, 1, (n, 2))]
    usual, passed = np.exp(X[:, :2] @ BETA[:2]) * 0.02, rng.exponential(size=n)
    rising = usual * np.exp(1.1 * X[:, 2])
    times = np.where(passed < usual * 6, passed / usual, 6 + (passed - usual * 6) / rising)
    table = dict(zip(NAMES, X.T, strict=True)) | {"months": np.minimum(times, 20.0), "died": (times < 20) * 1}
    found = inf.hazards(played(course_of(n, 8.0, early_bins=EARLY), table, 1)).proportionality_by_column()
    assert found.p_value[2] < 1e-6
    assert abs(found.change[2] - 1.1) < 4 * found.std_err[2]
    assert (found.p_value[:2] > 0.001).all()


def changing(n: int, tie: float) -> dict[str, Any]:
    """The arm's log ratio rises by .8 at month 6; age and dose are proportional, and ``tie`` ties age to the arm."""
    rng = np.random.default_rng(4)
    age, dose = rng.uniform(-1, 1, (2, n))
    arm = (rng.random(n) < 1 / (1 + np.exp(-tie * age))).astype(float)
    X = np.c_[arm, age, dose]
    usual, passed = np.exp(X[:, :2] @ BETA[:2]) * 0.015, rng.exponential(size=n)
    rising = usual * np.exp(0.8 * arm)
    times = np.where(passed < usual * 6, passed / usual, 6 + (passed - usual * 6) / rising)
    return dict(zip(NAMES, X.T, strict=True)) | {"months": np.minimum(times, 20.0), "died": (times < 20) * 1}


def test_a_constant_ratio_is_rejected_beside_a_correlated_one_that_changes_and_the_table_says_so() -> None:
    """Few pass a cumulative hazard of 1, so the cap is no cause."""
    tied, apart = (
        inf.hazards(played(course_of(12_000, 8.0, early_bins=EARLY), changing(12_000, tie), 1)) for tie in (3.0, 0.0)
    )
    assert tied.events_within == 1
    assert tied.proportionality_by_column().p_value[1] < 0.01
    assert (apart.proportionality_by_column().p_value[1:] > 0.01).all()
    text = " ".join(str(tied.summary()).split())
    assert "correlated with it rejects too" in text


def test_noise_that_hides_the_information_leaves_no_test() -> None:
    found = inf.hazards(played(course_of(300, 0.5, early_bins=EARLY), world(300), 1)).proportionality_by_column()
    assert not found.reported.any()
    assert (found.p_value == 1).all()
    assert "not reported" in str(found)


def test_strata_have_early_bins_of_their_own() -> None:
    plan = schema(times="continuous", strata=ps.Categories("site", ("north", "south")))
    course = ps.Hazard.start(plan, ps.Cohort(2, 2, 24_000), promise(20.0), early_bins=EARLY)
    table = world(12_000) | {"site": np.array(["north", "south"])[np.arange(12_000) % 2]}
    releases = played(course, table, 1)
    values = check_values(plan, EARLY, releases[0], releases[1:-1])  # type: ignore[arg-type]
    first = releases[-2].plan.published.values["w"].integers  # type: ignore[union-attr]
    assert np.array_equal(values["w"].integers, first[[0, 1, 2, 3, 4, 9, 10]])
    assert Published.of(values).sha256 == releases[-1].plan.published.sha256  # type: ignore[union-attr]
    assert isinstance(values["c"], Values)
    assert inf.hazards(releases).proportionality_by_column().reported.all()


def test_the_noise_of_a_score_is_symmetric() -> None:
    sums, *_ = of_bins(60)
    noise = _Noise(1.0, 1.0, 1.0, 1.0, np.ones(6), np.ones(6), np.ones(6))
    means, half = sums.vx / sums.v, np.eye(3) / 2
    found = _noise_of_score(sums, noise, means, half, half, np.array([0.1, 0.2, -0.1]))
    assert np.allclose(found, found.T)
    assert np.linalg.eigvalsh(found)[0] > 0


def test_the_audit_of_a_course_counts_rejections_of_what_is_proportional() -> None:
    course = course_of(2_000, 20.0, early_bins=EARLY)
    found = tally(course, 2_000, seeded(3), 12)
    assert found.names[3:] == tuple(f"{name}, proportional" for name in NAMES)
    assert (found.reported[3:] == 12).all()
    assert (found.missed <= 4).all()
    assert tally(replace(course, early_bins=0, promise=None), 2_000, seeded(3), 1).names == NAMES


def test_proportional_columns_are_rejected_as_often_as_stated_under_the_noise_of_a_course() -> None:
    """20,000 persons at epsilon 1, weights one standard error off: without the noise's variance a fifth is rejected."""
    levels = course_of(20_000, 1.0, early_bins=EARLY).plan.noise.released_sigma(2)  # type: ignore[union-attr]
    g, H = levels["g"] ** 2, levels["H"] ** 2
    v, early = np.array([2_700.0, 2_000.0, 1_400.0, 900.0]), np.arange(4) < EARLY
    means = np.array([[0.02, 0.0, -0.02, -0.03], [0.06, 0.02, -0.02, -0.05]])
    within, half = np.diag([0.25, 0.33]), np.where(early, 0.5, 1.0)
    noise = _Noise(g, H, g, H, half * g, half * H, half * H / 2)
    rng, rejected, blind = np.random.default_rng(6), np.zeros(2), np.zeros(2)

    def symmetric() -> np.ndarray:
        entries = rng.normal(size=(2, 2)) * H**0.5
        return (entries + entries.T) / 2

    parts = [(v[of].sum() * within, means[:, of] * v[of], of) for of in (early, ~early)]
    xx = [own + vx @ means[:, of].T for own, vx, of in parts]
    for _ in range(2_000):
        step, alone = rng.normal(size=2) * (7_000 * np.diag(within)) ** -0.5, rng.normal(size=4) * v**-0.5
        r = rng.normal(size=4) * v**0.5 + v * (alone + step @ means)
        scores = []
        for own, vx, of in parts:
            slopes = rng.multivariate_normal(np.zeros(2), own) + own @ step
            scores.append(slopes + vx @ (r[of] / v[of]))
        (full_g, early_g), (full, first) = rng.normal(size=(2, 2)) * g**0.5, (symmetric(), symmetric())
        noisy = _Sums(
            early_score=scores[0] + early_g,
            late_score=scores[1] + full_g - early_g,
            early_xx=xx[0] + first,
            late_xx=xx[1] + full - first,
            r=r + rng.normal(size=4) * noise.r**0.5,
            v=v + rng.normal(size=4) * noise.v**0.5,
            vx=means * v + rng.normal(size=(2, 4)) * noise.vx**0.5,
            early=early,
        )
        found = _scored(noisy, noise, np.eye(2))
        assert found is not None
        rejected += np.abs(found.changed) > 1.96 * np.sqrt(found.variance)
        blind += np.abs(found.changed) > 1.96 * np.sqrt(found.information)
    assert ((rejected > 0.035 * 2_000) & (rejected < 0.065 * 2_000)).all()
    assert blind.max() > 0.1 * 2_000
