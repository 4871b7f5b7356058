"""The ridge paper's baselines are what they say, its promise is worth what is said, and equalities are equalities."""

import math

import numpy as np
import pytest

import privstats as ps
from benchmarks.papers.ridge.baselines import FEDAVG, FEDPROX, Rounds, stepped
from benchmarks.papers.ridge.bytes_and_projections import TABLE_4, communication
from benchmarks.papers.ridge.data import Federation
from benchmarks.papers.ridge.distances import moved
from benchmarks.papers.ridge.exactness import dropouts, penalties, recovery
from benchmarks.papers.ridge.kernels import tangent
from benchmarks.papers.ridge.library import PENALTY, exact_plan, measured, one_message, one_shot
from benchmarks.papers.ridge.perturbed import Ball, objective, output, steepest
from benchmarks.papers.ridge.private import (
    PROBLEM,
    algorithm_2,
    dp_fedavg,
    fedavg_epsilon,
    private_plan,
    tau,
    true_epsilon,
)
from benchmarks.papers.ridge.scale import QUICK
from benchmarks.papers.ridge.solving import conjugate_gradients, triangle_product
from benchmarks.papers.ridge.theory import best_step, composed, crossover, fewer_bytes, invariance
from benchmarks.refinement import least_squares
from privstats.dp.gaussian import gaussian_delta, gaussian_mu
from privstats.workflows.simulate import run


@pytest.fixture(scope="module")
def small():
    return Federation.draw(0, clients=4, each=100, d=6)


def test_a_fifth_of_every_client_is_held_out_and_the_noise_is_a_tenth(small):
    assert [len(y) for y in small.targets] == [80] * 4
    assert small.X_test.shape == (80, 6)
    assert 0.005 < small.error(small.oracle(PENALTY)) < 0.02
    assert small.among(np.array([1, 3])).rows[1] is small.rows[3]


def test_heterogeneity_is_the_length_of_every_clients_mean():
    federation = Federation.draw(0, clients=3, each=50_000, d=4, heterogeneity=3.0)
    for rows in federation.rows:
        assert np.linalg.norm(rows.mean(axis=0)) == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize("local", [FEDAVG, FEDPROX])
def test_rounds_as_affine_maps_are_the_rounds_on_the_records(small, local):
    *_, weights = Rounds.together(small, local).after([3, 40])
    np.testing.assert_allclose(weights, stepped(small, local, 40), atol=1e-12)
    separate = Rounds.of(small, local)
    np.testing.assert_allclose(next(separate.after([40])), weights, atol=1e-12)
    np.testing.assert_allclose(separate.sampled(40, 4, np.random.default_rng(0)), weights, atol=1e-12)


def test_a_proximal_term_slows_a_client_down(small):
    fast, slow = (next(Rounds.together(small, local).after([5])) for local in (FEDAVG, FEDPROX))
    assert np.linalg.norm(slow) < np.linalg.norm(fast)


def test_the_library_recovers_the_oracle_up_to_its_grid(small):
    np.testing.assert_allclose(one_shot(small), small.oracle(PENALTY), rtol=2e-3, atol=2e-3)


def test_no_row_is_shortened_by_the_public_bounds():
    federation = Federation.draw(0)
    schema = exact_plan(federation).schema
    assert np.linalg.norm(federation.all_rows, axis=1).max() < schema.clip_norm
    assert np.abs(federation.all_targets).max() < schema.target_bound


def test_one_message_under_masks_gives_the_sums_in_clear(small):
    plan = exact_plan(small)
    clear = ps.session.aggregate_unmasked(plan, measured(plan, small))
    rng = ps.randomness.seeded(0)
    masked = run(one_message(plan, rng), measured(plan, small), rng=rng)
    assert masked.exact
    assert np.array_equal(masked.release.vector, clear.vector)


@pytest.mark.parametrize(
    ("claimed", "add", "replaced"),
    [(0.1, 0.089, 0.138), (0.5, 0.514, 0.801), (1, 1.098, 1.72), (2, 2.37, 3.76), (5, 6.82, 11.2), (10, 16.1, 27.6)],
)
def test_what_algorithm_2_claims_is_not_what_it_keeps(claimed, add, replaced):
    assert true_epsilon(claimed, "add-remove") == pytest.approx(add, rel=5e-3)
    assert true_epsilon(claimed, "replace-one") == pytest.approx(replaced, rel=5e-3)


