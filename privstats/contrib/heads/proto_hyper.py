"""Proto-Hyper: a residual on a Gaussian base, distilled on synthetic records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from privstats.contrib.heads.synthetic import TRAINING, Convergence, World, choose_device, converge
from privstats.extend.heads import Bounds, ClassEvidence, Entry, Number, Priors, Shrinkage, Subspace, Text, Whole
from privstats.extend.support import Array, optional_dependencies
from privstats.heads import ClassHead
from privstats.heads.fitting.class_covariance import ClassCovariances
from privstats.heads.rules import QuadraticRule

_STUDENT_DEGREES = 10.0
_WIDE = 256


@dataclass(kw_only=True, eq=False, repr=False)
class ProtoHyper(ClassHead):
    """``g(z) = g_base(z) + V_2 U_1 z`` in the Fisher subspace, fitted to a teacher's softened scores (GH-OFL 3.3).

    The loss is ``alpha T^2 KL(teacher / T || student / T) + (1 - alpha) CE``. CE is that of scores less the log priors,
    because synthetic labels are equally frequent. Other arguments are as in ``FisherMix``.

    Args:
        base: ``"rda"``, ``"lda"`` or ``"nb"`` in the Fisher subspace.
        teacher: in all features: ``"rda"`` (Student's t scores), ``"lda"``, or ``"blend"``, their mean.
        rank: of the residual; at most min(C, k) is used.
        temperature: T.
        alpha: weight of distillation against cross entropy on the synthetic labels.
        dimension: ``"auto"`` is up to 256 where S was released, to see where class covariances differ, else C - 1.
        per_class: ``"auto"`` samples 10,000 in all and at least 100 per class.

    Attributes:
        dispersion_, convergence_: as in ``FisherMix``.
        residual_: the learned residual, ``(C, k)``, of rank at most ``rank``.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> head = ps.heads.ProtoHyper(per_class=50).fit(X, y)
        >>> head.predict([[0.1, 0.1], [0.9, 0.1]]).tolist()
        ['ash', 'elm']
    """

    entry: ClassVar[Entry] = Entry(any_of="SBD", beside_B="D", closed_form=False)
    bounds: ClassVar[Bounds] = {
        **TRAINING,
        "base": (Text("rda", "lda", "nb"),),
        "teacher": (Text("rda", "lda", "blend"),),
        "rank": (Whole(1),),
        "temperature": (Number(closed=False),),
        "alpha": (Number(0.0, 1.0),),
    }

    base: Literal["rda", "lda", "nb"] = "rda"
    teacher: Literal["rda", "lda", "blend"] = "rda"
    rank: int = 16
    temperature: float = 1.0
    alpha: float = 0.9
    dimension: Subspace = "auto"
    per_class: Literal["auto"] | int = "auto"
    dispersion: Literal["auto"] | float = 1.0
    pooled_weight: float = 0.8
    shrinkage: Shrinkage = "auto"
    priors: Priors | ArrayLike = "counts"
    weight_decay: float = 1e-4
    max_rounds: int = 15
    patience: int = 2
    random_state: int = 0
    device: str = "cpu"
    progress: bool = False

    def _solve(self, evidence: ClassEvidence) -> QuadraticRule:
        torch = optional_dependencies.load("torch", by="ProtoHyper")
        world = World.of(
            evidence, _dimension(self.dimension, evidence), self.pooled_weight, self.shrinkage, self.priors
        )
        self.means_ = world.centres
        self.dispersion_ = world.dispersion(self.dispersion, self.random_state)
        base = _base_rule(world, self.base)
        residual, bias, self.convergence_ = self._distil(torch, world, base)
        self.residual_ = residual
        # Gaussian scores are linear in `linear` and `bias`, so the residual needs no rule of its own
        learned = replace(base, linear=base.linear + residual, bias=base.bias + bias)
        return replace(learned, projection=world.projection, origin=world.origin)

    def _distil(self, torch: Any, world: World, base: QuadraticRule) -> tuple[Array, Array, Convergence]:
        C, k = base.linear.shape
        rank = min(self.rank, C, k)
        device = choose_device(torch, self.device)
        per_class = max(100, 10_000 // C) if self.per_class == "auto" else int(self.per_class)
        train = self._lesson(torch, world, base, per_class, self.random_state, device)
        held_out = self._lesson(torch, world, base, max(per_class // 4, 20), self.random_state + 1, device)
        rng = np.random.Generator(np.random.PCG64(self.random_state))
        start = rng.standard_normal((rank, len(world.directions))) @ world.directions / np.sqrt(k)
        U = torch.tensor(start, dtype=torch.float32, device=device, requires_grad=True)
        V = torch.zeros((C, rank), dtype=torch.float32, device=device, requires_grad=True)
        b = torch.zeros(C, dtype=torch.float32, device=device, requires_grad=True)
        cross_entropy, T = torch.nn.functional.cross_entropy, self.temperature
        prior = torch.tensor(world.prior, dtype=torch.float32, device=device)

        def loss(lesson: tuple[Any, ...]) -> Any:
            rows, labels, base_scores, softened = lesson
            scores = base_scores + rows @ U.T @ V.T + b
            # cross entropy with the teacher is its KL divergence plus the teacher's entropy, which is constant
            taught = T**2 * cross_entropy(scores / T, softened)
            decay = self.weight_decay / 2 * (U.square().sum() + V.square().sum())
            # samples hold every class equally often, so their labels follow scores without the priors
            return self.alpha * taught + (1 - self.alpha) * cross_entropy(scores - prior, labels) + decay

        convergence = converge(torch, self, [U, V, b], loss, train, held_out)
        residual = (V @ U).detach().cpu().numpy().astype(np.float64)
        return residual, b.detach().cpu().numpy().astype(np.float64), convergence

    def _lesson(
        self, torch: Any, world: World, base: QuadraticRule, per_class: int, seed: int, device: Any
    ) -> tuple[Any, ...]:
        samples = world.samples(per_class, self.dispersion_, seed)
        low = samples.rows @ world.directions
        taught = torch.tensor(_teacher_scores(world, self.teacher, samples.rows) / self.temperature, device=device)
        return (
            torch.tensor(low, dtype=torch.float32, device=device),
            torch.tensor(samples.labels, dtype=torch.int64, device=device),
            torch.tensor(base.scores(low), dtype=torch.float32, device=device),
            torch.softmax(taught, dim=1).to(torch.float32),
        )


def _dimension(wanted: Subspace, evidence: ClassEvidence) -> Subspace:
    if wanted != "auto" or evidence.S is None:
        return wanted
    return min(evidence.features, max(evidence.classes - 1, _WIDE))


def _base_rule(world: World, base: str) -> QuadraticRule:
    C, k = world.low_means.shape
    if base != "lda":
        ClassCovariances.require_bearable(C, k, "give such a number as dimension, or base='lda'")
    if base == "lda" or world.covariances.pooled:
        covariances = np.broadcast_to(np.eye(k), (C, k, k))
    else:
        turned = world.directions.T @ world.covariances.vectors
        covariances = (turned * world.covariances.values[:, None, :]) @ turned.transpose(0, 2, 1)
        if base == "nb":
            covariances = covariances * np.eye(k)
    values, vectors = np.linalg.eigh(covariances)
    return _rule(world.low_means, values, vectors, world.prior, 0.0)


def _teacher_scores(world: World, teacher: str, rows: Array) -> Array:
    linear = rows @ world.means.T - np.square(world.means).sum(axis=1) / 2 + world.prior
    if teacher == "lda":
        return np.asarray(linear)
    d = rows.shape[1]
    if world.covariances.pooled:  # a rule would store C identities of d x d numbers
        distance = np.square(rows).sum(axis=1)[:, None] + 2 * (world.prior - linear)
        tails = np.log1p(np.maximum(distance, 0.0) / _STUDENT_DEGREES)
        quadratic: Array = world.prior - (d + _STUDENT_DEGREES) / 2 * tails
    else:
        values, vectors = world.covariances.values, world.covariances.vectors
        quadratic = _rule(world.means, values, vectors, world.prior, _STUDENT_DEGREES).scores(rows)
    # both are log densities up to a constant per row, so their mean is a geometric blend of the two posteriors
    return quadratic if teacher == "rda" else (quadratic + linear) / 2


def _rule(means: Array, values: Array, vectors: Array, prior: Array, degrees: float) -> QuadraticRule:
    d = means.shape[1]
    return QuadraticRule.of(values, vectors, means, prior, np.eye(d), np.zeros(d), degrees)
