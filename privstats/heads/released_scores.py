"""Compute quantiles of a two-class head's probabilities from its sums, for the head's file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from privstats.estimates import denoise
from privstats.estimates.denoise import Array
from privstats.heads.evidence import ClassEvidence

POINTS = 128
"""Quantiles of each class."""
_DRAWN = 4_000
_PAIR = 2


class ReleasedScores(NamedTuple):
    """Distribution of a two-class head's scores, which places the bins of a score session.

    It forecasts no AUC: noise in the sums moves the head's weights, and the classes' distance along them with it.

    Attributes:
        quantiles: the second class's probability at shares ``(k + 1/2) / POINTS``, per true class, ``(2, POINTS)``.
        prevalence: class shares of the records, ``(2,)``.
    """

    quantiles: Array
    prevalence: Array

    def below(self, cuts: Array) -> Array:
        """Return the share of each class's records below cuts, ``(2, k)``."""
        ranks = (np.arange(POINTS) + 0.5) / POINTS
        return np.stack([np.interp(cuts, row, ranks, left=0.0, right=1.0) for row in self.quantiles])


def remember(head: Any, evidence: ClassEvidence) -> None:
    """Attach released sums to a just fitted two-class head, if they have B."""
    if evidence.classes == _PAIR and evidence.B is not None:
        head._scored_on = replace(evidence, S=None, D=None, public=None)


def released_scores(head: Any) -> ReleasedScores | None:
    """Return the implied scores, or None."""
    if getattr(head, "_released_scores", None) is None and getattr(head, "_scored_on", None) is not None:
        scores = described(head, head._scored_on)
        head._released_scores = scores if np.isfinite(scores.quantiles).all() else None
    known: ReleasedScores | None = getattr(head, "_released_scores", None)
    return known


def forget(head: Any) -> None:
    """Drop an earlier fit's sums."""
    head._scored_on = head._released_scores = head._separation = None


def described(head: Any, evidence: ClassEvidence) -> ReleasedScores:
    """Return scores by the head's separation, else of :func:`drawn` rows.

    Guarantee:
        The scores are a function of the head, its releases and its public records, so they cost no budget (Dwork and
        Roth 2014, proposition 2.1).
    """
    separated = getattr(head, "_separation", None)
    law = None if separated is None else separated()
    if law is None:
        return drawn(head, evidence)
    n = denoise.counts(evidence.N, evidence.noise("N"))
    shares = expit(law.centres[:, None] + law.spread * ndtri((np.arange(POINTS) + 0.5) / POINTS))
    return ReleasedScores(shares, n / n.sum())


def drawn(head: Any, evidence: ClassEvidence) -> ReleasedScores:
    """Score rows sampled, with a fixed seed, from Gaussians with the sums' means and scatter.

    Class means are not shrunk: a rare class's scores would be among the others'.
    """
    n = denoise.counts(evidence.N, evidence.noise("N"))
    values, vectors = np.linalg.eigh(denoise.within_scatter(evidence, n) / n.sum())
    spread = vectors * np.sqrt(np.maximum(values, 0.0))
    chance, ranks = np.random.default_rng(0), (np.arange(POINTS) + 0.5) / POINTS
    means = evidence.A / n[:, None] + evidence.origin
    rows = (mean + chance.normal(size=(_DRAWN, len(spread))) @ spread.T for mean in means)
    shares = [head._probabilities(head.rule_.scores(each))[:, 1] for each in rows]
    return ReleasedScores(np.stack([np.quantile(each, ranks) for each in shares]), n / n.sum())
