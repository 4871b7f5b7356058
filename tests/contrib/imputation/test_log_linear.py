"""The log-linear model of counts with gaps: likelihood, derivatives, Rubin's rule, and noise."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from privstats.contrib.imputation.log_linear import Layout, _Point, fitted, fitted_odds, group_odds

GAPS = Layout((3, 2, 2), (True, False, True))


def sampled(layout: Layout, n: int, seed: int = 0, share: float = 0.3) -> np.ndarray:
    """Counts of observed cells; incomplete variables are missing more often where the second has its second value."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=layout.features.shape[1]) / 2
    logs = layout.features @ theta
    cells = rng.choice(len(logs), n, p=np.exp(logs - logsumexp(logs)))
    codes = layout.codes[:, cells].copy()
    for variable, gap in enumerate(layout.gaps):
        gone = gap & (rng.random(n) < share * (0.5 + layout.codes[1, cells]))
        codes[variable, gone] = layout.levels[variable]
    counts = np.zeros([k + gap for k, gap in zip(layout.levels, layout.gaps, strict=True)])
    np.add.at(counts, tuple(codes), 1.0)
    return counts.reshape(-1)


def test_an_observed_cell_covers_the_complete_cells_that_its_gaps_leave_open():
    covers = GAPS.covers.toarray().reshape(4, 2, 3, 3, 2, 2)
    for a, b, c in itertools.product(range(4), range(2), range(3)):
        wanted = np.zeros((3, 2, 2))
        wanted[slice(None) if a == 3 else a, b, slice(None) if c == 2 else c] = 1
        assert np.array_equal(covers[a, b, c], wanted)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(12), GAPS.features])) == 10  # 12 cells less 2 of the product


def test_the_gradient_and_the_information_are_derivatives_of_the_likelihood():
    counts = sampled(GAPS, 500)
    theta = np.random.default_rng(1).normal(size=GAPS.features.shape[1]) / 3
    at = _Point(GAPS, counts, theta)
    for j, step in enumerate(np.eye(len(theta)) * 1e-5):
        above, below = (_Point(GAPS, counts, theta + sign * step) for sign in (1, -1))
        assert at.gradient[j] == pytest.approx((above.value - below.value) / 2e-5, abs=1e-4)
        assert at.information[j] == pytest.approx((below.gradient - above.gradient) / 2e-5, abs=1e-4)


def test_the_estimate_is_the_likelihood_s_maximum():
    counts = sampled(GAPS, 2_000)
    fit = fitted(GAPS, counts, 0.0)

    def loss(theta):
        at = _Point(GAPS, counts, theta)
        return -at.value, -at.gradient

    there = minimize(loss, np.zeros(len(fit.theta)), jac=True, method="BFGS", options={"gtol": 1e-6}).x
    assert fit.converged
    assert np.allclose(fit.theta, there, atol=1e-5)
    assert not fit.noise_covariance.any()


def test_without_gaps_it_is_the_poisson_regression_of_counts():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    layout = Layout((3, 2, 2), (False,) * 3)
    counts = sampled(layout, 3_000)
    theirs = sm.GLM(counts, sm.add_constant(layout.features), family=sm.families.Poisson()).fit()
    fit = fitted(layout, counts, 0.0)
    assert np.allclose(fit.theta, theirs.params[1:], atol=2e-3)  # the prior's deviation of 10 moves it by less
    assert np.allclose(np.sqrt(np.diag(fit.covariance)), theirs.bse[1:], rtol=2e-3)


def test_the_covariance_is_that_of_rubin_s_rule_with_many_imputations():
    counts, rng, draws = sampled(GAPS, 4_000, share=0.4), np.random.default_rng(2), 400
    fit, whole = fitted(GAPS, counts, 0.0), Layout(GAPS.levels, (False,) * 3)
    root, covers = np.linalg.cholesky(fit.covariance), GAPS.covers.toarray()
    found, within = [], []
    for _ in range(draws):
        theta = fit.theta + root @ rng.standard_normal(len(fit.theta))
        p = np.exp(GAPS.features @ theta)
        given = covers * p / (covers @ p)[:, None]
        completed = sum(rng.multinomial(int(n), each) for n, each in zip(counts, given, strict=True))
        again = fitted(whole, completed.astype(float), 0.0)
        found.append(again.theta)
        within.append(again.covariance)
    total = np.mean(within, axis=0) + (1 + 1 / draws) * np.cov(np.array(found).T)
    assert np.allclose(np.mean(found, axis=0), fit.theta, atol=0.15 * np.sqrt(np.diag(total)))
    assert np.allclose(np.diag(total), np.diag(fit.covariance), rtol=0.15)
    complete = np.diag(np.mean(within, axis=0))
    assert (np.diag(fit.covariance) > 1.05 * complete).sum() >= 5  # gaps cost something that the test could miss


