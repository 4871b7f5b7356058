"""The course of a treatment effect: its price, its order, sessions without a sum, and what parties recompute."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import privstats as ps
from privstats.course import verify_next
from privstats.errors import DataError, PlanError
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made
from tests.course.histories import walked

COLUMNS = {"age": (20, 90), "dose": (0, 10)}
TRIAL = ps.EffectSchema.of(COLUMNS, treatment="arm", outcome=(0, 1), probability=0.5)
COHORT = ps.Cohort(3, 2, 3_000)


def shards(n: int = 900, parties: int = 3) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(20, 90, n), rng.uniform(0, 10, n), rng.integers(0, 2, n)]
    y = (rng.random(n) < 0.2 + 0.3 * X[:, 1] / 10 + 0.2 * X[:, 2]) * 1.0
    return [(X[k::parties], y[k::parties]) for k in range(parties)]


def course(**options: Any) -> ps.Effect:
    return ps.Effect.start(TRIAL, COHORT, made.promise(epsilon=3.0), **options)


@pytest.fixture(scope="module")
def released() -> tuple[ps.Effect, list[ps.Release]]:
    found = course()
    return found, ps.simulate(found, shards(), rng=seeded(1))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("retries", [0, 2])
def test_all_sessions_keep_the_promise(share: float, retries: int) -> None:
    whole = ps.Effect.full_plan(schema=TRIAL, cohort=COHORT, privacy=made.promise(epsilon=3.0))
    found = ps.Effect.within(whole, share=share, retries=retries)
    assert whole.noise is not None
    assert whole.noise.mu * (1 - 1e-6) < found.mu <= whole.noise.mu
    assert found.most == (share > 0) + 1 + retries
    assert found.plan.noise is not None
    assert found.plan.noise.mu == pytest.approx(whole.noise.mu * ((1 - share) / (1 + retries)) ** 0.5, rel=1e-6)
    if share:
        assert found.first.noise is not None
        assert found.first.noise.mu == pytest.approx(whole.noise.mu * share**0.5, rel=1e-6)


def test_the_last_session_is_at_the_lines_of_the_first(released: Any) -> None:
    found, (outcome, last) = released
    assert outcome.plan == found.outcome
    assert replace(last.plan, published=found.plan.published) == found.plan
    line = last.plan.published.read()["line"].real
    X, y = (np.concatenate(each) for each in zip(*shards(), strict=True))
    U, a = np.c_[(X[:, 0] - 55) / 35, (X[:, 1] - 5) / 5, np.ones(len(X))], X[:, 2]
    exact = [np.linalg.lstsq(U[a == arm], y[a == arm] - 0.5)[0] for arm in (1, 0)]
    assert np.abs(line[:6] - np.concatenate(exact)).max() < 0.25
    assert line[6] == pytest.approx(0.2, abs=0.15)
    assert found.next([outcome, last]) is None


def test_a_session_without_a_sum_is_held_again_while_retries_last(released: Any) -> None:
    found, (outcome, _) = released
    assert found.next([None]) is None
    assert found.next([outcome, None]) is None
    patient = replace(found, retries=1, promise=None)
    assert patient.next([None]) == patient.outcome
    held = replace(outcome, plan=patient.outcome, position=patient.position([]))
    again = patient.next([held, None])
    assert again is not None
    assert again.published.sha256 == patient.next([held]).published.sha256
    assert again.published.after != patient.next([held]).published.after
    assert patient.next(made.named(patient, [None, held, None])) is None


def test_verify_next_admits_lines_that_another_machine_rounds_otherwise(released: Any) -> None:
    """The guess of the effect is a small difference: alone in an array a step of one entry would refuse it."""
    found, (outcome, last) = released
    line = last.plan.published.read()["line"]
    for place in range(7):
        near = line.integers.copy()
        near[place] += 1
        said = Published.of({"line": Values(near, line.exponent)}, bytes.fromhex(last.plan.published.after))
        assert verify_next(found, replace(last.plan, published=said), [outcome]).place == 1
    far = Published.of({"line": Values(line.integers + 999, line.exponent)}, bytes.fromhex(last.plan.published.after))
    with pytest.raises(PlanError, match="not the one that follows"):
        verify_next(found, replace(last.plan, published=far), [outcome])


def test_releases_of_another_course_are_refused(released: Any) -> None:
    other = course(share=0.2)
    with pytest.raises(PlanError, match="release 0 is not of this course"):
        other.next(released[1][:1])


def test_a_trial_is_refused_what_no_trial_has() -> None:
    with pytest.raises(PlanError, match="share must be a number from 0 to 0.3"):
        course(share=0.6)
    with pytest.raises(PlanError, match="retries must be an integer"):
        course(retries=-1)
    with pytest.raises(PlanError, match="need differential privacy"):
        ps.Effect.start(TRIAL, COHORT, ps.NoPrivacy())
    plan = course().plan
    with pytest.raises(PlanError, match="other values than the course starts from"):
        ps.Effect(replace(plan, published=Published.of({"line": Values.rounded(np.ones(7))})))
    with pytest.raises(PlanError, match="ends in ByArm"):
        ps.Effect.start(replace(TRIAL, transform=(), feature_names=None), COHORT, made.promise())


OBSERVED = ps.EffectSchema.of(COLUMNS, treatment="arm", outcome=(0, 1), estimand="overlap", trim=0.1)


@pytest.fixture(scope="module")
def adjusted() -> tuple[ps.Effect, list[ps.Release]]:
    found = ps.Effect.start(OBSERVED, COHORT, made.promise(epsilon=8.0), retries=1)
    return found, ps.simulate(found, shards(), rng=seeded(2))


def test_a_propensity_comes_first_where_nobody_assigned_the_treatment(adjusted: Any) -> None:
    found, releases = adjusted
    assert [release.plan.schema.task for release in releases] == ["score"] * 4 + ["ridge", "effect"]
    assert [plan.schema.task for plan in found.priced] == ["score"] * 4 + ["ridge"] + ["effect"] * 2
    whole = ps.Effect.full_plan(schema=OBSERVED, cohort=COHORT, privacy=made.promise(epsilon=8.0))
    parts = [(plan.noise.mu / whole.noise.mu) ** 2 for plan in found.priced]
    assert parts == pytest.approx([0.1] * 4 + [0.1] + [0.25] * 2, rel=1e-6)
    assert set(releases[-1].plan.published.read()) == {"line", "w"}
    assert found.next(releases) is None
    assert verify_next(found, releases[3].plan, releases[:3]).place == 3
    assert verify_next(found, releases[5].plan, releases[:5]).place == 5


def test_the_propensity_is_a_logistic_regression_of_the_arm(adjusted: Any) -> None:
    """Rows by arm are the rows without it: the same integers as of a regression on the columns alone."""
    found, releases = adjusted
    X, y = (np.concatenate(each) for each in zip(*shards(), strict=True))
    by_arm = found.propensity.schema
    centre, scale, constant, _ = by_arm.transform
    alone = ps.ScoreSchema(
        3, clip_norm=by_arm.clip_norm, transform=(type(centre)(centre.centre[:2]), type(scale)(scale.per[:2]), constant)
    )
    said = releases[2].plan.published
    one, other = ps.measure(by_arm, X, y, published=said), ps.measure(alone, X[:, :2], X[:, 2] == 1, published=said)
    assert one.g.tolist() == other.g.tolist()
    assert one.H.tolist() == other.H.tolist()


def test_a_round_without_a_sum_is_held_again(adjusted: Any) -> None:
    found, releases = adjusted
    again = found.next([*releases[:2], None])
    assert again.published.sha256 == releases[2].plan.published.sha256
    assert found.next(made.named(found, [*releases[:2], None, *releases[2:5]])).schema == OBSERVED
    assert found.next([*releases[:2], None, None]) is None
    with pytest.raises(PlanError, match="release 4 is not of this course"):
        found.next([*releases[:4], releases[3]])


def without_sums(found: ps.Effect) -> Any:
    """Every history of lost sessions that this course admits, as the places without a sum."""
    return (lost for count in range(found.retries + 1) for lost in itertools.combinations(range(found.most), count))


@pytest.mark.parametrize(
    ("rounds", "share", "retries"), [(2, 0.1, 1), (2, 0.2, 1), (3, 0.1, 2), (4, 0.1, 2), (8, 0.1, 1)]
)
def test_every_history_of_lost_sessions_ends_in_the_last_session(rounds: int, share: float, retries: int) -> None:
    """A lost round ended the course with everything spent where a round cost more than the outcome session."""
    promise = made.promise(epsilon=8.0)
    found = ps.Effect.start(OBSERVED, COHORT, promise, rounds=rounds, share=share, retries=retries)
    whole = ps.Effect.full_plan(schema=OBSERVED, cohort=COHORT, privacy=promise)
    assert whole.noise.mu * (1 - 1e-6) < found.mu <= whole.noise.mu
    for plans, releases in walked(found, [*without_sums(found)]):
        if len(plans) > len(releases):
            assert verify_next(found, plans[-1], releases).place == len(releases)
        else:
            tasks = [plan.schema.task for plan, release in zip(plans, releases, strict=True) if release is not None]
            assert tasks == ["score"] * rounds + ["ridge", "effect"], releases


def test_a_course_whose_retries_cannot_be_used_is_not_built(adjusted: Any) -> None:
    """Built by hand: the outcome session costs less than a round, which a retry may move to its place."""
    found = adjusted[0]
    said = "^session 'outcome lines' costs mu .*, and a retry may move a dearer session to each of its places"
    with patch.object(ps.Effect, "outcome", replace(found.outcome, privacy=made.promise(epsilon=0.1))):
        made.refused(PlanError, said, lambda: replace(found, promise=None))


def test_an_observed_course_is_refused_what_it_cannot_have() -> None:
    for options, said in (
        ({"share": 0.0}, "share must be above 0 where the treatment was not randomised"),
        ({"adjust": False}, "share must be above 0 where the treatment was not randomised"),
        ({"rounds": 1}, "rounds must be an integer from 2 to 16"),
        ({"retries": 9}, "9 retries leave the last session less"),
    ):
        with pytest.raises(PlanError, match=said):
            ps.Effect.start(OBSERVED, COHORT, made.promise(), **options)
    with pytest.raises(PlanError, match="rounds applies only where the treatment was not randomised"):
        course(rounds=4)


def test_records_are_refused_before_the_first_session() -> None:
    X, y = shards()[0]
    X[4, 2] = 2.0
    with pytest.raises(DataError, match="the arm 'arm' must be 0 or 1 in every record"):
        course().admits(X, y)
    with pytest.warns(UserWarning, match="1 of the records cannot be read"):
        course().admits(X, y, "leave out")
    X, y = shards()[1]
    y[0] = np.nan
    with pytest.raises(DataError, match="y holds NaN"):
        course(adjust=False).admits(X, y)


def test_a_party_whose_records_are_all_in_one_arm_is_told_so_and_nobody_else() -> None:
    X, y = shards()[0]
    X[:, 2] = 1.0
    with pytest.warns(UserWarning, match="all 300 records here are treated: where whole clinics"):
        course().admits(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        course().admits(X[:19], y[:19])
        course().admits(*shards()[1])
        ps.Effect.start(OBSERVED, COHORT, made.promise()).admits(X, y)


@pytest.mark.parametrize("model", ["distributed", "panel"])
@pytest.mark.parametrize("unit", [{}, {"unit": "client", "max_records_per_client": 2}])
def test_it_runs_under_every_trust_model(model: str, unit: dict[str, Any]) -> None:
    """Every session is one vector with one sigma a letter; the noise that the reader takes is the release's own."""
    from tests.plan.random_plans import PANEL

    whole = ps.Effect.full_plan(
        schema=TRIAL,
        cohort=COHORT,
        privacy=made.promise(model, epsilon=8.0, **unit),
        **({"protocol": "split", "panel": PANEL} if model == "panel" else {}),
    )
    found = ps.Effect.within(whole)
    parts = shards(6) if unit else shards()
    table = ps.inference.effect(ps.simulate(found, parts, rng=seeded(3)))
    assert table.nobs == pytest.approx(sum(len(y) for _, y in parts), abs=6 * table.release.sigma["N"] + 1e-9)
    assert unit or table.estimate == pytest.approx(0.2, abs=5 * table.bse)


def test_batches_that_can_be_read_once_are_admitted_with_subgroups() -> None:
    schema = ps.EffectSchema.of(
        {"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5, subgroups=(ps.Bins("age", (20, 50, 90)),)
    )
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 100), privacy)
    X = np.column_stack([np.linspace(20, 90, 12), np.arange(12) % 2])
    course.admits((each for each in [(X[:6], np.ones(6)), (X[6:], np.ones(6))]), None, "leave out")
