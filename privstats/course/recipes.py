"""Define the recipes of refinement.

Recipes are pure functions of releases, so server, clients and heads compute equal values. A plan implies its recipe: a
round's noise distinguishes recipes, and the digest of earlier releases shows any mean.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from privstats.course.promise import record_mu, rounded_down
from privstats.errors import PlanError
from privstats.estimates import recipes, regression, softmax
from privstats.estimates.denoise import Array, NoisyClassSums, NoisyGram, NoisyMean
from privstats.estimates.filter_bank import Filter
from privstats.estimates.recipes import RidgeRecipe
from privstats.kinds import CalibrationSchema, ClassSchema, GradientSchema, MeanSchema, RidgeSchema
from privstats.kinds.calibration import FACTORS
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import Schema
from privstats.schema.modules import Module, module_of
from privstats.schema.public_values import Values
from privstats.transforms import of_unit_norm

_PAIR = 2

_RidgeState: TypeAlias = regression.RidgeState | regression.DescentState
_After: TypeAlias = tuple[Release, regression.RidgeWhitening, _RidgeState]
AnyRecipe: TypeAlias = "SoftmaxRounds | ModuleRounds | RidgeRounds"


@dataclass(frozen=True)
class Recipe(ABC):
    """The interface of a recipe.

    Attributes:
        first: the first release's schema.
        records: n, public.
        mu: the whole course's mu for one record.
        rounds: rounds that share the remaining budget.
    """

    first: Any
    records: int
    mu: float
    rounds: int

    @property
    @abstractmethod
    def constants(self) -> recipes.SoftmaxRecipe | RidgeRecipe:
        """The recipe's numbers."""

    @property
    @abstractmethod
    def schema(self) -> GradientSchema:
        """A round's schema."""

    @property
    @abstractmethod
    def shares(self) -> Mapping[str, float]:
        """A round's part of mu^2 per statistic."""

    @property
    def mean(self) -> MeanSchema | None:
        """The schema of a mean before the rounds, if any."""
        return None

    @property
    def mean_share(self) -> float:
        """The mean's part of mu^2; 0 without one."""
        return 0.0

    @abstractmethod
    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the next round's published values."""

    @property
    def _common(self) -> dict[str, Any]:
        schema = self.first
        return {
            "features": schema.features,
            "expected_records": self.records,
            "course_mu": self.mu,
            "clip_norm": schema.clip_norm,
            "nonnegative": schema.nonnegative,
            "transform": schema.transform,
            "feature_names": schema.feature_names,
        }


@dataclass(frozen=True)
class ClassRounds(Recipe):
    """Rounds of a model that separates classes, after (N, A, B) of rows of norm 1.

    Attributes:
        clip: c, the norm to which residuals are clipped; a module's gradient norm replaces it.
    """

    first: ClassSchema
    clip: float = field(default=recipes.GRADIENT_CLIP, kw_only=True)

    @cached_property
    def constants(self) -> recipes.SoftmaxRecipe:
        """The recipe's numbers."""
        C, d = self.first.classes, self.first.features
        return recipes.SoftmaxRecipe(C, d, self.records, self.mu, self.rounds, self.clip)

    @property
    def schema(self) -> GradientSchema:
        """A round's schema."""
        return GradientSchema(
            **self._common,
            classes=self.first.classes,
            residual_norm=self.clip,
            class_names=self.first.class_names,
        )

    @property
    def shares(self) -> Mapping[str, float]:
        """A round's part of mu^2 per statistic."""
        return {"g": recipes.GRADIENT_SHARES["g"], "k": recipes.GRADIENT_SHARES["kappa"]}

    def sums(self, release: Release) -> NoisyClassSums:
        """Return the first release's noisy (N, A, B)."""
        real = release.moments
        N, A, B = (np.asarray(getattr(real, letter), np.float64) for letter in "NAB")
        return NoisyClassSums(N, A, (B + B.T) / 2, dict(release.sigma))


class RoundSums(NamedTuple):
    """A round's gradient ``(C, d + 1)``, kappa, and the gradient's noise."""

    gradient: Any
    kappa: float
    sigma: float

    @classmethod
    def of(cls, release: Release) -> RoundSums:
        """Return a linear round's sums."""
        return cls(release.moments.g, float(release.moments.k), float(release.sigma["g"]))


