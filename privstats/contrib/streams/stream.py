"""Streams: records that enter and leave, released every epoch under one promise.

A stream's nodes hold *different* records, so all together cost as little as one release (docs/streams.md). The spend
records who keeps records disjoint (``Spent.apart``): the party's ``RecordRegistry`` or the parties of a server that
sees sums; ``mark_started`` refuses other callers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.contrib.streams.mechanisms import (
    FIXED_BITS,
    MECHANISMS,
    Mechanism,
    MechanismName,
    Node,
    coefficients,
    spare_bits,
)
from privstats.contrib.streams.mechanisms import total_weights as weights_of
from privstats.course import Releases
from privstats.course.planned import Planned
from privstats.dp import Noise, NoPrivacy, Privacy, averaged_mu, joint_mu
from privstats.dp.sensitivities import apart
from privstats.encoding import RingVector, to_real
from privstats.errors import AggregationError, PlanError, ReleaseError
from privstats.extend.courses import Promise, part_of, require_plan
from privstats.extend.kinds import Adjacency
from privstats.kinds import ClassSchema, RidgeSchema
from privstats.plan import Plan
from privstats.randomness import SEED_BYTES, bound_to
from privstats.release import Release, require_survivors
from privstats.schema import COUNT_SCALE
from privstats.session.noise import epoch_noise

_MOST_EPOCHS = 1024
_DISCLOSED = (
    "without noise an unlearned record is the difference of two sums, to half a grid step: add a Privacy to the "
    "plan, or set allow_disclosing_leavers=True"
)


@dataclass(frozen=True)
class StreamTotal:
    """Sums over all records that are in; ``heads`` read it as a release.

    Attributes:
        vector: int64, flat, in wire steps; exact without DP.
        sigma: noise standard deviation per statistic, in real units.
        epoch: last included, from 0.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> stream = ps.Stream(plan, epochs=2)
        >>> epochs = [[([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])], [([[0.5, 0.5]], [0]), ([[0.0, 0.5]], [1])]]
        >>> stream.total(ps.simulate(stream, epochs)).moments.A.tolist()
        [[1.0, 0.5], [0.0, 0.75]]
    """

    plan: Plan
    vector: NDArray[np.int64]
    sigma: Mapping[str, float]
    epoch: int
    suppressed: tuple[int, ...] = ()

    @cached_property
    def moments(self) -> Any:
        """The sums in real units, float64."""
        return to_real(self.plan.schema, self.vector)


@dataclass(frozen=True)
class Stream(Planned):
    """T epochs under one plan's promise; each adds the change of every client's moments.

    Args:
        plan: the budget of all epochs together, and the cohort of each; ``max_records`` bounds the changes of one node
            (an epoch; at the top of a tree, all epochs).
        epochs: T, at most 1024; a power of two for the tree.
        mechanism: ``"increments"`` releases each epoch's change, with noise that grows like sqrt(t) in the total;
            ``"tree"`` releases dyadic sums too, in log2 T + 1 levels; ``"square-root"`` has the smallest noise in the
            total, in the central model only.
        deletions: records may leave again; costs up to sqrt 2 more noise.
        repeats: how often a record may be sent again at one level without proof that it was not counted.
        allow_disclosing_leavers: deletions without noise: comparing two totals shows a leaver exactly.

    Raises:
        PlanError: an inadmissible plan or number, with the remedy.

    Guarantee:
        All epochs together are mu-GDP with :attr:`mu`, which is at most the plan's own, for its unit and adjacency: one
        record (client, person) more or less *in the complete stream*. This rests on a contract that only the party can
        meet, and that ``RecordRegistry`` (``PersonRegistry`` for persons) enforces for it: a record, or a person with
        all rows, enters once and, with ``deletions``, leaves once; it is sent at most ``1 + repeats`` times at each
        level. Sums cannot show a breach: a record that comes and goes every epoch costs sqrt(T / 2) times the claim.
        The price allows replaced records to be in different epochs.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=privacy)
        >>> stream = ps.Stream(plan, epochs=2, mechanism="square-root")
        >>> epochs = [[([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])]] * 2
        >>> total = stream.total(ps.simulate(stream, epochs))
        >>> total.epoch, stream.mu <= plan.budget().mu
        (1, True)
    """

    label = "stream"
    plan: Plan
    epochs: int
    mechanism: MechanismName = "increments"
    deletions: bool = False
    repeats: int = 0
    allow_disclosing_leavers: bool = False

    def _require(self) -> None:
        require_plan("plan", self.plan)
        for field, least, most in (("epochs", 1, _MOST_EPOCHS), ("repeats", 0, _MOST_EPOCHS)):
            value = getattr(self, field)
            if type(value) is not int or not least <= value <= most:
                raise PlanError(f"{field} must be an integer from {least} to {most}, got {value!r}; choose one")
        for field in ("deletions", "allow_disclosing_leavers"):
            if type(getattr(self, field)) is not bool:
                raise PlanError(f"{field} must be True or False, got {getattr(self, field)!r}; choose one")
        if not isinstance(self.mechanism, str) or self.mechanism not in MECHANISMS:
            raise PlanError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {self.mechanism!r:.40}; choose one")
        _check_plan(self.plan)
        self._check_promise()
        _ = self.nodes, self.first  # forces the schedule, the noise of a node and its ring

    def _check_promise(self) -> None:
        bare = isinstance(self.plan.privacy, NoPrivacy)
        if bare and self.row.private:
            raise PlanError(
                f"mechanism={self.mechanism!r} needs a Privacy: without noise leaf + leaf - parent is the bare "
                "change of one client where their lists differ by it; use increments, or add a Privacy to the plan"
            )
        if bare and self.deletions and not self.allow_disclosing_leavers:
            raise PlanError(_DISCLOSED)
        if self.allow_disclosing_leavers and not (bare and self.deletions):
            raise PlanError("allow_disclosing_leavers is for deletions without noise; omit it")
        privacy = self.plan.privacy
        if self.row.correlated and not (isinstance(privacy, Privacy) and privacy.trust.drawn_by == "server"):
            raise PlanError("mechanism='square-root' correlates the server's noise: pass a plan of model='central'")
        if self.row.correlated and self.repeats:
            raise PlanError("the central server's own list proves who was not counted; omit repeats")

    @property
    def promise(self) -> Promise | None:
        """The plan's promise for all epochs; None without DP."""
        return Promise.of(self.plan)

    @property
    def row(self) -> Mechanism:
        """The mechanism as a matrix."""
        return MECHANISMS[self.mechanism]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node's epoch, level and span, in order."""
        return self.row.nodes(self.epochs)

    @cached_property
    def levels(self) -> int:
        """Number of levels; 1 except for a tree."""
        return 1 + max(node.level for node in self.nodes)

    @cached_property
    def first(self) -> Plan:
        """Every node's plan, with one node's noise, and room for weighted sums."""
        spare = spare_bits(self.epochs) if self.row.correlated else 0
        privacy = self.plan.privacy
        if not isinstance(privacy, Privacy):
            return self.plan
        parts = self.multiplicity(privacy.adjacency)
        if parts != 1.0:
            privacy = part_of(self.plan, 1 / parts, privacy.shares)
        return replace(self.plan, privacy=privacy, spare_bits=spare)

    @property
    def most(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def multiplicity(self, adjacency: Adjacency) -> float:
        """Return the factor by which all nodes together cost one node's mu^2 under this adjacency.

        Add-remove: the squared norm of a record's contribution to all nodes, times ``1 + repeats``. Replace-one: the
        two records may be in different epochs, so max(mu_replace^2, 2 mu_add^2) of an epoch; where they also leave, at
        most 4 mu_add^2 of one record's cost. Likewise for persons, each with the clipped sum of all rows
        (docs/proofs/persons.md, One person).
        """
        parts = self.row.parts(self.epochs, deletions=self.deletions) * (1 + self.repeats)
        if adjacency == "add-remove" or self.plan.noise is None:
            return parts
        if self.epochs == 1:
            return parts
        ratio = _alone(self.plan, self.plan.noise)
        return parts * (4 * ratio if self.deletions else max(1.0, 2 * ratio))

    @cached_property
    def mu(self) -> float:
        """mu of all epochs together; infinite without DP."""
        noise, privacy = self.first.noise, self.first.privacy
        if noise is None or not isinstance(privacy, Privacy):
            return math.inf
        return noise.mu * math.sqrt(self.multiplicity(privacy.adjacency))

    @property
    def priced(self) -> tuple[Plan, ...]:
        """One node's plan; all cost :meth:`multiplicity` times its mu^2."""
        return (self.first,)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of the one priced plan in a table."""
        return (f"each of {self.most}",)

    def next(self, releases: Releases) -> Plan | None:
        """Return the next node's plan; None after the last."""
        self._check(releases)
        return self.first if len(releases) < self.most else None

    def total(self, releases: Releases) -> StreamTotal:
        """Return the sums over all records that are in, from the nodes so far.

        An epoch without a sum is excluded, with its records until they are sent again.

        Raises:
            ReleaseError: no node has a sum yet.
            PlanError: releases of another stream, or too many.
        """
        self._check(releases)
        have = [place for place, release in enumerate(releases) if release is not None]
        at = [self.nodes[place].epoch for place in have if self.nodes[place].level == 0]
        if not at:
            raise ReleaseError("no epoch of this stream has a sum yet; release one first")
        weights = weights_of(self.row.matrix(self.epochs), have, at)
        held = [release for release in releases if release is not None]
        vector = self._weighed(weights, held)
        sigma = {
            letter: math.sqrt(sum((w * release.sigma[letter]) ** 2 for w, release in zip(weights, held, strict=True)))
            for letter in self.plan.schema.statistics
        }
        return StreamTotal(self.plan, vector, sigma, self.nodes[len(releases) - 1].epoch)

    def _weighed(self, weights: NDArray[np.float64], held: list[Release]) -> NDArray[np.int64]:
        if self.mechanism == "increments":
            return np.asarray(np.sum([release.vector for release in held], axis=0), np.int64)
        real = sum(w * release.vector for w, release in zip(weights, held, strict=True))
        return np.asarray(np.rint(real), np.int64)

    def _check(self, releases: Releases) -> None:
        if len(releases) > self.most:
            raise PlanError(f"this stream has {self.most} nodes and {len(releases)} releases were passed; pass its own")
        for place, release in enumerate(releases):
            if release is not None and release.plan != self.first:
                raise PlanError(f"release {place} is not of this stream; pass the releases of its own nodes, in order")


def _alone(plan: Plan, noise: Noise) -> float:
    """Return mu^2 of an addition over that of an exchange, under the plan's noise."""
    schema, sigma, clip = plan.schema, noise.sigma, plan.person_clip
    if clip is not None and not clip.averaged:
        return 1 / min(apart(schema, letter, "replace-one") for letter in sigma) ** 2
    cost = joint_mu if clip is None else averaged_mu
    return (cost(schema, sigma, "add-remove") / cost(schema, sigma, "replace-one")) ** 2


def _check_plan(plan: Plan) -> None:
    if not isinstance(plan.schema, ClassSchema | RidgeSchema):
        raise PlanError(f"class and ridge schemas stream; a {type(plan.schema).__name__} does not add up over epochs")
    if plan.min_count:
        raise PlanError("a class that is rare in one epoch is in the next; omit min_count and merge in the plan")
    if plan.spare_bits:
        raise PlanError("spare_bits is what a stream sets for its own nodes; omit it in the plan")
    if plan.validity is not None:
        raise PlanError("a stream weighs sums, which the group of proved sums does not allow: omit validity")
    if isinstance(plan.privacy, Privacy) and plan.privacy.pure:
        raise PlanError("delta = 0 is supported for one release, and a stream has many: set a delta above 0")
    if isinstance(plan.privacy, Privacy) and plan.privacy.client_clip is not None:
        raise PlanError("client_clip bounds one upload and a stream has many; omit it in the plan")
    if isinstance(plan.privacy, Privacy) and plan.privacy.trust.drawn_by == "member":
        raise PlanError(
            "a panel adds its noise to one sum and a stream has many, which its server weighs or subtracts with its "
            "own noise: choose model='central', 'distributed' or 'local'"
        )


Summed: TypeAlias = tuple[RingVector, tuple[int, ...]]
"""The outcome of one epoch's session: the exact sum in the node plan's ring, and the clients in it."""


def weighed_release(
    stream: Stream, seed: bytes, sums: Sequence[Summed | None], *, reproducible: bool = False
) -> Release:
    """Return the release of epoch ``len(sums) - 1``: sum_k c_k x_(t-k) + z_t, with x the epochs' sums.

    Args:
        stream: with mechanism ``"square-root"``.
        seed: 32 secret bytes, on the disk before the first epoch and the same in every epoch.
        sums: every epoch's so far; None for an epoch without one, except the last.
        reproducible: others may know the seed; the release is marked with it.

    Guarantee:
        Together the releases are mu-GDP with ``stream.mu``: they are rounded from E x + z, with E the Toeplitz matrix
        of integers c_k and z Gaussian noise rounded to integers. Since E x is integer, this post-processes E x +
        Gaussian noise; one record moves E x by a column of E. Weighing and noise precede the lift, so no client can
        turn one record into a wrap. z is a function of the seed and these sums: the same sums yield the same release,
        any others independent noise. That is a second sample, which this promise does not pay for: with one seed, weigh
        only one list of sums per epoch. Assumes that the server is honest and keeps seed and sums secret.

    Raises:
        PlanError: another mechanism, or inadmissible sums.
        ReleaseError: too few survivors.
        AggregationError: the noisy sums are of no honest cohort.
    """
    plan = stream.first
    if not stream.row.correlated or plan.noise is None:
        raise PlanError("only the square-root mechanism weighs sums; release a node of another one with session")
    if not 0 < len(sums) <= stream.epochs or sums[-1] is None or len(seed) != SEED_BYTES:
        raise PlanError("pass the seed of 32 bytes and the sum of every epoch so far; the last one must exist")
    _, survivors = sums[-1]
    require_survivors(plan, survivors)
    weights = coefficients(stream.epochs)
    noise = plan.ring.encode(_noise(plan, seed, sums))
    for back, summed in enumerate(reversed(sums)):
        if summed is not None:
            noise.add(_times(summed[0], weights[back]))
    lifted = noise.lift()
    _check(plan, lifted, sum(weights[: len(sums)]))
    half = 1 << (FIXED_BITS - 1)
    return Release(plan, (lifted + half) >> FIXED_BITS, survivors, reproducible=reproducible)


def bytes_of_sums(sums: Sequence[Summed | None]) -> bytes:
    """Return the SHA-256 of all sums and client lists, which the last epoch's noise is bound to."""
    content = [summed and (summed[0].pack(), summed[1]) for summed in sums]
    return hashlib.sha256(msgspec.msgpack.encode(content)).digest()


def _noise(plan: Plan, seed: bytes, sums: Sequence[Summed | None]) -> NDArray[np.int64]:
    epoch = (len(sums) - 1).to_bytes(4, "big")
    rng = bound_to(seed, domains.STREAM_NOISE, bytes.fromhex(plan.digest), epoch, bytes_of_sums(sums))
    assert plan.noise is not None  # noqa: S101  the caller has refused it
    return epoch_noise(plan.noise, plan.layout, rng, FIXED_BITS)


def _times(vector: RingVector, weight: int) -> RingVector:
    return RingVector(vector.ring, tuple(lane * lane.dtype.type(weight) for lane in vector.lanes))


def _check(plan: Plan, lifted: NDArray[np.int64], weight: int) -> None:
    step = plan.masking.steps[-1]
    for room, place in zip(plan.headroom, plan.layout.slices, strict=True):
        if np.abs(lifted[place]).max() > weight * room.plausible:
            raise AggregationError(
                step, "implausible", f"an entry of {room.segment.name} is beyond what honest clients and noise can give"
            )
    counts = plan.layout.segments[0].name == "N"
    most = plan.limits.refused_above * COUNT_SCALE * weight
    if counts and int(lifted[plan.layout.slices[0]].sum()) > most:
        raise AggregationError(step, "too-many-records", "the cohort holds more than cohort.max_records")
