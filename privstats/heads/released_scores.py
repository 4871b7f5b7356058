"""Compute quantiles of a two-class head's probabilities from its sums, for the head's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, ndtri

from privstats.estimates import denoise
from privstats.estimates.denoise import Array
from privstats.estimates.separation import Separation
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


@dataclass(frozen=True)
class ScoreEvidence:
    """Released sums behind a two-class head, from which the distribution of its scores follows.

    Attributes:
        sums: counts, sums and B of both classes.
        shares: maps transformed rows to the head's class probabilities, ``(n, 2)``.
        separation: computes how far apart the head's scores of both classes are; None where only the sums are known.
    """

    sums: ClassEvidence
    shares: Callable[[Array], Array]
    separation: Callable[[], Separation | None] | None = None

    @classmethod
    def of(
        cls,
        sums: ClassEvidence,
        shares: Callable[[Array], Array],
        separation: Callable[[], Separation | None] | None = None,
    ) -> Self | None:
        """Return the evidence of two classes with B; None of other sums."""
        if sums.classes != _PAIR or sums.B is None:
            return None
        return cls(replace(sums, S=None, D=None, public=None), shares, separation)

    @cached_property
    def scores(self) -> ReleasedScores | None:
        """Scores by the head's separation, else of sampled rows; None where they are not finite.

        Guarantee:
            The scores are a function of the head, its releases and its public records, so they cost no budget (Dwork
            and Roth 2014, proposition 2.1).
        """
        law = None if self.separation is None else self.separation()
        scores = self.drawn() if law is None else _separated(law, self.sums)
        return scores if np.isfinite(scores.quantiles).all() else None

    def drawn(self) -> ReleasedScores:
        """Return scores of rows sampled, with a fixed seed, from Gaussians with the sums' means and scatter.

        Class means are not shrunk: a rare class's scores would be among the others'.
        """
        sums, n = self.sums, denoise.counts(self.sums.N, self.sums.noise("N"))
        values, vectors = np.linalg.eigh(denoise.within_scatter(sums, n) / n.sum())
        spread = vectors * np.sqrt(np.maximum(values, 0.0))
        chance, ranks = np.random.default_rng(0), (np.arange(POINTS) + 0.5) / POINTS
        means = sums.A / n[:, None] + sums.origin
        rows = (mean + chance.normal(size=(_DRAWN, len(spread))) @ spread.T for mean in means)
        quantiles = [np.quantile(self.shares(each)[:, 1], ranks) for each in rows]
        return ReleasedScores(np.stack(quantiles), n / n.sum())


def _separated(law: Separation, sums: ClassEvidence) -> ReleasedScores:
    n = denoise.counts(sums.N, sums.noise("N"))
    shares = expit(law.centres[:, None] + law.spread * ndtri((np.arange(POINTS) + 0.5) / POINTS))
    return ReleasedScores(shares, n / n.sum())


def released_scores(head: Any) -> ReleasedScores | None:
    """Return the scores that a head's releases imply, or that its file holds; None where neither is known."""
    known: ScoreEvidence | ReleasedScores | None = getattr(head, "score_evidence_", None)
    return known.scores if isinstance(known, ScoreEvidence) else known
