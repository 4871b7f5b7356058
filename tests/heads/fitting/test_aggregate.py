"""Averages by estimated risk are unbiased and lose to none of their members; a constant column is eliminated first."""

from dataclasses import replace

import numpy as np
import pytest

from privstats.heads.evidence import GramEvidence, release_gram
from privstats.heads.fitting import aggregate as module
from privstats.heads.fitting.aggregate import CentredSums, aggregate
from privstats.heads.fitting.least_squares import Solver, eliminate_constant, solve
from tests.heads.conftest import ridge_release

CONSTANT = 1.5


def noisy(X, Y, sigma, rng, constant=CONSTANT):
    """Sums of records with noise; rows end in the constant, where there is one."""
    d, T = X.shape[1], Y.shape[1]
    E = rng.standard_normal((d, d))
    return GramEvidence(
        G=X.T @ X + sigma * (E + E.T) / 2,
        h=X.T @ Y + sigma * rng.standard_normal((d, T)),
        q=float(np.square(Y).sum()),
        sigma_G=sigma,
        sigma_h=sigma,
        sigma_q=sigma,
        records=None if constant else float(len(X)),
        feature_means=np.zeros(d),
        target_means=np.zeros(T),
        constant=constant,
    )


def records(n: int, T: int, constant: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) * [1.0, 0.5, 0.3] + [-0.8, 0.4, 0.0]
    Y = X @ rng.standard_normal((3, T)) + 5.0 + 0.2 * rng.standard_normal((n, T))
    return (np.c_[X, np.full(n, CONSTANT)] if constant else X), Y


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("kind", ["shifted", "posterior"])
def test_what_weights_risk_is_estimated_without_bias(constant: bool, kind: str) -> None:
    """Over draws of the noise; the sums' own fit, which is no estimate of it, is off by far more than the error."""
    X, Y = records(2_000, 2, constant)
    G, h = X.T @ X, X.T @ Y
    rng, off, plain = np.random.default_rng(1), [], []
    for _ in range(1_500):
        sums = noisy(X, Y, 60.0, rng, CONSTANT if constant else None)
        centred = eliminate_constant(sums)
        problem = CentredSums.of(sums, centred)
        gains, slopes = gains_of(problem, kind)
        weights = gains[:, None] * problem.sums.h
        full, none = (in_columns(problem, centred, each, constant) for each in (weights, 0 * weights))
        true = float((full * (G @ full - 2 * h)).sum() - (none * (G @ none - 2 * h)).sum())
        off.append(problem.risk(gains, slopes) - problem.risk(0 * gains, 0 * gains) - true)
        plain.append(float((weights * (problem.values[:, None] * weights - 2 * problem.sums.h)).sum()) - true)
    error = np.std(off) / np.sqrt(len(off))
    assert abs(np.mean(off)) < 4 * error
    assert abs(np.mean(plain)) > 5 * error


def gains_of(problem: CentredSums, kind: str) -> tuple[np.ndarray, np.ndarray]:
    values = problem.values
    if kind == "shifted":
        return 1 / (values + 250.0), -1 / np.square(values + 250.0)
    under = np.square(values) + 90_000.0
    return values / under, (90_000.0 - np.square(values)) / np.square(under)


def in_columns(problem: CentredSums, centred: GramEvidence, weights: np.ndarray, constant: bool) -> np.ndarray:
    back = problem.vectors @ weights
    return np.vstack([back, (centred.target_means - centred.feature_means @ back) / CONSTANT]) if constant else back


@pytest.mark.parametrize("sigma", [20.0, 2_000.0])
def test_the_first_estimate_is_that_of_adassp(sigma: float) -> None:
    X, Y = records(500, 1, True)
    sums = noisy(X, Y, sigma, np.random.default_rng(2))
    problem = CentredSums.of(sums, eliminate_constant(sums))
    first = next(iter(module._shifted(problem, 0.0)))
    expected = solve(sums, "adassp", 0.0)
    assert first.penalty == pytest.approx(expected.penalty)
    np.testing.assert_allclose(problem.vectors @ (first.gains[:, None] * problem.sums.h), expected.weights[:-1])


@pytest.mark.parametrize("sigma_G", [0.0, 3.0])
def test_shares_are_those_of_a_distribution_and_weights_are_between_the_estimates(sigma_G: float) -> None:
    X, Y = records(500, 1, False)
    sums = noisy(X, Y, 3.0, np.random.default_rng(3), None)
    sums = GramEvidence(**{**vars(sums), "sigma_G": sigma_G})
    found = aggregate(sums, sums, None)
    alone = [solve(sums, "adassp", "auto").weights, solve(sums, "wiener", "auto").weights]
    assert np.abs(found.weights).max() <= 1.01 * max(np.abs(each).max() for each in alone)
    assert np.isfinite(found.penalty)


def table(n: int, rng: np.random.Generator) -> np.ndarray:
    """Columns as tables have them: numbers with a long tail brought to -1 to 1 by their range, and categories."""
    tails = rng.exponential(size=(n, 2)) / 12.0
    numbers = rng.uniform(-1, 1, (n, 2))
    return np.asarray(np.clip(np.c_[2 * tails - 1, numbers, np.eye(5)[rng.integers(5, size=n)]], -1, 1))


@pytest.mark.parametrize(
    ("coefficients", "sigma", "rival"), [((0.9, 0, 0, 0), 40.0, "wiener"), ((0, 0, 0.5, -0.4), 150.0, "adassp")]
)
def test_where_either_of_two_solvers_is_poor_the_average_is_not(coefficients, sigma, rival):
    """A target that follows a column of little variance is lost to the posterior mean, one of much to AdaSSP."""
    solvers: tuple[Solver, ...] = ("auto", "wiener", "adassp")
    scores: dict[str, list[float]] = {solver: [] for solver in solvers}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.c_[table(4_000, rng), np.full(4_000, CONSTANT)]
        y = X[:, :4] @ coefficients + 0.05 * rng.standard_normal(len(X))
        sums = noisy(X, y[:, None], sigma, rng)
        for solver in solvers:
            residual = y - X @ solve(sums, solver, 0.0 if solver == "adassp" else "auto").weights[:, 0]
            scores[solver].append(1 - residual.var() / y.var())
    mean = {solver: float(np.mean(found)) for solver, found in scores.items()}
    assert mean["auto"] > mean[rival] + 0.05
    assert mean["auto"] > max(mean.values()) - 0.03


def test_a_count_lost_in_its_noise_leaves_means_near_the_origin():
    rng = np.random.default_rng(0)
    exact = release_gram(ridge_release(np.c_[np.zeros((50, 3)), np.full(50, 0.5)], np.zeros(50)), None)
    means = []
    for _ in range(200):
        upper = np.triu(rng.standard_normal((4, 4)))
        G = exact.G + 100 * (np.triu(upper, 1) + np.triu(upper, 1).T + np.diag(np.diag(upper)) * 2**0.5)
        h = 100 * rng.standard_normal((4, 1))
        centred = eliminate_constant(replace(exact, G=G, h=h, sigma_G=100 * 2**0.5, sigma_h=100.0, constant=0.5))
        means.append(np.abs(np.r_[centred.feature_means, centred.target_means]).mean())
    assert np.mean(means) < 0.07
