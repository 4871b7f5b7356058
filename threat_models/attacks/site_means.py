"""Attack 4, sites: the size and means of every site, from too many pulls over too few of them.

``Q(l) - Q(l') = sum_k s_k s_k' (1 / (n_k + l') - 1 / (n_k + l))`` holds no record, only sites; the constant's row adds
``sum_k s_k l / (n_k + l)`` and N the sum of n_k. As many equations as unknowns are solved by least squares. This is why
``plan.cohort`` has a counting rule; an exact ``RidgeSchema`` release beside it would add a pull of infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from privstats import session
from privstats.dp import NoPrivacy
from privstats.errors import PlanError
from privstats.kinds import SiteMoments, SitesSchema
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import Generator, uniform
from privstats.schema import narrowed
from privstats.transforms import ConstantFeature
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.matching import match
from threat_models.chance import normal
from threat_models.examined import rated
from threat_models.made_up import sums_of
from threat_models.report import Row

Array: TypeAlias = NDArray[np.float64]

_NEAR = 0.05
_STARTS = 4
_SOLVED = 1e-12
# Largest distance of a size from an integer: sums are truncated to integer steps.
_INTEGER_TOLERANCE = 0.02
_SMALLEST, _LARGEST = 20.0, 400.0


class SiteMeans(Examination):
    """The sites' means recovered within 5 %, of as few sites as the plan admits."""

    name = "site-means"
    number = 4
    goal = "reconstruction"
    title = "an attacker solves the sums of several pulls for every site's size and means"
    needs = Adversary(knows="none")
    reads = "Q"
    effort = 0.05
    kinds = (SitesSchema,)

    def refusal(self, plan: Plan) -> str | None:
        """Needs exact sums of several pulls."""
        if (other := super().refusal(plan)) is not None:
            return other
        if not isinstance(plan.privacy, NoPrivacy):
            return "needs exact sums within sites"
        schema = _schema(plan)
        return None if len(schema.pulls) > 1 else "needs several pulls, and the plan has one"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: the share of sites whose means come out, against guessing the mean of all for each."""
        result, blind = [], []
        schema, sites = _schema(plan), plan.cohort.min_survivors - plan.cohort.colluders
        present = plan.cohort.min_survivors
        for _ in range(trials):
            world = [_site(schema, rng, plan.cohort.max_records // sites) for _ in range(sites)]
            parts: list[Moments] = [_measured(schema, X) for X in world]
            parts += [_measured(schema, world[0][:0])] * (present - sites)  # what colluders bring is known
            sums = session.aggregate_unmasked(plan, parts, rng).moments
            means = solve_sites(sums.Q, sums.N, schema.pulls, sites, _constant(schema), rng).means
            truth = np.array([X.mean(axis=0) for X in world])
            result.append(recovered_share(truth, means))
            blind.append(recovered_share(truth, np.tile(truth.mean(axis=0), (sites, 1))))
        note = "a counting rule keeps as many unknowns as twice the equations; it is no proof"
        return (rated(self, plan, result, blind, confidence, metric="site means rebuilt", promised=False, note=note),)


@dataclass(frozen=True, eq=False)
class Solved:
    """Sites that explain the sums.

    Attributes:
        sizes: records of each, ``(K,)``.
        means: of all entries of its vectors, ``(K, p)``.
        misfit: sum of squares of what they leave unexplained, each sum relative to its own size.
    """

    sizes: Array
    means: Array
    misfit: float

    def doubt(self) -> tuple[float, float]:
        """The misfit of a solution: sums that stay unexplained, then sizes that are no integers."""
        broken = float(np.abs(self.sizes - np.rint(self.sizes)).max())
        return (0.0, broken) if self.misfit < _SOLVED else (1.0, self.misfit)


def solve_sites(
    Q: Array,
    N: float,
    pulls: Sequence[float],
    sites: int,
    constant: tuple[int, float] | None,
    rng: Generator,
    *,
    starts: int = _STARTS,
) -> Solved:
    """The sizes and means of all sites, by least squares from several random starts.

    Args:
        Q: sums within sites, one per pull, ``(L, p, p)``.
        N: records of all sites together.
        pulls: lambda of each; infinity for plain second moments, which an exact ``RidgeSchema`` release gives.
        sites: how many there are.
        constant: place and value of an entry that is the same in all records, if there is one.
        rng: for the starts.
    """
    system = _System(np.asarray(Q, np.float64), float(N), tuple(pulls), sites, constant)
    best = Solved(np.zeros(sites), np.zeros((sites, Q.shape[-1])), math.inf)
    for _ in range(starts):
        result = least_squares(
            system.residuals, system.start(rng), jac=system.slopes, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=80
        )
        best = min(best, Solved(*system.split(result.x), 2 * float(result.cost)), key=Solved.doubt)
        if best.doubt() < (0.0, _INTEGER_TOLERANCE):
            break
    return best


def recovered_share(truth: Array, means: Array) -> float:
    """Share of sites whose means came out up to 5 %, in the entries that differ from site to site."""
    varying = np.ptp(truth, axis=0) > 0
    return match(truth[:, varying], means[:, varying]).within(_NEAR)


@dataclass(frozen=True, eq=False)
class _System:
    """The equations, each divided by the norm of its sum; unknown are log sizes and the entries of means."""

    Q: Array
    N: float
    pulls: tuple[float, ...]
    sites: int
    constant: tuple[int, float] | None

    @property
    def free(self) -> NDArray[np.intp]:
        """Entries of a mean that are unknown."""
        entries = np.arange(self.Q.shape[-1])
        return entries if self.constant is None else np.delete(entries, self.constant[0])

    def split(self, unknown: Array) -> tuple[Array, Array]:
        """Sizes ``(K,)`` and means ``(K, p)``."""
        K, p = self.sites, self.Q.shape[-1]
        means = np.zeros((K, p))
        means[:, self.free] = unknown[K:].reshape(K, -1)
        if self.constant is not None:
            means[:, self.constant[0]] = self.constant[1]
        return np.exp(np.clip(unknown[:K], -20, 30)), means

    def start(self, rng: Generator) -> Array:
        """Sizes around the average, means of the spread that the sums allow."""
        K, spread = self.sites, math.sqrt(float(np.abs(np.diagonal(self.Q[0])).mean()) / self.N)
        return np.concatenate([math.log(self.N / K) + normal(K, rng), spread * normal(K * len(self.free), rng)])

    def residuals(self, unknown: Array) -> Array:
        """The part of the sums that the sites leave unexplained."""
        n, means = self.split(unknown)
        u, v = np.triu_indices(means.shape[1])
        squares = means[:, u] * means[:, v]
        parts = [
            ((_explained(n, self.pulls[0]) - _explained(n, pull)) @ squares - gap[u, v])
            / max(np.linalg.norm(gap), 1e-300)
            for pull, gap in zip(self.pulls[1:], self.Q[1:] - self.Q[0], strict=True)
        ]
        parts.append(np.array([n.sum() / self.N - 1]))
        if self.constant is not None:
            place, value = self.constant
            row = self.Q[-1][place]
            parts.append((value * _left(n, self.pulls[-1]) @ means - row) / np.linalg.norm(row))
        return np.concatenate(parts)

    def slopes(self, unknown: Array) -> Array:
        """Derivatives of the residuals, ``(equations, unknown)``."""
        n, means = self.split(unknown)
        u, v = np.triu_indices(means.shape[1])
        unit = np.eye(means.shape[1])[self.free]
        moved = means[:, None, u] * unit[None, :, v] + unit[None, :, u] * means[:, None, v]
        parts = []
        for pull, gap in zip(self.pulls[1:], self.Q[1:] - self.Q[0], strict=True):
            size = max(float(np.linalg.norm(gap)), 1e-300)
            by_size = (
                (_explained_slope(n, self.pulls[0]) - _explained_slope(n, pull))[:, None] * means[:, u] * means[:, v]
            )
            by_mean = (_explained(n, self.pulls[0]) - _explained(n, pull))[:, None, None] * moved
            parts.append(np.vstack([by_size, by_mean.reshape(-1, len(u))]).T / size)
        parts.append(np.concatenate([n / self.N, np.zeros(self.sites * len(self.free))])[None])
        if self.constant is not None:
            place, value = self.constant
            by_size = _left_slope(n, self.pulls[-1])[:, None] * means
            by_mean = _left(n, self.pulls[-1])[:, None, None] * unit
            rows = np.vstack([by_size, by_mean.reshape(-1, means.shape[1])]).T
            parts.append(value * rows / np.linalg.norm(self.Q[-1][place]))
        return np.concatenate(parts)


def _explained(n: Array, pull: float) -> Array:
    """n^2 / (n + lambda): how much of m m' a site's shrunk mean takes out."""
    return n * n / (n + pull)


def _explained_slope(n: Array, pull: float) -> Array:
    """Derivative of it in log n."""
    return np.zeros_like(n) if math.isinf(pull) else n * n * (n + 2 * pull) / (n + pull) ** 2


def _left(n: Array, pull: float) -> Array:
    """n lambda / (n + lambda): how much of m stays in the constant's row."""
    return n if math.isinf(pull) else n * pull / (n + pull)


