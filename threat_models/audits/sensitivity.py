"""Adversarial search for the worst pair of records, against the closed forms of ``privstats.dp``.

Builds the moments of records from their definitions and climbs their weighted distance with L-BFGS from random starts.
It shares no formula with what it checks. An audit of the plan, before any data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtri

from privstats.dp import joint_mu
from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError
from privstats.printable import delta_text
from privstats.progress import track
from privstats.randomness import Generator
from privstats.schema import Schema
from threat_models.audits.cells import worst_of_tables
from threat_models.audits.kinds import Shape, row_part
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report

Vector: TypeAlias = NDArray[np.float64]
Pullback: TypeAlias = Callable[[Vector], Vector]
TOLERANCE = 1e-9
PROMISE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class WorstPair:
    """The largest weighted distance found, and the records that have it.

    Attributes:
        mu: the distance.
        features: one row per record, in the order (present, replaced); one row under add-remove, or where the other is
            in no sum.
        targets: likewise, for ridge; no columns otherwise.
        apart: the two records fall in different classes, or different folds.
    """

    mu: float
    features: Vector
    targets: Vector
    apart: bool


@dataclass(frozen=True)
class Finding:
    """A claimed sensitivity beside the largest that the search found."""

    statistic: str
    adjacency: Adjacency
    claimed: float
    measured: float
    tolerance: float = TOLERANCE

    @property
    def ratio(self) -> float:
        """Found over claimed; 1 where neither moves, as a pooled count between records that are exchanged."""
        return self.measured / self.claimed if self.claimed else 1.0 if not self.measured else math.inf

    @property
    def violated(self) -> bool:
        """The search beat the claim by more than rounding: the claim is false."""
        return self.measured > self.claimed * (1 + self.tolerance)


def report_of(audit: str, results: Sequence[Finding], notes: tuple[str, ...]) -> Report:
    """Report the results of a search, one row per claim."""
    rows = tuple((f.statistic, f.adjacency, f.claimed, f.measured, f.ratio, f.violated) for f in results)
    columns = ("statistic", "adjacency", "claimed", "found", "ratio", "violated")
    return Report(audit, columns, rows, notes, any(each.violated for each in results))


def audit_sensitivity(target: Target, rng: Generator, *, starts: int = 12) -> Report:
    """Search the worst pair of every statistic alone and of all together, under both adjacencies.

    A statistic alone is in its real units; the row ``"joint"`` is mu with the plan's noise, and the row ``"promise"``
    holds that against epsilon and delta as the plan states them, for the plan's own unit and adjacency.
    """
    result = list(findings(target.schema, target.sigma, rng, starts=starts))
    promise = target.promise
    result.append(Finding("promise", promise.adjacency, promise.mu, worst_mu(target, rng, starts), PROMISE_TOLERANCE))
    result += _of_tables(target, rng)
    notes = (
        f"{starts} random starts per configuration, L-BFGS over records in {target.schema.features} dimensions",
        f"promise: epsilon {promise.epsilon:g} at delta {delta_text(promise.delta)} per {promise.unit}, "
        f"{promise.adjacency}",
    )
    return report_of("sensitivity", result, notes)


def _of_tables(target: Target, rng: Generator) -> list[Finding]:
    """Records of declared columns, measured in whole tables; they seldom attain the bound, and may not pass it."""
    schema, sigma = target.schema, target.sigma
    worst = worst_of_tables(schema, sigma, rng)
    return [Finding("tables", how, joint_mu(schema, sigma, how), mu) for how, mu in worst.items()]


def worst_mu(target: Target, rng: Generator, starts: int) -> float:
    """mu that the declared noise leaves to the worst unit that the search finds; the promise must not be below it.

    A client is worth ``promise.records`` times its worst record: the sums are linear, and the client clip is declared
    in records.
    """
    pair = worst_pair(target.schema, target.sigma, target.privacy.adjacency, rng, starts)
    return target.promise.records * pair.mu


def findings(schema: Schema, sigmas: Mapping[str, float], rng: Generator, *, starts: int = 12) -> tuple[Finding, ...]:
    """The searches behind :func:`audit_sensitivity`: noise 1 for a statistic alone, the given noise for all."""
    questions = [(statistic, {statistic: 1.0}) for statistic in sigmas] + [("joint", dict(sigmas))]
    adjacencies: tuple[Adjacency, ...] = ("add-remove", "replace-one")
    return tuple(
        Finding(
            name, adjacency, joint_mu(schema, noise, adjacency), worst_pair(schema, noise, adjacency, rng, starts).mu
        )
        for (name, noise), adjacency in track("searching", [*product(questions, adjacencies)])
    )


def worst_pair(
    schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency, rng: Generator, starts: int = 12
) -> WorstPair:
    """The best local maximum of the weighted distance over ``starts`` random starts per configuration.

    Under replace-one a record's neighbour may be one that cannot be read, and is in no sum.

    Raises:
        SchemaError: a kind in which the letters mean other sums.
        PlanError: a statistic that the search has no definition of.
    """
    shape = _shape_of(schema)
    undefined = set(sigmas) - set(shape.letters)
    if undefined:
        raise PlanError(
            f"the search has no definition of statistic {min(undefined)} of a {type(schema).__name__}; add its own to "
            "the audit"
        )
    pairs = [(2, apart) for apart in ((False,) if shape.cells == 1 else (False, True))]
    tried = [*(pairs if adjacency == "replace-one" else []), (1, False)]
    climbs = [_climb(_Distance(schema, sigmas, *each), rng) for each in tried for _ in range(starts)]
    return max(climbs, key=lambda pair: pair.mu)


def _shape_of(schema: Schema) -> Shape:
    result: Shape = row_part("shape", schema, "search for a worst pair of records")(schema)
    return result


@dataclass(frozen=True)
class _Distance:
    """The weighted squared distance of two data sets that differ in these records, as a smooth function of parameters.

    A vector of norm at most R is R sin(r)^2 v / |v|, which reaches the sphere; non-negative ones have v = u * u.
    """

    schema: Schema
    sigmas: Mapping[str, float]
    records: int
    apart: bool

    @cached_property
    def shape(self) -> Shape:
        """The shape of the schema's kind."""
        return _shape_of(self.schema)

    @property
    def widths(self) -> tuple[int, int]:
        """Entries of a feature vector and of a target vector."""
        return self.schema.features, self.shape.targets

    @property
    def parameters(self) -> int:
        return self.records * (sum(self.widths) + 2)

    def place(self, parameters: Vector) -> tuple[Vector, Vector]:
        """Features ``(records, d)`` and targets ``(records, targets)``."""
        x, _, b, _ = self._split(parameters)
        return x, b

    def loss(self, parameters: Vector) -> tuple[float, Vector]:
        """Minus the squared distance, and its gradient."""
        x, back_x, b, back_b = self._split(parameters)
        value, gx, gb = self._squared(x, b)
        return -value, -np.concatenate([back_x(gx), back_b(gb)])

    def _split(self, parameters: Vector) -> tuple[Vector, Pullback, Vector, Pullback]:
        d, _ = self.widths
        cut = self.records * (d + 1)
        x, back_x = _ball(parameters[:cut].reshape(self.records, -1), self.schema.clip_norm, self.schema.nonnegative)
        b, back_b = _ball(parameters[cut:].reshape(self.records, -1), self.shape.bound, False)
        return x, back_x, b, back_b

    def _squared(self, x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
        if self.apart or self.records == 1:  # records in different cells move different entries: squares add
            parts = [self._cell(x[i : i + 1], b[i : i + 1]) for i in range(self.records)]
            value = sum(part[0] for part in parts)
            gx, gb = np.vstack([part[1] for part in parts]), np.vstack([part[2] for part in parts])
        else:
            value, gx, gb = self._cell(x, b)
        return self._add_shared(x, value, gx), gx, gb

    def _add_shared(self, x: Vector, value: float, gx: Vector) -> float:
        """B is one block over all classes, so records of different classes meet in it again."""
        if "B" not in self.sigmas:
            return value
        more, gradient = _symmetric(x)
        gx += gradient / self.sigmas["B"] ** 2
        return value + more / self.sigmas["B"] ** 2

    def _cell(self, x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
        """Squared distance of the moments in one class or fold: first record minus the second, if there is one."""
        value, gx, gb = 0.0, np.zeros_like(x), np.zeros_like(b)
        for statistic, sigma in self.sigmas.items():
            if statistic == "B":
                continue
            more, dx, db = _MOMENTS[statistic](x, b)
            value, gx, gb = value + more / sigma**2, gx + dx / sigma**2, gb + db / sigma**2
        return value, gx, gb


def _ball(parameters: Vector, bound: float, nonnegative: bool) -> tuple[Vector, Pullback]:
    """Vectors in the ball, and the map that pulls a gradient back to the parameters."""
    radius, raw = parameters[:, :1], parameters[:, 1:]
    v = raw * raw if nonnegative else raw
    length = np.sqrt(np.sum(v * v, axis=1, keepdims=True)) + 1e-300
    unit = v / length
    scale = bound * np.sin(radius) ** 2

    def back(gradient: Vector) -> Vector:
        along = np.sum(gradient * unit, axis=1, keepdims=True)
        across = scale * (gradient - along * unit) / length
        down = bound * np.sin(2 * radius) * along
        return np.hstack([down, across * (2 * raw if nonnegative else 1.0)]).ravel()

    return scale * unit, back


def _signs(x: Vector) -> Vector:
    return np.array([1.0, -1.0])[: len(x), None]


def _count(x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
    return float(_signs(x).sum() ** 2), np.zeros_like(x), np.zeros_like(b)


def _sum(x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
    gap = (_signs(x) * x).sum(axis=0)
    return float(gap @ gap), 2 * _signs(x) * gap, np.zeros_like(b)


def _second(x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
    value, gradient = _symmetric(x)
    return value, gradient, np.zeros_like(b)


def _symmetric(x: Vector) -> tuple[float, Vector]:
    gap = (_signs(x) * x).T @ x
    return float(np.sum(gap * gap)), 4 * _signs(x) * (x @ gap)


def _diagonal(x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
    gap = (_signs(x) * x * x).sum(axis=0)
    return float(gap @ gap), 4 * _signs(x) * x * gap, np.zeros_like(b)


def _cross(x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
    gap = (_signs(x) * x).T @ b
    return float(np.sum(gap * gap)), 2 * _signs(x) * (b @ gap.T), 2 * _signs(x) * (x @ gap)


def _energy(x: Vector, b: Vector) -> tuple[float, Vector, Vector]:
    gap = float(np.sum(_signs(x) * b * b))
    return gap * gap, np.zeros_like(x), 4 * gap * _signs(x) * b


_MOMENTS = {"N": _count, "A": _sum, "x": _sum, "S": _second, "D": _diagonal, "G": _second, "h": _cross, "q": _energy}


def _climb(distance: _Distance, rng: Generator) -> WorstPair:
    uniform = (rng.uint64(distance.parameters).astype(np.float64) + 0.5) * 2.0**-64
    start = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    result = minimize(
        distance.loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    )
    x, b = distance.place(result.x)
    return WorstPair(math.sqrt(max(0.0, -float(result.fun))), x, b, distance.apart)
