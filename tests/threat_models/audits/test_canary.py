"""The canary bound comes close to a true promise, stays below it, and flags a false one, on the real path."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import privstats as ps
from privstats.dp.privacy import MODELS
from privstats.plan.plan import calibrate
from privstats.randomness import seeded
from privstats.session import unmasked
from tests import made
from tests.lengths import sized
from tests.threat_models.audits.plans import DELTA, DIGITS, SMALL, target
from threat_models.audits import target as target_module
from threat_models.audits.canary import GROUP_MU, audit_canary, lower_bounds
from threat_models.audits.canary_unit import canary_shift
from threat_models.audits.edges import edge_cases
from threat_models.audits.records import copies_of

PARTIES = ps.PartySchema(3, 8)
PARTY = {"unit": "client", "max_records_per_client": 1}


def column(report, name):
    place = report.columns.index(name)
    return {row[0]: row[place] for row in report.rows}


@pytest.mark.nightly
def test_on_digits_at_epsilon_one_the_bound_is_nine_tenths_of_the_claim_and_never_above_it():
    """95 % confidence each, so that one excess in twenty seeds would be chance."""
    reports = [audit_canary(target(DIGITS), seeded(seed), trials=4000) for seed in range(sized(8, 20))]
    ratios = [column(report, "eps at least")["joint"] / column(report, "eps claimed")["joint"] for report in reports]
    assert min(ratios) >= 0.9
    assert sum(ratio > 1 for ratio in ratios) <= 1
    assert sum(report.violated for report in reports) <= 2


@pytest.mark.ci
@pytest.mark.parametrize(
    ("schema", "change"),
    [
        (ps.ClassSchema(3, 8, "NAS", 2.0), {"model": "distributed"}),
        pytest.param(ps.ClassSchema(3, 8, "NAD", 2.0), {"model": "local", "adjacency": "replace-one"},
            marks=pytest.mark.nightly),
        pytest.param(ps.ClassSchema(3, 8, "NABD", 1.0, nonnegative=True), {"adjacency": "replace-one", "epsilon": 8.0},
            marks=pytest.mark.nightly),
        (ps.RidgeSchema(6, 2, clip_norm=1.5, target_bound=3.0, folds=3), {}),
        pytest.param(ps.RidgeSchema(6, clip_norm=1.5, target_bound=3.0), {"adjacency": "replace-one", "epsilon": 0.3},
            marks=pytest.mark.nightly),
        pytest.param(ps.ClassSchema(3, 8, "NAB", 1.0), {"unit": "client", "max_records_per_client": 30},
            marks=pytest.mark.nightly),
        (PARTIES, {**PARTY, "model": "distributed", "adjacency": "replace-one"}),
        pytest.param(PARTIES, PARTY, marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_every_statistic_of_every_model_is_bounded_close_to_its_claim(schema, change):
    report = audit_canary(target(schema, **change), seeded(5), trials=1500)
    ratios = column(report, "ratio")
    assert set(ratios) == {*schema.statistics, "joint", "wrap", "plausible"}
    assert all(0.75 < ratios[name] <= 1 for name in (*schema.statistics, "joint"))
    assert max(ratios["wrap"], ratios["plausible"]) < 1
    assert not report.violated


@pytest.mark.ci
def test_a_clipped_client_is_bounded_close_to_its_claim():
    """Of one statistic alone less is seen: the copies of one record spend their norm on all of them."""
    private = target(ps.ClassSchema(3, 8, "NAB", 1.0), unit="client", max_records_per_client=30, client_clip=4.0)
    report = audit_canary(private, seeded(5), trials=2000)
    assert 0.85 < column(report, "ratio")["joint"] <= 1
    assert not report.violated


@pytest.mark.parametrize(("adjacency", "least"), [("add-remove", 0.999), ("replace-one", 0.9)])
def test_a_person_of_many_rows_moves_as_far_as_the_promise_and_its_bystanders_not_at_all(adjacency, least):
    """Without the clip the canary's rows, four times those that count in full, would move ten times as far."""
    terms = {"unit": "person", "max_records_per_person": 5, "person_clip": 2.0, "adjacency": adjacency}
    private = target(ps.ClassSchema(3, 8, "NAB", 1.0), **terms)
    shift = canary_shift(private, private.sigma, seeded(4))
    assert least < float(np.linalg.norm(shift / private.levels())) / private.promise.mu <= 1 + 1e-9


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_person_whose_rows_are_averaged_moves_as_far_as_one_record(adjacency):
    """Two hundred equal rows of it; a sum of them would move two hundred times as far."""
    private = target(ps.ClassSchema(3, 8, "NAB", 1.0), unit="person", person_clip="average", adjacency=adjacency)
    shift = canary_shift(private, private.sigma, seeded(4))
    assert 0.98 < float(np.linalg.norm(shift / private.levels())) / private.promise.mu <= 1 + 1e-9


