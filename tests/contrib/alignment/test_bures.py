"""The geometry of Gaussians: what each closed form must satisfy, and what the steps to the barycentre keep."""

import itertools

import numpy as np
import pytest

from privstats.contrib.alignment import barycentre, distance, next_reference, transport
from privstats.kinds.gaussians import mean_root, root

D, CLIENTS = 7, 5
ERROR = 1e-10  # of an entry of what one map makes of a covariance here: rounding times their condition numbers


def covariance(rng, d=D):
    shape = rng.standard_normal((d, d)) / d**0.5 + 0.3 * np.eye(d)
    return shape @ shape.T


@pytest.fixture
def clients():
    rng = np.random.default_rng(1)
    return [covariance(rng) for _ in range(CLIENTS)], rng.integers(20, 200, CLIENTS).astype(float)


def objective(reference, covariances, weights):
    return sum(w * distance(reference, one) ** 2 for one, w in zip(covariances, weights, strict=True)) / sum(weights)


def test_roots(clients):
    one = clients[0][0]
    np.testing.assert_allclose(root(one) @ root(one), one, atol=1e-12)
    np.testing.assert_allclose(root(one, -0.5) @ one @ root(one, -0.5), np.eye(D), atol=1e-9)


def test_the_map_carries_source_to_target(clients):
    source, target = clients[0][:2]
    A = transport(source, target)
    np.testing.assert_allclose(A @ source @ A, target, atol=ERROR)
    np.testing.assert_array_less(0, np.linalg.eigvalsh(A))
    np.testing.assert_allclose(transport(source, source), np.eye(D), atol=1e-9)


@pytest.mark.parametrize("tau", [0.0, 0.4, 1.0])
def test_the_geodesic_contracts_the_distance_by_what_it_has_gone(tau, clients):
    """In any basis, so in any rounding.

    A covariance with smallest eigenvalue l that is off by E has a root that is off by at most |E| / sqrt(l), and so
    has its distance to anything (Bhatia, Jain, Lim 2019).
    """
    rng = np.random.default_rng(5)
    for turn in [np.eye(D), *np.linalg.qr(rng.standard_normal((100, D, D)))[0]]:
        source, target = (turn @ one @ turn.T for one in clients[0][:2])
        step = (1 - tau) * np.eye(D) + tau * transport(source, target)
        moved = step @ source @ step
        allowed = D * ERROR / np.sqrt(np.linalg.eigvalsh(moved)[0])
        assert distance(moved, target) == pytest.approx((1 - tau) * distance(source, target), rel=1e-10, abs=allowed)


@pytest.mark.parametrize("apart", [1.0, 1e-4, 1e-8, 1e-11])
def test_a_small_distance_is_as_exact_as_a_large_one(apart, clients):
    """S and (1 + h)^2 S commute, and are h sqrt(tr S) apart."""
    for one in clients[0]:
        expected = apart * np.sqrt(np.trace(one))
        assert distance(one, (1 + apart) ** 2 * one) == pytest.approx(expected, rel=1e-9, abs=ERROR * 1e-2)


@pytest.mark.parametrize("step", ["published", "alvarez-esteban"])
def test_steps_end_at_the_fixed_point(step, clients):
    reference = barycentre(*clients, 100, step)
    half, shares = root(reference), clients[1] / clients[1].sum()
    residual = sum(w * mean_root(half, one) for w, one in zip(shares, clients[0], strict=True)) - reference
    assert np.abs(residual).max() < 1e-9


def test_the_better_step_never_raises_the_objective_and_is_far_ahead(clients):
    far = barycentre(*clients, 100, "alvarez-esteban")
    values = [objective(barycentre(*clients, steps, "alvarez-esteban"), *clients) for steps in range(5)]
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(values))
    error = {step: np.linalg.norm(barycentre(*clients, 2, step) - far) for step in ("published", "alvarez-esteban")}
    assert error["alvarez-esteban"] < 0.25 * error["published"]


@pytest.mark.parametrize("step", ["published", "alvarez-esteban"])
def test_equal_clients_are_left_as_they_are(step):
    one = covariance(np.random.default_rng(2))
    np.testing.assert_allclose(barycentre([one] * 3, [1, 2, 3], 3, step), one, atol=1e-10)


def test_clients_that_commute_need_one_step():
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((D, D)))[0]
    values, weights = rng.uniform(0.2, 3, (4, D)), np.array([1.0, 2.0, 3.0, 4.0])
    exact = (basis * (weights @ np.sqrt(values) / weights.sum()) ** 2) @ basis.T
    found = barycentre([(basis * v) @ basis.T for v in values], weights, 1, "alvarez-esteban")
    np.testing.assert_allclose(found, exact, atol=1e-12)


@pytest.mark.parametrize("step", ["published", "alvarez-esteban"])
def test_turned_clients_give_a_turned_reference_in_every_round(step, clients):
    turn = np.linalg.qr(np.random.default_rng(4).standard_normal((D, D)))[0]
    turned = [turn @ one @ turn.T for one in clients[0]]
    for steps in (1, 2, 3):
        plain = barycentre(*clients, steps, step)
        np.testing.assert_allclose(barycentre(turned, clients[1], steps, step), turn @ plain @ turn.T, atol=1e-10)


def test_a_term_is_bounded_by_the_norms(clients):
    one, other = clients[0][:2]
    norm = lambda m: np.linalg.norm(m, 2)  # noqa: E731
    assert norm(mean_root(root(one), other)) <= np.sqrt(norm(one) * norm(other)) * (1 + 1e-12)


def test_singular_covariances_divide_by_nothing():
    flat = np.diag([1.0, 0.0, 0.0])
    assert np.isfinite(transport(flat, np.eye(3))).all()
    assert np.isfinite(next_reference(flat, flat, "alvarez-esteban")).all()
    assert np.isfinite(root(np.zeros((3, 3)), -0.5)).all()
