"""The Gaussian world that moments describe, seen in a Fisher subspace: what synthetic records are drawn from.

From evidence to whitened means and covariances, to samples, and back to features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privstats.estimates import denoise
from privstats.estimates.shrinkage import Shrinkage, log_priors
from privstats.heads.estimates.class_covariance import ClassCovariances, class_covariances
from privstats.heads.estimates.subspace import Subspace, discriminant_directions, wider_directions
from privstats.heads.evidence import Array, ClassEvidence
from privstats.heads.registry import check_dimension
from privstats.heads.synthetic.samples import Samples, draw

__all__ = ["World"]

_DISPERSIONS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5)
_OVERLAP = 0.9
_PROBE = 50


@dataclass(frozen=True)
class World:
    """The Gaussian classes that synthetic records come from, in coordinates that whiten the pooled covariance.

    Attributes:
        centres: class means as features, ``(C, d)``.
        means: whitened means, ``(C, d)``.
        covariances: class covariances; ``covariances.basis`` leads from features to whitened coordinates.
        directions: orthonormal, ``(d, k)``; from whitened coordinates to the subspace.
        prior: log priors, ``(C,)``.
        origin: subtracted from features first, ``(d,)``.
    """

    centres: Array
    means: Array
    covariances: ClassCovariances
    directions: Array
    prior: Array
    origin: Array

    @classmethod
    def of(
        cls, evidence: ClassEvidence, dimension: Subspace, pooled_weight: float, shrinkage: Shrinkage, priors: Any
    ) -> World:
        """The world of some evidence.

        Args:
            evidence: with S, B or D; what class covariances each allows stands in ``class_covariances``.
            dimension: of the subspace, not None; more than C - 1 adds directions in which class covariances differ.
            pooled_weight, shrinkage: as in ``class_covariances``.
            priors: as in ``log_priors``.

        Raises:
            HeadError: more dimensions than features, or priors of another number of classes.
        """
        check_dimension("dimension", dimension, evidence.features)
        n = denoise.counts(evidence.N, evidence.noise("N"))
        means = denoise.class_means(evidence, n)
        covariances = class_covariances(evidence, n, pooled_weight, shrinkage)
        whitened = (means.values - means.grand) @ covariances.basis  # training must not depend on where 0 lies
        directions, *_ = discriminant_directions(whitened, n, dimension)
        if isinstance(dimension, int | np.integer):
            directions = wider_directions(directions, covariances, n, min(int(dimension), evidence.features))
        return cls(
            centres=means.values + evidence.origin,
            means=whitened,
            covariances=covariances,
            directions=directions,
            prior=log_priors(priors, n),
            origin=evidence.origin + means.grand,
        )

    @property
    def projection(self) -> Array:
        """From centred features to the subspace, ``(d, k)``."""
        return self.covariances.basis @ self.directions

    @property
    def low_means(self) -> Array:
        """Means in the subspace, ``(C, k)``."""
        return np.asarray(self.means @ self.directions)

    def samples(self, per_class: int, dispersion: float, seed: int) -> Samples:
        """Whitened samples of every class; arguments as in ``draw``."""
        return draw(self.means, self.covariances.values, self.covariances.vectors, per_class, dispersion, seed)

    def dispersion(self, wanted: Literal["auto"] | float, seed: int) -> float:
        """tau: the given one, or the least at which classes overlap enough to show a boundary.

        Where samples of different classes never mix, a softmax model can only guess where the boundary lies; the least
        dispersion at which the nearest mean is right for at most 90 % of samples places it.
        """
        if wanted != "auto":
            return float(wanted)
        low = self.low_means
        for dispersion in _DISPERSIONS:
            samples = self.samples(_PROBE, dispersion, seed)
            scores = samples.rows @ self.directions @ low.T - np.square(low).sum(axis=1) / 2
            if (scores.argmax(axis=1) == samples.labels).mean() <= _OVERLAP:
                return dispersion
        return _DISPERSIONS[-1]
