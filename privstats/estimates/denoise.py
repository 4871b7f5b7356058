"""Estimate under Gaussian noise of known level, by post-processing.

At noise 0 functions return the plain estimate; :func:`denoised_solve` shrinks by an estimated penalty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from privstats.estimates.algebra import Array as Array
from privstats.estimates.algebra import algebra

_SMALLEST_SHARE = 1e-3
"""Floor of a noisy count, as a share of the mean count: keeps A / N finite without moving any real class."""
_MOST_SHIFT = 3.0
"""Standard errors that what is expected of a variance may count against what is seen of it."""
_CERTAIN = 2.0
"""Standard deviations of noise's energy from which an estimate is no longer in doubt."""
_AGREE, _DOUBT = 0.5, 0.25
"""Prior mean and prior standard deviation of b."""


@dataclass(frozen=True)
class Means:
    """Class means after shrinkage.

    Attributes:
        values, grand: class means ``(C, d)``, overall mean ``(d,)``.
        retained: remaining share of distances, ``(C,)``.

    Example:
        >>> from types import SimpleNamespace
        >>> from privstats.estimates.denoise import class_means
        >>> exact = SimpleNamespace(A=np.array([[4.0], [6.0]]), public=None, noise=lambda _: 0.0)
        >>> class_means(exact, np.array([2.0, 3.0])).grand.tolist()
        [2.0]
    """

    values: Array
    grand: Array
    retained: Array


def counts(N: Array, sigma: float) -> Array:
    """Return positive class counts, ``(C,)``, shrunk toward their mean by the known noise variance.

    Only spread that exceeds the noise's sum of squares by two standard deviations counts as real.

    Example:
        >>> from privstats.estimates.denoise import counts
        >>> counts(np.array([40.0, 60.0]), sigma=0.0).tolist()
        [40.0, 60.0]
    """
    if sigma == 0:
        return np.maximum(N, np.finfo(np.float64).tiny)
    C = len(N)
    mean = float(positive_part(N.mean(), sigma / math.sqrt(C)))
    excess = float(np.square(N - N.mean()).sum())
    expected = sigma**2 * (C - 1)
    real = excess > expected + 2 * sigma**2 * math.sqrt(2 * (C - 1))
    spread = (excess - expected) / (C - 1) if real else 0.0
    posterior = mean + spread / (spread + sigma**2) * (N - mean)
    error = math.sqrt(spread * sigma**2 / (spread + sigma**2))
    return np.maximum(positive_part(posterior, error), max(_SMALLEST_SHARE * mean, np.finfo(np.float64).tiny))


def class_means(evidence: NoisySums, n: Array) -> Means:
    """Return James-Stein class means: each pulled to the grand mean by the known noise variance in A.

    With one between-class variance t^2, class c retains ``t^2 / (t^2 + v_c)`` of its distance, v_c = sigma_A^2 / n_c^2.

    With public records, classes are pulled to ``grand + b^2 p_c`` instead (``grand + b p_c`` for b above 1). p_c is the
    centred public mean of class c; b >= 0 is the regression of released distances on public ones. b^2 classifies better
    (benchmarks/heads/numbers.md). The grand mean moves to the public one by its own James-Stein factor.

    Example:
        >>> from types import SimpleNamespace
        >>> from privstats.estimates.denoise import class_means
        >>> exact = SimpleNamespace(A=np.array([[4.0], [9.0]]), public=None, noise=lambda _: 0.0)
        >>> class_means(exact, np.array([2.0, 3.0])).values.tolist()
        [[2.0], [3.0]]
    """
    total = n.sum()
    grand = evidence.A.sum(axis=0) / total
    raw = evidence.A / n[:, None]
    sigma, (C, d) = evidence.noise("A"), raw.shape
    if sigma == 0 or C == 1:
        return Means(raw, grand, np.ones(C))
    distance = raw - grand
    variance = sigma**2 * (1 / n**2 - 2 / (n * total) + C / total**2)
    between = _between_variance(np.square(distance).mean(axis=1), variance, d)
    retained = between / (between + sigma**2 / n**2)
    if evidence.public is None:
        return Means(grand + retained[:, None] * distance, grand, retained)
    public_grand, directions = _directions(evidence.public, n)
    b = _agreement(directions, distance, variance)
    grand = _moved(public_grand, grand, sigma**2 * C / total**2, _AGREE**2 * _spread(directions))
    pull = min(b, 1.0) * b * (1 - retained)[:, None] * directions
    return Means(grand + pull + retained[:, None] * distance, grand, retained)


