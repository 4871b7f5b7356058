"""The recipes of refinement: constants from public numbers, and values from earlier releases.

A recipe gives the schema of a round, the values that the next round publishes and the state after each; the arithmetic
is in ``estimates``. Pure functions of releases: server, clients and heads compute the same values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from privstats.estimates import calibration, regression, softmax, softmax_recipe
from privstats.estimates.filter_bank import Filter
from privstats.estimates.noisy_sums import NoisyClassSums
from privstats.estimates.ridge_recipe import RidgeRecipe
from privstats.estimates.spectrum import NoisyGram, NoisyMean
from privstats.release import Release
from privstats.schema import CalibrationSchema, ClassSchema, GradientSchema, MeanSchema, RidgeSchema
from privstats.schema.calibration import FACTORS
from privstats.schema.modules import Module, module_of
from privstats.schema.public_values import Values
from privstats.transforms import of_unit_norm

__all__ = [
    "AnyRecipe",
    "ClassRounds",
    "ModuleRounds",
    "Recipe",
    "RidgeRounds",
    "SoftmaxRounds",
    "is_mean",
]

_RidgeState: TypeAlias = regression.RidgeState | regression.DescentState
_After: TypeAlias = tuple[Release, regression.RidgeWhitening, _RidgeState]
AnyRecipe: TypeAlias = "SoftmaxRounds | ModuleRounds | RidgeRounds"


@dataclass(frozen=True)
class Recipe(ABC):
    """The interface of a recipe.

    Attributes:
        first: the schema of the first release.
        records: n, public.
        mu: Gaussian-DP parameter of the whole course, of one record.
        rounds: how many rounds share the budget that the first release leaves.
    """

    first: Any
    records: int
    mu: float
    rounds: int

    @property
    @abstractmethod
    def constants(self) -> softmax_recipe.SoftmaxRecipe | RidgeRecipe:
        """The recipe's numbers."""

    @property
    @abstractmethod
    def schema(self) -> GradientSchema:
        """The schema of a round."""

    @property
    @abstractmethod
    def shares(self) -> Mapping[str, float]:
        """A round's part of mu^2 per statistic."""

    @property
    def mean(self) -> MeanSchema | None:
        """The schema of a mean between the first release and the rounds; None where no recipe of this kind has one."""
        return None

    @property
    def mean_share(self) -> float:
        """The part of mu^2 that the mean gets; 0 where there is none."""
        return 0.0

    @abstractmethod
    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """The values that the round after these releases publishes."""

    @property
    def revision(self) -> int:
        """A number that changes with what the recipe computes from the same releases."""
        return 1

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
    """After (N, A, B) of rows of norm 1: rounds of a model that tells classes apart."""

    first: ClassSchema

    @cached_property
    def constants(self) -> softmax_recipe.SoftmaxRecipe:
        """The recipe's numbers."""
        return softmax_recipe.SoftmaxRecipe(self.first.classes, self.first.features, self.records, self.mu, self.rounds)

    @property
    def schema(self) -> GradientSchema:
        """The schema of a round."""
        return GradientSchema(
            **self._common,
            classes=self.first.classes,
            residual_norm=softmax_recipe.GRADIENT_CLIP,
            class_names=self.first.class_names,
        )

    @property
    def shares(self) -> Mapping[str, float]:
        """A round's part of mu^2 per statistic."""
        return {"g": softmax_recipe.GRADIENT_SHARES["g"], "k": softmax_recipe.GRADIENT_SHARES["kappa"]}

    def sums(self, release: Release) -> NoisyClassSums:
        """(N, A, B) of the first release, with the noise in them."""
        real = release.moments
        N, A, B = (np.asarray(getattr(real, letter), np.float64) for letter in "NAB")
        return NoisyClassSums(N, A, (B + B.T) / 2, dict(release.sigma))


@dataclass(frozen=True)
class SoftmaxRounds(ClassRounds):
    """Rounds of a linear softmax."""

    @property
    def revision(self) -> int:
        """3 where a class may have less curvature than the mean of all; else 2 where eigenvalues are told below theirs.

        1 elsewhere. At 1 and 2 nothing has changed since that revision.
        """
        if self.constants.least_curvature < 1:
            return 3
        return 1 if self.constants.floor == 1 else 2

    @property
    def calibration(self) -> CalibrationSchema:
        """The schema of the calibration after the last round."""
        return CalibrationSchema(**self._common, classes=self.first.classes, class_names=self.first.class_names)

    def states(self, releases: Sequence[Release]) -> tuple[softmax.SoftmaxWhitening, list[Filter]]:
        """The map, and the filter after the first release and after every round; a calibration changes neither."""
        sums = self.sums(releases[0])
        whitening = softmax.SoftmaxWhitening.of(sums, self.constants.floor)
        found = [softmax.started(self.constants, sums, whitening)]
        for release in releases[1:-1] if _calibrated(releases) else releases[1:]:
            real, sigma = release.moments, release.sigma["g"]
            found.append(softmax.refined(self.constants, sums, whitening, found[-1], real.g, real.k, sigma))
        return whitening, found

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """M and W of the next round."""
        whitening, found = self.states(releases)
        return {
            "M": Values.rounded(whitening.matrix),
            "W": Values.rounded(whitening.published(found[-1].weights)),
        }

    def temperature(self, releases: Sequence[Release]) -> float:
        """That of the calibration; 1 where the releases hold none."""
        if not _calibrated(releases):
            return 1.0
        last = releases[-1]
        return calibration.temperature(last.moments.t, float(last.sigma["t"]), FACTORS)


