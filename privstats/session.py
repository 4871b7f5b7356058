"""Where a plan meets the protocol: moments become a masked client, the unmasked sum becomes a release.

Glue without state: the engines move the bytes, ``secagg`` keeps the protocol, ``dp`` draws the noise, and ``charging``
asks the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privstats import charging, dp, secagg
from privstats.admission import (
    kind_of,
    listed_in,
    only_list,
    require_keys,
    require_moments,
    require_party,
    require_plan,
    seated_panel,
)
from privstats.charging import (
    Charge,
    Charging,
    NodeCharge,
    Told,
    charge_of,
    charged,
    free,
    join,
    withdraw,
    withdraw_run,
)
from privstats.contribution import Contribution
from privstats.dp import Privacy
from privstats.encoding import RingVector, flatten
from privstats.errors import DataError, LocalProtocolError
from privstats.moments import Moments
from privstats.plan import Plan, check_plausible
from privstats.randomness import Generator, checked
from privstats.release import Release, require_survivors
from privstats.schema import ClassSchema
from privstats.secagg.machines import Aggregator, Peer
from privstats.secagg.protocols import protocol_of

__all__ = [
    "Cast",
    "Charge",
    "Contribution",
    "NodeCharge",
    "cast",
    "client",
    "contribution",
    "free",
    "helper",
    "in_clear",
    "on_left",
    "release",
    "server",
    "withdraw",
    "withdraw_run",
]


@dataclass(frozen=True)
class Cast:
    """The machines of one session.

    Attributes:
        server: the aggregator.
        clients: in the order of the roster.
        helpers: in the order of the panel; none where the plan's protocol has none.
    """

    server: Aggregator
    clients: tuple[Peer, ...]
    helpers: tuple[Peer, ...] = ()


def contribution(
    plan: Plan,
    moments: Moments,
    rng: Generator | None = None,
    *,
    index: int | None = None,
    allow_reproducible: bool = False,
) -> Contribution:
    """One client's vector in the ring: its exact sums, plus its noise share where the plan's model asks for one.

    It is good for one client, or one :func:`in_clear`; it needs no charge, because nothing has left yet.

    Args:
        plan: the plan all parties agreed on.
        moments: what ``measure`` gave for this party's records.
        rng: a generator of test randomness; the operating system's when omitted.
        index: this party's place in the roster; only sums that are dealt to groups by it need it.
        allow_reproducible: accept a generator whose stream others may know: in tests and simulations.

    Guarantee:
        Distributed: the share is this client's part of the joint noise. Local: the share alone makes the vector
        (epsilon, delta)-private. Central and no DP: nothing is added here. Under the client unit with ``client_clip``
        the whole vector is clipped first, in integers. Each holds for one upload; that is why there is only one.

    Raises:
        DataError: the moments were measured under another schema, or hold more records than the plan admits; or the
            plan deals clients to groups and ``index`` is left out.
        RandomnessError: ``rng`` is reproducible and nobody allowed it, or was made before a fork.
    """
    require_plan(plan)
    rng = checked(rng, allow_reproducible=allow_reproducible)
    require_moments(plan, moments)
    vector = flatten(moments.seated(index))
    if isinstance(plan.privacy, Privacy):
        vector = dp.clip_client(plan.schema, plan.privacy, vector)
    known = False
    if plan.noise is not None and not plan.noise.trust.by_server:
        vector, known = vector + dp.draw_share(plan.noise, plan.layout, rng), rng.reproducible
    return Contribution(plan.digest, plan.ring.encode(vector), reproducible=known)


def client(
    plan: Plan,
    moments: Moments | Contribution,
    *,
    index: int,
    identity: secagg.Identity,
    roster: secagg.Roster,
    panel: secagg.Panel | None = None,
    rng: Generator | None = None,
    charge: Charging = None,
    agreed: Sequence[int] | None = None,
    allow_reproducible: bool = False,
) -> Peer:
    """The protocol machine of one party, holding its contribution.

    With a :class:`Charge` the spend is on the disk before this returns, once per (data set, plan, run): building the
    client anew after a crash costs nothing. What it cost is finished, and the run's name used up, before the masked
    vector leaves the machine. A client that is discarded before has back what it cost; the name is used up then too.

    Args:
        plan: the plan all parties agreed on.
        moments: what ``measure`` gave for this party's records, or a contribution, which no other client may have had.
        index: this party's place in the roster.
        identity: its Ed25519 identity.
        roster: the public identities of all parties, agreed outside this protocol, and the run's name.
        panel: where the plan names a panel, its members' offers for this run.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the party's own ledger and its data set there, or the word ``"uncharged"``; may be left out only where
            the plan has no DP, and then nothing keeps a second exact release of the same data apart from the first.
        agreed: for a round of an alignment without noise: ``client.agreed`` of this party's machine in the first sum.
        allow_reproducible: as in :func:`contribution`; the keys come from ``rng`` too.

    Raises:
        LedgerError: nothing says where a plan with DP is charged, the cap would be passed, the run has no name or its
            name is used up, or its number is not the next one that the ledger has seen for these keys; nothing is spent
            and nothing is drawn then.
        LocalProtocolError: the contribution was used before, identity and roster do not fit, ``agreed`` is not the
            plan's list, or the panel not the plan's; where they do not, nothing is spent and the contribution is not
            used up.
        DataError, RandomnessError: as for :func:`contribution`.
    """
    require_plan(plan)
    require_party(identity, roster)
    if isinstance(index, bool) or not isinstance(index, int):
        raise LocalProtocolError(f"index must be a whole number, the party's place in the roster, got {kind_of(index)}")
    rng = checked(rng, allow_reproducible=allow_reproducible)
    account = charge_of(plan, charge)
    seated: dict[str, Any] = seated_panel(plan, panel, roster)
    only = only_list(plan, agreed)
    if isinstance(moments, Contribution):
        if isinstance(account, NodeCharge):
            raise LocalProtocolError(
                "this contribution was drawn before its node was marked; give the moments, so that noise is drawn after"
            )
        moments.check(plan.digest)
    else:
        require_moments(plan, moments)
        if isinstance(account, NodeCharge):
            account.check_moments(moments)
    if seated:  # its machines ask for themselves whether their keys can be drawn again
        seated["allow_reproducible"] = allow_reproducible
    row = protocol_of(plan.masking)
    row.client.check_place(plan.masking, index=index, identity=identity, roster=roster)
    if panel is not None:
        panel.require_open()  # before anything is spent on what no helper could open
    if account is not None:
        join(plan, account, roster)
    return row.client(
        plan.masking,
        _in_ring(plan, moments, rng, index),
        index=index,
        identity=identity,
        roster=roster,
        entropy=rng.bytes,
        on_left=None if account is None else on_left(plan, roster, account),
        **only,
        **seated,
    )


def server(
    plan: Plan,
    roster: secagg.Roster,
    *,
    identity: secagg.Identity | None = None,
    keys: secagg.HelperKeys | None = None,
    panel: secagg.Panel | None = None,
    rng: Generator | None = None,
    allow_reproducible: bool = False,
) -> Aggregator:
    """The protocol machine of the aggregator.

    Args:
        plan: the plan all parties agreed on.
        roster: the public identities of all parties.
        identity: the signing key behind the roster's ``server``.
        keys: instead of ``identity``, where the plan names a panel: the keys of its place 0 for this run.
        panel: where the plan names a panel, its members' offers for this run.
        rng: a generator of test randomness; the operating system's when omitted.
        allow_reproducible: as in :func:`contribution`; the keys come from ``rng``.

    Raises:
        DataError: not a plan.
        LocalProtocolError: what the plan's protocol needs is missing, or does not fit.
        RandomnessError: as for :func:`contribution`.
    """
    require_plan(plan)
    entropy = checked(rng, allow_reproducible=allow_reproducible).bytes
    central = plan.noise is not None and plan.noise.trust.by_server
    seated: dict[str, Any] = seated_panel(plan, panel, roster)
    make = protocol_of(plan.masking).server
    if seated:
        require_keys(keys, roster)
        seated["allow_reproducible"] = allow_reproducible
        return make(plan.masking, roster=roster, noise_due=central, keys=keys, **seated)
    require_party(identity, roster)
    return make(plan.masking, roster=roster, noise_due=central, identity=identity, entropy=entropy)


def helper(
    plan: Plan,
    *,
    keys: secagg.HelperKeys,
    roster: secagg.Roster,
    panel: secagg.Panel,
    allow_reproducible: bool = False,
) -> Peer:
    """The protocol machine of one helper.

    Args:
        plan: the plan all parties agreed on.
        keys: the helper's identity, and its box key for this run.
        roster: the public identities of all parties, *from the roster's owner and not from the leader*.
        panel: the offers of the panel that the plan names.
        allow_reproducible: accept keys that were drawn from a generator whose stream others may know: in tests.

    Raises:
        LocalProtocolError: the plan's protocol has no helpers, or keys, roster or panel do not fit.
        RandomnessError: the keys are reproducible and nobody allowed it.
    """
    require_plan(plan)
    kind = protocol_of(plan.masking).helper
    if kind is None:
        raise LocalProtocolError(f"a plan with protocol={plan.protocol!r} has no helpers")
    require_keys(keys, roster)
    seated = seated_panel(plan, panel, roster)
    return kind(plan.masking, keys=keys, roster=roster, allow_reproducible=allow_reproducible, **seated)


def cast(plan: Plan, parts: Sequence[Moments | Contribution], rng: Generator | None = None) -> Cast:
    """All machines of one session, with identities and a roster of their own: what a simulation runs.

    They come from :func:`client`, :func:`server` and :func:`helper`, as in a deployment; nothing is charged to any
    ledger. Nobody here has the private keys of a plan's panel, so stand-ins take their places, under a plan that names
    them; a contribution that was made under the plan is taken over to it. In a round over the clients of an earlier sum
    everybody remembers the plan's list.

    Args:
        plan: the plan.
        parts: one per client, as :func:`client` takes them.
        rng: a generator of test randomness; the operating system's when omitted.
    """
    rng = checked(rng, allow_reproducible=True)
    identities = [secagg.Identity.generate(rng.bytes) for _ in parts]
    seats = [secagg.Identity.generate(rng.bytes) for _ in plan.panel or ("server",)]
    publics = tuple(identity.public for identity in identities)
    roster = secagg.Roster.numbered(publics, server=seats[0].public, label="simulation", counter=0)
    common: dict[str, Any] = {"roster": roster, "rng": rng, "allow_reproducible": True}
    if plan.panel:
        plan, parts = _with_stand_ins(plan, parts, seats, rng)
        masking: Any = plan.masking
        keys = [secagg.HelperKeys(seat, place, masking, roster, entropy=rng.bytes) for place, seat in enumerate(seats)]
        common["panel"] = secagg.Panel(tuple(seat.public for seat in seats), tuple(key.offer for key in keys))
    clients = tuple(
        client(plan, part, index=index, identity=identity, charge="uncharged", agreed=listed_in(plan), **common)
        for index, (part, identity) in enumerate(zip(parts, identities, strict=True))
    )
    if not plan.panel:
        return Cast(server(plan, identity=seats[0], **common), clients)
    trial: dict[str, Any] = {"roster": roster, "panel": common["panel"], "allow_reproducible": True}
    helpers = tuple(helper(plan, keys=key, **trial) for key in keys[1:])
    return Cast(server(plan, keys=keys[0], **common), clients, helpers)


def _with_stand_ins(
    plan: Plan, parts: Sequence[Moments | Contribution], seats: Sequence[secagg.Identity], rng: Generator
) -> tuple[Plan, list[Contribution]]:
    """The plan with another panel, and the contributions under it."""
    vectors = [_in_ring(plan, part, rng, index) for index, part in enumerate(parts)]
    plan = replace(plan, panel=tuple(seat.public.hex() for seat in seats))
    return plan, [Contribution(plan.digest, vector) for vector in vectors]


def on_left(plan: Plan, roster: secagg.Roster, charge: Charge | NodeCharge) -> Told:
    """What a resumed client tells: that its masked vector leaves, or, once it is wiped, that it never will.

    Args:
        plan: the plan all parties agreed on.
        roster: the roster of the run.
        charge: the party's own ledger and its data set there, as :func:`client` was given them.
    """
    return charging.on_left(plan, charge, roster.run)


def release(
    plan: Plan,
    total: RingVector,
    survivors: tuple[int, ...],
    rng: Generator | None = None,
    charge: Charging = None,
    *,
    run: bytes = b"",
    allow_reproducible: bool = False,
) -> Release:
    """Turn the unmasked sum into a release: central noise in the ring, centre lift, plausibility, minimum count.

    A function without memory: every call draws its own central noise, and a hundred calls on one total leave a tenth of
    it. So every call is a release of its own and is charged as one; who wants the same release again keeps the first.

    Args:
        plan: the plan all parties agreed on.
        total: the unmasked sum.
        survivors: the clients in it.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the server's ledger and its data set there, or the word ``"uncharged"``; may be left out only where the
            plan has no DP. With a ledger the spend is on the disk before any central noise is drawn.
        run: the session's name (``roster.run``): a call that crashed before it returned may be repeated under it at no
            cost, and after one that returned, or aborted, no other is allowed. Without it each call is a run of its
            own.
        allow_reproducible: accept a generator whose stream others may know; the release is marked with it.

    Guarantee:
        The noise is added before the lift. Reduction into the ring commutes with addition, so the noisy ring element is
        a function of the noisy sum alone, whatever malicious clients put beside their victim; lifting first would turn
        one record into a step of 2**b for a sum at the wrap. Everything after the noise (lift, plausibility, minimum
        count, an abort) is post-processing and costs no privacy. Without DP the exact sum is what is released.

    Raises:
        ReleaseError: fewer survivors than the plan needs, or not clients of the plan.
        DataError: ``total`` is no vector of the plan's ring; nothing is spent then.
        AggregationError: the noisy sum is one that no honest cohort has (``too-many-records``, ``implausible``). The
            release stays charged and its run used up: the abort is seen, and it is a function of the noisy sum.
        LedgerError: nothing says where a plan with DP is charged, the cap would be passed, or the run's name is used
            up; nothing is spent, drawn or released then.
        RandomnessError: ``rng`` is reproducible and nobody allowed it, or was made before a fork.
    """
    require_plan(plan)
    rng = checked(rng, allow_reproducible=allow_reproducible)
    account = charge_of(plan, charge)
    require_survivors(plan, survivors)  # before anything is spent
    if not isinstance(total, RingVector) or total.ring != plan.ring:
        raise DataError("total must be a vector of the plan's ring: give the total of a session under this plan")
    return charged(plan, account, run, lambda: _drawn(plan, total, survivors, rng))


def _drawn(plan: Plan, total: RingVector, survivors: tuple[int, ...], rng: Generator) -> Release:
    """One draw of the central noise and what it makes of the sum, charged by the caller."""
    vector = _with_central_noise(plan, total, rng).lift()
    check_plausible(plan, vector)
    rare: tuple[int, ...] = ()
    if isinstance(plan.schema, ClassSchema):
        vector, rare = dp.without_rare(plan.layout, vector, plan.min_count, plan.merge)
    return Release(plan, vector, survivors, rare, reproducible=rng.reproducible and plan.noise is not None)


def in_clear(plan: Plan, parts: Sequence[Moments | Contribution | RingVector], rng: Generator | None = None) -> Release:
    """What the server would release if every party sent its contribution unmasked: sum, then release.

    For experiments, audits and tests. Not for production: there is no protocol here, so whoever calls it sees every
    part, and nothing is charged to any ledger.

    Args:
        plan: the plan.
        parts: one per client, the first client's first: measured moments (a fresh contribution is made of them), a
            contribution (it is used up) or a vector of the plan's ring. Clients without a part count as vanished.
        rng: a generator for shares and central noise; the operating system's when omitted. A reproducible one marks the
            release.

    Raises:
        DataError: not a plan, not a list, or a part that does not fit the plan.
        ReleaseError: fewer parts than ``min_survivors``, or more than clients.
        AggregationError: as for :func:`release`.
    """
    require_plan(plan)
    rng = checked(rng, allow_reproducible=True)
    if not isinstance(parts, Sequence):
        raise DataError(f"parts must be a list with one part per client, got {kind_of(parts)}; put it into a list")
    total = plan.ring.zeros()
    for index, part in enumerate(parts):
        total.add(_in_ring(plan, part, rng, index))
    survivors = tuple(range(len(parts)))
    whole = release(plan, total, survivors, rng, charge="uncharged", allow_reproducible=True)
    known = any(isinstance(part, Contribution) and part.reproducible for part in parts)
    return replace(whole, reproducible=True) if known else whole


def _in_ring(plan: Plan, part: Moments | Contribution | RingVector, rng: Generator, index: int) -> RingVector:
    """A part as a vector; a contribution is used up by it."""
    if isinstance(part, RingVector):
        if part.ring != plan.ring:
            raise DataError("a part is a vector of another ring than the plan's; encode it with plan.ring")
        return part
    if isinstance(part, Contribution):
        part.check(plan.digest)
        return part.take()
    return contribution(plan, part, rng, index=index, allow_reproducible=True).take()  # the caller has checked rng


def _with_central_noise(plan: Plan, total: RingVector, rng: Generator) -> RingVector:
    """The sum with the server's noise in it, still in the ring; the sum itself in the other models."""
    if plan.noise is None or not plan.noise.trust.by_server:
        return total
    noisy = plan.ring.encode(dp.draw_central(plan.noise, plan.layout, rng))
    noisy.add(total)
    return noisy
