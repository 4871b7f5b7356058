"""Class-conditional Gaussian samples from moments, and a softmax model fitted on them until it has converged.

Not a head and not private data: every sample is drawn from the released moments. torch, deterministic under a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.errors import DataError
from privstats.heads.evidence import Array

if TYPE_CHECKING:
    import torch

__all__ = ["Convergence", "Samples", "choose_device", "converge", "draw"]

_ROUND = 10  # L-BFGS iterations between two looks at the validation loss
_WORTHWHILE = 1e-5  # least relative fall of the loss that counts


@dataclass(frozen=True)
class Samples:
    """Synthetic rows ``(C * per_class, d)``, float64, ordered by class, and their labels."""

    rows: Array
    labels: Any


@dataclass(frozen=True)
class Convergence:
    """How a fit ended.

    Attributes:
        rounds: rounds of ten L-BFGS iterations.
        loss: least validation loss.
        converged: whether the validation loss stopped falling, rather than the rounds running out.
    """

    rounds: int
    loss: float
    converged: bool


def choose_device(torch: Any, device: str) -> Any:
    """The torch device named; ``"auto"`` is CUDA where there is one.

    Raises:
        DataError: CUDA was asked for and there is none.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise DataError("device='cuda' needs a CUDA build of torch and a GPU; use device='cpu' or 'auto'")
    return torch.device(device)


def draw(means: Array, values: Array, vectors: Array, per_class: int, dispersion: float, seed: int) -> Samples:
    """Samples of ``N(mu_c, dispersion^2 V_c diag(values_c) V_c^T)``, the same for the same seed on every device.

    Args:
        means: ``(C, d)``.
        values, vectors: eigenvalues ``(C, d)`` and eigenvectors ``(C, d, d)``.
        per_class: samples of each class.
        dispersion: tau of GH-OFL section 3.3.
        seed: of numpy's PCG64; these samples are model fitting, not privacy.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    C, d = means.shape
    rows = np.empty((C, per_class, d))
    for c in range(C):
        root = (vectors[c] * (dispersion * np.sqrt(values[c]))) @ vectors[c].T  # symmetric: eigenvector signs cancel
        np.matmul(rng.standard_normal((per_class, d)), root, out=rows[c])
        rows[c] += means[c]
    return Samples(rows.reshape(C * per_class, d), np.repeat(np.arange(C), per_class))


def converge(
    torch: Any,
    parameters: list[torch.Tensor],
    train_loss: Callable[[], torch.Tensor],
    validation_loss: Callable[[], torch.Tensor],
    *,
    max_rounds: int,
    patience: int,
    progress: bool,
    title: str,
) -> Convergence:
    """L-BFGS until the validation loss has not fallen for ``patience`` rounds; the best parameters are kept."""
    optimiser = torch.optim.LBFGS(
        parameters, max_iter=_ROUND, history_size=20, line_search_fn="strong_wolfe", tolerance_change=1e-10
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = train_loss()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    best, kept, since, rounds = math.inf, [p.detach().clone() for p in parameters], 0, 0
    with _bar(title, max_rounds, progress) as advance:
        while rounds < max_rounds and since < patience:
            optimiser.step(closure)
            with torch.no_grad():
                loss = float(validation_loss())
            rounds, since = rounds + 1, since + 1
            advance()
            if math.isfinite(loss) and (best == math.inf or loss < best - _WORTHWHILE * abs(best)):
                best, kept, since = loss, [p.detach().clone() for p in parameters], 0
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
    return Convergence(rounds, best, since >= patience)


@contextmanager
def _bar(title: str, total: int, show: bool) -> Iterator[Callable[[], None]]:
    if not show:
        yield lambda: None
        return
    from rich.progress import Progress

    with Progress(transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)
