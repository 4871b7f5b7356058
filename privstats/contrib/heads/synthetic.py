"""Synthetic records from released moments: Gaussian classes, samples of them, and softmax training on those.

Samples are deterministic under a seed; none is private data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privstats.errors import DataError
from privstats.extend.heads import SWITCH, Bounds, ClassEvidence, Constraint, Number, Shrinkage, Subspace, Text, Whole
from privstats.extend.support import Array, progress_bar
from privstats.heads import QDA
from privstats.heads.fitting.class_covariance import ClassCovariances
from privstats.heads.fitting.subspace import discriminant_directions

if TYPE_CHECKING:
    import torch

_DISPERSIONS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5)
_OVERLAP = 0.9
_PROBE = 50
_ROUND = 10  # L-BFGS iterations between two looks at the validation loss
_WORTHWHILE = 1e-5  # smallest relative fall of the loss that counts


class Device(Constraint):
    """A torch device by name."""

    def admits(self, value: Any) -> bool:
        """Return whether the value is cpu, auto, cuda, or numbered cuda."""
        if not isinstance(value, str):
            return False
        kind, _, number = value.partition(":")
        return value in ("auto", "cpu", "cuda") or (kind == "cuda" and number.isascii() and number.isdigit())

    def __str__(self) -> str:
        return "'auto', 'cpu', 'cuda' or 'cuda:0'"


TRAINING: Bounds = {
    "dimension": QDA.bounds["subspace"][1:],
    "per_class": (Text("auto"), Whole(1)),
    "dispersion": (Text("auto"), Number(closed=False)),
    "pooled_weight": (Number(0.0, 1.0),),
    "shrinkage": QDA.bounds["shrinkage"],
    "priors": QDA.bounds["priors"],
    "weight_decay": (Number(),),
    "max_rounds": (Whole(1),),
    "patience": (Whole(1),),
    "random_state": (Whole(),),
    "device": (Device(),),
    "progress": SWITCH,
}
"""Bounds that all heads trained on synthetic records share."""


@dataclass(frozen=True)
class Samples:
    """Synthetic rows, ordered by class, ``(C * per_class, d)``, and their labels."""

    rows: Array
    labels: Any


def draw(means: Array, covariances: ClassCovariances, per_class: int, dispersion: float, seed: int) -> Samples:
    """Return samples of ``N(mu_c, dispersion^2 V_c diag(values_c) V_c^T)``, equal for one seed on every device.

    Args:
        means: ``(C, d)``.
        covariances: of the classes, in the coordinates of ``means``.
        per_class: samples per class.
        dispersion: tau of GH-OFL section 3.3.
        seed: of numpy's PCG64.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    C, d = means.shape
    rows = np.empty((C, per_class, d))
    for c in range(C):
        normal = rng.standard_normal((per_class, d))
        if covariances.pooled:  # the root is the identity: a product with it would cost C d^3 operations for nothing
            np.multiply(normal, dispersion, out=rows[c])
        else:
            vectors, scale = covariances.vectors[c], dispersion * np.sqrt(covariances.values[c])
            np.matmul(normal, (vectors * scale) @ vectors.T, out=rows[c])  # symmetric: eigenvector signs cancel
        rows[c] += means[c]
    return Samples(rows.reshape(C * per_class, d), np.repeat(np.arange(C), per_class))


