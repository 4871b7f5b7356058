"""FisherMix: a linear softmax head from (N, A, S), (N, A, B) or (N, A, D).

With B, one covariance is scaled by D to each class's variances; with D, features are uncorrelated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from privstats.contrib.heads.synthetic import TRAINING, World, choose_device, converge
from privstats.extend.heads import Bounds, ClassEvidence, Entry, LinearRule, Priors, Shrinkage, Subspace
from privstats.extend.support import Array, optional_dependencies
from privstats.heads import ClassHead


@dataclass(kw_only=True, eq=False, repr=False)
class FisherMix(ClassHead):
    """Linear softmax head on class-conditional Gaussian samples (GH-OFL section 3.3), solved to convergence.

    Args:
        dimension: of the Fisher subspace: ``"auto"`` (C - 1), an integer, or a share of the energy. More than C - 1
            adds directions in which class covariances differ.
        per_class: samples per class; ``"auto"`` is 20,000 in all and at least 400 each.
        dispersion: tau, the factor on every standard deviation; ``"auto"`` widens classes that hardly overlap.
        pooled_weight: as in ``RDA``.
        shrinkage, priors: as in ``QDA``.
        weight_decay: L2 penalty that bounds the weights on separable samples.
        max_rounds, patience: rounds of ten L-BFGS iterations, in all and without a lower loss on held-out samples.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        progress: show a progress bar at once, not after two seconds.

    Attributes:
        coef_, intercept_: the linear rule on features, ``(C, d)`` and ``(C,)``.
        dispersion_, convergence_: the dispersion used, and how training ended.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> head = ps.heads.FisherMix(per_class=50, max_rounds=2).fit(X, y)
        >>> head.predict([[0.1, 0.1], [0.9, 0.1]]).tolist()
        ['ash', 'elm']
    """

    entry: ClassVar[Entry] = Entry(any_of="SBD", beside_B="D", closed_form=False)
    bounds: ClassVar[Bounds] = TRAINING

    dimension: Subspace = "auto"
    per_class: Literal["auto"] | int = "auto"
    dispersion: Literal["auto"] | float = "auto"
    pooled_weight: float = 0.0
    shrinkage: Shrinkage = 0.05
    priors: Priors | ArrayLike = "counts"
    weight_decay: float = 3e-4
    max_rounds: int = 30
    patience: int = 2
    random_state: int = 0
    device: str = "cpu"
    progress: bool = False

    def _solve(self, evidence: ClassEvidence) -> LinearRule:
        torch = optional_dependencies.load("torch", by="FisherMix")
        world = World.of(evidence, self.dimension, self.pooled_weight, self.shrinkage, self.priors)
        self.means_ = world.centres
        self.dispersion_ = world.dispersion(self.dispersion, self.random_state)
        weights, bias = self._train(torch, world)
        coef = weights @ world.projection.T
        return LinearRule(coef, bias + world.prior - coef @ world.origin)

    def _train(self, torch: Any, world: World) -> tuple[Array, Array]:
        C = len(world.prior)
        per_class = max(400, 20_000 // C) if self.per_class == "auto" else int(self.per_class)
        device = choose_device(torch, self.device)
        train = self._tensors(torch, world, per_class, self.random_state, device)
        held_out = self._tensors(torch, world, max(per_class // 4, 20), self.random_state + 1, device)
        low = world.low_means
        W = torch.tensor(low / 2, dtype=torch.float32, device=device, requires_grad=True)
        b = torch.tensor(-np.square(low).sum(axis=1) / 4, dtype=torch.float32, device=device, requires_grad=True)

        def loss(samples: tuple[Any, Any]) -> Any:
            rows, labels = samples
            decay = self.weight_decay / 2 * W.square().sum()
            return torch.nn.functional.cross_entropy(rows @ W.T + b, labels) + decay

        self.convergence_ = converge(torch, self, [W, b], loss, train, held_out)
        return W.detach().cpu().numpy().astype(np.float64), b.detach().cpu().numpy().astype(np.float64)

    def _tensors(self, torch: Any, world: World, per_class: int, seed: int, device: Any) -> tuple[Any, Any]:
        samples = world.samples(per_class, self.dispersion_, seed)
        rows = torch.tensor(samples.rows @ world.directions, dtype=torch.float32, device=device)
        return rows, torch.tensor(samples.labels, dtype=torch.int64, device=device)