def _left_slope(n: Array, pull: float) -> Array:
    """Derivative of it in log n."""
    return n if math.isinf(pull) else n * (pull / (n + pull)) ** 2


def _schema(plan: Plan) -> SitesSchema:
    return narrowed(plan.schema, SitesSchema, PlanError("this attack is on sums within sites"))


def _constant(schema: SitesSchema) -> tuple[int, float] | None:
    """Place and value of a last constant feature, before the target."""
    last = schema.transform[-1] if schema.transform else None
    return (schema.features - 2, last.value) if isinstance(last, ConstantFeature) else None


def _site(schema: SitesSchema, rng: Generator, most: float = _LARGEST) -> Array:
    """Vectors of one made-up site, behind the transform and with the target: a mean of its own, and a spread."""
    p, scale = schema.features, schema.clip_norm / (3 * math.sqrt(schema.features))
    largest = min(most, _LARGEST)
    smallest = min(_SMALLEST, largest)
    count = int(smallest * (largest / max(smallest, 1)) ** float(uniform(1, rng)[0]))
    rows = scale * (normal(p, rng) + normal(count * p, rng).reshape(count, p))
    constant = _constant(schema)
    if constant is not None:
        rows[:, constant[0]] = constant[1]
    return np.asarray(rows)


def _measured(schema: SitesSchema, rows: Array) -> SiteMoments:
    """The site's sums by the library's own measuring, under the plan's schema."""
    bare = replace(schema, transform=(), feature_names=None, target_scale=1.0)
    result = sums_of(bare, rows[:, :-1], rows[:, -1])
    assert isinstance(result, SiteMoments)  # noqa: S101  by its schema
    return SiteMoments(schema, result.N, result.Q)