@dataclass(frozen=True)
class World:
    """The Gaussian classes of synthetic records, in coordinates that whiten the pooled covariance.

    Attributes:
        centres: class means as features, ``(C, d)``.
        means: whitened means, ``(C, d)``.
        covariances: ``covariances.basis`` whitens features.
        directions: whitened coordinates to subspace, orthonormal, ``(d, k)``.
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
        """Build the world of some evidence.

        Args:
            evidence: S, B or D.
            dimension: as in ``FisherMix``.
            pooled_weight, shrinkage: as in ``ClassCovariances.of``.
            priors: as in ``ClassEvidence.log_priors``.
        """
        evidence.check_dimension("dimension", dimension)
        n, means = evidence.counts, evidence.means
        covariances = ClassCovariances.of(evidence, pooled_weight, shrinkage)
        whitened = (means.values - means.grand) @ covariances.basis  # training must not depend on the origin
        directions, *_ = discriminant_directions(whitened, n, dimension)
        if isinstance(dimension, int | np.integer):
            directions = wider_directions(directions, covariances, n, min(int(dimension), evidence.features))
        return cls(
            centres=means.values + evidence.origin,
            means=whitened,
            covariances=covariances,
            directions=directions,
            prior=evidence.log_priors(priors),
            origin=evidence.origin + means.grand,
        )

    @property
    def projection(self) -> Array:
        """Projection from centred features to the subspace, ``(d, k)``."""
        return self.covariances.basis @ self.directions

    @property
    def low_means(self) -> Array:
        """Means in the subspace, ``(C, k)``."""
        return np.asarray(self.means @ self.directions)

    def samples(self, per_class: int, dispersion: float, seed: int) -> Samples:
        """Return whitened samples; arguments as in ``draw``."""
        return draw(self.means, self.covariances, per_class, dispersion, seed)

    def dispersion(self, wanted: Literal["auto"] | float, seed: int) -> float:
        """Return tau; ``"auto"`` is the smallest at which the nearest mean is right for at most 90 % of samples."""
        if wanted != "auto":
            return float(wanted)
        low = self.low_means
        for dispersion in _DISPERSIONS:
            samples = self.samples(_PROBE, dispersion, seed)
            scores = samples.rows @ self.directions @ low.T - np.square(low).sum(axis=1) / 2
            if (scores.argmax(axis=1) == samples.labels).mean() <= _OVERLAP:
                return dispersion
        return _DISPERSIONS[-1]


def wider_directions(directions: Array, covariances: ClassCovariances, n: Array, dimension: int) -> Array:
    """Extend directions to ``(d, dimension)`` by those in which class covariances differ most from the pool.

    Eigenvectors of ``sum_c pi_c (P (Sigma_c - I) P)^2`` in whitened coordinates, P off the given directions.
    """
    d, k = directions.shape
    if dimension <= k or k == d:
        return directions
    rest = np.linalg.svd(directions, full_matrices=True)[0][:, k:]
    total = np.zeros((d - k, d - k))
    for share, values, vectors in zip(n / n.sum(), covariances.values, covariances.vectors, strict=True):
        turned = rest.T @ vectors
        difference = (turned * (values - 1)) @ turned.T
        total += share * difference @ difference
    _, ordered = np.linalg.eigh(total)
    return np.hstack([directions, rest @ ordered[:, ::-1][:, : dimension - k]])


@dataclass(frozen=True)
class Convergence:
    """The end of a fit.

    Attributes:
        rounds: of ten L-BFGS iterations.
        converged: the validation loss stopped falling in time.
    """

    rounds: int
    loss: float
    converged: bool


def choose_device(torch: Any, device: str) -> Any:
    """Return the named torch device; ``"auto"`` is CUDA where available."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise DataError("device='cuda' needs a CUDA build of torch and a GPU; use device='cpu' or 'auto'")
    return torch.device(device)


def converge(
    torch: Any, head: Any, parameters: list[torch.Tensor], loss_of: Callable[[Any], torch.Tensor], *samples: Any
) -> Convergence:
    """Run L-BFGS until the second samples' loss stalls for ``patience`` rounds; restore the best parameters."""
    train, held_out = samples
    optimiser = torch.optim.LBFGS(
        parameters, max_iter=_ROUND, history_size=20, line_search_fn="strong_wolfe", tolerance_change=1e-10
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = loss_of(train)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    best, best_parameters, since, rounds = math.inf, [p.detach().clone() for p in parameters], 0, 0
    with progress_bar(type(head).__name__, head.max_rounds, at_once=head.progress) as advance:
        while rounds < head.max_rounds and since < head.patience:
            optimiser.step(closure)
            with torch.no_grad():
                loss = float(loss_of(held_out))
            rounds, since = rounds + 1, since + 1
            advance(1)
            if math.isfinite(loss) and (best == math.inf or loss < best - _WORTHWHILE * abs(best)):
                best, best_parameters, since = loss, [p.detach().clone() for p in parameters], 0
    with torch.no_grad():
        for parameter, value in zip(parameters, best_parameters, strict=True):
            parameter.copy_(value)
    return Convergence(rounds, best, since >= head.patience)
