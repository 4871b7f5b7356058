"""What the two synthetic heads share: the Gaussian world that moments describe, seen in a Fisher subspace.

Not their training. From evidence to whitened means and covariances, samples, and the way back to features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from privstats.heads import denoise
from privstats.heads.bounds import check_dimension
from privstats.heads.class_covariance import ClassCovariances, class_covariances
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import Array, ClassEvidence
from privstats.heads.fisher import Subspace, discriminant_directions, wider_directions
from privstats.heads.shrinkage import Shrinkage, log_priors
from privstats.heads.synthesis import draw

__all__ = ["SyntheticHead", "World"]

_DISPERSIONS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5)
_OVERLAP = 0.9
_PROBE = 50


@dataclass(frozen=True)
class World:
    """The Gaussian classes that synthetic records come from, in coordinates that whiten the pooled covariance.

    Attributes:
        means: whitened means, ``(C, d)``.
        covariances: class covariances; ``covariances.basis`` leads from features to whitened coordinates.
        directions: orthonormal, ``(d, k)``; from whitened coordinates to the subspace.
        prior: log priors, ``(C,)``.
        origin: subtracted from features first, ``(d,)``.
        explained_energy: share of the Fisher energy in the subspace.
    """

    means: Array
    covariances: ClassCovariances
    directions: Array
    prior: Array
    origin: Array
    explained_energy: float

    @property
    def projection(self) -> Array:
        """From centred features to the subspace, ``(d, k)``."""
        return self.covariances.basis @ self.directions

    @property
    def low_means(self) -> Array:
        """Means in the subspace, ``(C, k)``."""
        return np.asarray(self.means @ self.directions)


class SyntheticHead(ClassHead):
    """A head that is trained on samples of the Gaussian classes that the moments describe."""

    dimension: Subspace
    dispersion: Literal["auto"] | float
    pooled_weight: float
    shrinkage: Shrinkage
    priors: object
    random_state: int

    def _world(self, evidence: ClassEvidence) -> World:
        check_dimension("dimension", self.dimension, evidence.features)
        n = denoise.counts(evidence.N, evidence.noise("N"))
        means = denoise.class_means(evidence, n)
        self.means_ = means.values + evidence.origin
        covariances = class_covariances(evidence, n, self.pooled_weight, self.shrinkage)
        whitened = (means.values - means.grand) @ covariances.basis  # training must not depend on where 0 lies
        directions, _, explained = discriminant_directions(whitened, n, self.dimension)
        if isinstance(self.dimension, int | np.integer) and not isinstance(self.dimension, bool):
            directions = wider_directions(directions, covariances, n, min(int(self.dimension), evidence.features))
        self.explained_energy_ = explained
        return World(
            whitened, covariances, directions, log_priors(self.priors, n), evidence.origin + means.grand, explained
        )

    def _dispersion(self, world: World) -> float:
        """tau: as given, or the least that lets the classes overlap enough for a boundary to be seen.

        Where samples of different classes never mix, a softmax model can only guess where the boundary lies; the least
        dispersion at which the nearest mean is right for at most 90 % of samples places it.
        """
        if self.dispersion != "auto":
            return float(self.dispersion)
        low = world.low_means
        for dispersion in _DISPERSIONS:
            samples = draw(
                world.means, world.covariances.values, world.covariances.vectors, _PROBE, dispersion, self.random_state
            )
            scores = samples.rows @ world.directions @ low.T - np.square(low).sum(axis=1) / 2
            if (scores.argmax(axis=1) == samples.labels).mean() <= _OVERLAP:
                return dispersion
        return _DISPERSIONS[-1]
