"""The Plan: a frozen value whose construction is the proof that everything fits.

It joins schema, cohort, privacy and masking; noise, ring and thresholds follow from it and are never set by hand.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from privstats import dp
from privstats.dp import Noise, NoPrivacy, Privacy, calibrate
from privstats.dp.crosscheck import Accountant
from privstats.encoding import Layout, Ring, Segment, layout_of
from privstats.errors import PlanError
from privstats.files.signing import require_order
from privstats.plan import document
from privstats.plan.budget import Budget, budget_of
from privstats.plan.cohort import Cohort, Headroom, Limits, headroom, limits, ring_of
from privstats.plan.feasibility import check_alignment, check_local_maps, check_masking, check_sites, check_size
from privstats.schema import KINDS, USUAL, ClassSchema, Schema
from privstats.schema.public_values import Published, Values, beside
from privstats.secagg.machines import Masking
from privstats.secagg.protocols import PROTOCOLS

__all__ = ["Plan"]

_INTERACTIVE = "interactive"
_MOST_SPARE_BITS = 32


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study: what is measured, by which parties and at what privacy cost; built before any data is read.

    Args:
        schema: what each record contributes, and its bounds.
        cohort: how many clients, survivors, colluders and records.
        privacy: a :class:`~privstats.dp.Privacy`, or :class:`~privstats.dp.NoPrivacy` spelled out.
        min_count: classes whose noisy count is below this are suppressed (class schemas only; 0 keeps all).
        merge: for a rare class, the parent class that receives its sums instead of their being dropped.
        protocol: how clients are summed: ``"interactive"`` (six messages per client, no trusted server) or ``"split"``
            (one message per client, to a leader and helpers of whom one is trusted).
        panel: for ``"split"`` the Ed25519 identities of the leader and then of every helper, 64 hex digits each, named
            by people: a party that can put its own keys in here reads every vector.
        graph: ``"complete"``, ``"robust"`` (random k-regular, with enough neighbours to bound a server that chooses who
            drops), ``"sparse"`` (with fewer, for a server that follows the protocol) or ``"auto"`` (complete up to 256
            clients, robust beyond).
        published: values that the measurement reads, for schemas that need some (``schema.needs``): a round of a
            course. Their digest is part of the plan's, so that one session has one of them.
        spare_bits: ring bits beyond those that a sum needs, for a central server that weighs the sums of several
            sessions before it adds noise; a ``Stream`` sets it.

    Raises:
        PlanError: a vector that no machine can hold, thresholds that contradict each other, masking that fails too
            often for the promise, noise that cannot meet the budget safely on the grid, or a ring that would overflow;
            the message names the field, the bound and the remedy.

    Guarantee:
        With a ``Privacy``, everything released under this plan is (epsilon, delta)-differentially private for the
        stated unit and adjacency. Central: if the server adds its noise honestly. Distributed: if at least
        ``min_survivors - colluders`` honest clients survive, which masking enforces. Local: trusting no other party.
        On a random graph masking fails with probability at most ``masking.failure``; ``budget().delta`` counts that on
        top of the promised delta. ``graph="sparse"`` holds only against a server that follows the protocol.

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

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_published(self)
        _check_panel(self)
        _check_min_count(self)
        check_local_maps(self.schema, self.privacy)
        check_alignment(self.schema, self.cohort, self.privacy, PROTOCOLS[self.protocol].agrees)
        check_sites(self.schema, self.cohort, self.privacy)
        check_size(self.layout)
        object.__setattr__(self, "merge", _Frozen(sorted(self.merge.items())))
        _ = self.masking  # forces noise, headroom and thresholds: a plan that exists is a plan that holds
        check_masking(self.masking, self.noise)

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
        return calibrate(self.schema, self.privacy, honest_shares=honest)

    @cached_property
    def limits(self) -> Limits:
        """How many records a released sum can hold."""
        return limits(self.layout, self.cohort, self._noise_std)

    @cached_property
    def headroom(self) -> tuple[Headroom, ...]:
        """Ring width and free room of every segment."""
        return headroom(self.layout, self.limits, self._noise_std, self.spare_bits)

    @cached_property
    def ring(self) -> Ring:
        """The group in which vectors are masked."""
        return ring_of(self.headroom)

    @cached_property
    def masking(self) -> Masking:
        """The parameters of the masking protocol, bound to this plan's digest."""
        cohort = self.cohort
        return PROTOCOLS[self.protocol].parameters.solve(
            clients=cohort.clients,
            min_survivors=cohort.min_survivors,
            colluders=cohort.colluders,
            graph=self.graph,
            helpers=max(0, len(self.panel) - 1),
            ring=self.ring,
            plan_digest=self._digest_bytes,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical plan, in hex: two parties with the same digest have the same plan."""
        return self._digest_bytes.hex()

    def budget(self, crosscheck: Accountant | None = None) -> Budget:
        """One row per statistic and the joint guarantee; prints as a table.

        Args:
            crosscheck: an accountant that others wrote, whose number is printed beside ours: ``"opacus"``,
                ``"opacus-rdp"``, ``"dp-accounting"`` or ``"zcdp"``.

        Raises:
            PlanError: an unknown accountant, or nothing to cross-check without DP.
            MissingExtraError: the accountant is not installed.
        """
        if crosscheck is not None and self.noise is None:
            raise PlanError("crosscheck has nothing to check: the plan is without differential privacy")
        return budget_of(
            self.schema,
            self.noise,
            self.headroom,
            promise=_promise(self.privacy, self.masking.condition),
            masking_failure=self.masking.failure,
            max_records=self.cohort.max_records,
            upload_bytes=self.masking.upload_bytes,
            opinion=dp.crosscheck(self.noise, crosscheck) if crosscheck and self.noise else None,
        )

    def to_toml(self) -> str:
        """The plan as a TOML document; ``Plan.from_toml`` gives it back equal."""
        return document.to_toml(self.tables)

    def with_values(self, values: Mapping[str, Values]) -> Plan:
        """The same plan with the published values that only their digest stood for.

        Raises:
            PlanError: the plan publishes none, or others.
        """
        if self.published is None:
            raise PlanError("this plan publishes no values; leave them out")
        return replace(self, published=self.published.holding(values))

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        """Read a plan document from its text; :meth:`read` takes the path of a file.

        Published values are not in the text: :meth:`with_values` adds them.

        Raises:
            PlanError: naming the table and key that is missing, unknown, of the wrong type or out of bounds.
        """
        return cls(**document.from_toml(text))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan file: UTF-8, with or without a byte-order mark, of at most 4 MiB.

        Published values are read from the file beside it (``round.toml``, ``round.values``) where there is one.

        Raises:
            PlanError: the file cannot be read, or the plan in it does not hold together.
        """
        plan = cls.from_toml(document.read_text(path))
        if plan.published is None or not beside(path).exists():
            return plan
        return plan.with_values(Published.load(beside(path)).read())

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The plan as nested tables of plain values, as they stand in the TOML document."""
        aggregation: dict[str, Any] = {"min_count": self.min_count, "graph": self.graph}
        if self.protocol != _INTERACTIVE:
            aggregation |= {"protocol": self.protocol, "panel": list(self.panel)}
        if self.spare_bits:
            aggregation["spare_bits"] = self.spare_bits
        if self.merge:
            aggregation["merge"] = {str(child): parent for child, parent in self.merge.items()}
        return document.tables_of(self.schema, self.cohort, self.privacy, aggregation, self.published)

    @cached_property
    def _digest_bytes(self) -> bytes:
        return document.digest_of(self.tables)

    def _noise_std(self, segment: Segment) -> float:
        return self.noise.tail_sigma(segment, self.cohort.clients) if self.noise else 0.0


class _Frozen(dict[int, int]):
    """A small mapping that can be hashed, because plans are values."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def _check_kinds(plan: Plan) -> None:
    for name, kinds in (
        ("schema", tuple(KINDS.values())),
        ("cohort", (Cohort,)),
        ("privacy", (Privacy, NoPrivacy)),
    ):
        value = getattr(plan, name)
        if not isinstance(value, kinds):
            wanted = USUAL if name == "schema" else " or ".join(kind.__name__ for kind in kinds)
            raise PlanError(f"{name} must be a {wanted}, got {type(value).__name__}")
    if not isinstance(plan.graph, str) or not plan.graph.isascii():  # which words there are is the protocol's
        raise PlanError(f"graph must be a word in ASCII, got {ascii(plan.graph)[:40]}")
    if type(plan.spare_bits) is not int or not 0 <= plan.spare_bits <= _MOST_SPARE_BITS:
        raise PlanError(f"spare_bits must be a whole number from 0 to {_MOST_SPARE_BITS}, got {plan.spare_bits!r}")


def _check_published(plan: Plan) -> None:
    """The values that the schema reads, and a promise that it can keep: both are the kind's to say."""
    published: Any = plan.published
    if published is not None and not isinstance(published, Published):
        raise PlanError(f"published must be Published values, got {type(published).__name__}; use Published.of")
    if bool(plan.schema.needs) != (published is not None):
        wanted = ", ".join(plan.schema.needs)
        raise PlanError(
            f"this schema reads published values ({wanted}); give published=Published.of(...)"
            if wanted
            else "this schema reads no published values; leave published out"
        )
    if published is not None and published.values is not None:
        plan.schema.check_values(published.values)
    refusal = plan.schema.refusal(plan.privacy.unit if isinstance(plan.privacy, Privacy) else None)
    if refusal:
        raise PlanError(refusal)


def _check_panel(plan: Plan) -> None:
    if not isinstance(plan.protocol, str) or plan.protocol not in PROTOCOLS:
        raise PlanError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {plan.protocol!r}")
    if not isinstance(plan.panel, list | tuple) or not all(map(_is_identity, plan.panel)):
        raise PlanError(
            "panel must be a list of Ed25519 public keys, 64 lower-case hex digits each, the leader's first: give "
            "identity.public.hex() of each"
        )
    object.__setattr__(plan, "panel", tuple(plan.panel))
    for place, key in enumerate(plan.panel):
        require_order(bytes.fromhex(key), f"panel[{place}]", PlanError)
    if len(set(plan.panel)) != len(plan.panel):
        raise PlanError("panel names one identity twice; leader and helpers must be different parties")
    if PROTOCOLS[plan.protocol].helper is not None and len(plan.panel) < 2:
        raise PlanError(f"protocol={plan.protocol!r} needs a panel: the leader's identity and at least one helper's")


def _is_identity(key: object) -> bool:
    return isinstance(key, str) and len(key) == 64 and set(key) <= set("0123456789abcdef")


def _check_min_count(plan: Plan) -> None:
    if isinstance(plan.min_count, bool) or not isinstance(plan.min_count, int) or plan.min_count < 0:
        raise PlanError(f"min_count must be a whole number of at least 0, got {plan.min_count!r}")
    if not isinstance(plan.schema, ClassSchema):
        if plan.min_count or plan.merge:
            raise PlanError(
                f"min_count and merge are about classes; a {plan.schema.task} plan has none, so leave them out"
            )
        return
    if plan.min_count > plan.cohort.max_records:
        raise PlanError(
            f"min_count={plan.min_count} exceeds cohort.max_records={plan.cohort.max_records}, so no class could stay; "
            "lower min_count"
        )
    classes = range(plan.schema.classes)
    _check_merge_table(plan.merge)
    for child, parent in plan.merge.items():
        if child not in classes or parent not in classes or child == parent:
            raise PlanError(
                f"merge must map a class to another class in 0..{len(classes) - 1}, got {child} -> {parent}"
            )
        if parent in plan.merge:
            raise PlanError(f"merge maps {child} to {parent}, which is itself merged; name a parent that stays")
    if plan.merge and not plan.min_count:
        raise PlanError("merge needs min_count above 0: without it no class is rare")


def _check_merge_table(merge: Any) -> None:
    numbers = isinstance(merge, Mapping) and all(type(value) is int for pair in merge.items() for value in pair)
    if not numbers:
        raise PlanError("merge must map a class to another class by their numbers, for example merge={3: 0}")


def _promise(privacy: Privacy | NoPrivacy, condition: str) -> str:
    server = f", {condition}" if condition else ""
    if isinstance(privacy, NoPrivacy):
        return f"no differential privacy: masking hides who sent what, the total is released as it is{server}"
    return f"{privacy.model} noise, one {privacy.unit}, {privacy.adjacency}{server}"
