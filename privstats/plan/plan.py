"""Build a ``Plan``, whose constructor refuses parts that do not fit together.

Noise, ring and thresholds are derived and never set by hand.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from privstats.dp import Noise, NoPrivacy, Privacy, calibrate
from privstats.dp.calibration import levels_of
from privstats.encoding import Layout, Segment, layout_of
from privstats.encoding.ring import Group
from privstats.errors import PlanError
from privstats.kinds.registry import is_registered
from privstats.plan import document, settings
from privstats.plan.cohort import (
    Cohort,
    Headroom,
    Limits,
    headroom,
    limits,
    reach_of,
    ring_of,
    tail_of,
)
from privstats.plan.conditions import assumption, check_condition, condition_of
from privstats.plan.feasibility import (
    EXCESS_KEPT,
    check_local_maps,
    check_masking,
    check_published,
    check_scorer,
    check_size,
)
from privstats.plan.provers import check_prover
from privstats.python_values import python_fields
from privstats.schema import Schema
from privstats.schema.narrowing import unknown_schema
from privstats.secagg.machines import Masking
from privstats.secagg.protocols import PROTOCOLS

if TYPE_CHECKING:
    from privstats.encoding import PersonAverage, PersonClip
    from privstats.plan import Budget
    from privstats.plan.devices import Devices
    from privstats.plan.position import Position
    from privstats.plan.validity import Claim, Validity
    from privstats.schema.public_values import Published, Values

_INTERACTIVE = "interactive"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study's statistics, parties and privacy cost, fixed before any data is read.

    Args:
        schema: each record's contribution, and its bounds.
        privacy: a :class:`~privstats.dp.Privacy`, or :class:`~privstats.dp.NoPrivacy`.
        min_count: classes with a released count below this are suppressed (class schemas only; 0 releases all).
        merge: for a rare class, the parent class that receives its sums.
        protocol: ``"interactive"``: six messages per client; masking trusts no server, unless ``graph`` is sparse.
            ``"split"``: one message per client, to leader and helpers; any one honest suffices.
        panel: for ``"split"`` the Ed25519 identities of the leader and of every helper, 64 hex digits each. The parties
            must compare them: a party that controls all members reads every vector.
        graph: for ``"interactive"``, one of four; ``"split"`` requires ``"auto"``.
            - ``"complete"``
            - ``"robust"``: random k-regular, with enough neighbours against a server that chooses which clients drop.
            - ``"sparse"``: fewer neighbours, for a server that follows the protocol.
            - ``"auto"``: complete up to 256 clients, robust beyond.
        published: values that the measurement reads (``schema.needs``). Their digest is part of the plan's, so all
            parties use equal values.
        excess_noise: ``"kept"``; or, with distributed noise, ``"removed"``: noise is sized for ``min_survivors``, and
            clients reveal their surplus noise (docs/proofs/noise.md).
        key_agreement: ``"mlkem768-x25519"``, which commands write: an attacker who records every message and breaks
            X25519 later still reads no party's sums. None is the same here, under another digest, which versions until
            2026-11-30 run under X25519 alone.
        spare_bits: extra ring bits, for a central server that multiplies several sessions' sums by weights before it
            adds noise.
        validity: the claim that every client proves of its sums, for ``"split"``; experimental, see :class:`Validity`.
        devices: who runs a study on invited people's devices; see :class:`Devices`.

    Raises:
        PlanError: parts that do not fit together.

    Guarantee:
        With a ``Privacy``, everything released under this plan is (epsilon, delta)-differentially private for the
        stated unit and adjacency. Central: if the server adds its noise honestly. Distributed: if at least
        ``min_survivors - colluders`` honest clients survive, which masking enforces. Local: without trust in any party.
        Panel: against all other members and every reader, if one of leader and helpers is honest. On a random graph
        masking fails with probability at most ``masking.failure`` (docs/proofs/random_graph.md, 8).
        ``budget().delta`` includes that probability. ``graph="sparse"`` holds only against a server that follows
        the protocol.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
        >>> ps.Plan.from_toml(plan.to_toml()).digest == plan.digest
        True
    """

    schema: Schema
    cohort: Cohort
    privacy: Privacy | NoPrivacy
    min_count: int = 0
    merge: Mapping[int, int] = field(default_factory=dict)
    graph: str = "auto"
    protocol: str = _INTERACTIVE
    panel: tuple[str, ...] = ()
    published: Published | None = None
    spare_bits: int = 0
    validity: Validity | None = None
    devices: Devices | None = None
    excess_noise: str = EXCESS_KEPT
    key_agreement: str | None = None

    def __post_init__(self) -> None:
        python_fields(self)
        _check_parts(self)
        settings.check("aggregation", self)
        check_published(self.schema, self.privacy, self.published)
        settings.check_fits(self, "aggregation", "cohort", "privacy")
        check_local_maps(self.schema, self.privacy)
        check_scorer(self.schema, self.privacy, self.published)
        if self.validity is not None:
            check_prover(self.validity.level, self.privacy)
        check_size(self.layout, self.schema)
        # self.claim raises where no claim on the schema can be proved.
        if self.claim is not None and self.validity is not None and (unproved := self.validity.prover.experimental):
            warnings.warn(f"validity is experimental: {unproved}", UserWarning, stacklevel=3)
        # self.masking derives noise, headroom and thresholds, and raises where they do not fit.
        _ = self.masking
        check_masking(self.masking, self.noise)
        document.check_read_back(self)
        check_condition(self.condition)
        if self.devices is not None:
            settings.check_fits(self, "devices")

    def _repr_html_(self) -> str:
        from privstats.plan.views import plan_html

        return plan_html(self)

    @cached_property
    def layout(self) -> Layout:
        """Segments of the flat vector."""
        return layout_of(self.schema)

    @cached_property
    def noise(self) -> Noise | None:
        """The calibrated noise; None without DP."""
        if isinstance(self.privacy, NoPrivacy):
            return None
        honest = self.cohort.min_survivors - self.cohort.colluders
        members = {"members": 1 + self.helpers} if self._noisy_helpers else {}
        return calibrate(self.schema, self.privacy, honest_shares=honest, levels=self._levels, **members)

    @cached_property
    def person_clip(self) -> PersonAverage | PersonClip | None:
        """The limit on one person's contribution, for ``measure``, if the promise is per person."""
        if not isinstance(self.privacy, Privacy) or self.privacy.unit != "person":
            return None
        from privstats.dp import person_clip

        return person_clip(self.schema, self.privacy)

    @property
    def _levels(self) -> tuple[int, ...]:
        cohort = self.cohort
        if self.excess_noise == EXCESS_KEPT:
            return ()
        return levels_of(cohort.clients, cohort.min_survivors, cohort.colluders)

    @cached_property
    def limits(self) -> Limits:
        """Limits on the records in a released sum."""
        return limits(self.layout, self.cohort, self._noise_std)

    @cached_property
    def headroom(self) -> tuple[Headroom, ...]:
        """Each segment's width and free room."""
        rooms = headroom(self.layout, self.limits, self._noise_std, self.spare_bits)
        if self.claim is None:
            return rooms
        group = self.claim.group(self.schema, self.layout)
        return self.claim.headroom(rooms, group, self.cohort.clients, self._tail)

    @cached_property
    def claim(self) -> Claim | None:
        """The claim that every report proves, if any."""
        if self.validity is None:
            return None
        return self.validity.prover.claim_of(
            self.validity, self.schema, self.cohort, self.privacy, self.protocol, self.spare_bits
        )

    @cached_property
    def ring(self) -> Group:
        """The group of masked vectors: a ring, or the prime field where reports carry proofs."""
        # self.headroom raises where sums or noise have no room.
        rooms = self.headroom
        return ring_of(rooms) if self.claim is None else self.claim.group(self.schema, self.layout)

    @cached_property
    def masking(self) -> Masking:
        """Parameters of masking, bound to this plan's digest."""
        cohort = self.cohort
        # Only a protocol with a panel accepts a claim, and only one whose clients see the survivors accepts levels.
        options: dict[str, Any] = {} if self.claim is None else {"claim": self.claim}
        if self._levels:
            options["levels"] = self._levels
        return PROTOCOLS[self.protocol].parameters.solve(
            clients=cohort.clients,
            min_survivors=cohort.min_survivors,
            colluders=cohort.colluders,
            graph=self.graph,
            helpers=self.helpers,
            noisy_helpers=self._noisy_helpers,
            ring=self.ring,
            plan_digest=self._digest_bytes,
            **options,
        )

    @property
    def _noisy_helpers(self) -> bool:
        return isinstance(self.privacy, Privacy) and self.privacy.trust.drawn_by == "member"

    @property
    def helpers(self) -> int:
        """Number of helpers, without the leader."""
        return len(self.panel) - 1 if PROTOCOLS[self.protocol].has_panel else 0

    @property
    def unreadable(self) -> Literal["refuse", "leave out"]:
        """Treatment of an unreadable record. Under a promise it is excluded, because a refusal would reveal it.

        Example:
            >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(2, 2, 9)
            >>> ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy()).unreadable  # no promise
            'refuse'
        """
        return "refuse" if isinstance(self.privacy, NoPrivacy) else "leave out"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical plan, in hex: equal digests mean equal plans."""
        return self._digest_bytes.hex()

    @property
    def condition(self) -> str:
        """The assumption of the plan's promise, which each statement of the promise carries: a clause after "while"."""
        return condition_of(self)

    @property
    def masks_condition(self) -> str:
        """The assumption of the masks alone: a clause after "while"."""
        return assumption(self, "masks")

    @cached_property
    def position(self) -> Position | None:
        """The session of a course that this plan is for, which its release names; None for a plan alone.

        It is no field, so no digest covers it, because a course's digest follows from those of its plans. Equal plans
        may be of several sessions, and a changed plan is of none.
        """
        return None

    def at(self, position: Position | None) -> Plan:
        """Return this plan as that of a course's session; None: as a plan alone.

        Example:
            >>> plan = ps.Plan(
            ...     schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy()
            ... )
            >>> later = plan.at(ps.release.Position("c0" * 32, "round", place=1, spent=0.4, mu=0.5))
            >>> later == plan, ps.simulate(later, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])]).position.place
            (True, 1)
        """
        if self.position == position:
            return self
        other = copy(self)
        vars(other)["position"] = position
        return other

    @property
    def unnamed(self) -> Plan:
        """This plan with the digest of versions until 2026-11-30, whose plans named no package of others.

        Claims name the packages all the same. A plan that rests on none is its own.
        """
        tables = document.unnamed(self.tables)
        if tables == self.tables:
            return self
        other = copy(self)
        for name in ("digest", "_digest_bytes", "masking"):  # what follows from the tables
            vars(other).pop(name, None)
        vars(other)["tables"] = tables
        return other

    def budget(self) -> Budget:
        """Return one row per statistic and the joint guarantee; prints as a table."""
        from privstats.plan.budget import Budget

        return Budget.of(self)

    def to_toml(self) -> str:
        """Return the plan as TOML; ``Plan.from_toml`` returns an equal plan."""
        return document.to_toml(self.tables, self.position)

    def to_json(self) -> bytes:
        """Return the canonical JSON of :attr:`tables`, whose SHA-256 is :attr:`digest`."""
        return document.canonical(self.tables)

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Plan:
        """Read a plan from its :attr:`tables`, such as those of :meth:`to_json`; raises as :meth:`from_toml`."""
        return cls.from_toml(document.to_toml(tables))

    def with_values(self, values: Mapping[str, Values]) -> Plan:
        """Return the plan with its published values instead of their digest alone."""
        if self.published is None:
            raise PlanError("this plan publishes no values; omit them")
        return replace(self, published=self.published.holding(values)).at(self.position)

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        """Read a plan from its text; :meth:`with_values` adds published values."""
        arguments, position = document.from_toml(text)
        return cls(**arguments).at(position)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan file, at most 2**20 characters of UTF-8, and any ``round.values`` next to a ``round.toml``."""
        text = document.read_text(path)
        try:
            plan = cls.from_toml(text)
        except PlanError as error:
            raise PlanError(f"{os.fspath(path)}: {error}{document.plan_beside(path, text)}") from None
        if plan.published is None:
            return plan
        from privstats.schema.public_values import Published, values_path

        values = values_path(path)
        return plan.with_values(Published.load(values).read()) if values.exists() else plan

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The plan as nested tables of plain values."""
        return document.tables_of(self)

    @cached_property
    def _digest_bytes(self) -> bytes:
        return document.digest_of(self.tables)

    def _tail(self, segment: Segment) -> float:
        return tail_of(self.layout, self._noise_std(segment))

    def _noise_std(self, segment: Segment) -> float:
        return self.noise.tail_sigma(segment, self.cohort.clients, reach_of(self.layout)) if self.noise else 0.0


def _check_parts(plan: Plan) -> None:
    """Refuse parts of the wrong type."""
    if not is_registered(plan.schema):
        raise PlanError(unknown_schema(plan.schema))
    rows: tuple[tuple[str, object, tuple[type, ...], str], ...] = (
        ("cohort", plan.cohort, (Cohort,), "Cohort"),
        ("privacy", plan.privacy, (Privacy, NoPrivacy), "Privacy or NoPrivacy"),
        *_sections(Validity=plan.validity, Devices=plan.devices),
    )
    for name, value, kinds, wanted in rows:
        if type(value) not in kinds:  # a subclass would share its digest
            raise PlanError(f"{name} must be a {wanted}, got {type(value).__name__}")


def _sections(**values: object) -> Iterator[tuple[str, object, tuple[type, ...], str]]:
    from privstats import plan

    for name, value in values.items():
        if value is not None:
            yield name.lower(), value, (getattr(plan, name),), f"{name} or None"