def public_means(rows: Array, labels: NDArray[np.intp], classes: int) -> Array:
    """Return class means ``(C, d)`` of public rows ``(m, d)``; NaN without a row.

    Example:
        >>> from privstats.estimates.denoise import public_means
        >>> public_means(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1]), classes=2).tolist()
        [[2.0], [5.0]]
    """
    count = np.bincount(labels, minlength=classes)
    sums = np.zeros((classes, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], np.nan)


def _directions(public: Array, n: Array) -> tuple[Array, Array]:
    """Return the count-weighted mean of public means, and distances to it; 0 without records."""
    weights = np.where(np.isnan(public).any(axis=1), 0.0, n)
    public_grand = weights @ np.nan_to_num(public, nan=0.0) / weights.sum()
    return public_grand, np.where(weights[:, None] > 0, public - public_grand, 0.0)


def _agreement(directions: Array, distance: Array, variance: Array) -> float:
    weighted = directions / variance[:, None]
    energy = float((weighted * directions).sum())
    b = (float((weighted * distance).sum()) + _AGREE / _DOUBT**2) / (energy + 1 / _DOUBT**2)
    return max(b, 0.0)


def _spread(directions: Array) -> float:
    classes = np.count_nonzero(directions.any(axis=1))
    return float(np.square(directions).sum()) / (directions.shape[1] * (classes - 1)) if classes > 1 else math.inf


def _moved(public_grand: Array, grand: Array, noise: float, expected: float) -> Array:
    off = grand - public_grand
    real = _between_variance(np.array([np.square(off).mean()]), np.array([noise]), len(off), expected)
    return np.asarray(public_grand + real / (real + noise) * off)


def within_scatter(evidence: NoisySums, n: Array) -> Array:
    """Return the pooled within-class scatter W = B - sum_c A_c A_c^T / n_c, ``(d, d)``, exactly symmetric.

    The noise sigma_A^2 I in each A_c A_c^T is added back. W need not be positive. Only one triangle of the symmetric B
    is read.

    Example:
        >>> from types import SimpleNamespace
        >>> from privstats.estimates.denoise import within_scatter
        >>> exact = SimpleNamespace(A=np.array([[4.0], [6.0]]), B=np.array([[40.0]]), noise=lambda _: 0.0)
        >>> within_scatter(exact, np.array([2.0, 3.0])).tolist()
        [[20.0]]
    """
    if evidence.B is None:
        raise ValueError("within_scatter needs B")
    scaled = evidence.A / np.sqrt(n)[:, None]
    W = algebra().less_gram(evidence.B, scaled)
    W.flat[:: len(W) + 1] += evidence.noise("A") ** 2 * (1 / n).sum()
    return W


def total_scatter(evidence: NoisySums, n: Array) -> Array:
    """Return the scatter about the grand mean, ``(d, d)``, exactly symmetric, as in FedCGS.

    Only one triangle of the symmetric B counts.

    Example:
        >>> from types import SimpleNamespace
        >>> from privstats.estimates.denoise import total_scatter
        >>> exact = SimpleNamespace(A=np.array([[4.0], [6.0]]), B=np.array([[40.0]]), noise=lambda _: 0.0)
        >>> total_scatter(exact, np.array([1.0, 3.0])).tolist()
        [[15.0]]
    """
    if evidence.B is None:
        raise ValueError("total_scatter needs B")
    total, everything = n.sum(), evidence.A.sum(axis=0)
    T = algebra().less_gram(evidence.B, everything[None] / math.sqrt(total))
    T.flat[:: len(T) + 1] += evidence.noise("A") ** 2 * len(n) / total
    return T


