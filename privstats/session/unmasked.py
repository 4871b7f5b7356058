"""From the unmasked sum to a release: the noise that is still due, in the ring, then the lift and its checks.

Central noise is added in the ring, before the centre lift. Next to the wrap the lift turns one grid step into 2^bits,
so noise after the lift hides nothing there, and one malicious client can put an entry there. The plausibility check
stands behind the noise for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privstats import dp
from privstats.encoding import RingVector
from privstats.errors import DataError
from privstats.moments import Moments
from privstats.plan import Plan, check_plausible
from privstats.randomness import SEED_BYTES, Generator, checked
from privstats.release import Release, require_survivors
from privstats.session.accounting import Charging, charge_of, charged
from privstats.session.machines import helper_noise, in_ring
from privstats.session.validation import require_plan, type_name
from privstats.session.vector import Contribution

__all__ = ["aggregate_unmasked", "in_clear", "release"]


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
