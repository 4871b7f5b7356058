"""Releases for head tests: exact float moments plus Gaussian noise of a known level, without the protocol."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from privstats.heads.registry import head_class
from privstats.kinds import ClassSchema, RidgeSchema

_QUICK = {"per_class": 20, "max_rounds": 1}


@dataclass(frozen=True)
class Moments:
    """Class moments in real units."""

    N: np.ndarray
    A: np.ndarray
    B: np.ndarray | None = None
    S: np.ndarray | None = None
    D: np.ndarray | None = None


@dataclass(frozen=True)
class GramMoments:
    """Ridge moments in real units, totals and per fold."""

    fold_G: np.ndarray
    fold_h: np.ndarray
    fold_q: np.ndarray

    @property
    def G(self) -> np.ndarray:
        return self.fold_G.sum(axis=0)

    @property
    def h(self) -> np.ndarray:
        return self.fold_h.sum(axis=0)

    @property
    def q(self) -> np.ndarray:
        return self.fold_q.sum(axis=0)


@dataclass(frozen=True)
class Plan:
    """The part of a plan that heads read."""

    schema: ClassSchema | RidgeSchema
    merge: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FakeRelease:
    """The part of a release that heads read."""

    plan: Plan
    moments: Any
    sigma: dict[str, float] = field(default_factory=dict)
    suppressed: tuple[int, ...] = ()


def quick(name: str) -> Any:
    """A head of the registry at its defaults, or with few samples and rounds where it is trained."""
    cls = head_class(name)
    return cls(**{key: value for key, value in _QUICK.items() if key in inspect.signature(cls).parameters})


def class_release(
    X: np.ndarray,
    y: np.ndarray,
    statistics: str = "NAB",
    sigma: dict[str, float] | None = None,
    rng: np.random.Generator | None = None,
    *,
    classes: int | None = None,
    clip_norm: float | None = None,
    transform: tuple[Any, ...] = (),
    suppressed: tuple[int, ...] = (),
) -> FakeRelease:
    """A release of records with labels 0..C-1; ``sigma`` adds noise per statistic."""
    C, d = classes or int(y.max()) + 1, X.shape[1]
    radius = clip_norm or max(float(np.sqrt((X * X).sum(axis=1).max())), 1e-9) * (1 + 1e-9)
    onehot = np.eye(C)[y]
    S = np.einsum("nc,ni,nj->cij", onehot, X, X) if "S" in statistics else None
    exact = {
        "N": onehot.sum(axis=0),
        "A": onehot.T @ X,
        "B": X.T @ X if "B" in statistics else None,
        "S": S,
        "D": onehot.T @ (X * X) if "D" in statistics else None,
    }
    sigma = sigma or {}
    noisy = {name: _perturb(name, value, sigma.get(name, 0.0), rng) for name, value in exact.items()}
    if noisy["S"] is not None:
        noisy["B"] = noisy["S"].sum(axis=0)
        noisy["D"] = np.einsum("cii->ci", noisy["S"])
    schema = ClassSchema(C, d, statistics, radius, transform=transform)
    return FakeRelease(Plan(schema), Moments(**noisy), {s: sigma.get(s, 0.0) for s in schema.statistics}, suppressed)


def ridge_release(X, Y, sigma=None, rng=None, *, folds=1, transform=()):
    """A release of ridge sums of rows that already went through ``transform``; record i lies in fold i mod F."""
    Y = Y.reshape(len(Y), -1)
    parts = [(X[f::folds], Y[f::folds]) for f in range(folds)]
    sigma = sigma or {}
    exact = (
        np.stack([a.T @ a for a, _ in parts]),
        np.stack([a.T @ b for a, b in parts]),
        np.array([float((b * b).sum()) for _, b in parts]),
    )
    noisy = [_perturb(name, value, sigma.get(name, 0.0), rng) for name, value in zip("Ghq", exact, strict=True)]
    radius = 2.0 ** int(np.ceil(np.log2(np.sqrt((X * X).sum(axis=1).max()))))  # a constant of .5 is on the grid
    bound = max(float(np.sqrt((Y * Y).sum(axis=1).max())), 1e-9)
    schema = RidgeSchema(X.shape[1], Y.shape[1], clip_norm=radius, target_bound=bound, folds=folds, transform=transform)
    return FakeRelease(Plan(schema), GramMoments(*noisy), {s: sigma.get(s, 0.0) for s in "Ghq"})


def _perturb(name: str, value: np.ndarray | None, sigma: float, rng: np.random.Generator | None) -> Any:
    if value is None or sigma == 0 or rng is None:
        return value
    if name in "BSG":
        upper = np.triu(rng.standard_normal(value.shape))
        strict = np.triu(upper, 1) * 2**-0.5
        diagonal = np.einsum("...i,ij->...ij", np.diagonal(upper, axis1=-2, axis2=-1), np.eye(value.shape[-1]))
        return value + sigma * (diagonal + strict + np.swapaxes(strict, -1, -2))
    return value + sigma * rng.standard_normal(value.shape)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu of the exact Gaussian curve, by bisection; an independent copy for these tests."""

    def excess(mu: float) -> float:
        lower = np.exp(epsilon + norm.logcdf(-epsilon / mu - mu / 2))
        return float(norm.cdf(-epsilon / mu + mu / 2) - lower - delta)

    return float(brentq(excess, 1e-4, 60))


def record_noise(epsilon: float, radius: float = 1.0, delta: float = 1e-5) -> dict[str, float]:
    """Record-level add-remove noise for (N, A, B) at the default shares."""
    mu, shares = gaussian_mu(epsilon, delta), {"N": 0.02, "A": 0.85, "B": 0.13}
    bounds = {"N": 1.0, "A": radius, "B": radius**2}
    return {name: bounds[name] / (mu * share**0.5) for name, share in shares.items()}


def gaussian_blobs(n=600, d=6, classes=4, seed=0, spread=2.0):
    """Rows of Gaussian classes with their own means and covariances, and their labels."""
    rng = np.random.default_rng(seed)
    means = spread * rng.standard_normal((classes, d))
    shapes = rng.standard_normal((classes, d, d)) / d**0.5 + np.eye(d)
    y = rng.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    return means[y] + np.einsum("nij,nj->ni", shapes[y], rng.standard_normal((n, d))), y


@pytest.fixture(scope="session")
def blobs() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """A sampler of Gaussian classes."""
    return gaussian_blobs


@pytest.fixture(scope="session")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """scikit-learn's digits, rows centred and scaled to norm 1: X_train, X_test, y_train, y_test."""
    X, y = load_digits(return_X_y=True)
    X = X - X.mean(axis=1, keepdims=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return tuple(train_test_split(X, y, test_size=0.25, random_state=0, stratify=y))
