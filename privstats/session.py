"""Where a plan meets the protocol: moments become a masked client, the unmasked sum becomes a release.

Glue without state: the engines move the bytes, ``secagg`` keeps the protocol, ``dp`` draws the noise and keeps the
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from privstats import dp, secagg
from privstats.dp import NoPrivacy, Privacy
from privstats.encoding import RingVector, flatten
from privstats.errors import DataError, LedgerError
from privstats.moments import ClassMoments, RidgeMoments
from privstats.plan import Plan, check_plausible
from privstats.randomness import Generator, checked
from privstats.release import Release, check_survivors
from privstats.schema import ClassSchema

__all__ = ["Charge", "client", "contribution", "release", "server"]


@dataclass(frozen=True)
class Charge:
    """Where a release is written down before its noise is drawn.

    Attributes:
        ledger: the durable record.
        dataset: the account in it.
    """

    ledger: dp.Ledger
    dataset: str


def contribution(
    plan: Plan,
    moments: ClassMoments | RidgeMoments,
    rng: Generator | None = None,
    charge: Charge | None = None,
    *,
    allow_reproducible: bool = False,
) -> RingVector:
    """One client's vector in the ring: its exact sums, plus its noise share where the plan's model asks for one.

    Args:
        plan: the plan all parties agreed on.
        moments: what ``measure`` gave for this party's records.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the party's own ledger; with it the spend is on the disk before the first sample of noise is drawn.
        allow_reproducible: accept a generator whose stream others may know: in tests and simulations.

    Guarantee:
        Distributed: the share is this client's part of the joint noise. Local: the share alone makes the vector
        (epsilon, delta)-private. Central and no DP: nothing is added here. Under the client unit with ``client_clip``
        the whole vector is clipped first, in integers.

    Raises:
        DataError: the moments were measured under another schema, or hold more records than the plan admits.
        LedgerError: the cap would be passed; nothing is spent and nothing is drawn then.
        RandomnessError: ``rng`` is reproducible and nobody allowed it, or was made before a fork.
    """
    rng = checked(rng, allow_reproducible=allow_reproducible)
    _check(plan, moments)
    vector = flatten(moments)
    if isinstance(plan.privacy, Privacy):
        vector = dp.clip_client(plan.schema, plan.privacy, vector)
    with _charged(plan, charge):
        if plan.noise is not None and plan.noise.model != "central":
            vector = vector + dp.draw_share(plan.noise, plan.layout, rng)
        return plan.ring.encode(vector)


def client(
    plan: Plan,
    moments: ClassMoments | RidgeMoments,
    *,
    index: int,
    identity: secagg.Identity,
    roster: secagg.Roster,
    rng: Generator | None = None,
    charge: Charge | None = None,
    allow_reproducible: bool = False,
) -> secagg.Client:
    """The protocol machine of one party, holding its contribution.

    Args:
        plan: the plan all parties agreed on.
        moments: what ``measure`` gave for this party's records.
        index: this party's place in the roster.
        identity: its Ed25519 identity.
        roster: the public identities of all parties, agreed outside this protocol.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the party's own ledger.
        allow_reproducible: as in :func:`contribution`; the keys come from ``rng`` too.
    """
    rng = checked(rng, allow_reproducible=allow_reproducible)
    vector = contribution(plan, moments, rng, charge, allow_reproducible=allow_reproducible)
    return secagg.Client(plan.masking, vector, index=index, identity=identity, roster=roster, entropy=rng.bytes)


def server(
    plan: Plan, roster: secagg.Roster, rng: Generator | None = None, *, allow_reproducible: bool = False
) -> secagg.Server:
    """The protocol machine of the aggregator."""
    return secagg.Server(plan.masking, roster=roster, entropy=checked(rng, allow_reproducible=allow_reproducible).bytes)


def release(
    plan: Plan,
    total: RingVector,
    survivors: tuple[int, ...],
    rng: Generator | None = None,
    charge: Charge | None = None,
    *,
    allow_reproducible: bool = False,
) -> Release:
    """Turn the unmasked sum into a release: central noise in the ring, centre lift, plausibility, minimum count.

    Args:
        plan: the plan all parties agreed on.
        total: the unmasked sum.
        survivors: the clients in it.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the server's ledger; with it the spend is on the disk before any central noise is drawn.
        allow_reproducible: accept a generator whose stream others may know; the release is marked with it.

    Guarantee:
        The noise is added before the lift. Reduction into the ring commutes with addition, so the noisy ring element is
        a function of the noisy sum alone, whatever malicious clients put beside their victim; lifting first would turn
        one record into a step of 2**b for a sum at the wrap. Everything after the noise (lift, plausibility, minimum
        count, an abort) is post-processing and costs no privacy. Without DP the exact sum is what is released.

    Raises:
        ReleaseError: fewer survivors than the plan needs, or not clients of the plan.
        AggregationError: the noisy sum is one that no honest cohort has (``too-many-records``, ``implausible``). The
            release stays charged: the abort is seen, and it is a function of the noisy sum.
        LedgerError: the cap would be passed; nothing is spent, drawn or released then.
        RandomnessError: ``rng`` is reproducible and nobody allowed it, or was made before a fork.
    """
    rng = checked(rng, allow_reproducible=allow_reproducible)
    check_survivors(plan, survivors)  # before anything is spent
    with _charged(plan, charge):
        vector = _with_central_noise(plan, total, rng).lift()
        check_plausible(plan, vector)
        rare: tuple[int, ...] = ()
        if isinstance(plan.schema, ClassSchema):
            vector, rare = dp.without_rare(plan.layout, vector, plan.min_count, plan.merge)
        return Release(plan, vector, survivors, rare, reproducible=rng.reproducible and plan.noise is not None)


def _with_central_noise(plan: Plan, total: RingVector, rng: Generator) -> RingVector:
    """The sum with the server's noise in it, still in the ring; the sum itself in the other models."""
    if plan.noise is None or plan.noise.model != "central":
        return total
    noisy = plan.ring.encode(dp.draw_central(plan.noise, plan.layout, rng))
    noisy.add(total)
    return noisy


@contextmanager
def _charged(plan: Plan, charge: Charge | None) -> Iterator[None]:
    """Spend first, then let the noise be drawn; a crash in between loses a release, never the memory of one."""
    if charge is None:
        yield
        return
    if plan.noise is None or not isinstance(plan.privacy, Privacy):
        raise LedgerError("a plan without DP has no cost that a ledger could hold; give the plan a Privacy")
    entry = charge.ledger.spend(
        charge.dataset, plan=plan.digest, schema=plan.schema, privacy=plan.privacy, noise=plan.noise
    )
    yield
    charge.ledger.finish(entry)


def _check(plan: Plan, moments: ClassMoments | RidgeMoments) -> None:
    if not isinstance(moments, ClassMoments | RidgeMoments):
        raise DataError(f"moments must be what measure returned, got {type(moments).__name__}")
    if moments.schema != plan.schema:
        raise DataError("the moments were measured under another schema than the plan's; measure with plan.schema")
    if moments.records is None:
        raise DataError("these ridge moments do not know how many records are in them; give what measure returned")
    limits = {"cohort.max_records": plan.cohort.max_records}
    if not isinstance(plan.privacy, NoPrivacy) and plan.privacy.max_records_per_client is not None:
        limits["privacy.max_records_per_client"] = plan.privacy.max_records_per_client
    for field, limit in limits.items():
        if moments.records > limit:
            raise DataError(f"a client holds more records than {field}={limit}; raise it in the plan or sample fewer")
