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

__all__ = ["Adjacency", "NoPrivacy", "Privacy", "Unit"]

Unit: TypeAlias = Literal["record", "client"]
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
_CLIP_REASONS: Reasons = (
    "below 1 a single record is cut",
    "above max_records_per_client the clip never acts; lower it, or leave it out",
)


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
        unit: whose presence is hidden: one ``"record"``, or one ``"client"`` with all its records.
        adjacency: ``"add-remove"`` or ``"replace-one"``; the latter is for the record unit, and for whole parties
            (``PartySchema``).
        epsilon, delta: the promise; epsilon in [0.001, 100], delta in [1e-15, 0.1], or 0: pure epsilon by discrete
            Laplace noise, for ``model="central"`` and the statistics of ``dp.l1_sensitivity``.
        shares: part of mu**2, or of a pure epsilon, that each statistic may spend, summing to 1; None takes
            ``default_shares`` or, of a pure epsilon, the parts that their roots are.
        max_records_per_client: needed with the client unit; clients with more records are refused by the session. 1
            under a ``PartySchema``, of which a whole party is one record.
        client_clip: optional with the client unit: shrink a client's whole vector to the norm of this many worst-case
            records, which replaces ``max_records_per_client`` in the sensitivity. See ``dp.clip_client``.

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
    def group(self) -> float:
        """How many worst-case records one unit is worth: 1, ``client_clip`` or ``max_records_per_client``."""
        if self.client_clip is not None:
            return self.client_clip
        return float(self.max_records_per_client or 1)


def _check_unit(privacy: Privacy) -> None:
    if privacy.unit == "record":
        for name in ("max_records_per_client", "client_clip"):
            if getattr(privacy, name) is not None:
                raise PlanError(f"{name} has no meaning with unit='record': leave it out, or use unit='client'")
        return
    most = privacy.max_records_per_client
    if privacy.adjacency == "replace-one" and (most != 1 or privacy.client_clip is not None):
        raise PlanError(
            "adjacency 'replace-one' is not offered with unit='client': use 'add-remove', and twice its mu bounds the "
            "exchange of one client for another; a PartySchema with max_records_per_client=1 has it"
        )
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise PlanError("max_records_per_client must be a whole number of at least 1 with unit='client': give it")
    if privacy.client_clip is not None:
        _require_range("client_clip", privacy.client_clip, (1.0, float(most)), _CLIP_REASONS)
        object.__setattr__(privacy, "client_clip", float(privacy.client_clip))


def _check_pure(privacy: Privacy) -> None:
    if privacy.pure and privacy.trust.impure:
        raise PlanError(
            f"delta = 0 is offered with model='central' only: with model={privacy.model!r} {privacy.trust.impure}; "
            "change the model, or give a delta above 0"
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
