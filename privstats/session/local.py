"""Build all machines of one session in one process, for simulations and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privstats import secagg
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import Generator, checked
from privstats.secagg.machines import Aggregator, Peer
from privstats.secagg.protocols import protocol_of
from privstats.session.machines import Contribution, client, helper, in_ring, server
from privstats.session.validation import required_survivors


@dataclass(frozen=True)
class LocalParties:
    """The machines of one session.

    Attributes:
        server: the aggregator.
        clients: in the order of the roster.
        helpers: in the order of the panel; none where the plan's protocol has none.

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
    """Build all machines of one session, with new identities and a new roster, for simulations.

    :func:`client`, :func:`server` and :func:`helper` build them, as in a deployment; no ledger is charged. The private
    keys of a plan's panel are not available here, so stand-ins replace its members, under a plan that names them;
    contributions made under the original plan are accepted. In a round over the clients of an earlier sum every client
    gets the plan's list.

    Args:
        plan: the plan.
        parts: one per client, as for :func:`client`.
        rng: a generator of test randomness; the operating system's when omitted.

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
    """Return the plan with another panel, and the contributions under it."""
    vectors = [in_ring(plan, part, rng, index) for index, part in enumerate(parts)]
    plan = replace(plan, panel=tuple(each.public.hex() for each in members))
    return plan, [Contribution(plan.digest, vector) for vector in vectors]
