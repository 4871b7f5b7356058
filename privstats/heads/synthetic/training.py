"""A softmax model fitted on synthetic records until it has converged, by torch.

Deterministic on one device: the samples are seeded and L-BFGS draws nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privstats.errors import DataError

if TYPE_CHECKING:
    import torch

__all__ = ["Convergence", "choose_device", "converge"]

_ROUND = 10  # L-BFGS iterations between two looks at the validation loss
_WORTHWHILE = 1e-5  # least relative fall of the loss that counts


@dataclass(frozen=True)
class Convergence:
    """The end of a fit.

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