@dataclass(frozen=True)
class SoftmaxRounds(ClassRounds):
    """Rounds of a linear softmax."""

    @property
    def calibration(self) -> CalibrationSchema:
        """The calibration's schema."""
        return CalibrationSchema(**self._common, classes=self.first.classes, class_names=self.first.class_names)

    def states(self, releases: Sequence[Release]) -> tuple[softmax.SoftmaxWhitening, list[Filter]]:
        """Return the map, and the filter after every release but a calibration."""
        sums = self.sums(releases[0])
        whitening = softmax.SoftmaxWhitening.of(sums, self.constants.floor)
        states = [softmax.started(self.constants, sums, whitening)]
        for each in self.rounds_behind(releases):
            states.append(softmax.refined(self.constants, sums, whitening, states[-1], *each))
        return whitening, states

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the next round's M and W."""
        whitening, states = self.states(releases)
        return {"M": Values.rounded(whitening.matrix), "W": Values.rounded(whitening.published(states[-1].weights))}

    def rounds_behind(self, releases: Sequence[Release]) -> list[RoundSums]:
        """Return the sums of every round but a calibration."""
        rounds = releases[1:-1] if _calibrated(releases) else releases[1:]
        return [RoundSums.of(each) for each in rounds]

    def temperature(self, releases: Sequence[Release], before: float = 1.0) -> float:
        """Return the temperature for scores divided by ``before``; 1 without calibration."""
        if not _calibrated(releases):
            return 1.0
        last = releases[-1]
        return softmax.temperature(last.moments.t, float(last.sigma["t"]), FACTORS, centre=before) / before


@dataclass(frozen=True)
class ModuleRounds(ClassRounds):
    """Rounds of another package's module."""

    module: str

    @property
    def network(self) -> Module:
        """The named module."""
        return module_of(self.module)

    @property
    def schema(self) -> GradientSchema:
        """A round's schema."""
        return replace(super().schema, residual_norm=self.network.norm, module=self.module)

    def states(self, releases: Sequence[Release]) -> tuple[softmax.SoftmaxWhitening, list[Any]]:
        """Return the map, and the state after every release."""
        sums, network = self.sums(releases[0]), self.network
        whitening = softmax.SoftmaxWhitening.of(sums)
        states = [network.started(self.constants, sums, whitening)]
        for release in releases[1:]:
            real, sigma = release.moments, release.sigma["g"]
            states.append(network.refined(self.constants, sums, states[-1], real.g[0], real.k, sigma))
        return whitening, states

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the next round's M and w."""
        whitening, result = self.states(releases)
        return {"M": Values.rounded(whitening.matrix), "w": Values.rounded(self.network.published(result[-1]))}


@dataclass(frozen=True)
class RidgeRounds(Recipe):
    """Rounds of a one-target regression, after (G, h, q) and a mean if any.

    Attributes:
        proved: whether parties prove sums, which excludes a mean.
    """

    first: RidgeSchema
    proved: bool

    @cached_property
    def constants(self) -> RidgeRecipe:
        """The recipe's numbers."""
        schema = self.first
        return RidgeRecipe(
            schema.features,
            self.records,
            self.mu,
            schema.clip_norm,
            schema.target_bound,
            self.rounds,
            mean=not self.proved,
            constant=schema.constant,
        )

    @property
    def schema(self) -> GradientSchema:
        """A round's schema."""
        return GradientSchema(**self._common, residual_norm=1.0, target_bound=self.first.target_bound)

    @property
    def shares(self) -> Mapping[str, float]:
        """A round's part of mu^2 per statistic."""
        shares = self.constants.round_shares
        return {"g": shares["g"], "k": shares["kappa"]}

    @property
    def mean(self) -> MeanSchema:
        """The schema of the rows' mean direction."""
        schema = self.first
        return MeanSchema(
            schema.features,
            clip_norm=1.0,
            nonnegative=schema.nonnegative,
            transform=of_unit_norm(schema.transform),
            feature_names=schema.feature_names,
        )

    @property
    def mean_share(self) -> float:
        """The mean's part of mu^2; 0 without one."""
        return self.constants.mean_share

    def sums(self, release: Release) -> NoisyGram:
        """Return the first release's noisy (G, h, q)."""
        real, sigma = release.moments, release.sigma
        G = np.asarray(real.G, np.float64)
        return NoisyGram(
            G=(G + G.T) / 2,
            h=np.asarray(real.h),
            q=float(real.q),
            sigma_G=float(sigma["G"]),
            sigma_h=float(sigma["h"]),
            sigma_q=float(sigma["q"]),
            records=float(self.records),
        )

    def states(self, releases: Sequence[Release]) -> tuple[regression.RidgeWhitening, list[_RidgeState]]:
        """Return the map, and the state after the first release (and mean) and every round."""
        stored = []
        for known, release in zip(self._cache[0], releases, strict=False):
            if known[0] is not release:
                break
            stored.append(known)
        for release in releases[len(stored) :]:
            stored.append((release, *self._after(release, stored)))
        self._cache[0] = tuple(stored)  # replaced whole, so that threads may call at once
        begun = sum(map(is_mean, releases))
        return stored[-1][1], [state for _, _, state in stored[begun:]]

    @cached_property
    def _cache(self) -> list[tuple[_After, ...]]:
        return [()]

    def _after(self, release: Release, before: Sequence[_After]) -> tuple[regression.RidgeWhitening, _RidgeState]:
        real, sigma = release.moments, release.sigma
        if not before:
            return self._started(release, None)
        if is_mean(release):
            mean = NoisyMean(np.asarray(real.x, np.float64) / self.records, float(sigma["x"]) / self.records)
            return self._started(before[0][0], mean)
        _, whitening, state = before[-1]
        levels = (sigma["g"] * state.clip, sigma["k"])  # the round's gradient is in units of its clip
        gradient = real.g[0] * state.clip
        return whitening, regression.ridge_refined(self.constants, whitening, state, gradient, real.k, levels)

    def _started(self, first: Release, mean: NoisyMean | None) -> tuple[regression.RidgeWhitening, _RidgeState]:
        sums = self.sums(first)
        whitening = regression.RidgeWhitening.of(self.constants, sums, mean)
        return whitening, regression.ridge_started(self.constants, sums, whitening)

    def weights(self, releases: Sequence[Release]) -> Array:
        """Return a head's weights ``(d,)``: the next round's, with the level of the first release's complete sums."""
        whitening, result = self.states(releases)
        return regression.ridge_settled(self.constants, whitening, result[-1])

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the next round's M, w and c."""
        whitening, result = self.states(releases)
        return {
            "M": Values.rounded(regression.ridge_map(self.constants, whitening, result[-1])),
            "w": Values.rounded(whitening.published(result[-1].weights)),
            "c": Values.rounded(result[-1].clip),
        }