@pytest.mark.parametrize("swap", [False, True])
def test_pairs_that_change_fold_are_found_for_ridge(swap):
    schema = ps.RidgeSchema(4, clip_norm=1.0, target_bound=2.0, folds=2, nonnegative=swap)
    private = target(schema, adjacency="replace-one", shares={"G": 0.1, "h": 0.1, "q": 0.8})
    shift = canary_shift(private, private.sigma, seeded(4))
    assert float(np.linalg.norm(shift / private.levels())) <= private.promise.mu * (1 + 1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("factor", [0.9, pytest.param(0.1, marks=pytest.mark.nightly)])
def test_noise_that_is_too_small_where_it_is_calibrated_is_flagged(factor, monkeypatch):
    """The plan's table goes on saying what the noise should be: nothing may be rescaled by it."""

    def wrong(*arguments, **options):
        noise = calibrate(*arguments, **options)
        return replace(noise, rows=tuple(replace(row, sigma=factor * row.sigma) for row in noise.rows))

    monkeypatch.setattr("privstats.plan.plan.calibrate", wrong)
    report = audit_canary(target(), seeded(1), trials=5000)
    assert report.violated
    assert column(report, "ratio")["joint"] == pytest.approx(0.95 / factor, rel=0.05)


@pytest.mark.parametrize(
    ("schema", "promise"),
    [(ps.ClassSchema(3, 4, "NA", 1.0), {"unit": "client", "max_records_per_client": 30}), (PARTIES, PARTY)],
)
def test_a_client_that_may_hold_more_than_it_should_is_flagged(schema, promise, monkeypatch):
    """The canary asks for twice the limit, and takes it where nobody refuses."""
    private = target(schema, **promise)
    monkeypatch.setattr("privstats.session.machines.require_moments", lambda plan, moments: None)
    report = audit_canary(private, seeded(1), trials=500)
    assert column(report, "ratio")["joint"] > 1.5
    assert report.violated


@pytest.mark.ci
def test_an_abort_that_hangs_on_a_record_is_flagged(monkeypatch):
    """What everybody sees is part of the release, an abort included: here the exact sum decides about it."""
    private = target(min_count=5)
    right = target_module.publish

    def oracle(plan, total, survivors, rng):
        exact_count = int(total.lift()[0]) // 4096
        return "aborted" if plan.min_count and exact_count >= 5 else right(plan, total, survivors, rng)

    monkeypatch.setattr(target_module, "publish", oracle)
    assert column(audit_canary(private, seeded(1), trials=400), "verdict")["min count"] == "violates"


def test_a_check_of_what_is_plausible_before_the_noise_is_an_oracle(monkeypatch):
    """A malicious client holds an entry at the bound: an abort in one world only is a release of the record."""
    right = unmasked.with_central_noise

    def noisy(plan, total, rng):
        ps.plan.check_plausible(plan, total.lift())
        return right(plan, total, rng)

    monkeypatch.setattr(unmasked, "with_central_noise", noisy)
    verdicts = column(audit_canary(target(), seeded(1), trials=400), "verdict")
    assert [name for name, verdict in verdicts.items() if verdict == "violates"] == ["plausible"]


@pytest.mark.ci
def test_a_wrap_before_the_noise_is_flagged_where_nothing_is_refused(monkeypatch):
    """What is refused hides the wrap in both worlds; the noise in the ring does so without it."""
    monkeypatch.setattr(unmasked, "check_plausible", lambda plan, vector: None)
    assert column(audit_canary(target(), seeded(1), trials=400), "verdict")["wrap"] == "no evidence"

    def lifted(plan, total, rng):
        noise = right(plan, plan.ring.zeros(), rng).lift()
        return SimpleNamespace(lift=lambda: total.lift() + noise)

    right = unmasked.with_central_noise
    monkeypatch.setattr(unmasked, "with_central_noise", lifted)
    assert column(audit_canary(target(), seeded(1), trials=400), "verdict")["wrap"] == "violates"


@pytest.mark.ci
@pytest.mark.parametrize("model", made.MODELS)
def test_the_edges_of_a_sound_plan_tell_nothing(model):
    private = target(model=model, min_count=5)
    cases = edge_cases(private, canary_shift(private, private.sigma, seeded(2)), seeded(3), 300)
    assert [case.name for case in cases] == ["wrap", "plausible", "min count"]
    for case in cases:
        assert lower_bounds(case.out, case.present, 0.99, DELTA).mu < private.promise.mu


def test_an_aborting_session_is_seen_as_such(monkeypatch):
    private = target()

    def abort(*_, **__):
        raise ps.AggregationError("unmask", "implausible", "an entry is beyond what the plan admits")

    monkeypatch.setattr("privstats.session.release", abort)
    with pytest.raises(ps.PlanError, match="aborts although no client holds a record"):
        private.draw(1, seeded(0))


def algorithm_2(G, h, epsilon, delta, releases, rng):
    """One client of the ridge paper's Algorithm 2, lines 1 to 6, as printed; ``releases`` independent runs."""
    d = len(h)
    tau = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    E = tau * rng.standard_normal((releases, d, d))
    E = (E + E.transpose(0, 2, 1)) / 2  # "symmetrized"
    e = tau * rng.standard_normal((releases, d))
    return G + E, h + e


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 10.0])
def test_the_ridge_papers_algorithm_2_is_flagged_at_its_claimed_epsilon(epsilon):
    """Definition 3 and theorem 6: ||a|| <= 1, |b| <= 1, one record added or removed."""
    rng = np.random.default_rng(42)
    a, b = np.eye(5)[0], 1.0
    claimed = ps.dp.gaussian_mu(epsilon, DELTA)
    copies = max(1, round(GROUP_MU / claimed))
    scores = []
    for present in (0, copies):
        G, h = algorithm_2(present * np.outer(a, a), present * a * b, epsilon, DELTA, 40_000, rng)
        scores.append(np.einsum("nij,i,j->n", G, a, a) + h @ a)
    bound = lower_bounds(*scores, confidence=0.95, delta=DELTA).mu / copies
    assert bound > claimed
    assert ps.dp.gaussian_epsilon(bound, DELTA) > epsilon


