"""Quantiles of each class's predicted probability, computed from the sums behind a head of two classes.

A head of two classes carries them in its file, so that bins of a later score follow them at no price.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from privstats.estimates import denoise
from privstats.estimates.denoise import Array
from privstats.heads.evidence import ClassEvidence

POINTS = 128
"""Quantiles of each class."""
_DRAWN = 4_000
_PAIR = 2


class ReleasedScores(NamedTuple):
    """Distribution of the scores of a head of two classes, computed from its released sums.

    Attributes:
        quantiles: of the second class's probability, ``(2, POINTS)``: a row for the records of each class, at the
            shares ``(k + 1/2) / POINTS``.
        prevalence: share of each class among the records summed, ``(2,)``.
    """

    quantiles: Array
    prevalence: Array

    def below(self, cuts: Array) -> Array:
        """The share of each class's records below some probabilities, ``(2, k)``."""
        ranks = (np.arange(POINTS) + 0.5) / POINTS
        return np.stack([np.interp(cuts, row, ranks, left=0.0, right=1.0) for row in self.quantiles])


def remember(head: Any, evidence: ClassEvidence) -> None:
    """Let a head that was just fitted on released sums know them, where bins can follow them."""
    if evidence.classes == _PAIR and evidence.B is not None:
        head._scored_on = replace(evidence, S=None, D=None, public=None)


def released_scores(head: Any) -> ReleasedScores | None:
    """Return what a head's sums say of its scores; None of records, of other sums, or of a file without them."""
    if getattr(head, "_released_scores", None) is None and getattr(head, "_scored_on", None) is not None:
        found = described(head, head._scored_on)
        head._released_scores = found if np.isfinite(found.quantiles).all() else None
    known: ReleasedScores | None = getattr(head, "_released_scores", None)
    return known


def forget(head: Any) -> None:
    """Drop what an earlier fit knew."""
    head._scored_on = head._released_scores = None


def described(head: Any, evidence: ClassEvidence) -> ReleasedScores:
    """Score rows that are drawn from the sums.

    Rows of each class are drawn from a Gaussian with the mean and the scatter that the noise leaves, from a fixed seed.

    Guarantee:
        The scores are a function of the head and of the released sums, so they cost nothing of any record's promise
        (Dwork and Roth 2014, proposition 2.1).

    Args:
        head: fitted, of two classes.
        evidence: class sums with B.
    """
    n = denoise.counts(evidence.N, evidence.noise("N"))
    values, vectors = np.linalg.eigh(denoise.within_scatter(evidence, n) / n.sum())
    spread = vectors * np.sqrt(np.maximum(values, 0.0))
    chance, ranks = np.random.default_rng(0), (np.arange(POINTS) + 0.5) / POINTS
    means = denoise.class_means(evidence, n).values + evidence.origin
    rows = (mean + chance.normal(size=(_DRAWN, len(spread))) @ spread.T for mean in means)
    shares = [head._probabilities(head.rule_.scores(each))[:, 1] for each in rows]
    return ReleasedScores(np.stack([np.quantile(each, ranks) for each in shares]), n / n.sum())