def _between_variance(squares: Array, noise: Array, d: int, expected: float = math.inf) -> float:
    """Return t^2 from mean squared distances with expectation t^2 + noise, by inverse-variance weights.

    An exponential prior of mean ``expected`` moves it by at most three standard errors.
    """
    _, noise_error = _weights_and_error(noise, d)
    shift = noise_error * (_MOST_SHIFT if noise_error >= _MOST_SHIFT * expected else noise_error / expected)
    between = 0.0
    for _ in range(2):
        weights, error = _weights_and_error(between + noise, d)
        between = float(positive_part(float(weights @ (squares - noise)) - shift, error))
    return between


def _weights_and_error(variance: Array, d: int) -> tuple[Array, float]:
    weights = 1 / np.square(variance)
    weights = weights / weights.sum()
    return weights, math.sqrt(2 / d * float(np.square(weights * variance).sum()))


_FAR_BELOW = 30.0
_MOST_SEEN = 0.98  # a mean of rows of norm 1 is no longer
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Spectrum:
    """A symmetric positive semi-definite estimate as eigenvalues and eigenvectors.

    Attributes:
        values, vectors: nonnegative eigenvalues ``(d,)``, eigenvectors ``(d, d)``.
        lost: estimated share of the signal (squared eigenvalue spread) that noise hides, 0..1.
        risk: estimated squared Frobenius error.

    Example:
        >>> from privstats.estimates.denoise import denoise_spectrum
        >>> spectrum = denoise_spectrum(np.diag([1.0, 9.0]), sigma=0.0)
        >>> spectrum.values.tolist(), spectrum.lost
        ([1.0, 9.0], 0.0)
    """

    values: Array
    vectors: Array
    lost: float
    risk: float


def positive_part(estimate: Array | float, error: Array | float) -> Array:
    """Return the posterior mean of a quantity >= 0, given an unbiased Gaussian estimate and its error.

    The mean of N(estimate, error^2) truncated to [0, inf): above 0 where error > 0, else ``max(estimate, 0)``.

    Example:
        >>> from privstats.estimates.denoise import positive_part
        >>> float(positive_part(-1.0, 0.0)), float(positive_part(9.0, 0.0))
        (0.0, 9.0)
        >>> round(float(positive_part(-1.0, 1.0)), 2)  # noise may have hidden a small positive value
        0.53
    """
    estimate, error = np.broadcast_arrays(np.asarray(estimate, np.float64), np.asarray(error, np.float64))
    safe = np.where(error > 0, error, 1.0)
    lower = -estimate / safe
    far = lower > _FAR_BELOW  # there the inverse Mills ratio less its argument cancels; its asymptote is 1 / argument
    near = np.where(far, 0.0, np.maximum(lower, -_FAR_BELOW))
    mills = np.exp(-np.square(near) / 2 - _LOG_SQRT_2PI - log_ndtr(-near))
    shifted = np.where(far, safe / np.where(far, lower, 1.0), estimate + safe * mills)
    return np.where(error > 0, np.maximum(shifted, 0.0), np.maximum(estimate, 0.0))


