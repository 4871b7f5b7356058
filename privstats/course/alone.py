"""Release one party's own records privately in one call, in the central model.

Plans have two fictitious clients, and no number in them comes from the records.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from privstats import course as courses
from privstats import dp, session
from privstats.course import Course, DisjointRounds, Round
from privstats.course.kinds import admits_of, course_kind
from privstats.course.read_once import ReadOnce
from privstats.course.records_engines import engine_for
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import AggregationError, DataError, PlanError
from privstats.moments import Moments, exact_moments, warn_if_clipped, warn_if_empty
from privstats.plan import Cohort, Plan
from privstats.printable import at_most, delta_text
from privstats.randomness import Generator, checked
from privstats.records.reading import Unreadable
from privstats.records.row_cache import RowCache
from privstats.release import Release
from privstats.schema import Schema, require_schema

if TYPE_CHECKING:
    from privstats.course.paid import Paid
    from privstats.dp import Spend
    from privstats.intake.accepted import ColumnLike, RecordsLike, TargetsLike
    from privstats.session.charges import Charge


def measured_by_person(
    privacy: Privacy, ids: Any, measured: Callable[..., Moments] = exact_moments
) -> Callable[..., Moments]:
    """Return :func:`privstats.moments.exact_moments`, or ``measured``, that clips each person's sum as promised.

    Args:
        privacy: a promise per person; its shares are ignored.
    """
    bounded = replace(privacy, shares=None)

    def by_person(schema: Schema, X: RecordsLike, y: TargetsLike | None, **given: Any) -> Moments:
        return measured(schema, X, y, persons=ids, person_clip=dp.person_clip(schema, bounded), **given)

    return by_person


def measuring(X: object, privacy: Privacy | NoPrivacy | None = None) -> Callable[..., Moments]:
    """Return what measures these records: here, or where an engine has them.

    Raises:
        DataError: another package's engine holds them, and ``privacy`` is not ``NoPrivacy``.
    """
    engine = engine_for(X, privacy)
    return exact_moments if engine is None else engine.measure


_CLIENTS = 2
"""The fewest clients that a plan can have. Both are fictitious, and all records belong to the first."""

_MOST_RECORDS_BITS = 30
_RING_BITS = 59  # 62 bits minus room for the second client, the sign and noise
_FRESH_RUN_BYTES = 16


def private_release(
    schema: Schema,
    privacy: Privacy,
    X: RecordsLike | Moments,
    y: TargetsLike | None = None,
    *,
    persons: ColumnLike | None = None,
    ledger: Paid = None,
    dataset: str | None = None,
    max_records: int | None = None,
    min_count: int = 0,
    run: bytes = b"",
    rng: Generator | None = None,
    allow_reproducible: bool = False,
    progress: bool = False,
) -> Release:
    """Measure one party's own records and release their noisy sums.

    Trust: the caller sees the records and exact sums and must keep both secret; the release is private towards every
    other party.

    Args:
        privacy: model ``"central"``, unit ``"record"`` or ``"person"``.
        X, y: as in :func:`privstats.measure`, or batches ``(X, y)`` without ``y``; or an engine's collection or the
            path of a table's file or folder, as in ``privstats.contrib.parts.measure``; or :class:`privstats.Moments`
            of all records without ``y`` and ``persons``, such as those that a data base counted.
        persons: an id per row, ``(n,)``, for a promise per person.
        ledger: a :class:`~privstats.dp.Ledger`, or ``"uncharged"``; or a :class:`~privstats.session.Charge`, for one
            record in several rows.
        dataset: its account, if it has several.
        max_records: a public bound on the number of records, never a count; about 10**9 if omitted, less
            for ``grid_bits`` above 14. No noise depends on it.
        min_count: classes with smaller noisy counts are suppressed.
        run: a name under which a crashed call may be repeated at no cost.
        rng: test randomness; omitted, the operating system's.
        allow_reproducible: accept a generator that others may know; the release is marked.

    Guarantee:
        The release is (epsilon, delta)-DP for one record, or one person with all rows, under ``privacy.adjacency``,
        everything in it together. The exact sums stay in this process, and the ledger is charged before any noise is
        drawn.

    Warns:
        UserWarning: there is no record, or there are more than 1 / delta.
        ClippedWarning: more than nine in ten rows, or one in ten targets, are clipped. The share in the text is exact,
            outside the guarantee, and in no release.

    Raises:
        PlanError: another trust model or unit, or bounds that do not fit the ring.
        DataError: records that do not fit, or more than ``max_records``; nothing is spent.
        LedgerError: no account, or the cap would be exceeded; nothing is drawn.
        AggregationError: the noisy counts exceed ``max_records``; charged all the same.
        RandomnessError: ``rng`` is reproducible without ``allow_reproducible``.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> X, y = np.array([[0.5, 0.0], [0.0, 0.25]] * 50), np.array([0, 1] * 50)
        >>> release = ps.private_release(schema, privacy, X, y, ledger="uncharged")
        >>> round(release.budget.epsilon, 3), round(release.sigma["A"], 2)
        (1.0, 3.77)
    """
    plan = single_party_plan(schema, privacy, max_records=max_records, min_count=min_count)
    rng = checked(rng, allow_reproducible=allow_reproducible)
    charge = charge_for(ledger, dataset)
    if isinstance(X, Moments):
        _require_nothing_more(y, persons)
    else:
        _require_ids(privacy, persons)
    vector = _vector(plan, X, y, rng, progress=progress, persons=persons)
    options: Any = {"run": run, "allow_reproducible": allow_reproducible}
    account: Any = "uncharged" if charge is None else charge
    return session.release(plan, vector, tuple(range(_CLIENTS)), rng, account, **options)


def private_releases(
    course: Course,
    X: RecordsLike,
    y: TargetsLike | None = None,
    *,
    persons: ColumnLike | None = None,
    ledger: Paid = None,
    dataset: str | None = None,
    run: bytes = b"",
    rng: Generator | None = None,
    allow_reproducible: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> list[Release | None]:
    """Release every round of a course from one party's own records, under one spend.

    Args:
        course: plans in the central model, such as :func:`single_party_plan` builds.
        X, y, persons, ledger, dataset, rng: as in :func:`private_release`; batches must start anew for every round.

    Returns:
        Every round's release, or None without a sum; its budget is spent.

    Guarantee:
        Together mu-GDP with the course's mu, which the ledger holds before the first round; no round is drawn twice.
        Every round is priced for a record that is in all of them.

    Raises:
        PlanError: another trust model, a stream, or a course that breaks its declaration. Nothing is measured or spent
            then.

    Example:
        >>> from privstats.course.alone import single_party_plan
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> course = ps.Rounds.within(single_party_plan(schema, privacy), rounds=2, expected_records=100)
        >>> releases = ps.private_releases(course, [[0.5, 0.1], [0.2, 0.7]] * 50, [0, 1] * 50, ledger="uncharged")
        >>> len(releases), round(course.epsilon(1e-5), 3)
        (3, 3.0)
    """
    if isinstance(X, Moments):
        raise DataError("each session of a course measures the records anew: pass the records, not moments")
    _require_same_records(course)
    _require_central(course.first.privacy)
    rng = checked(rng, allow_reproducible=allow_reproducible)
    charge = charge_for(ledger, dataset)
    _require_ids(course.first.privacy, persons)
    rows = ReadOnce(X, y).rows if measuring(X) is exact_moments else (lambda _: X)
    # Before anything is spent: its refusals cost nothing.
    first = _vector(course.first, rows(course.first.schema), y, rng, persons=persons)
    _require_admitted(course, X, y, persons)
    entry = None if charge is None else _spent(course, charge, run or os.urandom(_FRESH_RUN_BYTES))
    later = partial(_vector, y=y, rng=rng, first=False, cache=RowCache(), persons=persons)

    def release(round_: Round) -> Release | None:
        plan = round_.plan
        vector = first if round_.place == 0 else later(plan, rows(plan.schema))
        if charge is not None and entry is not None:
            charge.ledger.mark_started(entry, round_.place)
        everybody = tuple(range(plan.cohort.clients))
        try:
            return session.release(plan, vector, everybody, rng, "uncharged", allow_reproducible=allow_reproducible)
        except AggregationError:
            return None
        finally:
            tick()

    return courses.run(course, release)


def single_party_plan(schema: Schema, privacy: Privacy, *, max_records: int | None = None, min_count: int = 0) -> Plan:
    """Return one party's plan; its cohort's two clients are fictitious."""
    require_schema(schema, "private_release(schema, privacy, X, y, ledger=...)")
    _require_central(privacy)
    most = 1 << min(_MOST_RECORDS_BITS, _RING_BITS - 2 * schema.grid_bits) if max_records is None else max_records
    return Plan(schema=schema, cohort=Cohort(_CLIENTS, _CLIENTS, most), privacy=privacy, min_count=min_count)


def _require_same_records(course: object) -> None:
    if not isinstance(course, Course):
        raise DataError(f"course must be a Course, got {type(course).__name__}; for one plan use private_release")
    if isinstance(course, DisjointRounds):
        raise PlanError(
            "every round of this course takes separate records; X in all of them would cost far more than the "
            f"course's price: {_alone(course)}; to release the same records again, give Rounds or a plan at a time"
        )


def _alone(course: Course) -> str:
    changing = course_kind(course).changing
    return "release each round's own plan" if changing is None else changing.alone


def _spent(course: Course, charge: Charge, run: bytes) -> Spend:
    return courses.spend(course, charge.ledger, charge.dataset, run, multiplicity=charge.multiplicity)


def _require_central(privacy: object) -> None:
    if isinstance(privacy, NoPrivacy):
        raise PlanError("privacy must be a Privacy here; exact sums of your own records are Release.exact(schema, ...)")
    if not isinstance(privacy, Privacy):
        raise PlanError(f"privacy must be a Privacy, got {type(privacy).__name__}; give model, unit, epsilon and delta")
    if privacy.trust.drawn_by != "server":
        raise PlanError(
            f"privacy.model must be 'central' for one party alone, got {privacy.model!r}: no other party can "
            "share the noise"
        )
    if privacy.unit == "client":
        raise PlanError("privacy.unit must be 'record' or 'person' for one party alone: it is the only client there is")


def _require_ids(privacy: Any, persons: ColumnLike | None) -> None:
    if privacy.unit == "person" and persons is None:
        raise DataError("the promise is per person: give persons=, an id for each row")
    if privacy.unit != "person" and persons is not None:
        raise DataError("the promise is per record, so no ids are read: leave persons out, or promise unit='person'")


def _require_nothing_more(y: object, persons: object) -> None:
    if y is not None or persons is not None:
        raise DataError("moments hold the records' labels and persons: omit y and persons, or pass the records")


def _require_admitted(course: Course, X: RecordsLike, y: TargetsLike | None, persons: ColumnLike | None) -> None:
    if admits := admits_of(course):
        privacy: Any = course.first.privacy
        measured = measuring(X)
        how = measured if persons is None else measured_by_person(privacy, persons, measured)
        admits(X, y, _unreadable(course.first), how)


def charge_for(ledger: Paid, dataset: str | None) -> Charge | None:
    """Return the account that ``ledger=`` and ``dataset=`` name; None for "uncharged"."""
    if isinstance(ledger, str) and ledger == "uncharged" and dataset is None:
        return None
    from privstats.course.paid import charge_named

    return charge_named(ledger, dataset)


def _unreadable(plan: Plan) -> Unreadable:
    """Refuse without declared tables, because only the data holder sees the refusal."""
    return "refuse" if plan.schema.reading.declaration is None else plan.unreadable


def _warn_of_delta(privacy: Any, records: int | None) -> None:
    if isinstance(privacy, Privacy) and records and privacy.delta * records > 1:
        warnings.warn(
            f"delta {delta_text(privacy.delta)} lets {at_most(privacy.delta * records, '.0f')} of {records:,} records "
            f"be exposed outright; choose less than 1 / {records:,}. This number is exact: it is for the data holder",
            UserWarning,
            stacklevel=5,
        )


def _vector(
    plan: Plan,
    X: RecordsLike | Moments,
    y: TargetsLike | None,
    rng: Generator,
    *,
    progress: bool = False,
    first: bool = True,
    cache: RowCache | None = None,
    persons: ColumnLike | None = None,
) -> Any:
    moments = X if isinstance(X, Moments) else _measured(plan, X, y, persons, cache, progress=progress)
    warn_if_empty(moments)
    if first:
        warn_if_clipped(moments, stacklevel=4)
        _warn_of_delta(plan.privacy, moments.records)
    return session.contribution(
        plan, moments, rng, index=0, allow_reproducible=True
    ).take()  # the caller has checked rng


def _measured(
    plan: Plan,
    X: RecordsLike,
    y: TargetsLike | None,
    persons: ColumnLike | None,
    cache: RowCache | None,
    *,
    progress: bool,
) -> Moments:
    terms: Any = {"published": plan.published, "unreadable": _unreadable(plan), "progress": progress}
    terms |= {} if persons is None else {"persons": persons, "person_clip": plan.person_clip}
    measured = measuring(X)
    terms |= {"cache": cache} if measured is exact_moments else {}  # an engine's workers keep no rows
    return measured(plan.schema, X, y, **terms)
