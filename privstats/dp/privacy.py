"""State a differential-privacy promise: trust model, unit, adjacency, epsilon and delta.

A trust model fixes who samples the noise, in how many shares, from which distribution, and who must be trusted
(:data:`MODELS`).

Distributed noise is priced as a continuous Gaussian. The sampled discrete Gaussians together have 4 squared wire steps
more variance. Their sum is a randomised rounding of that Gaussian, up to a max-divergence of 1e-20
(docs/proofs/noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from privstats.dp.samplers import discrete_gaussian, rounded_gaussian
from privstats.errors import PlanError
from privstats.python_values import python_fields
from privstats.randomness import Generator
from privstats.schema.base import Adjacency as Adjacency
from privstats.tables import by_name

Model: TypeAlias = Literal["central", "distributed", "local", "panel"]
Drawer: TypeAlias = Literal["server", "client", "member"]
Sampler: TypeAlias = Callable[[float, int, Generator], NDArray[np.int64]]
"""A sampler of one law, called with sigma in wire steps, the number of samples and a generator."""

ROUNDING_VARIANCE = 4.0
"""Squared wire steps that pay for discreteness: a discrete Gaussian of variance s^2 protects like a continuous one
of s^2 - 4 (docs/proofs/noise.md, Distributed, fact 2)."""

MARGIN = 1 - 2.0**-40
"""Factor on the promised epsilon and delta before noise is sized: covers rounding, and the slack of a model.

A plan is sized for mu with delta(mu, m epsilon) = m delta, where m = 1 - g. Float arithmetic (the root, the shares, the
squares of the joint mu) yields mu (1 + r). To first order g >= 2 r is enough (proof: docs/proofs/noise.md, The margin
for rounding). Here g = 2**-40 = 9e-13 covers r up to 4e-13; tests find less than 1e-15
(``tests/dp/test_float_margin.py``). The slack of distributed noise is below 1e-20 (docs/proofs/noise.md). The margin
costs 1e-12 of the noise.
"""


@dataclass(frozen=True, kw_only=True)
class TrustModel:
    """One trust model: how noise of a known size enters a sum.

    Attributes:
        name: as plans and ledgers write it.
        drawn_by: ``"server"``, once per release; ``"client"``, once per upload; or ``"member"``: each helper in its
            one answer, the leader once per release.
        trusted: who must do what for the promise, for privacy officers.
        condition: the promise's assumption, a clause that follows "while"; empty where it is that of the masking.
        divided: clients sample shares, and the honest shares together suffice.
        sampler: the distribution of one sample.
        rounding: wire steps by which a sample may exceed a sub-Gaussian variable of its sigma.
        surplus_variance: the honest shares' variance above the guaranteed one, in squared wire steps.
        slack: max-divergence per entry from post-processed Gaussian noise.
        margin: factor on epsilon and delta for rounding and slack; see :data:`MARGIN`.
        impure: why delta = 0 is refused, else empty.
    """

    name: Model
    drawn_by: Drawer
    trusted: str
    condition: str = ""
    divided: bool = False
    sampler: Sampler = rounded_gaussian
    rounding: float = 0.5
    surplus_variance: float = 0.0
    slack: float = 0.0
    margin: float = MARGIN
    impure: str = ""

    def shares(self, honest: int) -> int:
        """Return the number of samples that carry the guaranteed noise."""
        return honest if self.divided else 1

    @property
    def at_release(self) -> bool:
        """Whether an unmasked sum still needs noise, the server's or a panel leader's."""
        return self.drawn_by != "client"

    def draws(self, clients: int, members: int) -> int:
        """Return the number of noise samples in a sum: ``clients`` if clients sample, else ``members``."""
        return clients if self.drawn_by == "client" else members


_ROWS = (
    TrustModel(
        name="central",
        drawn_by="server",
        trusted="the server, which sees the exact sum, must add its noise and keep both secret",
        condition="the server adds its noise and keeps the exact sum secret",
    ),
    TrustModel(
        name="distributed",
        drawn_by="client",
        divided=True,
        sampler=discrete_gaussian,
        rounding=0.0,
        surplus_variance=ROUNDING_VARIANCE,
        # Two parts: summing shares, and one discrete against one continuous Gaussian.
        slack=1e-66 + 2.1e-34,
        impure="each share would need negative binomial noise, and masks hide shares from bounded attackers only",
        trusted="min_survivors - colluders clients must add their shares; the server adds no noise",
    ),
    TrustModel(
        name="local",
        drawn_by="client",
        impure="the ring's width needs a tail bound for the sum of all clients' Laplace noise, and none is proved",
        trusted="no other party: each client's own noise protects its records, whatever all others do",
        condition="the party itself follows the protocol, whatever all others do",
    ),
    TrustModel(
        name="panel",
        drawn_by="member",
        impure="encryption hides the exact sum from bounded attackers only",
        trusted="one of leader and helpers must add its noise and keep it secret; no party sees the exact sum",
    ),
)
MODELS: Mapping[Model, TrustModel] = MappingProxyType(by_name(_ROWS, lambda row: row.name, "trust model"))
"""The trust models by name."""


Unit: TypeAlias = Literal["record", "client", "person"]

EPSILON_RANGE = (1e-3, 100.0)
DELTA_RANGE = (1e-15, 0.1)
"""The range of delta, besides 0."""

_SHARE_TOLERANCE = 1e-6

Reasons: TypeAlias = tuple[str, str]
"""The reasons for the lower and for the upper bound of a value."""

_EPSILON_REASONS: Reasons = ("below it the release is nothing but noise", "above it the promise is empty")
_DELTA_REASONS: Reasons = (
    "give 0, which is pure epsilon with Laplace noise, or a value below 1 / records",
    "a delta of that size allows complete records to be revealed: give a value below 1 / records",
)
AVERAGE = "average"
"""The ``person_clip`` under which a person adds the average of all rows."""

_OF_UNIT = {"client": ("max_records_per_client", "client_clip"), "person": ("max_records_per_person", "person_clip")}
"""The fields with each unit's maximum number of records and its clip."""