@dataclass(frozen=True)
class ModuleRounds(ClassRounds):
    """Rounds of a module that another package brings.

    Attributes:
        module: its word.
    """

    module: str

    @property
    def network(self) -> Module:
        """The module that the word names."""
        return module_of(self.module)

    @property
    def revision(self) -> int:
        """The module's own; its map is whitened by half."""
        return self.network.revision

    @property
    def schema(self) -> GradientSchema:
        """The schema of a round."""
        return replace(super().schema, residual_norm=self.network.norm, module=self.module)

    def states(self, releases: Sequence[Release]) -> tuple[softmax.SoftmaxWhitening, list[Any]]:
        """The map, and what is known of the weights after the first release and after every round."""
        sums, network = self.sums(releases[0]), self.network
        whitening = softmax.SoftmaxWhitening.of(sums)
        found = [network.started(self.constants, sums, whitening)]
        for release in releases[1:]:
            real, sigma = release.moments, release.sigma["g"]
            found.append(network.refined(self.constants, sums, found[-1], real.g[0], real.k, sigma))
        return whitening, found

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """M and w of the next round."""
        whitening, found = self.states(releases)
        return {"M": Values.rounded(whitening.matrix), "w": Values.rounded(self.network.published(found[-1]))}


@dataclass(frozen=True)
class RidgeRounds(Recipe):
    """After (G, h, q), and a mean where the recipe has one: rounds of a regression of one target.

    Attributes:
        proved: whether parties prove their sums; no statement reads that of a mean, so there is none then.
    """

    first: RidgeSchema
    proved: bool

    @property
    def revision(self) -> int:
        """5, and 3 of few rounds without a fixed schedule, where nothing has changed since."""
        return 5 if self.constants.descends or self.constants.many else 3

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
        )

    @property
    def schema(self) -> GradientSchema:
        """The schema of a round."""
        return GradientSchema(**self._common, residual_norm=1.0, target_bound=self.first.target_bound)

    @property
    def shares(self) -> Mapping[str, float]:
        """A round's part of mu^2 per statistic."""
        shares = self.constants.round_shares
        return {"g": shares["g"], "k": shares["kappa"]}

    @property
    def mean(self) -> MeanSchema:
        """The schema of the mean of the rows' directions."""
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
        """The part of mu^2 that the mean gets; 0 where there is none."""
        return self.constants.mean_share

    def sums(self, release: Release) -> NoisyGram:
        """(G, h, q) of the first release, with the noise in them."""
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
        """The map, and the state after the first release (and the mean) and after every round.

        The states of the previous call's releases are reused, because a course calls this once per round.
        """
        kept = []
        for known, release in zip(self._cache[0], releases, strict=False):
            if known[0] is not release:
                break
            kept.append(known)
        for release in releases[len(kept) :]:
            kept.append((release, *self._after(release, kept)))
        self._cache[0] = tuple(kept)  # replaced whole, so that threads may call at once
        begun = sum(map(is_mean, releases))
        return kept[-1][1], [state for _, _, state in kept[begun:]]

    @cached_property
    def _cache(self) -> list[tuple[_After, ...]]:
        """A cache of one entry: the releases of the last call, and the state after each."""
        return [()]

    def _after(self, release: Release, before: Sequence[_After]) -> tuple[regression.RidgeWhitening, _RidgeState]:
        """The map and the state after a release; a mean begins anew."""
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

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """M, w and c of the next round."""
        whitening, found = self.states(releases)
        return {
            "M": Values.rounded(whitening.matrix),
            "w": Values.rounded(whitening.published(found[-1].weights)),
            "c": Values.rounded(found[-1].clip),
        }


def is_mean(release: Release) -> bool:
    """Whether a release is the mean between a regression's first release and its rounds."""
    return isinstance(release.plan.schema, MeanSchema)


def _calibrated(releases: Sequence[Release]) -> bool:
    """Whether a calibration has ended the rounds; nothing follows it."""
    return isinstance(releases[-1].plan.schema, CalibrationSchema)