def is_mean(release: Release) -> bool:
    """Return whether a release is the mean."""
    return isinstance(release.plan.schema, MeanSchema)


def _calibrated(releases: Sequence[Release]) -> bool:
    return isinstance(releases[-1].plan.schema, CalibrationSchema)


def _of_classes(first: Plan, records: int, mu: float, rounds: int, module: str | None, clip: float) -> AnyRecipe:
    schema: Any = first.schema
    if schema.statistics != "NAB" or schema.clip_norm != 1.0:
        raise PlanError(
            "rounds refine a release of N, A and B of rows of norm 1: give its schema statistics='NAB', "
            "clip_norm=1.0 and, where rows do not have that norm already, a transform that ends in UnitNorm()"
        )
    if module is not None:
        return ModuleRounds(schema, records, mu, rounds, module)
    return SoftmaxRounds(schema, records, mu, rounds, clip=clip)


def _of_regression(first: Plan, records: int, mu: float, rounds: int, module: str | None, _: float) -> AnyRecipe:
    schema: Any = first.schema
    if module is not None:
        raise PlanError("a module separates classes, and this release has none: leave module out")
    if (schema.targets, schema.folds) != (1, 1):
        raise PlanError("rounds refine a regression of one target without folds: give targets=1 and folds=1")
    return RidgeRounds(schema, records, mu, rounds, proved=first.validity is not None)


class _Refined(NamedTuple):
    recipe: Callable[[Plan, int, float, int, str | None, float], AnyRecipe]
    advised: Callable[[float], int]


@singledispatch
def _refined(schema: Schema) -> _Refined:
    raise PlanError(f"no recipe refines a {type(schema).__name__}; start with a ClassSchema or RidgeSchema")


@_refined.register
def _(_: ClassSchema) -> _Refined:
    return _Refined(_of_classes, recipes.advised_rounds)


@_refined.register
def _(_: RidgeSchema) -> _Refined:
    return _Refined(_of_regression, lambda _: 4)


def recipe_for(
    first: Plan,
    records: int,
    mu: float,
    rounds: int,
    module: str | None = None,
    clip: float = recipes.GRADIENT_CLIP,
) -> AnyRecipe:
    """Return the recipe after a first release of this plan's schema.

    Args:
        first: the first release's plan, at any budget.
        module: its name; None: a linear model.
        clip: norm to which a linear softmax's residuals are clipped.
    """
    return _refined(first.schema).recipe(first, records, mu, rounds, module, clip)


def advised_clip(first: Plan, records: int, mu: float) -> float:
    """Return the default c: ``SoftmaxRecipe.cell_clip`` for ``Cells`` or two classes, else .3."""
    schema = first.schema
    if not isinstance(schema, ClassSchema):
        return recipes.GRADIENT_CLIP
    advised = schema.classes == _PAIR or any(map_.reads_cells for map_ in schema.transform)
    recipe = recipes.SoftmaxRecipe(schema.classes, schema.features, records, mu)
    return recipe.cell_clip if advised else recipe.clip


def advised_rounds(schema: Schema, mu: float) -> int:
    """Return the default T: 4, or 6 for a softmax with a large budget."""
    return _refined(schema).advised(mu)


def total_mu(first: Plan, records: int, rounds: int) -> float:
    """Return mu of one record over a complete course that begins with this plan at the recipe's share.

    Solves mu sqrt(share(mu)) = mu of the first release. Of two solutions the smaller is used; without one, the jump of
    the share.
    """

    def share(mu: float) -> float:
        return recipe_for(first, records, mu, rounds).constants.release_share

    own = mu = record_mu(first)
    for _ in range(2):
        assumed = share(mu)
        mu = own / math.sqrt(assumed)
        if share(mu) == assumed:
            return rounded_down(mu)
    low, high = own, 8 * own  # no share is below 1/64
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.sqrt(share(middle)) < own else (low, middle)
    return rounded_down(high)
