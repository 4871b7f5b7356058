"""The canary bound comes close to a true claim, stays below it, and flags a false one."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privstats import ClassSchema, RidgeSchema
from privstats.dp import Privacy, calibrate, gaussian_epsilon, gaussian_mu, joint_mu
from privstats.randomness import seeded
from threat_models.audits.canary import GROUP_MU, audit_canary, canary_shift, lower_bounds
from threat_models.audits.target import Target

DELTA = 1e-5
DIGITS = ClassSchema(10, 64, "NAB", 1.0)


def target_of(schema=DIGITS, **change):
    fields = {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": DELTA}
    return Target(schema, Privacy(**fields | change), clients=6, min_survivors=5, colluders=2)


def column(report, name):
    place = report.columns.index(name)
    return {row[0]: row[place] for row in report.rows}


@pytest.mark.slow
def test_on_digits_at_epsilon_one_the_bound_is_nine_tenths_of_the_claim_and_never_above_it():
    """Twenty seeds; 95 % confidence each, so that one excess in twenty would be chance."""
    reports = [audit_canary(target_of(), seeded(seed), trials=4000) for seed in range(20)]
    ratios = [column(report, "eps at least")["joint"] / column(report, "eps claimed")["joint"] for report in reports]
    assert min(ratios) >= 0.9
    assert sum(ratio > 1 for ratio in ratios) <= 1
    assert sum(report.violated for report in reports) <= 2


@pytest.mark.parametrize(
    ("schema", "change"),
    [
        (ClassSchema(3, 8, "NAS", 2.0), {"model": "distributed"}),
        (ClassSchema(3, 8, "NAD", 2.0), {"model": "local", "adjacency": "replace-one"}),
        (ClassSchema(3, 8, "NABD", 1.0, nonnegative=True), {"adjacency": "replace-one", "epsilon": 8.0}),
        (RidgeSchema(6, 2, clip_norm=1.5, target_bound=3.0, folds=3), {}),
        (RidgeSchema(6, clip_norm=1.5, target_bound=3.0), {"adjacency": "replace-one", "epsilon": 0.3}),
        (ClassSchema(3, 8, "NAB", 1.0), {"unit": "client", "max_records_per_client": 30}),
        (ClassSchema(3, 8, "NAB", 1.0), {"unit": "client", "max_records_per_client": 30, "client_clip": 4.0}),
    ],
)
def test_every_statistic_of_every_model_is_bounded_close_to_its_claim(schema, change):
    report = audit_canary(target_of(schema, **change), seeded(5), trials=4000)
    ratios = column(report, "ratio")
    assert set(ratios) == {*schema.statistics, "joint"}
    assert all(0.85 < ratio <= 1 for ratio in ratios.values())
    assert not report.violated


class Liar(Target):
    """Claims the noise of a promise whose mu is a tenth lower than what it draws."""

    @property
    def noise(self):
        honest = Target.noise.func(self)
        rows = tuple(replace(row, sigma=row.sigma / 0.9, mu=row.mu * 0.9) for row in honest.rows)
        return replace(honest, rows=rows, mu=honest.mu * 0.9)

    def draw(self, releases, rng):
        return Target(self.schema, self.privacy).draw(releases, rng)


def test_a_claim_that_is_too_small_by_a_tenth_is_flagged_everywhere():
    honest = target_of()
    report = audit_canary(Liar(honest.schema, honest.privacy), seeded(1), trials=12_000)
    assert report.violated
    assert min(column(report, "ratio").values()) > 1


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
    claimed = gaussian_mu(epsilon, DELTA)
    copies = max(1, round(GROUP_MU / claimed))
    scores = []
    for present in (0, copies):
        G, h = algorithm_2(present * np.outer(a, a), present * a * b, epsilon, DELTA, 40_000, rng)
        scores.append(np.einsum("nij,i,j->n", G, a, a) + h @ a)
    bound = lower_bounds(*scores, confidence=0.95, delta=DELTA).mu / copies
    assert bound > claimed
    assert gaussian_epsilon(bound, DELTA) > epsilon


@pytest.mark.parametrize(
    ("claimed", "add", "replace_one"),
    [
        (0.1, 0.089, 0.138), (0.5, 0.514, 0.801), (1, 1.098, 1.719),
        (2, 2.37, 3.756), (5, 6.82, 11.2), (10, 16.1, 27.6),
    ],
)  # fmt: skip
def test_what_algorithm_2_really_spends(claimed, add, replace_one):
    tau = math.sqrt(2 * math.log(1.25 / DELTA)) / claimed
    schema, sigmas = RidgeSchema(5, clip_norm=1.0, target_bound=1.0), {"G": tau, "h": tau}
    for adjacency, truth in (("add-remove", add), ("replace-one", replace_one)):
        assert gaussian_epsilon(joint_mu(schema, sigmas, adjacency), DELTA) == pytest.approx(truth, rel=6e-3)


def test_bounds_hold_at_their_confidence_for_known_gaussians():
    rng = np.random.default_rng(3)
    excesses = sum(
        lower_bounds(rng.standard_normal(600), rng.standard_normal(600) + 2.0, 0.9, DELTA).mu > 2.0 for _ in range(300)
    )
    assert excesses <= 0.1 * 300 + 3 * math.sqrt(300 * 0.1 * 0.9)


def test_indistinguishable_scores_prove_nothing():
    scores = np.random.default_rng(0).standard_normal((2, 1000))
    bounds = lower_bounds(*scores, confidence=0.95, delta=DELTA)
    assert bounds.mu < 0.1
    assert bounds.epsilon < 0.1
    assert lower_bounds(np.zeros(1000), np.zeros(1000), 0.95, DELTA).mu == 0.0


def test_a_canary_moves_the_release_by_the_claimed_mu():
    """One copy, measured by the library itself: at most the claim, and short of it only by the grid's safety margin."""
    for change in ({}, {"adjacency": "replace-one"}):
        target = target_of(ClassSchema(3, 6, "NAB", 1.3, 14), **change)
        shift = canary_shift(target, target.noise.sigma, seeded(2))
        distance = float(np.linalg.norm(shift / target.claimed_sigma()))
        assert 0.998 * target.noise.mu < distance <= target.noise.mu


def test_the_target_draws_the_noise_of_the_worst_session():
    target = target_of(model="distributed")
    assert target.honest_shares == 3
    spread = target.draw(300, seeded(0)) / target.claimed_sigma()
    assert spread.std() == pytest.approx(1, abs=0.01)
    assert calibrate(target.schema, target.privacy, honest_shares=3) == target.noise
