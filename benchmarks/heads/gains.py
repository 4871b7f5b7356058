"""Accuracies of models over like draws, and what each gains over the first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Rows, standard_error

__all__ = ["gains"]


def gains(found: NDArray[np.float64], models: Sequence[str], epsilons: Sequence[float]) -> Rows:
    """A row per model: mean and standard error per epsilon, and those of its gain over the first model.

    Args:
        found: accuracies, ``(draws, epsilons, models)``; the models of a draw share its records and noise.
        models: their names.
        epsilons: of the promises.
    """
    rows: list[Row] = []
    for place, model in enumerate(models):
        row: dict[str, object] = {"model": model}
        for at, epsilon in enumerate(epsilons):
            own, gain = found[:, at, place], found[:, at, place] - found[:, at, 0]
            row |= {f"eps {epsilon:g}": float(own.mean()), f"se {epsilon:g}": standard_error(own)}
            row |= {f"gain {epsilon:g}": float(gain.mean()), f"gain se {epsilon:g}": standard_error(gain)}
        rows.append(row)
    return rows