def test_the_true_epsilon_of_the_noise_is_that_of_two_gaussians_with_sensitivity_one():
    """From the definition: G moves by 1 and h by 1, so the two noises together have mu = sqrt 2 / tau."""
    mu = math.sqrt(2) / tau(1.0)
    assert gaussian_delta(mu, true_epsilon(1.0, "add-remove")) == pytest.approx(1e-5, rel=1e-6)


def test_the_papers_two_private_versions_do_not_keep_the_same_epsilon():
    """A hundred rounds at a tenth of epsilon are one release of sensitivity 1; Algorithm 2 is two of them."""
    for epsilon in (0.5, 1.0, 5.0):
        assert gaussian_delta(1 / tau(epsilon), fedavg_epsilon(epsilon)) == pytest.approx(1e-5, rel=1e-6)
        assert fedavg_epsilon(epsilon) < true_epsilon(epsilon, "add-remove")


def test_algorithm_2_without_noise_is_the_oracle(small):
    weights = algorithm_2(small, 1e12, np.random.default_rng(0))
    np.testing.assert_allclose(weights, small.oracle(PENALTY), atol=1e-9)


def test_what_is_compared_under_privacy_keeps_its_epsilon(small):
    for model, adjacency in (("central", "add-remove"), ("distributed", "add-remove"), ("central", "replace-one")):
        assert private_plan(small, 2.0, model, adjacency).budget().epsilon <= 2.0 + 1e-9


def test_dp_fedavg_is_tuned_well_enough_to_learn_where_noise_is_small():
    federation = Federation.draw(0, clients=4, each=250, d=6)
    (error,) = dp_fedavg([PROBLEM.within(federation.split)], 1e4, "add-remove")
    assert error < 1.5 * federation.error(federation.oracle(PENALTY))


def test_a_record_that_is_replaced_moves_a_sum_of_gradients_twice_as_far(monkeypatch):
    federation, drawn = Federation.draw(0, clients=4, each=50, d=4), []

    def descended(problem, split, recipes, noise, rng):
        drawn.append(noise)
        return np.zeros((len(recipes), 4)), None

    monkeypatch.setattr(least_squares, "descended", descended)
    for adjacency in ("add-remove", "replace-one"):
        dp_fedavg([federation.split], 1.0, adjacency)
    assert drawn[2:] == [2 * noise for noise in drawn[:2]]
    assert drawn[0] == pytest.approx(10 / gaussian_mu(1.0, 1e-5))


def test_equalities_of_the_theorems_are_equalities_of_integers():
    for part, key in ((recovery, "federated == centralised"), (dropouts, "sum == the others' pooled")):
        ((_, rows),) = part(QUICK)
        assert [row[key] for row in rows] == [True] * len(rows)


def test_a_penalty_by_folds_is_as_good_as_one_from_every_clients_own_sums():
    ((_, rows),) = penalties(QUICK)
    by = {row["penalty by"]: row["MSE"] for row in rows}
    assert by["privstats, five folds"] < 1.1 * by["leave one client out"]


def test_table_4_compares_one_client_with_twenty():
    """What is printed for FedAvg is exactly twenty times a client's 200 rounds of 50 doubles."""
    ((title, rows),) = communication(QUICK)
    assert title == TABLE_4.title
    fedavg = next(row for row in rows if row["column"] == "FedAvg-200")
    assert float(fedavg["published"]) == pytest.approx(20 * fedavg["ours"])


def test_conjugate_gradients_on_a_triangle_are_the_solution(small):
    X, y = small.all_rows, small.all_targets
    G, h = X.T @ X, X.T @ y
    packed = G[np.triu_indices(6)]
    np.testing.assert_allclose(triangle_product(packed, h), G @ h, rtol=1e-12)
    weights, steps = conjugate_gradients(packed, h, PENALTY)
    np.testing.assert_allclose(weights, small.oracle(PENALTY), rtol=1e-8)
    assert steps <= 7  # as many as features, and one for rounding


def test_a_projection_that_turns_and_loses_nothing_moves_no_weights(small):
    turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))
    assert moved(small, turned) < 1e-9
    assert 0.1 < moved(small, turned[:, :3]) < 1.5