@dataclass(frozen=True)
class NoPrivacy:
    """The explicit absence of differential privacy: the exact sums are released.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> plan.budget().epsilon
        inf
    """


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """A differential-privacy promise for one release of all statistics together.

    Args:
        model: who adds the noise. ``"central"``: the server, after unmasking (it sees the exact sum).
            ``"distributed"``: every client, a share inside the masked sum. ``"local"``: every client, the full noise.
            ``"panel"``: leader and each helper of ``protocol="split"``, each the full noise; one must be honest, and no
            party sees the exact sum.
        unit: whose presence is hidden: one ``"record"``, one ``"client"`` with all its records, or one ``"person"``
            with all rows at one party. A person at p parties has p times mu.
        adjacency: ``"add-remove"`` or ``"replace-one"``. For clients the latter needs a ``PartySchema``.
        epsilon, delta: the promise. epsilon in [0.001, 100], delta in [1e-15, 0.1] or 0. delta = 0 is pure epsilon by
            discrete Laplace noise, for ``model="central"`` and the statistics of ``dp.l1_sensitivity``.
        shares: part of mu**2, or of a pure epsilon, per statistic, summing to 1. Default: ``default_shares``; for a
            pure epsilon, proportional to their square roots.
        max_records_per_client: needed with the client unit; the session refuses clients with more. 1 under a
            ``PartySchema``, where a party is one record.
        client_clip: optional with the client unit: clip a client's vector to the norm of this many worst-case records.
            It replaces ``max_records_per_client`` in the sensitivity.
        person_clip: needed with the person unit. ``"average"``: a person adds the average of all rows, and intervals
            are possible. A number c: a person's rows together have at most the norm of c worst-case records.
        max_records_per_person: needed with a number c, and the upper bound on c. A person may have more rows: all of
            them are summed, then clipped to c.

    Raises:
        PlanError: a field is out of bounds; the message names the remedy.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> privacy.epsilon
        1.0
    """

    model: Model
    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float
    shares: Mapping[str, float] | None = field(default=None, hash=False)
    max_records_per_client: int | None = None
    client_clip: float | None = None
    max_records_per_person: int | None = None
    person_clip: float | Literal["average"] | None = None

    def __post_init__(self) -> None:
        python_fields(self)
        _require_choice("model", self.model, tuple(MODELS))
        _require_choice("unit", self.unit, get_args(Unit))
        _require_choice("adjacency", self.adjacency, get_args(Adjacency))
        _require_range("epsilon", self.epsilon, EPSILON_RANGE, _EPSILON_REASONS)
        if self.delta != 0 or isinstance(self.delta, bool):
            _require_range("delta", self.delta, DELTA_RANGE, _DELTA_REASONS)
        if self.shares is not None:
            object.__setattr__(self, "shares", _checked_shares(self.shares))
        _check_unit(self)
        _check_pure(self)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta) + 0.0)  # -0.0 is 0.0, in digests too

    @property
    def trust(self) -> TrustModel:
        """The trust model that :attr:`model` names."""
        return MODELS[self.model]

    @property
    def pure(self) -> bool:
        """Whether delta is 0 and the noise discrete Laplace."""
        return self.delta == 0

    @property
    def averaged(self) -> bool:
        """Whether the unit is a person who adds the average of all rows."""
        return self.person_clip == AVERAGE

    @property
    def clip(self) -> float | None:
        """The number of worst-case records to which a unit is clipped, or None."""
        return self.client_clip if self.person_clip is None or isinstance(self.person_clip, str) else self.person_clip

    @property
    def group(self) -> float:
        """Number of worst-case records that one unit is worth: 1, :attr:`clip` or ``max_records_per_client``."""
        return float(self.max_records_per_client or 1) if self.clip is None else self.clip

    @property
    def unit_words(self) -> str:
        """One unit's data, in words."""
        if self.unit != "person":
            return "one record" if self.unit == "record" else "one party with all its records"
        if self.averaged:
            return "one person with all rows at one party, counted by their average"
        rows = "1 row" if self.group == 1 else f"{self.group:.3g} rows"
        return f"one person with all rows at one party, weighed as at most {rows}"


