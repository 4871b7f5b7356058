"""Run a session in one process, with all its machines or without masks, for simulations and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privstats import secagg
from privstats.encoding import RingVector
from privstats.errors import DataError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import SEED_BYTES, Generator, checked
from privstats.release import Release
from privstats.secagg.machines import Aggregator, Opening, Peer, layer_seeds, opened_layers, opening
from privstats.secagg.protocols import protocol_of
from privstats.session.machines import Contribution, as_contribution, client, helper, server
from privstats.session.noise import helper_noise
from privstats.session.unmasked import release
from privstats.session.validation import require_plan, required_survivors, type_name


@dataclass(frozen=True)
class LocalParties:
    """Machines of one session; clients by roster index, helpers by panel index.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(schema, [[0.1, 0.2]], [0])] * 2)
        >>> len(parties.clients), len(parties.helpers), parties.server.step
        (2, 0, 'advertise')
    """

    server: Aggregator
    clients: tuple[Peer, ...]
    helpers: tuple[Peer, ...] = ()


def local_parties(plan: Plan, parts: Sequence[Moments | Contribution], rng: Generator | None = None) -> LocalParties:
    """Build all parties' machines for one session, with new identities and a new roster, for simulations.

    No ledger is charged. Stand-ins replace the members of a plan's panel, because their keys are not available; the
    original plan's contributions are accepted.

    Args:
        parts: one per client, as for :func:`client`.
        rng: as for :func:`contribution`.

    Example:
        >>> from privstats.engines import loopback
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parts = [ps.measure(plan.schema, [[0.5, 0.0]], [0]), ps.measure(plan.schema, [[0.0, 0.25]], [1])]
        >>> parties = ps.session.local_parties(plan, parts)
        >>> outcome = loopback.run(parties.server, parties.clients)
        >>> ps.encoding.to_real(plan.schema, outcome.total.lift()).A.tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    rng = checked(rng, allow_reproducible=True)
    identities = [secagg.Identity.generate(rng.bytes) for _ in parts]
    has_panel = protocol_of(plan.masking).has_panel
    members = [secagg.Identity.generate(rng.bytes) for _ in range(1 + plan.helpers)]
    publics = tuple(identity.public for identity in identities)
    roster = secagg.Roster.numbered(publics, server=members[0].public, label="simulation", counter=0)
    common: dict[str, Any] = {"roster": roster, "rng": rng, "allow_reproducible": True}
    if has_panel:
        plan, parts = _with_stand_ins(plan, parts, members, rng)
        masking: Any = plan.masking
        keys = [
            secagg.HelperKeys(each, place, masking, roster, entropy=rng.bytes) for place, each in enumerate(members)
        ]
        common["panel"] = secagg.Panel(tuple(each.public for each in members), tuple(key.offer for key in keys))
    clients = tuple(
        client(
            plan, part, index=index, identity=identity, charge="uncharged", agreed=required_survivors(plan), **common
        )
        for index, (part, identity) in enumerate(zip(parts, identities, strict=True))
    )
    if not has_panel:
        return LocalParties(server(plan, identity=members[0], **common), clients)
    trial: dict[str, Any] = {"roster": roster, "panel": common["panel"], "allow_reproducible": True}
    helpers = tuple(helper(plan, keys=key, **trial) for key in keys[1:])
    return LocalParties(server(plan, keys=keys[0], **common), clients, helpers)


def _with_stand_ins(
    plan: Plan, parts: Sequence[Moments | Contribution], members: Sequence[secagg.Identity], rng: Generator
) -> tuple[Plan, list[Contribution]]:
    vectors = [in_ring(plan, part, rng, index) for index, part in enumerate(parts)]
    plan = replace(plan, panel=tuple(each.public.hex() for each in members)).at(plan.position)
    return plan, [Contribution(plan.digest, vector) for vector in vectors]


def aggregate_unmasked(
    plan: Plan, parts: Sequence[Moments | Contribution | RingVector], rng: Generator | None = None
) -> Release:
    """Release the sum of unmasked contributions.

    For experiments, audits and tests, never for production: the caller sees every part, and no ledger is charged.

    Args:
        parts: one per client, by roster index: moments, a contribution (it is used up) or a vector of the plan's ring.
            The last clients count as vanished if parts are fewer.
        rng: a generator for shares and central noise; by default the operating system's. A reproducible one marks the
            release.

    Raises:
        DataError: an argument that does not fit the plan.
        ReleaseError: fewer parts than ``min_survivors``, or more than clients.
        AggregationError: as for :func:`release`.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parts = [ps.measure(schema, [[0.5, 0.0]], [0]), ps.measure(schema, [[0.0, 0.25]], [1])]
        >>> ps.session.aggregate_unmasked(plan, parts).moments.A.tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    require_plan(plan)
    rng = checked(rng, allow_reproducible=True)
    if not isinstance(parts, Sequence):
        raise DataError(f"parts must be a list with one part per client, got {type_name(parts)}; put it into a list")
    total = plan.ring.zeros()
    openings: dict[int, Opening] = {}
    for index, part in enumerate(parts):
        mine = part if isinstance(part, RingVector) else as_contribution(plan, part, rng, index)
        if isinstance(mine, Contribution) and mine.noise_root:
            openings[index] = opened_among(plan, mine, len(parts))
        total.add(in_ring(plan, mine, rng, index))
    sample = helper_noise(plan)
    if sample is not None:
        for _ in range(plan.helpers):
            total.add(sample(rng.bytes(SEED_BYTES)))
    survivors = tuple(range(len(parts)))
    return release(plan, total, survivors, rng, charge="uncharged", openings=openings, allow_reproducible=True)


def opened_among(plan: Plan, part: Contribution, survivors: int) -> Opening:
    """Return the layers that a client opens in an unmasked sum of ``survivors`` clients."""
    levels = () if plan.noise is None else plan.noise.levels
    if not levels or not part.noise_root:
        raise DataError("this contribution has no layers of noise to open")
    count = opened_layers(levels, survivors)
    return Opening(levels[count], layer_seeds(opening(part.noise_root, len(levels) - 1, count), count))


def in_ring(plan: Plan, part: Moments | Contribution | RingVector, rng: Generator, index: int) -> RingVector:
    """Return a part as a vector; a contribution is used up."""
    if isinstance(part, RingVector):
        if part.ring != plan.ring:
            raise DataError("a part is a vector of another ring than the plan's; encode it with plan.ring")
        return part
    return as_contribution(plan, part, rng, index).take()