@pytest.mark.parametrize(
    ("claimed", "add", "replace_one"),
    [
        (0.1, 0.089, 0.138), (0.5, 0.514, 0.801), (1, 1.098, 1.719),
        (2, 2.37, 3.756), (5, 6.82, 11.2), (10, 16.1, 27.6),
    ],
)  # fmt: skip
def test_what_algorithm_2_really_spends(claimed, add, replace_one):
    tau = math.sqrt(2 * math.log(1.25 / DELTA)) / claimed
    schema, sigmas = ps.RidgeSchema(5, clip_norm=1.0, target_bound=1.0), {"G": tau, "h": tau}
    for adjacency, truth in (("add-remove", add), ("replace-one", replace_one)):
        assert ps.dp.gaussian_epsilon(ps.dp.joint_mu(schema, sigmas, adjacency), DELTA) == pytest.approx(
            truth, rel=6e-3
        )


def test_bounds_hold_at_their_confidence_for_known_gaussians():
    rng = np.random.default_rng(3)
    excesses = sum(
        lower_bounds(rng.standard_normal(600), rng.standard_normal(600) + 2.0, 0.9, DELTA).mu > 2.0 for _ in range(300)
    )
    assert excesses <= 0.1 * 300 + 3 * math.sqrt(300 * 0.1 * 0.9)


def test_bounds_hold_when_one_set_of_releases_serves_both_worlds():
    rng = np.random.default_rng(4)
    excesses = 0
    for _ in range(300):
        noise = rng.standard_normal(600)
        excesses += lower_bounds(noise, noise + 2.0, 0.9, DELTA).mu > 2.0
    assert excesses <= 0.1 * 300 + 3 * math.sqrt(300 * 0.1 * 0.9)


def test_indistinguishable_scores_prove_nothing():
    scores = np.random.default_rng(0).standard_normal((2, 1000))
    bounds = lower_bounds(*scores, confidence=0.95, delta=DELTA)
    assert bounds.mu < 0.1
    assert bounds.epsilon < 0.1
    assert lower_bounds(np.zeros(1000), np.zeros(1000), 0.95, DELTA).mu == 0.0


def test_a_canary_moves_the_release_by_the_promised_mu():
    """One copy, measured by the library itself: at most the promise, and short of it only by the grid's margin."""
    for change in ({}, {"adjacency": "replace-one"}):
        private = target(ps.ClassSchema(3, 6, "NAB", 1.3, 14), **change)
        distance = float(np.linalg.norm(canary_shift(private, private.sigma, seeded(2)) / private.levels()))
        assert 0.998 * private.promise.mu < distance <= private.promise.mu


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_party_moves_the_release_by_the_promised_mu(adjacency):
    """One party in or out, or exchanged, whatever its rows: short of the promise only by the grid's cut."""
    private = target(ps.PartySchema(3, 8, 1.3, grid_bits=16), **{**PARTY, "adjacency": adjacency})
    distance = float(np.linalg.norm(canary_shift(private, private.sigma, seeded(2)) / private.levels()))
    assert 0.998 * private.promise.mu < distance <= private.promise.mu


def test_copies_are_made_by_doubling():
    one = target_module.moments_of(SMALL, np.eye(12)[:1], np.array([1]))
    for count in (1, 2, 7, 64):
        np.testing.assert_array_equal(ps.encoding.flatten(copies_of(one, count)), count * ps.encoding.flatten(one))


def test_the_target_draws_the_noise_of_the_worst_session():
    private = target(model="distributed")
    assert private.honest_shares == private.worst_noise == 3
    spread = private.draw(300, seeded(0)) / private.levels()
    assert spread.std() == pytest.approx(1, abs=0.01)
    alone = target(model="local", cohort=ps.Cohort(6, 5, 2000))
    assert alone.worst_noise == 1
    assert (alone.draw(300, seeded(0)) / alone.levels()).std() == pytest.approx(1, abs=0.01)


def test_the_audits_have_a_rule_of_their_own_for_every_model(monkeypatch):
    """A model that they did not know was taken for one whose clients draw."""
    assert set(target_module._DRAWS) == set(MODELS)
    monkeypatch.delitem(target_module._DRAWS, "central")
    with pytest.raises(ps.PlanError, match="know the noise of the models distributed, .*this plan's is 'central'"):
        target_module.target_of(target().plan)
