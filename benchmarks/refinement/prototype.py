"""Whole courses in real numbers with Gaussian noise: what exact integers and masking are measured against.

Not the library's way: no integers, no shares, no plan. The recipe itself (`privstats.estimates`) is the library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import heads
from privstats.estimates import denoise, recipes, regression, softmax
from privstats.estimates.denoise import Array, NoisyClassSums, NoisyGram, NoisyMean
from privstats.estimates.recipes import RidgeRecipe
from privstats.heads.evidence import ClassEvidence

__all__ = ["Played", "class_release", "gradient", "play", "play_ridge"]


@dataclass(frozen=True)
class Played:
    """A prefix of a course: weights ``(C, k)`` in the published coordinates, the map, and noisy class counts."""

    rounds: int
    weights: Array
    whitening: softmax.SoftmaxWhitening
    counts: Array

    def accuracy(self, X: Array, y: NDArray[np.intp]) -> float:
        """Share of rows that are told right."""
        return float(((self.whitening.rows(X) @ self.weights.T).argmax(axis=1) == y).mean())


def _symmetric(rng: np.random.Generator, d: int, sigma: float) -> Array:
    upper = np.triu(rng.standard_normal((d, d)), 1) / math.sqrt(2)
    return sigma * (upper + upper.T + np.diag(rng.standard_normal(d)))


def class_release(
    recipe: recipes.SoftmaxRecipe, X: Array, y: NDArray[np.intp], rng: np.random.Generator
) -> NoisyClassSums:
    """(N, A, B) of rows of norm 1 with the recipe's noise, add-remove."""
    sigma = {name: 1 / (recipe.release_mu * math.sqrt(share)) for name, share in recipe.release_shares.items()}
    C, d = recipe.classes, recipe.features
    one_hot = np.eye(C)[y]
    return NoisyClassSums(
        N=np.bincount(y, minlength=C) + sigma["N"] * rng.standard_normal(C),
        A=one_hot.T @ X + sigma["A"] * rng.standard_normal((C, d)),
        B=X.T @ X + _symmetric(rng, d, sigma["B"]),
        sigma=sigma,
    )


def gradient(U: NDArray[Any], y: NDArray[np.intp], weights: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Sums over records of ``q r u'`` and of ``q (1 - |p|^2)``, r = p - e_y shortened to the clip."""
    scores = U @ weights.T
    scores -= scores.max(axis=1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    flat = 1 - np.einsum("ij,ij->i", p, p)
    p[np.arange(len(y)), y] -= 1
    norm = np.sqrt(np.einsum("ij,ij->i", p, p))
    q = np.minimum(1.0, recipes.GRADIENT_CLIP / np.maximum(norm, 1e-30))
    return (p * q[:, None]).T @ U, float(q @ flat)


def play(
    recipe: recipes.SoftmaxRecipe,
    X: Array,
    y: NDArray[np.intp],
    rng: np.random.Generator,
    *,
    sums: Callable[[softmax.SoftmaxWhitening, Array], tuple[NDArray[Any], float]] | None = None,
    floor: float | None = None,
) -> Iterator[Played]:
    """A course, round by round; the first prefix has no gradient round yet.

    Args:
        recipe, X, y: the course's.
        rng: of the noise.
        sums: what a round measures: the gradient at the filter's weights in the published coordinates, and kappa;
            :func:`gradient` in float32 if omitted.
        floor: of the whitening; the recipe's if omitted.
    """
    first = class_release(recipe, X, y, rng)
    whitening = softmax.SoftmaxWhitening.of(first, recipe.floor if floor is None else floor)
    state = softmax.started(recipe, first, whitening)
    origin = np.zeros(recipe.features)
    lda = heads.LDA()._solve(ClassEvidence(first.N, first.A, first.B, None, None, origin, first.sigma))
    counts = denoise.counts(first.N, first.sigma["N"])
    U = whitening.rows(X).astype(np.float32)
    shares, mu = recipes.GRADIENT_SHARES, recipe.round_mu
    sigma, sigma_kappa = (s / (mu * math.sqrt(shares[n])) for n, s in (("g", recipes.GRADIENT_CLIP), ("kappa", 1.0)))
    for done in range(recipe.rounds + 1):
        weights = softmax.averaged(whitening, state.weights, lda.coef, lda.intercept)
        yield Played(done, whitening.published(weights), whitening, counts)
        if done < recipe.rounds:
            if sums is None:
                G, kappa = gradient(U, y, whitening.published(state.weights).astype(np.float32))
            else:
                G, kappa = sums(whitening, state.weights)
            G = G + sigma * rng.standard_normal(G.shape)
            kappa += sigma_kappa * rng.standard_normal()
            state = softmax.refined(recipe, first, whitening, state, G, kappa, sigma)


def play_ridge(recipe: RidgeRecipe, X: Array, y: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Return a head's weights ``(d,)`` after no, one, ... gradient rounds; X and y are clipped already."""
    bounds = {"G": recipe.clip_norm**2, "h": recipe.clip_norm * recipe.target_bound, "q": recipe.target_bound**2}
    sigma = {n: bounds[n] / (recipe.release_mu * math.sqrt(share)) for n, share in recipe.release_shares.items()}
    d = recipe.features
    sums = NoisyGram(
        G=X.T @ X + _symmetric(rng, d, sigma["G"]),
        h=(X.T @ y + sigma["h"] * rng.standard_normal(d))[:, None],
        q=float(y @ y + sigma["q"] * rng.standard_normal()),
        sigma_G=sigma["G"],
        sigma_h=sigma["h"],
        sigma_q=sigma["q"],
        records=float(recipe.records),
    )
    mean = None
    if recipe.mean_share:
        told = 1 / (len(X) * recipe.mu * math.sqrt(recipe.mean_share))
        norms = np.linalg.norm(X, axis=1)[:, None]
        mean = NoisyMean((X / np.where(norms == 0, 1, norms)).mean(axis=0) + told * rng.standard_normal(d), told)
    whitening = regression.RidgeWhitening.of(recipe, sums, mean)
    state = regression.ridge_started(recipe, sums, whitening)
    shares, mu = recipe.round_shares, recipe.round_mu
    for done in range(recipe.rounds + 1):
        yield regression.ridge_settled(recipe, whitening, state)
        if done < recipe.rounds:
            U = X @ regression.ridge_map(recipe, whitening, state)
            U /= np.maximum(np.linalg.norm(U, axis=1), 1.0)[:, None]
            residual = y - X @ whitening.published(state.weights)
            noise = state.clip / (mu * math.sqrt(shares["g"]))
            G = np.clip(residual, -state.clip, state.clip) @ U + noise * rng.standard_normal(d)
            count = 1 / (mu * math.sqrt(shares["kappa"]))
            within = float((np.abs(residual) <= state.clip).sum() + count * rng.standard_normal())
            state = regression.ridge_refined(recipe, whitening, state, G, within, (noise, count))