def seen_share(energy: float, by_noise: Array) -> float:
    """Return the share of an estimate to retain: 0 where its energy is no larger than that of noise, else up to 1.

    An estimate of nothing has an energy e that is a weighted sum of chi-squared variables, of mean ``e0 =
    sum(by_noise)`` and standard deviation ``s = sqrt(2 sum(by_noise^2))``. The share is ``(e - e0) / (2 s)``, between 0
    and 1: a preliminary test (Bancroft 1944) without a jump. An estimate is complete from two standard deviations on,
    as in :func:`counts`.

    Among d equal directions of noise v each, nothing then costs at most v for few and less than d v / 5 for many
    directions, in place of d v. The error of a reduced estimate is at most the larger of two, that of the complete one
    and that of 0, because it is convex. So only an estimate of energy below ``e0 + 2 s`` loses, usually one whose own
    energy is below ``2 sqrt(2 d) v``. From 8 directions on that is no more than the noise d v of an unbiased estimate.
    An estimate that is shrunk already has less noise and can lose more.

    Args:
        energy: e, the estimate's squared length.
        by_noise: squared length that noise alone gives it, by direction ``(k,)``.

    Example:
        >>> from privstats.estimates.denoise import seen_share
        >>> [seen_share(energy, np.ones(8)) for energy in (7.0, 12.0, 16.0, 40.0)]
        [0.0, 0.5, 1.0, 1.0]
        >>> seen_share(1e-9, np.zeros(8))  # without noise nothing is in doubt
        1.0
    """
    noise, spread = float(by_noise.sum()), math.sqrt(2 * float(np.square(by_noise).sum()))
    return min(1.0, max(0.0, (energy - noise) / (_CERTAIN * spread))) if spread > 0 else 1.0


def denoise_spectrum(matrix: Array, sigma: float, *, pull: bool = True) -> Spectrum:
    """Return the positive semi-definite matrix behind a symmetric one with GOE noise.

    Rotation-invariant estimate with corrected eigenvalues (Bun, Bouchaud and Potters 2017):
    ``xi_i = l_i - 2 s^2 sum_{j != i} (l_i - l_j) / ((l_i - l_j)^2 + s^2)``, s^2 = sigma^2 / 2, made monotone and >= 0.
    With ``pull`` eigenvalues then move the share ``sqrt(lost)`` to their mean.

    ``sigma`` is the noise standard deviation on the diagonal; sigma / sqrt 2 off it.

    Example:
        >>> from privstats.estimates.denoise import denoise_spectrum
        >>> truth, noise = np.diag([0.0, 0.0, 0.0, 90.0]), np.random.default_rng(0).normal(size=(4, 4))
        >>> noisy = truth + (noise + noise.T) / 2
        >>> spectrum = denoise_spectrum(noisy, sigma=1.0, pull=False)
        >>> bool((spectrum.values >= 0).all()), abs(spectrum.values[-1] - 90.0) < 5.0
        (True, np.True_)
    """
    from sklearn.isotonic import isotonic_regression  # slow to import, and measuring does not need it

    values, vectors = algebra().eigh(matrix)
    if sigma == 0:
        return Spectrum(np.maximum(values, 0.0), vectors, 0.0, 0.0)
    d, s2 = len(values), sigma**2 / 2
    corrected = values - 2 * s2 * _repulsion(values, s2)
    xi = np.maximum(isotonic_regression(corrected), 0.0)
    noise = s2 * d * (d + 1)
    signal = max(float(np.square(values - values.mean()).sum()) - noise, 0.0)
    spread = float(np.square(xi - xi.mean()).sum())
    lost = min(1.0, max(_least_lost(signal, noise, d), 1 - spread / signal)) if signal > 0 else 1.0
    if pull:
        kappa = math.sqrt(lost)
        xi = (1 - kappa) * xi + kappa * xi.mean()
    return Spectrum(xi, vectors, lost, min(noise, lost * signal) if signal > 0 else noise)


