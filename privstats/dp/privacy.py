"""The promise: trust model, unit, adjacency, epsilon and delta.

A value in a plan, validated when it is built; ``calibration`` derives the noise levels from it. Like the schema, it is
independent of the data and fixed before anything is measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from privstats.dp.models import MODELS, Model, TrustModel
from privstats.errors import PlanError
from privstats.python_values import python_fields

__all__ = ["AVERAGE", "Adjacency", "NoPrivacy", "Privacy", "Unit"]

Unit: TypeAlias = Literal["record", "client", "person"]
Adjacency: TypeAlias = Literal["add-remove", "replace-one"]

_EPSILON_RANGE = (1e-3, 100.0)
_DELTA_RANGE = (1e-15, 0.1)
_SHARE_TOLERANCE = 1e-6

Reasons: TypeAlias = tuple[str, str]
"""The reasons for the lower and for the upper bound of a value."""

_EPSILON_REASONS: Reasons = ("below it the release is nothing but noise", "above it the promise is empty")
_DELTA_REASONS: Reasons = (
    "take 0, which is pure epsilon with Laplace noise, or something below 1 / records",
    "a delta of that size lets whole records out; take something below 1 / records",
)
AVERAGE = "average"
"""The ``person_clip`` under which a person adds the average of all rows."""

_OF_UNIT = {
    "client": ("max_records_per_client", "client_clip"),
    "person": ("max_records_per_person", "person_clip"),
}
"""By unit, what says how many records one has, and what it is clipped to."""


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
            ``"distributed"``: every client, a share inside the masked sum. ``"local"``: every client, all of it.
            ``"panel"``: leader and each helper of ``protocol="split"``, each all of it; one of them must be honest, and
            no party sees the exact sum.
        unit: whose presence is hidden: one ``"record"``, one ``"client"`` with all its records, or one ``"person"``
            with all rows at one party. A person at p parties has p times mu.
        adjacency: ``"add-remove"`` or ``"replace-one"``; of clients the latter is for whole parties (``PartySchema``).
        epsilon, delta: the promise; epsilon in [0.001, 100], delta in [1e-15, 0.1], or 0: pure epsilon by discrete
            Laplace noise, for ``model="central"`` and the statistics of ``dp.l1_sensitivity``.
        shares: part of mu**2, or of a pure epsilon, that each statistic may spend, summing to 1; None takes
            ``default_shares`` or, of a pure epsilon, the parts that their roots are.
        max_records_per_client: needed with the client unit; clients with more records are refused by the session. 1
            under a ``PartySchema``, of which a whole party is one record.
        client_clip: optional with the client unit: shrink a client's whole vector to the norm of this many worst-case
            records, which replaces ``max_records_per_client`` in the sensitivity. See ``dp.clip_client``.
        person_clip: needed with the person unit: ``"average"``, and a person adds the average of all rows, which
            intervals may be read from; or c, the worst-case records that all rows of a person weigh at most together,
            of which 1 served heads best. See ``moments.PersonMoments``.
        max_records_per_person: needed beside a number c, which is from 1 to it: k, the rows of a person that may count
            in full. Further rows are admitted, and shrink with the others.

    Raises:
        PlanError: naming the field, its bound and the remedy.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> privacy.epsilon
        1.0
        >>> ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=-1.0, delta=1e-5)
        Traceback (most recent call last):
            ...
        privstats.errors.PlanError: epsilon must lie between 0.001 and 100, got -1.0: below it the release is
        nothing but noise
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
        _require_range("epsilon", self.epsilon, _EPSILON_RANGE, _EPSILON_REASONS)
        if self.delta != 0 or isinstance(self.delta, bool):
            _require_range("delta", self.delta, _DELTA_RANGE, _DELTA_REASONS)
        if self.shares is not None:
            object.__setattr__(self, "shares", _checked_shares(self.shares))
        _check_unit(self)
        _check_pure(self)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta) + 0.0)  # -0.0 is 0.0, in digests too

    @property
    def trust(self) -> TrustModel:
        """The row of ``model``: which party draws the noise, and which one must be trusted for it."""
        return MODELS[self.model]

    @property
    def pure(self) -> bool:
        """Whether delta is 0, so that the noise is discrete Laplace."""
        return self.delta == 0

    @property
    def held(self) -> str:
        """Whose data one unit is, in words for officers."""
        if self.unit != "person":
            return "one record" if self.unit == "record" else "one party with all its records"
        if self.averaged:
            return "one patient with all rows at one party, of which the average counts"
        k, c = self.max_records_per_person, self.group
        rows = "1 row" if k == 1 else f"up to {k} rows"
        weighed = "" if c == k else f", weighed as at most {c:.3g} rows"
        return f"one patient with {rows} at one party{weighed}"

    @property
    def averaged(self) -> bool:
        """Whether the unit is a person who adds the average of all rows."""
        return self.person_clip == AVERAGE

    @property
    def clip(self) -> float | None:
        """The worst-case records to which a whole client or person is shortened; None where no unit is."""
        return self.client_clip if self.person_clip is None or isinstance(self.person_clip, str) else self.person_clip

    @property
    def group(self) -> float:
        """How many worst-case records one unit is worth: 1, :attr:`clip` or ``max_records_per_client``."""
        return float(self.max_records_per_client or 1) if self.clip is None else self.clip


def _check_unit(privacy: Privacy) -> None:
    for unit, names in _OF_UNIT.items():
        for name in names if unit != privacy.unit else ():
            if getattr(privacy, name) is not None:
                said = f"{name} has no meaning with unit={privacy.unit!r}: leave it out, or use unit={unit!r}"
                raise PlanError(said)
    if privacy.unit == "person":
        _check_person(privacy)
    if privacy.unit != "record" and not privacy.averaged:
        _check_whole_unit(privacy, *_OF_UNIT[privacy.unit])


def _check_person(privacy: Privacy) -> None:
    if privacy.person_clip is None or (isinstance(privacy.person_clip, str) and not privacy.averaged):
        raise PlanError(
            f"person_clip must be said with unit='person', got {privacy.person_clip!r}: 'average' where intervals are "
            "wanted, or a number from 1 to max_records_per_person where a head is, 1 as a rule; noise grows with it"
        )
    if privacy.averaged and privacy.max_records_per_person is not None:
        raise PlanError(
            "with person_clip='average' a person counts as one record, however many rows there are: leave "
            "max_records_per_person out"
        )


def _check_whole_unit(privacy: Privacy, most_of: str, clip_of: str) -> None:
    most = getattr(privacy, most_of)
    whole = privacy.unit == "person" or (most == 1 and privacy.client_clip is None)
    if privacy.adjacency == "replace-one" and not whole:
        raise PlanError(
            "adjacency 'replace-one' is not offered with unit='client': use 'add-remove', and twice its mu bounds the "
            "exchange of one client for another; a PartySchema with max_records_per_client=1 has it"
        )
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise PlanError(f"{most_of} must be a whole number of at least 1 with unit={privacy.unit!r}: give it")
    clip = getattr(privacy, clip_of)
    if clip is not None:
        remedy = "lower it" if privacy.unit == "person" else "lower it, or leave it out"
        reasons = ("below 1 a single record is cut", f"above {most_of} the clip never acts; {remedy}")
        _require_range(clip_of, clip, (1.0, float(most)), reasons)
        object.__setattr__(privacy, clip_of, float(clip))


def _check_pure(privacy: Privacy) -> None:
    if privacy.pure and privacy.trust.impure:
        raise PlanError(
            f"delta = 0 is offered with model='central' only: with model={privacy.model!r} {privacy.trust.impure}; "
            "change the model, or give a delta above 0"
        )
    if privacy.pure and privacy.unit == "person" and not privacy.averaged:
        raise PlanError(
            "a person is shortened in L2, which bounds no pure epsilon: take person_clip='average', or give a delta "
            "above 0"
        )
    if privacy.pure and privacy.client_clip is not None:
        raise PlanError(
            "client_clip shortens a client in L2, which bounds no pure epsilon: leave it out, or give a delta above 0"
        )


def _checked_shares(shares: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(shares, Mapping):
        raise PlanError("shares must be a table of statistic = share, for example {N = 0.1, A = 0.9}, or be left out")
    for statistic, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise PlanError(f"shares[{statistic!r}] must be above 0 and at most 1: a statistic needs a part of mu**2")
    total = math.fsum(shares.values())
    if abs(total - 1) > _SHARE_TOLERANCE:
        raise PlanError(f"shares must sum to 1, got {total:.6g}: divide each by the sum")
    return _settled(dict(shares))


def _settled(shares: dict[str, float]) -> dict[str, float]:
    """Shares divided by their sum, repeated until they no longer change.

    A single division leaves a sum that may differ from 1 in the last bit, and a plan that is read back from its own
    file, where shares are divided again, would be another plan. If rounding cycles, the least element of the cycle is
    taken.
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
        raise PlanError(f"{name} must lie between {low:g} and {high:g}, got {value!r}: {why}")
