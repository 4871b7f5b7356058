"""DP-GD with full batches: many settings train side by side, as one tensor on the CPU or a CUDA device.

A piece is a hundred settings of equal steps. Pieces are numbered, and a setting's number and draw determine its noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from benchmarks.data import Split

__all__ = ["MANY", "STEPS", "Records", "accuracies", "piece", "seed_of", "setting_of", "steps_of", "train"]

STEPS = (10, 25, 50, 100, 200, 400, 800)
MANY = 100
"""Settings of a piece."""
_TAILS = (0.0, 0.25, 0.5, 0.75)
_MOMENTA = (0.0, 0.5, 0.9)
# On a CPU a step's tensors should stay in the cache: rows of weights, and residuals between the two products.
_WIDTH, _ENTRIES = {"cpu": 2_048, "cuda": 1 << 16}, {"cpu": 1 << 20, "cuda": 1 << 28}


@dataclass(frozen=True)
class Records:
    """Training and test rows on one device, in float32, with a column of ones; every row has norm 1.

    Attributes:
        rows, tests: ``(n, k)`` and ``(m, k)``.
        labels, right: classes of both, ``(n,)`` and ``(m,)``.
        classes: C.
        total: the number of records that noise is divided by: n, or more where the rows are a part of them.
    """

    rows: torch.Tensor
    tests: torch.Tensor
    labels: torch.Tensor
    right: torch.Tensor
    classes: int
    total: int

    @classmethod
    def of(cls, split: Split, device: str) -> Records:
        """Put rows of norm 1 on a device, in random order."""
        X, X_test, y, y_test = split
        order = np.random.default_rng(0).permutation(len(X))
        rows, tests = (
            torch.as_tensor(np.hstack([part, np.ones((len(part), 1))]) / 2**0.5, dtype=torch.float32, device=device)
            for part in (X[order], X_test)
        )
        labels, right = (torch.as_tensor(part, device=device) for part in (y[order], y_test))
        return cls(rows, tests, labels, right, int(max(y.max(), y_test.max())) + 1, len(X))

    @property
    def size(self) -> int:
        """Records times classes."""
        return self.total * self.classes

    @property
    def width(self) -> int:
        """Number of settings that train side by side."""
        return max(1, _WIDTH[self.rows.device.type] // self.classes)

    def part(self, share: float) -> Records:
        """Return the first records, a share of all, with the noise of all."""
        n = round(share * len(self.rows))
        return replace(self, rows=self.rows[:n], labels=self.labels[:n])

    def noisy_moments(self, sigma: torch.Tensor, chances: Sequence[torch.Generator]) -> torch.Tensor:
        """Return second moments of all records with noise, ``(R, k, k)``: sigma on the diagonal, sigma / sqrt 2 off it.

        A row of norm 1 changes the second moment by 1 in Frobenius norm.
        """
        n, k = self.rows.shape
        noise = torch.stack([torch.randn((k, k), generator=chance, device=self.rows.device) for chance in chances])
        symmetric = torch.tril(noise) + torch.tril(noise, -1).mT
        scale = torch.eye(k, device=noise.device) * (1 - 2**-0.5) + 2**-0.5
        return self.rows.T @ self.rows * (self.total / n) + sigma[:, None, None] * symmetric * scale

    def inverses(self, moments: torch.Tensor, damping: torch.Tensor) -> torch.Tensor:
        """Return inverses of second moments over their mean eigenvalue, damped; eigenvalues below 0 become 0."""
        k = self.rows.shape[1]
        values, vectors = torch.linalg.eigh(moments * (k / self.total))
        inverses: torch.Tensor = (vectors / (values.clamp(min=0.0) + damping[:, None])[:, None, :]) @ vectors.mT
        return inverses


def piece(number: int, *, preconditioned: bool = False) -> torch.Tensor:
    """Return the hundred random settings of a numbered piece, ``(100, 6)``.

    The columns are rate, clip, momentum, tail, share of the budget and damping; DP-FC alone has a share, and the others
    0. Rates, clips and dampings are log-uniform. All have as many steps.
    """
    rng = np.random.default_rng([0, number])
    columns = [
        np.exp(rng.uniform(np.log(0.5), np.log(512.0), MANY)),
        np.exp(rng.uniform(np.log(0.02), np.log(1.5), MANY)),
        rng.choice(_MOMENTA, MANY),
        rng.choice(_TAILS, MANY),
        rng.uniform(0.02, 0.5, MANY) if preconditioned else np.zeros(MANY),
        np.exp(rng.uniform(np.log(0.01), np.log(10.0), MANY)),
    ]
    return torch.as_tensor(np.stack(columns, axis=1), dtype=torch.float32)


def steps_of(setting: int) -> int:
    """Return the number of steps of a setting: those of its piece, which take turns."""
    return STEPS[setting // MANY % len(STEPS)]


def setting_of(number: int, preconditioned: bool) -> torch.Tensor:
    """Return one setting by its number, ``(6,)``."""
    return piece(number // MANY, preconditioned=preconditioned)[number % MANY]


def seed_of(setting: int, draw: int) -> int:
    """Return the seed of a setting's noise at one draw."""
    return int(np.random.SeedSequence([setting, draw]).generate_state(1)[0])


