"""Joins plan and protocol: makes clients from moments, and a release from the unmasked sum.

It has no state: engines move the bytes, ``secagg`` has the protocol, ``dp`` draws the noise, and ``accounting`` charges
the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privstats import dp, secagg
from privstats.encoding import RingVector
from privstats.errors import DataError
from privstats.moments import Moments
from privstats.plan import Plan, check_plausible
from privstats.randomness import SEED_BYTES, Generator, checked
from privstats.release import Release, require_survivors
from privstats.secagg.machines import Aggregator, Peer
from privstats.secagg.protocols import protocol_of
from privstats.session.accounting import Charge, Charging, RoundCharge, charge_of, charged
from privstats.session.machines import client, contribution, helper, helper_noise, in_ring, on_upload, server
from privstats.session.refunds import free, withdraw, withdraw_run
from privstats.session.validation import require_plan, required_survivors, type_name
from privstats.session.vector import Contribution

__all__ = [
    "Charge",
    "Contribution",
    "LocalParties",
    "RoundCharge",
    "aggregate_unmasked",
    "client",
    "contribution",
    "free",
    "helper",
    "helper_noise",
    "in_clear",
    "local_parties",
    "on_upload",
    "release",
    "server",
    "withdraw",
    "withdraw_run",
]


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
    """All machines of one session, with identities and a roster of their own, for simulations.

    :func:`client`, :func:`server` and :func:`helper` make them, as in a deployment; no ledger is charged. The private
    keys of a plan's panel are not available here, so stand-ins replace its members, under a plan that names them;
    contributions made under the original plan are accepted. In a round over the clients of an earlier sum every client
    gets the plan's list.

    Args:
        plan: the plan.
        parts: one per client, as :func:`client` takes them.
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
    """The plan with another panel, and the contributions under it."""
    vectors = [in_ring(plan, part, rng, index) for index, part in enumerate(parts)]
    plan = replace(plan, panel=tuple(each.public.hex() for each in members))
    return plan, [Contribution(plan.digest, vector) for vector in vectors]


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
    """Turn the unmasked sum into a release: noise that is still due, in the ring, centre lift, plausibility, minimum
    count.

    What is due is all of the noise in the central model, and the leader's in the panel model, whose helpers have put
    theirs into the sum. The function keeps no state: every call draws that noise anew, and the average of a hundred
    calls has a tenth of it. So every call is a release and is charged as one; to have the same release again, keep the
    first.

    Args:
        plan: the plan all parties agreed on.
        total: the unmasked sum.
        survivors: the clients in it.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the server's ledger and its data set there, or the word ``"uncharged"``; may be left out only where the
            plan has no DP. With a ledger the spend is on the disk before any central noise is drawn.
        run: the session's name (``roster.run``): a call that crashed before it returned may be repeated under it at no
            cost; after one that returned or aborted, further calls are refused. Without it each call is a new run.
        allow_reproducible: accept a generator whose stream others may know; the release is marked with it.

    Guarantee:
        The noise is added before the lift. Reduction into the ring commutes with addition, so the noisy ring element is
        a function of the noisy sum alone, whatever malicious clients upload; with the lift first, one record could
        change a sum at the wrap by 2**b. Everything after the noise (lift, plausibility, minimum count, an abort) is
        post-processing and costs no privacy. Without DP the exact sum is released.

    Raises:
        ReleaseError: fewer survivors than the plan needs, or not clients of the plan.
        DataError: ``total`` is no vector of the plan's ring; nothing is spent then.
        AggregationError: no honest cohort has this noisy sum (``too-many-records``, ``implausible``). The release stays
            charged and its run used up, because the abort is visible and depends on the noisy sum.
        LedgerError: a plan with DP has no ``charge``, the cap would be exceeded, or the run's name is used up; nothing
            is spent, drawn or released then.
        RandomnessError: ``rng`` is reproducible and ``allow_reproducible`` is not set, or was made before a fork.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> total = plan.ring.zeros()
        >>> for row, label in [([0.5, 0.0], 0), ([0.0, 0.25], 1)]:
        ...     total.add(ps.session.contribution(plan, ps.measure(plan.schema, [row], [label])).take())
        ...
        >>> ps.session.release(plan, total, survivors=(0, 1)).moments.A.tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    require_plan(plan)
    rng = checked(rng, allow_reproducible=allow_reproducible)
    account = charge_of(plan, charge)
    require_survivors(plan, survivors)  # before anything is spent
    if not isinstance(total, RingVector) or total.ring != plan.ring:
        raise DataError("total must be a vector of the plan's ring: give the total of a session under this plan")
    return charged(plan, account, run, lambda: _drawn(plan, total, survivors, rng))


def _drawn(plan: Plan, total: RingVector, survivors: tuple[int, ...], rng: Generator) -> Release:
    """Draw the noise that is due once and release the sum; the caller has charged it."""
    vector = _with_central_noise(plan, total, rng).lift()
    check_plausible(plan, vector)
    rare: tuple[int, ...] = ()
    if plan.schema.suppressible:
        vector, rare = dp.without_rare(plan.layout, vector, plan.min_count, plan.merge)
    return Release(plan, vector, survivors, rare, reproducible=rng.reproducible and plan.noise is not None)


def aggregate_unmasked(
    plan: Plan, parts: Sequence[Moments | Contribution | RingVector], rng: Generator | None = None
) -> Release:
    """Release the sum of unmasked contributions, without a masking protocol.

    For experiments, audits and tests, never for production: the caller sees every part, and no ledger is charged.

    Args:
        plan: the plan.
        parts: one per client, in the order of the roster: measured moments (a new contribution is made from them), a
            contribution (it is used up) or a vector of the plan's ring. Clients without a part count as vanished.
        rng: a generator for shares and central noise; the operating system's when omitted. A reproducible one marks the
            release.

    Raises:
        DataError: not a plan, not a list, or a part that does not fit the plan.
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
    for index, part in enumerate(parts):
        total.add(in_ring(plan, part, rng, index))
    draw = helper_noise(plan)
    if draw is not None:
        for _ in range(plan.helpers):
            total.add(draw(rng.bytes(SEED_BYTES)))
    survivors = tuple(range(len(parts)))
    whole = release(plan, total, survivors, rng, charge="uncharged", allow_reproducible=True)
    known = any(isinstance(part, Contribution) and part.reproducible for part in parts)
    return replace(whole, reproducible=True) if known else whole


in_clear = aggregate_unmasked
"""The name of :func:`aggregate_unmasked` in scripts outside the project."""


def _with_central_noise(plan: Plan, total: RingVector, rng: Generator) -> RingVector:
    """The sum plus the noise of the server, or of a panel's leader, still in the ring; the sum itself elsewhere."""
    noise = plan.noise
    if noise is None or not noise.trust.at_release:
        return total
    of_panel = noise.trust.drawn_by == "member"
    drawn = dp.draw_member(noise, plan.layout, rng) if of_panel else dp.draw_central(noise, plan.layout, rng)
    noisy = plan.ring.encode(drawn)
    noisy.add(total)
    return noisy
