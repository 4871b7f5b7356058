"""What a record adds to a round of the module: Opacus's gradients of single records, in integers.

Opacus's ``GradSampleModule`` keeps the gradient of every record of a batch. Here it sees integers in float64
alone: rows, weights, residuals and activations are cut to grids, so every sum of products stays below 2**53 and is
exact in any order. Whatever a batch holds beside it, a record so adds the same integers, on any machine; gradients in
plain floats would change by a rounding with the batch, and a sensitivity of one record would not bound that.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.extend.kinds import Values
from privstats.extend.modules import PROBABILITY_BITS, SHY, Ints, exponentials, residuals_of, shortened
from privstats.extend.support import optional_dependencies

__all__ = ["Shape", "gradients"]

_BY = "measuring a round of this module"
_GAIN_BITS = 3  # the 8 in tanh(8 V u)


@dataclass(frozen=True)
class Shape:
    """Where the module's numbers stand.

    Attributes:
        width: H.
        through: how many of the last entries of u the scores read beside h.
        classes: C.
        columns: d + 1.
    """

    width: int
    through: int
    classes: int
    columns: int

    @property
    def parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of V and W; the published ``w`` holds V, then W, row by row."""
        return (self.width, self.columns), (self.classes, self.width + self.through)


def gradients(
    shape: Shape, units: Ints, labels: NDArray[np.intp], w: Values, norm: float, bits: int
) -> tuple[Ints, Ints]:
    """The gradients of records, shortened, and kappa, as ``Module.gradients`` wants them.

    Guarantee:
        For all admitted values and any record, whatever else is in the batch: the row is at most 4**f long and kappa
        lies in 0..2**f, in integers that are functions of the record and the values alone.

    Raises:
        MissingExtraError: torch or Opacus is not installed.
    """
    torch = optional_dependencies.load("torch", by=_BY)
    with torch.inference_mode(False), torch.enable_grad():  # whatever the party's own script has turned off
        model = _model(torch, shape, bits, w)
        scores = model(torch.from_numpy(units))
        r, square = residuals_of(scores.detach().numpy(), w.exponent + bits, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Opacus's own, about torch's hooks
            scores.backward(torch.from_numpy(r))
    found = torch.cat([weights.grad_sample.flatten(1) for weights in model.parameters()], dim=1).numpy()
    rows, shorter = shortened(found, 1 / norm, PROBABILITY_BITS + bits, 4**bits)
    left = 1 - np.minimum(np.ldexp(square, -2 * PROBABILITY_BITS), 1.0)
    return rows, np.floor(left * shorter * ((1 << bits) * SHY))


def _model(torch: Any, shape: Shape, bits: int, w: Values) -> Any:
    """The module behind Opacus's hooks: from whole rows u ``(n, d + 1)`` to whole scores ``(n, C)``."""
    through, tanh = shape.through, _tanh(torch, shape.width, bits, w.exponent)

    class Hidden(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = (
                torch.nn.Linear(columns, rows, bias=False, device="cpu", dtype=torch.float64)
                for rows, columns in shape.parts
            )

        def forward(self, units: Any) -> Any:
            return self.last(torch.cat([tanh.apply(self.first(units)), units[:, -through:]], dim=1))

    model = Hidden()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(w.integers.astype(np.float64)), model.parameters())
    samples = optional_dependencies.load("opacus", by=_BY).GradSampleModule
    return samples(model, loss_reduction="sum")


def _tanh(torch: Any, width: int, bits: int, exponent: int) -> Any:
    """``tanh(8 a) / sqrt(H)`` and its derivative, of integers to integers, as a function of torch."""
    steps, share = 1 << bits, 1 / math.sqrt(width)

    class Tanh(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, below: Any) -> Any:
            """In units of 2**-(exponent + bits), to steps of 2**-bits."""
            a = below.detach().numpy().reshape(-1)
            up, down = exponentials(np.stack([a, -a], axis=1), exponent + bits - _GAIN_BITS).T
            ctx.tanh = ((up - down) / (up + down)).reshape(below.shape)
            return torch.from_numpy(np.trunc(ctx.tanh * (steps * share)))

        @staticmethod
        def backward(ctx: Any, above: Any) -> Any:
            """In units of 2**-(20 + exponent), to steps of 2**-20: the residual that V's gradient is a product of."""
            slope = (1 - ctx.tanh * ctx.tanh) * share
            return torch.from_numpy(np.trunc(np.ldexp(above.numpy() * slope, _GAIN_BITS - exponent)))

    return Tanh