def accuracies(records: Records, settings: torch.Tensor, steps: int, mu: float, seeds: Sequence[int]) -> list[float]:
    """Return each setting's accuracy on the test rows, from as many seeds of noise as settings."""
    found: list[float] = []
    for at in range(0, len(settings), records.width):
        several = slice(at, at + records.width)
        weights = train(records, settings[several], steps, mu, seeds[several])
        scores = weights.flatten(0, 1) @ records.tests.T
        guess = scores.view(*weights.shape[:2], -1).argmax(dim=1)
        # Rounded as they are stored, so that a stored search has the same ties.
        found += [round(score, 7) for score in (guess == records.right).double().mean(dim=1).tolist()]
    return found


def train(records: Records, settings: torch.Tensor, steps: int, mu: float, seeds: Sequence[int]) -> torch.Tensor:
    """Return each setting's weights ``(R, C, k)``, which are mu-GDP for one record.

    T Gaussian mechanisms with noise multiplier ``sqrt(T) / m`` are m-GDP (Dong, Roth and Su 2022). A share s of mu^2
    pays for the second moment, so m^2 is ``(1 - s) mu^2``. A setting's noise follows from its own seed alone.
    """
    device, shape = records.rows.device, (len(settings), records.classes, records.rows.shape[1])
    chances = [torch.Generator(device).manual_seed(seed) for seed in seeds]
    settings = settings.to(device)
    rate, clip, momentum, tail, share, damping = (settings[:, each, None, None] for each in range(6))
    scale = clip * steps**0.5 / (mu * (1 - share) ** 0.5) / records.total
    inverse = None
    if bool((share > 0).any()):
        sigma = 1 / (mu * share[:, 0, 0] ** 0.5)
        inverse = records.inverses(records.noisy_moments(sigma, chances), damping[:, 0, 0])
    W, velocity, mean, G, noise, product = (torch.zeros(shape, device=device) for _ in range(6))
    first = steps - torch.clamp((tail * steps).round(), min=1)  # the step from which on weights are averaged
    for step in range(steps):
        put_gradients(records, W, clip[:, :, 0], G)
        for each, chance in zip(noise, chances, strict=True):
            torch.randn(each.shape, generator=chance, out=each)
        G.addcmul_(noise, scale)
        change = G if inverse is None else torch.bmm(G, inverse, out=product)
        velocity.mul_(momentum).add_(change)
        W.addcmul_(velocity, rate, value=-1)
        averaged = (first <= step).float()
        if bool(averaged.any()):
            mean.addcmul_(W, averaged)
    return mean.div_(steps - first)


def put_gradients(records: Records, W: torch.Tensor, clip: torch.Tensor, G: torch.Tensor) -> None:
    """Write means of clipped gradients into G, ``(R, C, k)``.

    A gradient has norm ``|p - e_y|``, since rows have norm 1.
    Residuals of all settings and some records are one matrix between two products, ``(R C, records)``.
    """
    (R, C, k), n = W.shape, len(records.rows)
    weights, sums = W.view(R * C, k), G.view(R * C, k)
    pieces = math.ceil(R * C * n / _ENTRIES[W.device.type])
    size = math.ceil(n / pieces)
    store, squares = torch.empty((2, R * C * size), device=W.device).unbind()
    minus = torch.full((1, 1, 1), -1.0, device=W.device)
    for at in range(0, n, size):
        rows, labels = records.rows[at : at + size], records.labels[at : at + size]
        entries = R * C * len(rows)
        products = store[:entries].view(R * C, len(rows))
        residual = torch.mm(weights, rows.T, out=products).view(R, C, len(rows))
        torch.softmax(residual, 1, out=residual)
        residual.scatter_add_(1, labels.expand(R, 1, -1), minus.expand(R, 1, len(rows)))
        # torch.linalg.vector_norm over a middle axis takes longer than both products.
        norms = torch.mul(residual, residual, out=squares[:entries].view_as(residual)).sum(dim=1).sqrt_()
        residual.mul_((clip / norms.clamp_(min=1e-30)).clamp_(max=1.0)[:, None, :])
        sums.addmm_(products, rows, beta=float(at > 0), alpha=1 / n)