def _check_unit(privacy: Privacy) -> None:
    for unit, names in _OF_UNIT.items():
        for name in names if unit != privacy.unit else ():
            if getattr(privacy, name) is not None:
                refusal = f"{name} has no meaning with unit={privacy.unit!r}: omit it, or use unit={unit!r}"
                raise PlanError(refusal)
    if privacy.unit == "person":
        _check_person(privacy)
    if privacy.unit != "record" and not privacy.averaged:
        _check_unit_records(privacy, *_OF_UNIT[privacy.unit])


def _check_person(privacy: Privacy) -> None:
    if privacy.person_clip is None or (isinstance(privacy.person_clip, str) and not privacy.averaged):
        raise PlanError(
            f"person_clip must be given with unit='person', got {privacy.person_clip!r}: 'average' for intervals, or "
            "for a head a number from 1 to max_records_per_person, usually 1, because noise grows with it"
        )
    if privacy.averaged and privacy.max_records_per_person is not None:
        raise PlanError(
            "with person_clip='average' a person counts as one record, whatever the number of rows: omit "
            "max_records_per_person"
        )


def _check_unit_records(privacy: Privacy, limit_of: str, clip_of: str) -> None:
    limit = getattr(privacy, limit_of)
    one_unit = privacy.unit == "person" or (limit == 1 and privacy.client_clip is None)
    if privacy.adjacency == "replace-one" and not one_unit:
        raise PlanError(
            "adjacency 'replace-one' is not supported with unit='client', except for a PartySchema without "
            "client_clip: use 'add-remove'; twice its mu bounds the exchange of one client for another"
        )
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise PlanError(f"{limit_of} must be an integer of at least 1 with unit={privacy.unit!r}, got {limit!r}")
    clip = getattr(privacy, clip_of)
    if clip is not None:
        remedy = "lower it" if privacy.unit == "person" else "lower it, or omit it"
        reasons = ("below 1 a single record would be clipped", f"above {limit_of} nothing would be clipped; {remedy}")
        _require_range(clip_of, clip, (1.0, float(limit)), reasons)
        object.__setattr__(privacy, clip_of, float(clip))


def _check_pure(privacy: Privacy) -> None:
    if privacy.pure and privacy.trust.impure:
        raise PlanError(
            f"delta = 0 is supported with model='central' only: with model={privacy.model!r} {privacy.trust.impure}; "
            "change the model, or give a delta above 0"
        )
    if privacy.pure and privacy.unit == "person" and not privacy.averaged:
        raise PlanError(
            "a number as person_clip clips persons in the L2 norm, which bounds no pure epsilon: give "
            "person_clip='average', or a delta above 0"
        )
    if privacy.pure and privacy.client_clip is not None:
        raise PlanError(
            "client_clip clips in the L2 norm, which bounds no pure epsilon: omit it, or give a delta above 0"
        )


def _checked_shares(shares: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(shares, Mapping):
        example = "for example {N = 0.1, A = 0.9}"
        raise PlanError(f"shares must be a table of statistic = share, {example}, got {type(shares).__name__}")
    for statistic, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise PlanError(f"shares[{statistic!r}] must be above 0 and at most 1, a part of mu**2, got {share!r}")
    total = math.fsum(shares.values())
    if abs(total - 1) > _SHARE_TOLERANCE:
        raise PlanError(f"shares must sum to 1, got {total:.6g}: divide each by the sum")
    return _settled(dict(shares))


def _settled(shares: dict[str, float]) -> dict[str, float]:
    """Divide shares by their sum, repeatedly, until they no longer change.

    Reading a plan file divides again, so one division could change a saved plan. If rounding cycles, the cycle's
    smallest element is returned.
    """
    seen: list[dict[str, float]] = []
    while shares not in seen:
        seen.append(shares)
        total = math.fsum(shares.values())
        shares = {statistic: share / total for statistic, share in shares.items()}
    return min(seen[seen.index(shares) :], key=lambda each: sorted(each.items()))


def _require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise PlanError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}: choose one")


def _require_range(name: str, value: object, bounds: tuple[float, float], reasons: Reasons) -> None:
    if isinstance(value, str):
        raise PlanError(f"{name} must be a number, got the text {value!r}; remove the quotes")
    low, high = bounds
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"{name} must be a number, got {type(value).__name__}; give one between {low:g} and {high:g}")
    if not low <= value <= high:
        why = "give a finite number" if math.isnan(value) else reasons[value > high]
        raise PlanError(f"{name} must be between {low:g} and {high:g}, got {value!r}: {why}")
