"""Masked SLOT-Align: one sum of client Gaussians, further sums to their barycentre, and the transport map.

Clients sign a list of the clients that must be in all sums, so a server cannot change it between sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privstats.course import Releases
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import PlanError, ReleaseError
from privstats.extend.courses import Past, Phase, Phased, Phases, Promise, part_of
from privstats.extend.kinds import Published, Values
from privstats.extend.support import Array
from privstats.kinds import GaussianSchema
from privstats.kinds.gaussians import root
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import narrowed
from privstats.transforms import Transport

Rule: TypeAlias = Literal["alvarez-esteban", "published"]

_BITS = 48  # published entries round far below a grid step of the sums
_RULES = get_args(Rule)


@dataclass(frozen=True)
class Alignment(Phased):
    """A first sum of ``(n, sum x, n Sigma)`` and T rounds, each at the reference computed from earlier sums.

    Without noise all sums are over the *same* clients: a vanished client ends the alignment at the reference reached so
    far. Under a promise a round without a sum only advances the count.

    docs/alignment.md states where it helps, and costs accuracy.

    Guarantee:
        With a ``Privacy`` of unit client and a ``client_clip``, all T + 1 sums together are mu-GDP with :attr:`mu`, for
        one client added or removed, for any S that a server publishes and any lists that it names. Without noise
        masking hides single clients from a server that follows the protocol or chooses which clients vanish; it does
        *not* hide what the sums over many clients reveal together, and a server that invents S sees T matrices of its
        choice. The counting rule of the plan (``min_survivors - colluders >= 4 (T + 1)``) is no proof. One record is
        never promised.

    Args:
        first: a plan of a ``GaussianSchema`` without a reference, with T ``rounds``.
        step: ``"alvarez-esteban"``, or ``"published"`` (SLOT-Align).
        promise: the owners' promise for all sums together, as in ``Rounds``.

    Raises:
        PlanError: another plan or step, or a promise below the sums' cost.

    Example:
        >>> schema = ps.GaussianSchema(2, clip_norm=8.0, shrinkage=0.1, rounds=1)
        >>> cohort = ps.Cohort(clients=8, min_survivors=8, max_records=1_000)
        >>> course = ps.Alignment(ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy()))
        >>> rows = np.random.default_rng(0).normal(size=(8, 20, 2))
        >>> releases = ps.simulate(course, [(X, None) for X in rows])
        >>> len(releases), course.reference(releases).covariance.real.shape
        (2, (2, 2))
    """

    label = "alignment"
    first: Plan
    step: Rule = "alvarez-esteban"
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        _require_first(self.first)
        if self.step not in _RULES:
            raise PlanError(f"step must be one of {', '.join(_RULES)}, got {self.step!r:.40}")
        if isinstance(self.first.privacy, Privacy) and self.first.privacy.shares is not None:
            raise PlanError("the rounds send other statistics than the first sum; omit privacy.shares")
        _ = self.template.headroom  # forces the noise and the ring of a round

    @classmethod
    def within(cls, whole: Plan, *, step: Rule = "alvarez-esteban") -> Alignment:
        """Return the course that meets a plan's promise with all sums together.

        Args:
            whole: the first sum's plan; all sums share its promise in equal parts of mu^2.
        """
        schema = _require_first(whole)
        if isinstance(whole.privacy, NoPrivacy):
            return cls(whole, step)
        part = part_of(whole, 1 / (1 + schema.rounds), whole.privacy.shares)
        return cls(replace(whole, privacy=part), step, Promise.of(whole))

    @property
    def schema(self) -> GaussianSchema:
        """The schema of the first sum."""
        return _require_first(self.first)

    @cached_property
    def template(self) -> Plan:
        """A round's plan, with placeholder reference and clients."""
        anybody = tuple(range(self.first.cohort.clients)) if self._bare else None
        schema = replace(self.schema, reference=True, among=anybody)
        return replace(self.first, schema=schema, published=Published.placeholder())

    @cached_property
    def phases(self) -> Phases:
        """The first sum, and the rounds: without noise only while all of them have a sum."""
        first = Phase("first sum", self.first, tries=1, needed=True)
        rounds = self.schema.rounds
        sums = rounds if self._bare else None
        later = Phase(
            "round", self.template, sums, rounds, needed=self._bare, form=self._among, published=self._published
        )
        return Phases((first, later))

    def _among(self, past: Past) -> Plan:
        (first,) = past.of("first sum")
        among = first.survivors if self._bare else None
        return replace(self.template, schema=replace(self.schema, reference=True, among=among))

    def _published(self, past: Past) -> Published:
        return past.publish({"S": _values(self._covariance(past.releases))})

    def reference(self, releases: Releases) -> Reference:
        """Return the common mean and covariance from the sums; the first must exist."""
        if not releases or releases[0] is None:
            raise ReleaseError("an alignment has a reference once its first sum is released; this one was not")
        first = releases[0].moments
        mean = np.asarray(first.x) / max(first.N, 1.0)
        return Reference(Values.rounded(mean, _BITS), _values(self._covariance(releases)), self.schema)

    @property
    def _bare(self) -> bool:
        return isinstance(self.first.privacy, NoPrivacy)

    def _covariance(self, releases: Releases) -> NDArray[np.float64]:
        have = [each for each in releases if each is not None]
        self._check(have)
        reference = self._admitted(have[0].moments.V / max(have[0].moments.N, 1.0))
        for release in have[1:]:
            mean = self._admitted(release.moments.M / max(release.moments.N, 1.0))
            reference = self._admitted(next_reference(reference, mean, self.step))
        return reference

    def _admitted(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        inside: NDArray[np.float64] = (vectors * np.clip(values, 0.0, self.schema.clip_norm**2)) @ vectors.T
        return (inside + inside.T) / 2  # to the last bit, as clients require

    def _check(self, releases: list[Release]) -> None:
        for place, release in enumerate(releases):
            among = releases[0].survivors if self._bare and place else None
            schema = replace(self.schema, reference=place > 0, among=among)
            own = replace(self.first, schema=schema, published=release.plan.published if place else None)
            if release.plan != own:
                raise PlanError(f"release {place} is not of this alignment; pass the releases of its rounds, in order")
            if self._bare and release.survivors != releases[0].survivors:
                raise PlanError(
                    f"release {place} has other clients than the first, and the difference reveals single clients: "
                    "delete it, and find out how it was unmasked"
                )


def _require_first(plan: object) -> GaussianSchema:
    refusal = PlanError("first must be a Plan of a GaussianSchema; build one with Plan(schema=GaussianSchema(...))")
    if not isinstance(plan, Plan):
        raise refusal
    schema = narrowed(plan.schema, GaussianSchema, refusal)
    if schema.reference:
        raise PlanError("first must be the plan of the first sum; omit reference in its schema")
    return schema


@dataclass(frozen=True)
class Reference:
    """The common Gaussian to which clients are transported.

    Attributes:
        mean, covariance: published, ``(d,)`` and ``(d, d)``.
        schema: how clients measure their own Gaussians.

    Example:
        >>> from privstats.contrib.alignment import Reference
        >>> schema = ps.GaussianSchema(2, clip_norm=8.0, shrinkage=0.1, rounds=1)
        >>> one, zero = (ps.schema.public_values.Values.rounded(array) for array in (np.eye(2), np.zeros(2)))
        >>> reference = Reference(mean=zero, covariance=one, schema=schema)
        >>> transport = reference.transport(strength=0.4)
        >>> transport.features, transport.strength
        (2, 0.4)
    """

    mean: Values
    covariance: Values
    schema: GaussianSchema

    @cached_property
    def published(self) -> Published:
        """Mean and covariance as published values."""
        return Published.of({"mean": self.mean, "S": self.covariance})

    def transport(self, strength: float = 0.4) -> Transport:
        """Return a second plan's transform, not yet bound to a client.

        Args:
            strength: tau, 0 (stay) to 1 (all the way); .4 in the paper.
        """
        return Transport(self.schema.features, self.published.sha256, strength)

    def local(self, transform: Transport, X: Any) -> Transport:
        """Return one client's transform, from its own Gaussian to the reference.

        It equals the plan's, so ``replace(plan.schema, transform=(local,))`` measures under the plan's schema. The
        values derived from the records stay in memory and are never saved.

        Args:
            transform: of the second plan.
            X: the client's records.

        Raises:
            PlanError: the transform is to another reference.
            DataError: no record, or records that do not fit.
        """
        if transform.reference != self.published.sha256:
            raise PlanError("the plan's transport is to another reference; fetch the values that belong to its digest")
        scale, gaussian = self.schema.scale, self.schema.client_gaussian(X)
        matrix = transport(gaussian.covariance / scale**2, self.covariance.real)
        return transform.bound(gaussian.total / scale / max(gaussian.records, 1), self.mean.real, matrix)


def _values(matrix: Mapping[str, Any] | NDArray[np.float64]) -> Values:
    return Values.rounded(np.asarray(matrix), _BITS)


def next_reference(reference: Array, mean: Array, step: Rule) -> Array:
    """Return the next reference from the clients' weighted mean M of ``(S^1/2 Sigma S^1/2)^1/2``.

    Args:
        reference: S, ``(d, d)``.
        mean: M.
        step: ``"published"``, ``S <- M`` (SLOT-Align), or ``"alvarez-esteban"``, ``S <- S^-1/2 M^2 S^-1/2``
            (Alvarez-Esteban et al. 2016): exact in one step where all covariances commute, and the objective never
            rises.
    """
    if step == "published":
        return (mean + mean.T) / 2
    inverse = root(reference, -0.5)
    moved: Array = inverse @ mean @ mean @ inverse
    return (moved + moved.T) / 2


def barycentre(covariances: Sequence[Array], weights: ArrayLike, iterations: int, step: Rule) -> Array:
    """Return the reference after some iterations from the covariances' weighted mean."""
    shares = np.asarray(weights, np.float64) / np.sum(weights)
    reference: Array = np.einsum("k,kij->ij", shares, np.stack(covariances))
    for _ in range(iterations):
        reference_root = root(reference)
        terms = [root(reference_root @ covariance @ reference_root) for covariance in covariances]
        reference = next_reference(reference, np.einsum("k,kij->ij", shares, np.stack(terms)), step)
    return reference


def transport(source: Array, target: Array) -> Array:
    """Return the symmetric matrix A of the optimal map from N(0, source) to N(0, target): ``A source A = target``."""
    half, inverse = root(source), root(source, -0.5)
    return inverse @ root(half @ target @ half) @ inverse


def distance(one: Array, other: Array) -> float:
    """Return the Wasserstein-2 distance between two centred Gaussians, ``||S^1/2 - T^1/2 U||`` in the Frobenius norm.

    U is the polar factor of ``T^1/2 S^1/2`` (Bhatia, Jain, Lim 2019, theorem 1). A rounding error eps stays eps, not
    sqrt(eps), at small distances.
    """
    half, target = root(one), root(other)
    left, _, right = np.linalg.svd(target @ half)
    return float(np.linalg.norm(half - target @ (left @ right)))
