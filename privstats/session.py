"""Where a plan meets the protocol: moments become a masked client, the unmasked sum becomes a release.

Glue without state: the engines move the bytes, ``secagg`` keeps the protocol, ``dp`` draws the noise and keeps the
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats import dp, secagg
from privstats.dp import NoPrivacy, Privacy
from privstats.encoding import RingVector, flatten
from privstats.errors import AggregationError, DataError, LedgerError
from privstats.moments import ClassMoments, RidgeMoments
from privstats.plan import Plan
from privstats.randomness import Generator, secure
from privstats.release import Release, check_survivors
from privstats.schema import COUNT_SCALE, ClassSchema

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
    plan: Plan, moments: ClassMoments | RidgeMoments, rng: Generator | None = None, charge: Charge | None = None
) -> RingVector:
    """One client's vector in the ring: its exact sums, plus its noise share where the plan's model asks for one.

    Args:
        plan: the plan all parties agreed on.
        moments: what ``measure`` gave for this party's records.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the party's own ledger; with it the spend is on the disk before the first sample of noise is drawn.

    Guarantee:
        Distributed: the share is this client's part of the joint noise. Local: the share alone makes the vector
        (epsilon, delta)-private. Central and no DP: nothing is added here. Under the client unit with ``client_clip``
        the whole vector is clipped first, in integers.

    Raises:
        DataError: the moments were measured under another schema, or hold more records than the plan admits.
        LedgerError: the cap would be passed; nothing is spent and nothing is drawn then.
    """
    _check(plan, moments)
    vector = flatten(moments)
    if isinstance(plan.privacy, Privacy):
        vector = dp.clip_client(plan.schema, plan.privacy, vector)
    with _charged(plan, charge):
        if plan.noise is not None and plan.noise.model != "central":
            vector = vector + dp.draw_share(plan.noise, plan.layout, rng or secure())
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
    """
    rng = rng or secure()
    vector = contribution(plan, moments, rng, charge)
    return secagg.Client(plan.masking, vector, index=index, identity=identity, roster=roster, entropy=rng.bytes)


def server(plan: Plan, roster: secagg.Roster, rng: Generator | None = None) -> secagg.Server:
    """The protocol machine of the aggregator."""
    return secagg.Server(plan.masking, roster=roster, entropy=(rng or secure()).bytes)


def release(
    plan: Plan,
    total: RingVector,
    survivors: tuple[int, ...],
    rng: Generator | None = None,
    charge: Charge | None = None,
) -> Release:
    """Turn the unmasked sum into a release: central noise, centre lift, minimum count on the noisy counts.

    Args:
        plan: the plan all parties agreed on.
        total: the unmasked sum.
        survivors: the clients in it.
        rng: a generator of test randomness; the operating system's when omitted.
        charge: the server's ledger; with it the spend is on the disk before any central noise is drawn.

    Guarantee:
        The minimum count looks at noisy counts only, so it is post-processing and costs no privacy.

    Raises:
        ReleaseError: fewer survivors than the plan needs, or not clients of the plan.
        AggregationError: the counts say that the cohort held more records than the plan admits.
        LedgerError: the cap would be passed; nothing is spent, drawn or released then.
    """
    check_survivors(plan, survivors)  # before anything is spent
    noisy = plan.ring.zeros()
    noisy.add(total)
    with _charged(plan, charge):
        if plan.noise is not None and plan.noise.model == "central":  # before the lift, which is not 1-Lipschitz
            noisy.add(plan.ring.encode(dp.draw_central(plan.noise, plan.layout, rng or secure())))
        return _threshold(plan, noisy.lift(), survivors)


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


def _threshold(plan: Plan, vector: NDArray[np.int64], survivors: tuple[int, ...]) -> Release:
    if not isinstance(plan.schema, ClassSchema):
        return Release(plan, vector, survivors)
    counts = vector[plan.layout.slices[0]]
    _check_counts(plan, counts)
    rare = dp.suppressed(counts / COUNT_SCALE, plan.min_count) if plan.min_count else ()
    return Release(plan, _without(plan, vector, rare), survivors, rare)


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


def _check_counts(plan: Plan, counts: NDArray[np.int64]) -> None:
    if int(counts.sum()) > plan.limits.refused_above * COUNT_SCALE:
        raise AggregationError(
            "unmask", "too-many-records", f"the cohort holds more than cohort.max_records={plan.cohort.max_records}"
        )


def _without(plan: Plan, vector: NDArray[np.int64], rare: tuple[int, ...]) -> NDArray[np.int64]:
    """Move the sums of rare classes to their declared parents, or drop them; pooled statistics stay."""
    out = vector.copy()
    classes = plan.schema.classes if isinstance(plan.schema, ClassSchema) else 0
    for segment, place in zip(plan.layout.segments, plan.layout.slices, strict=True):
        if segment.statistic == "B":
            continue
        table = out[place].reshape(classes, -1)
        for child, parent in dp.destinations(rare, plan.merge).items():
            if parent is not None:
                table[parent] += table[child]
            table[child] = 0
    return out
