"""The parts of a release that heads read, as protocols, and the errors for objects that lack them.

Heads accept any object that has these parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from privstats.errors import HeadError, ReleaseError
from privstats.schema import Schema

__all__ = ["ClassSums", "Governing", "GramSums", "Released", "class_sums", "gram_sums", "require_release"]


class Governing(Protocol):
    """The parts of a plan that a head reads."""

    @property
    def schema(self) -> Schema:
        """The schema: shapes, the clip, the public transform, names."""

    @property
    def merge(self) -> Mapping[int, int]:
        """For a rare class, the parent that took its sums in."""


@runtime_checkable
class Released(Protocol):
    """The parts of a release that a head reads; ``privstats.Release`` has them."""

    @property
    def plan(self) -> Governing:
        """The plan that the sums were made under."""

    @property
    def moments(self) -> ClassSums | EquivalentSums | GramSums:
        """The sums in real units."""

    @property
    def sigma(self) -> Mapping[str, float]:
        """Noise standard deviation per statistic, in real units."""

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Indices of the classes that were left out."""


@runtime_checkable
class ClassSums(Protocol):
    """Sums of a classification task; shapes as in ``RealClassMoments``."""

    @property
    def N(self) -> NDArray[Any]:
        """Counts, ``(C,)``."""

    @property
    def A(self) -> NDArray[Any]:
        """Sums, ``(C, d)``."""

    @property
    def B(self) -> NDArray[Any] | None:
        """Second moment of all records, ``(d, d)``."""

    @property
    def S(self) -> NDArray[Any] | None:
        """Second moments per class, ``(C, d, d)``."""

    @property
    def D(self) -> NDArray[Any] | None:
        """Sums of squares per class, ``(C, d)``."""


@runtime_checkable
class EquivalentSums(Protocol):
    """Sums of another kind that give the class sums a head may use in their place."""

    def equivalent(self) -> ClassSums:
        """Class sums with the same counts, means and scatter."""


@runtime_checkable
class GramSums(Protocol):
    """Sums of a least-squares task; shapes as in ``RealRidgeMoments``."""

    @property
    def G(self) -> NDArray[Any]:
        """Sum of a a^T, ``(d, d)``."""

    @property
    def h(self) -> NDArray[Any]:
        """Sum of a b^T, ``(d, T)``."""

    @property
    def q(self) -> Any:
        """Sum of squared targets."""

    @property
    def fold_G(self) -> NDArray[Any]:
        """G per fold, ``(F, d, d)``."""

    @property
    def fold_h(self) -> NDArray[Any]:
        """h per fold, ``(F, d, T)``."""

    @property
    def fold_q(self) -> NDArray[Any]:
        """q per fold, ``(F,)``."""


def require_release(release: object) -> Released:
    """The release, or HeadError where it is none."""
    if not isinstance(release, Released):
        raise HeadError(
            f"release must be a Release, got {type(release).__name__}; load one with Release.load, or use fit(X, y)"
        )
    return release


def class_sums(release: Released) -> ClassSums:
    """The class sums of a release, or ReleaseError where it holds others."""
    if isinstance(release.moments, EquivalentSums):
        return release.moments.equivalent()
    if not isinstance(release.moments, ClassSums):
        if release.plan.schema.whole_parties:
            raise ReleaseError("release.moments holds directions of parties; use heads.PartyDiscriminant")
        if isinstance(release.moments, GramSums):
            raise ReleaseError("release.moments holds ridge sums (G, h, q); use heads.Ridge, or release class moments")
        raise ReleaseError(
            "release.moments holds no class sums (N, A); give the release of a ClassSchema, or all releases of a "
            "Centred course in a list"
        )
    return release.moments


def gram_sums(release: Released) -> GramSums:
    """The ridge sums of a release, or ReleaseError where it holds others."""
    if not isinstance(release.moments, GramSums):
        if isinstance(release.moments, ClassSums):
            raise ReleaseError("release.moments holds class sums; use heads.RidgeClassifier, or release a RidgeSchema")
        raise ReleaseError("release.moments holds no ridge sums (G, h, q); give the release of a RidgeSchema")
    return release.moments
