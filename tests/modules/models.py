"""Modules that break what they promise, each in one way, for the tests of the seam."""

from __future__ import annotations

from typing import Any

import numpy as np

from privstats.schema.modules import Module


class Broken(Module):
    """Weights of no effect: the sums are what ``how`` says of the rows u, which stand for gradients."""

    def __init__(self, how: str) -> None:
        self.how, self.rows = how, np.zeros((1, 5))

    def weights(self, features: int, classes: int) -> int:
        return features + 1

    def gradients(
        self, units: Any, labels: Any, weights: Any, *, classes: int, norm: float, grid_bits: int
    ) -> tuple[Any, Any]:
        rows, kappa, steps = units * (1 << grid_bits), np.zeros(len(units)), float(1 << grid_bits)
        if self.how == "reuses":
            self.rows[:] = rows
            return self.rows, kappa
        if self.how == "raises" and (labels == 1).any():
            raise ValueError(f"no gradient of {units.tolist()}")
        if self.how == "exits" and (labels == 1).any():
            raise SystemExit(3)
        match self.how:
            case "long":
                rows = 2 * rows
            case "part":
                rows = rows + 0.5 * (labels == 1)[:, None]
            case "nan":
                rows = np.where((labels == 1)[:, None], np.nan, rows)
            case "kappa":
                kappa = kappa + 2 * steps * (labels == 1)
            case "mixed":
                rows = np.trunc((rows - rows.mean(axis=0)) / 2)
            case "shape":
                rows = rows[:, 1:]
        return rows, kappa

    def started(self, *_: Any) -> Any:
        raise NotImplementedError

    def refined(self, *_: Any) -> Any:
        raise NotImplementedError

    def published(self, state: Any) -> Any:
        raise NotImplementedError

    def exact(self, *_: Any) -> Any:
        raise NotImplementedError

    def rule(self, *_: Any) -> Any:
        raise NotImplementedError
