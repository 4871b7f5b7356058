"""Turn the unmasked sum into a release.

Central noise is added before the lift. Near the wrap the lift turns one wire step into 2^bits, which later noise
would not hide. One malicious client can move an entry to the wrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privstats import dp
from privstats.encoding import RingVector
from privstats.errors import DataError
from privstats.plan import Plan, check_plausible
from privstats.randomness import SEED_BYTES, Generator, checked
from privstats.release import Release, require_survivors
from privstats.secagg.machines import Opening
from privstats.session.accounting import Charging, charge_of, charged
from privstats.session.noise import with_central_noise, without_excess
from privstats.session.validation import require_plan


def release(
    plan: Plan,
    total: RingVector,
    survivors: tuple[int, ...],
    rng: Generator | None = None,
    charge: Charging = None,
    *,
    run: bytes = b"",
    openings: Mapping[int, Opening] | None = None,
    allow_reproducible: bool = False,
) -> Release:
    """Charge a release, remove opened noise, add noise still due, lift, check plausibility, suppress rare classes.

    The full noise is due in the central model; in the panel model only the leader's, because the sum holds the
    helpers'. In both models every call samples new noise, and averaging many calls would remove that noise. So every
    call under a new run is charged as a release.

    Args:
        rng: as for :func:`contribution`.
        charge: the server's ledger and data set, or ``"uncharged"``; optional only without DP. The spend is on disk
            before any central noise is sampled.
        run: the session's name (``roster.run``). A crashed call may be repeated under it at no cost. After one that
            returned or aborted, further calls are refused. Without it each call is a new run.
        openings: each client's opened noise layers (``server.openings``), which are subtracted. The release's
            ``left_for`` has the client counts that remaining noise is sized for.
        allow_reproducible: accept a generator that others may reproduce. The release is marked reproducible then, and
            always if the total holds such noise.

    Guarantee:
        The noise is added before the lift. Reduction into the ring commutes with addition. So the noisy ring element is
        a function of the noisy sum alone, whatever malicious clients upload. With the lift first, one record could
        change a sum at the wrap by 2**b. Everything after the noise (lift, plausibility, minimum count, an abort) is
        post-processing and costs no privacy. Without DP the exact sum is released.

    Raises:
        ReleaseError: too few survivors, or not clients of the plan.
        DataError: ``total`` or ``openings`` do not fit the plan; nothing is spent.
        AggregationError: no honest cohort has this noisy sum (``too-many-records``, ``implausible``). The release stays
            charged and its run used up, because the abort is visible and depends on the noisy sum.
        LedgerError: a plan with DP has no ``charge``, the cap would be exceeded, or the run's name is used up. Nothing
            is spent, sampled or released. If a concurrent call ended the spend, the sampled noise is discarded.
        RandomnessError: as for :func:`contribution`.

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
        raise DataError("total must be a vector of the plan's ring: pass the total of a session under this plan")
    opened = {} if openings is None else openings
    sizes = _noise_sizes(plan, survivors, opened)
    return charged(plan, account, run, lambda: _noisy_release(plan, total, survivors, rng, opened, sizes))


def _noise_sizes(plan: Plan, survivors: tuple[int, ...], openings: Mapping[int, Opening]) -> tuple[int, ...]:
    """Return how many clients each survivor's remaining noise is sized for; empty without layers."""
    levels = () if plan.noise is None else plan.noise.levels
    fits = isinstance(openings, Mapping) and all(
        client in survivors and _fits(each, levels, len(survivors)) for client, each in openings.items()
    )
    if not fits:
        raise DataError("openings must be of clients in the sum and of this plan's layers: pass server.openings")
    return tuple(openings[client].left_for if client in openings else levels[0] for client in survivors if levels)


def _fits(opening: object, levels: Sequence[int], present: int) -> bool:
    return (
        isinstance(opening, Opening)
        and type(opening.left_for) is int
        and opening.left_for in levels
        and opening.left_for <= present
        and len(opening.seeds) == levels.index(opening.left_for)
        and all(isinstance(seed, bytes) and len(seed) == SEED_BYTES for seed in opening.seeds)
    )


def _noisy_release(
    plan: Plan,
    total: RingVector,
    survivors: tuple[int, ...],
    rng: Generator,
    openings: Mapping[int, Opening],
    left_for: tuple[int, ...],
) -> Release:
    """Sample the noise still due and build the release; the caller has charged it."""
    vector = with_central_noise(plan, without_excess(plan, total, openings), rng).lift()
    check_plausible(plan, vector)
    rare: tuple[int, ...] = ()
    if plan.schema.suppressible:
        vector, rare = dp.without_rare(plan.layout, vector, plan.min_count, plan.merge)
    known = (rng.reproducible or total.reproducible) and plan.noise is not None
    return Release(plan, vector, survivors, rare, reproducible=known, left_for=left_for)