@pytest.fixture(scope="module")
def bounded():
    """Records at the bounds that the perturbations assume."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X *= PROBLEM.bounds.row / np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.clip(X @ [0.3, 0.1, 0.0] + rng.normal(size=60), -PROBLEM.bounds.target, PROBLEM.bounds.target)


def ball_of(X, y):
    return Ball.of((X, X, y, y))


def test_the_best_weights_of_a_ball_are_those_that_no_others_beat(bounded):
    X, y = bounded
    slope, penalty, radius = np.array([500.0, -900.0, 300.0]), 20.0, 0.5

    def loss(w):
        return np.square(X @ w - y).sum() / 2 + penalty * w @ w / 2 + slope @ w

    best = ball_of(X, y).best(penalty, radius, slope)
    assert np.linalg.norm(best) <= radius * (1 + 1e-9)
    for other in np.random.default_rng(0).normal(size=(300, 3)):
        near = best + 0.05 * other
        assert loss(near * min(1, radius / np.linalg.norm(near))) >= loss(best) - 1e-6
    np.testing.assert_allclose(
        ball_of(X, y).best(penalty, 1e3), np.linalg.solve(X.T @ X + penalty * np.eye(3), X.T @ y), rtol=1e-9
    )


@pytest.mark.parametrize("penalty", [10.0, 1e3])
def test_no_record_moves_the_best_weights_further_than_output_perturbation_says(bounded, penalty):
    X, y = bounded
    rng, radius = np.random.default_rng(1), 0.5
    whole = ball_of(X, y).best(penalty, radius)
    for _ in range(100):
        record = rng.normal(size=3)
        record *= PROBLEM.bounds.row / np.linalg.norm(record)
        target = rng.choice([-1, 1]) * PROBLEM.bounds.target
        more = ball_of(np.vstack([X, record]), np.append(y, target)).best(penalty, radius)
        assert np.linalg.norm(more - whole) <= steepest(radius) / penalty * (1 + 1e-9)


def test_perturbed_weights_are_the_best_ones_where_epsilon_is_large(bounded):
    ball, rng = ball_of(*bounded), np.random.default_rng(0)
    best = ball.best(1e4, 0.5)
    np.testing.assert_allclose(output(ball, 1e4, 1e4, 0.5, rng), best, atol=1e-2)
    np.testing.assert_allclose(objective(ball, 1e4, 1e4, 0.5, rng), best, atol=1e-2)
    assert np.linalg.norm(output(ball, 0.1, 10.0, 0.5, rng) - best) > 1


def test_tangent_features_have_the_tangent_kernel():
    """Both layers' arc-cosine kernels (Cho and Saul 2009), in closed form at rows of norm 1."""
    rows = np.random.default_rng(0).normal(size=(4, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    angle = np.arccos(np.clip(rows @ rows.T, -1, 1))
    first = (np.pi - angle) / (2 * np.pi) * np.cos(angle)
    last = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    found = tangent(rows, 200_000, 0)
    np.testing.assert_allclose(found @ found.T, first + last, atol=0.02)


def test_sums_of_one_set_of_records_are_equal_in_every_partition_with_or_without_coverage():
    ((_, rows),) = invariance(QUICK)
    assert all(row["sums == one place's"] for row in rows)
    assert [row["least eigenvalue of G, alpha"] > 0 for row in rows] == [True] * 5 + [False]


def test_the_crossover_is_the_corollarys_with_downloads_and_half_of_it_without():
    ((_, rows),) = crossover(QUICK)
    for row in rows:
        rounds = row["rounds"]
        assert row["with downloads"] == 4 * rounds - 6
        assert row["uploads alone"] == 2 * rounds - 4
        assert not fewer_bytes(4 * rounds - 5, rounds, downloads=True)


def test_the_papers_composition_asks_more_noise_of_a_round_than_gaussians_need():
    for epsilon in (0.1, 1.0, 10.0):
        assert composed(epsilon, 100) > 8 * 10 / gaussian_mu(epsilon, 1e-5)
    assert tau(10.0) < 1 / gaussian_mu(10.0, 1e-5), "the formula is no bound above epsilon 1"


def test_one_step_reaches_the_optimum_of_orthogonal_columns_and_of_no_others(small):
    columns = np.linalg.qr(small.all_rows)[0]
    assert best_step(columns, small.all_targets) == pytest.approx(0, abs=1e-12)
    assert best_step(small.all_rows * np.arange(1, 7), small.all_targets) > 0.1
