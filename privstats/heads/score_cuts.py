"""Where the bins of a head's score are cut: where its released sums say that its scores lie.

Guarantee:
    The cuts are a function of the head and of the releases that it was made from, which are public already, and of
    numbers drawn from a fixed seed. What is computed from a release is post-processing, so it costs nothing of any
    record's promise (Dwork and Roth 2014, proposition 2.1), whoever holds the records that are scored later: no record
    that is scored has a part in the cuts, so each still counts 1 in exactly one public cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privstats.errors import HeadError
from privstats.estimates import denoise
from privstats.heads.evidence import Array, ClassEvidence, class_evidence
from privstats.release import Release
from privstats.schema import ClassSchema

__all__ = ["score_cuts"]

_DRAWN = 4_000
_DIGITS = 6
_LEAST, _MOST = 1e-6, 1 - 1e-6


def score_cuts(head: Any, releases: Sequence[Release | None], bins: int) -> tuple[float, ...]:
    """Cuts between bins of the second class's probability, each with as many of the records that the sums describe.

    Rows are drawn from a Gaussian per class, with the means and the scatter that the noise leaves, and scored by the
    head; both classes weigh the same, because a pair of the AUC has one record of each. One half is a cut, so that a
    bin is of one predicted class. Cuts that fall together are one, so there may be fewer bins than asked for.

    Args:
        head: a fitted head of two classes.
        releases: all that it was made from.
        bins: how many, at least 2.

    Raises:
        HeadError: the head was made from others, or none of them holds sums of classes with B.
    """
    made = tuple(each for each in releases if each is not None)
    if tuple(each.digest for each in made) != tuple(head.provenance_.releases):
        raise HeadError(
            "releases must be those that the head was made from, in order, as `privstats head show` names them: bins "
            "follow no other sums"
        )
    sums = next((each for each in made if isinstance(each.plan.schema, ClassSchema)), None)
    if sums is None or len(head.classes_) != 2:
        raise HeadError("bins follow the class sums of a head of two classes; leave releases out and choose score_bins")
    evidence, _ = class_evidence(sums)
    if evidence.B is None or evidence.classes != 2:
        raise HeadError("bins follow sums of both classes with B; leave releases out and choose score_bins")
    shares = head._probabilities(head.rule_.scores(_rows(evidence)))[:, 1]
    found = np.quantile(shares, np.arange(1, bins) / bins)
    inner = np.unique(np.round(np.clip(found, _LEAST, _MOST), _DIGITS))
    return tuple(map(float, np.union1d(inner[np.abs(inner - 0.5) > 10.0**-_DIGITS], 0.5)))


def _rows(evidence: ClassEvidence) -> Array:
    """As many rows of each class, ``(2 m, d)``."""
    n = denoise.counts(evidence.N, evidence.noise("N"))
    values, vectors = np.linalg.eigh(denoise.within_scatter(evidence, n) / n.sum())
    spread = vectors * np.sqrt(np.maximum(values, 0.0))
    chance = np.random.default_rng(0)
    means = denoise.class_means(evidence, n).values + evidence.origin
    return np.concatenate([mean + chance.normal(size=(_DRAWN, len(spread))) @ spread.T for mean in means])
