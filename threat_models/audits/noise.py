"""Is the noise in a release what the plan says? A residual check on one release with known input.

The records are known, so release minus exact sums is the noise: its spread and shape are tested per statistic. It
checks the whole pipeline, masking and lifting included, and no secret is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, kstest

from privstats.encoding import flatten
from privstats.moments import ClassMoments, RidgeMoments
from privstats.randomness import Generator
from privstats.release import Release
from threat_models.audits.target import target_of
from threat_models.audits.verdict import Report, Value

__all__ = ["audit_noise"]

_COLUMNS = ("statistic", "entries", "claimed", "at least", "found", "p spread", "p shape")


def audit_noise(
    release: Release, exact: ClassMoments | RidgeMoments, rng: Generator, *, confidence: float = 0.999
) -> Report:
    """Test the residuals of a release against its claimed noise.

    A row is violated when the whole confidence interval of sigma lies below the guaranteed sigma, or when the
    residuals' distribution is not the claimed one (Kolmogorov-Smirnov): in both cases beyond ``confidence``, corrected
    for the number of rows.

    Args:
        release: a release of known records; no class may be suppressed in it.
        exact: the exact sums of the surviving clients' records.
        rng: spreads every whole number over its cell, so that the grid itself is not taken for a wrong shape.
    """
    target = target_of(release.plan)
    levels = _levels(release)
    dither = (rng.uint64(len(release.vector)).astype(np.float64) + 0.5) * 2.0**-64 - 0.5
    residual = (release.vector - flatten(exact) + dither) / levels
    tail = (1 - confidence) / (2 * len(release.plan.schema.statistics))
    rows: list[tuple[Value, ...]] = []
    violated = False
    for row in target.noise.rows:
        mine = residual[_where(release, row.statistic)]
        found, least, spread, shape = _spread_and_shape(mine, tail)
        guaranteed = release.sigma[row.statistic]
        violated |= spread < tail or shape < tail
        rows.append((row.statistic, len(mine), guaranteed, least * guaranteed, found * guaranteed, spread, shape))
    notes = (
        f"one release, {len(release.survivors)} survivors; the sigma claimed counts the noise of all of them",
        "claimed, at least, found: sigma by the plan, its lower confidence bound and its estimate, in real units",
        "p spread is the chance of residuals this narrow under the claim, p shape that of this distribution",
    )
    return Report("noise", _COLUMNS, tuple(rows), notes, violated)


def _levels(release: Release) -> NDArray[np.float64]:
    """Noise of every entry with everybody's shares, in grid steps."""
    segments = release.plan.layout.segments
    return np.concatenate([np.full(s.size, release.sigma[s.statistic] * s.scale * s.noise_factor) for s in segments])


def _where(release: Release, statistic: str) -> NDArray[np.bool_]:
    return np.concatenate([np.full(s.size, s.statistic == statistic) for s in release.plan.layout.segments])


def _spread_and_shape(residual: NDArray[np.float64], tail: float) -> tuple[float, float, float, float]:
    """(sigma found, its lower confidence end, p of so little spread, p of the shape), relative to the claim."""
    n = len(residual)
    square = float(residual @ residual)
    least = float(np.sqrt(square / chi2.ppf(1 - tail, n)))
    return float(np.sqrt(square / n)), least, float(chi2.cdf(square, n)), float(kstest(residual, "norm").pvalue)