def _repulsion(values: Array, s2: float) -> Array:
    """Return ``sum_j (l_i - l_j) / ((l_i - l_j)^2 + s^2)`` of each value, in tiles that fit a core's cache."""
    out = np.empty_like(values)
    rows = max(1, _TILE // len(values))
    for start in range(0, len(values), rows):
        gaps = values[start : start + rows, None] - values
        squares = np.square(gaps)
        squares += s2
        gaps /= squares
        gaps.sum(axis=1, out=out[start : start + rows])
    return out


def _least_lost(signal: float, noise: float, d: int) -> float:
    # The estimated signal can be too large by chance, so some of it counts as lost: two standard deviations of the
    # noise's sum of squares, over the signal; or half the loss of linear shrinkage, if that is less.
    return min(0.5 * noise / (signal + noise), 4 / math.sqrt(d * (d + 1)) * noise / signal)


_SHARES = np.exp(np.arange(-12.0, 0.25, 0.5))
_FLOOR = 1e-12
_TILE = 1 << 15
"""Entries of a tile: two of float64 are 512 KiB, part of a core's second cache."""
_TINY = float(np.finfo(np.float64).tiny)
_LEAST_ENERGY = 1e-100  # so that targets which are all 0 leave variances that can be divided


@dataclass(frozen=True)
class NoisyGram:
    """Least-squares sums and their noise.

    Attributes:
        G, h: ``(d, d)`` and ``(d, T)``.
        q: sum of squared targets.
        sigma_G, sigma_h, sigma_q: noise levels; G has variance sigma_G^2 on its diagonal, half of it off.
        records: n, or None.

    Example:
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.0, "sigma_h": 0.0, "sigma_q": 0.0}
        >>> sums = NoisyGram(G=np.diag([2.0, 4.0]), h=np.array([[2.0], [8.0]]), q=20.0, records=10.0, **noise)
        >>> np.linalg.solve(sums.G, sums.h).ravel().tolist()
        [1.0, 2.0]
    """

    G: Array
    h: Array
    q: float
    sigma_G: float
    sigma_h: float
    sigma_q: float
    records: float | None

    def about(self, weights: Array) -> NoisyGram:
        """Return the sums with residuals ``y - weights' x`` in the place of targets; one target, weights ``(d,)``.

        Noise in G enters ``h - G w`` by ``sigma_G |w|`` at most per entry, and q by ``sigma_G |w|^2``.
        """
        w, h, length = weights, self.h[:, 0], float(np.sqrt(weights @ weights))
        return replace(
            self,
            h=(h - self.G @ w)[:, None],
            q=float(self.q - 2 * (w @ h) + w @ self.G @ w),
            sigma_h=math.hypot(self.sigma_h, self.sigma_G * length),
            sigma_q=math.hypot(self.sigma_q, 2 * length * self.sigma_h, self.sigma_G * length**2),
        )


@dataclass(frozen=True)
class NoisyMean:
    """Mean ``(d,)`` of norm-1 rows with noise per entry, as an estimate of their second moments.

    Example:
        >>> from privstats.estimates.denoise import NoisyMean
        >>> NoisyMean(np.array([0.0, 0.8, 0.0, 0.0]), noise=0.0).spectrum[1].round(2).tolist()
        [0.73, 0.09, 0.09, 0.09]
    """

    mean: Array
    noise: float

    @property
    def spectrum(self) -> tuple[Array, Array]:
        """Orthonormal columns ``(d, d)``, the first along the mean, and the rows' eigenvalues ``(d,)`` of sum 1.

        The first exceeds the others by ``L^2 / |m|^2``, with the noiseless squared length ``L = |m|^2 - d noise^2``,
        between 0 and .98.
        """
        d, square = len(self.mean), float(self.mean @ self.mean)
        seen = min(square - d * self.noise**2, _MOST_SEEN)
        if seen <= 0:
            return np.eye(d), np.full(d, 1 / d)
        turn = self.mean / math.sqrt(square)
        turn[0] += math.copysign(1.0, turn[0])
        ahead = seen * (seen / square)
        values = np.full(d, (1 - ahead) / d)
        values[0] += ahead
        return np.eye(d) - np.outer(turn, turn) * (2 / (turn @ turn)), values


@dataclass(frozen=True)
class WienerFit:
    """Weights, and the estimates behind them.

    Attributes:
        weights, penalty: ``(d, T)``, and s_noise^2 / s_w^2, given or implied.
        values, gram: eigenvalues of the Gram estimate, and ``"denoised"`` or ``"linear"``.
        log_evidence: of h under that estimate.
        gains, slopes: factors of h in the eigenbasis, and derivatives by eigenvalue, ``(d,)``.

    Example:
        >>> from privstats.estimates.denoise import NoisyGram, denoised_solve
        >>> noise = {"sigma_G": 0.0, "sigma_h": 0.0, "sigma_q": 0.0}
        >>> sums = NoisyGram(G=np.diag([2.0, 4.0]), h=np.array([[2.0], [8.0]]), q=20.0, records=10.0, **noise)
        >>> fit = denoised_solve(sums, penalty=0.5)
        >>> fit.weights.round(3).ravel().tolist(), fit.penalty  # h / (G + 0.5)
        ([0.8, 1.778], 0.5)
    """

    weights: Array
    penalty: float
    values: Array
    log_evidence: float
    gram: str
    gains: Array
    slopes: Array


def denoised_solve(evidence: NoisyGram, penalty: float | None = None) -> WienerFit:
    """Return the posterior mean of the weights under a Gaussian prior, given noisy G and h.

    ``w = sum_i q_i g_i / (g_i^2 + (s_noise^2 / s_w^2) g_i + tau^2 / s_w^2) q_i^T h`` with G-hat = sum_i g_i q_i q_i^T
    and ``tau^2 = sigma_h^2 + s_w^2 risk(G-hat) / d``, averaged over (s_w^2, s_noise^2) by how well each pair explains
    h. G-hat is the denoised spectrum or linear shrinkage, whichever explains h better.

    ``evidence`` is centred, without a constant; ``penalty`` is s_noise^2 / s_w^2, or None to estimate it.

    Example:
        >>> from privstats.estimates.denoise import NoisyGram, denoised_solve
        >>> noise = {"sigma_G": 0.0, "sigma_h": 0.0, "sigma_q": 0.0}
        >>> sums = NoisyGram(G=np.diag([2.0, 4.0]), h=np.array([[2.0], [8.0]]), q=20.0, records=10.0, **noise)
        >>> denoised_solve(sums, penalty=0.0).weights.round(3).ravel().tolist()
        [1.0, 2.0]
    """
    grams = {"denoised": denoise_spectrum(evidence.G, evidence.sigma_G, pull=False)}
    if evidence.sigma_G > 0:
        grams["linear"] = _linear_shrinkage(evidence.G, evidence.sigma_G)
    fits = [_solve(name, gram, evidence, penalty) for name, gram in grams.items()]
    return max(fits, key=lambda fit: fit.log_evidence)


def adassp_penalty(values: Array, sigma_G: float, failure: float = 0.05) -> float:
    """Return AdaSSP's penalty from a noisy Gram matrix's eigenvalues (Wang 2018, algorithm 2), at no further budget.

    ``max(0, sigma_G sqrt(d ln(2 d^2 / rho)) - lambda_min)``, rho = ``failure``; lambda_min is the smallest noisy
    eigenvalue, floored at 0, and public because G is.

    Example:
        >>> from privstats.estimates.denoise import adassp_penalty
        >>> values = np.array([1.0, 50.0])  # of a noisy Gram matrix
        >>> adassp_penalty(values, sigma_G=0.0), round(adassp_penalty(values, sigma_G=2.0), 2)
        (0.0, 5.37)
    """
    d = len(values)
    return max(0.0, sigma_G * math.sqrt(d * math.log(2 * d * d / failure)) - max(0.0, float(values.min())))


def _solve(name: str, gram: Spectrum, evidence: NoisyGram, penalty: float | None) -> WienerFit:
    """Fit by the likelihood that ``q_i^T h`` is N(0, s_w^2 (g_i^2 + risk / d) + s_noise^2 g_i + sigma_h^2).

    Its maximum diverges where noise hides h; the grid average does not.
    """
    g, rotated, (d, T) = gram.values, algebra().product(gram.vectors.T, evidence.h), evidence.h.shape
    squares = np.square(rotated).mean(axis=1)
    weight, noise = _variances(g, evidence, penalty)
    variance = weight[:, None] * (np.square(g) + gram.risk / d) + noise[:, None] * g + evidence.sigma_h**2 + _TINY
    logs = -T / 2 * (np.log(variance) + squares / variance).sum(axis=1)
    belief = np.exp(logs - logs.max())
    log_evidence = float(logs.max() + np.log(belief.mean()))
    belief /= belief.sum()
    gain = belief @ (weight[:, None] * g / variance)
    falling = weight[:, None] * np.square(g) / variance  # of var - g var' = var - 2 weight g^2 - noise g
    slope = belief @ (weight[:, None] * (1 - 2 * falling - noise[:, None] * g / variance) / variance)
    implied = float(belief @ noise / (belief @ weight)) if penalty is None else penalty
    return WienerFit(
        algebra().product(gram.vectors, gain[:, None] * rotated), implied, g, log_evidence, name, gain, slope
    )


def _variances(g: Array, evidence: NoisyGram, penalty: float | None) -> tuple[Array, Array]:
    """Return pairs (s_w^2, s_noise^2) on a grid of shares of q.

    Neither ``T s_w^2 tr G`` nor ``T s_noise^2 n`` exceeds q plus two standard deviations of its noise.
    """
    d, T = evidence.h.shape
    energy = max(max(evidence.q, 0.0) + 2 * evidence.sigma_q, _LEAST_ENERGY)
    weight = energy / (T * max(float(g.sum()), _FLOOR)) * _SHARES
    if penalty is not None:
        return weight, penalty * weight
    noise = energy / (T * (evidence.records or d)) * _SHARES
    return np.repeat(weight, len(noise)), np.tile(noise, len(weight))


def _linear_shrinkage(G: Array, sigma: float) -> Spectrum:
    values, vectors = algebra().eigh(G)
    d = len(values)
    noise = sigma**2 / 2 * d * (d + 1)
    centre = max(float(values.mean()), 0.0)
    signal = max(float(np.square(values - values.mean()).sum()) - noise, 0.0)
    keep = signal / (signal + noise)
    return Spectrum(np.maximum(centre + keep * (values - centre), 0.0), vectors, 1 - keep, noise * keep)


class NoisySums(Protocol):
    """Class sums with noise levels."""

    @property
    def A(self) -> Array:
        """Sums of rows, ``(C, d)``."""
        ...

    @property
    def B(self) -> Array | None:
        """Second moment, ``(d, d)``, or None."""
        ...

    @property
    def public(self) -> Array | None:
        """Public class means, ``(C, d)``, NaN without records; or None."""
        ...

    def noise(self, statistic: str) -> float:
        """Return the noise standard deviation of N, A or B."""
        ...


@dataclass(frozen=True)
class NoisyClassSums:
    """(N, A, B) of rows of norm 1, in real units, with their noise.

    Attributes:
        N, A, B: ``(C,)``, ``(C, d)``, symmetric ``(d, d)``.
        sigma: noise standard deviations; B has sigma^2 on its diagonal and half of it off.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> sigma = {"N": 1.0, "A": 0.5, "B": 0.5}
        >>> sums = NoisyClassSums(N=np.array([60.0, 40.0]), A=np.eye(2) * 50, B=np.eye(2) * 50, sigma=sigma)
        >>> sums.records
        100.0
    """

    N: Array
    A: Array
    B: Array
    sigma: Mapping[str, float]
    public: ClassVar[None] = None  # none, for NoisySums

    def noise(self, statistic: str) -> float:
        """Return a statistic's sigma."""
        return float(self.sigma[statistic])

    @property
    def records(self) -> float:
        """n^ = max(tr B, 1): the trace counts rows of norm 1."""
        return max(float(np.trace(self.B)), 1.0)