def test_noise_moves_the_estimate_as_far_as_its_covariance_states():
    counts, rng, sigma = sampled(GAPS, 20_000), np.random.default_rng(3), 6.0
    moved = [fitted(GAPS, counts + sigma * rng.standard_normal(len(counts)), sigma) for _ in range(400)]
    spread = np.cov(np.array([each.theta for each in moved]).T)
    stated = fitted(GAPS, counts, sigma)
    assert np.allclose(np.diag(spread), np.diag(stated.noise_covariance), rtol=0.25)
    assert (np.diag(stated.covariance) > np.diag(stated.noise_covariance)).all()


@pytest.mark.parametrize("counts", [np.zeros(36), -np.ones(36), np.full(36, 1e-9), 30 * np.eye(36)[0] - 2])
def test_counts_that_are_noise_alone_never_raise(counts):
    layout = Layout((3, 2, 2), (True, False, True))
    fit = fitted(layout, counts[: layout.covers.shape[0]], 3.0)
    assert not fit.converged or np.isfinite(fit.theta).all()


def test_an_empty_pair_of_values_leaves_the_others_as_they_are():
    counts = sampled(Layout((3, 2, 2), (False,) * 3), 3_000).reshape(3, 2, 2)
    layout, two = Layout((3, 2, 2), (False,) * 3), Layout((2, 2, 2), (False,) * 3)
    counts[2] = 0
    fit, other = fitted(layout, counts.reshape(-1), 0.0), fitted(two, counts[:2].reshape(-1), 0.0)
    b, slopes = fit.logistic(np.column_stack([np.ones(12), layout.indicators(1)]), layout.codes[-1] == 1)
    b2, slopes2 = other.logistic(np.column_stack([np.ones(8), two.indicators(1)]), two.codes[-1] == 1)
    assert np.allclose(b, b2, atol=1e-2)
    assert np.allclose(fit.covariances(slopes)[0], other.covariances(slopes2)[0], rtol=1e-2)
    assert np.sqrt(fit.covariance.max()) > 5  # the empty value's parameters are as wide as the prior


def test_a_logistic_regression_of_cells_is_the_model_s_own_parameters():
    fit = fitted(GAPS, sampled(GAPS, 5_000), 2.0)
    X = np.hstack([np.ones((12, 1)), GAPS.indicators(0), GAPS.indicators(1)])
    b, slopes = fit.logistic(X, GAPS.codes[-1] == 1)
    own = [3, 6, 7, 8]  # the outcome, its products with both other values of the first variable, and with the second
    assert np.allclose(b, fit.theta[own], atol=1e-8)
    assert np.allclose(slopes, np.eye(len(fit.theta))[own], atol=1e-6)


def test_derivatives_of_odds_are_those_of_small_steps():
    fit = fitted(GAPS, sampled(GAPS, 5_000), 2.0)
    X, yes = np.hstack([np.ones((12, 1)), GAPS.indicators(1)]), GAPS.codes[-1] == 1

    def projected(logs):
        p = np.exp(logs - logsumexp(logs))
        return fitted_odds(X, p, yes)[0]

    def grouped(logs):
        return group_odds(logs, GAPS, 0)

    for of_logs, slopes in ((projected, fit.logistic(X, yes)[1]), (grouped, fit.function(grouped)[1])):
        for j, step in enumerate(np.eye(len(fit.theta)) * 1e-5):
            above, below = (of_logs(GAPS.features @ (fit.theta + sign * step)) for sign in (1, -1))
            assert slopes[:, j] == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_group_odds_are_means_over_the_other_variables():
    p = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(3, 2, 2)
    risk = (p.sum((0, 2))[None] * (p[..., 1] / p.sum(-1))).sum(1)
    assert group_odds(np.log(p.reshape(-1)), GAPS, 0) == pytest.approx(np.log(risk / (1 - risk)))
    other = (p.sum((1, 2))[:, None] * (p[..., 1] / p.sum(-1))).sum(0)
    assert group_odds(np.log(p.reshape(-1)), GAPS, 1) == pytest.approx(np.log(other / (1 - other)))
