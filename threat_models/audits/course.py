"""A canary through a course run by a server that lies wherever it can, against the promise of the course.

The claim is the sum of the rounds' promises; where the course states its promise, that sum is compared with it. The
server invents the releases by which it asks, searches for those that lead to the weights at which the canary shows
most, is silent after every upload and asks for each round again, under another run and with other helpers' offers. The
party's own ledger and checks decide what it takes part in; the noise is drawn on the real path; a bound follows as in
``canary``. The canary is a record, a whole client, or a person of more rows than count in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import cycle, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import secagg, session
from privstats.course import Course, DisjointRounds, authorize, spend
from privstats.course.base import as_next, plans_by_place
from privstats.course.promise import Promise, every_plan
from privstats.dp import Ledger, Privacy, Spend, gaussian_epsilon
from privstats.encoding import flatten
from privstats.errors import LedgerError, PlanError
from privstats.kinds import CountSchema
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.progress import progress_bar, track
from privstats.randomness import Generator
from privstats.release import Release
from privstats.schema import Categories, Schema
from privstats.secagg.protocols import protocol_of
from threat_models.audits.canary import GROUP_MU, lower_bounds
from threat_models.audits.counts import records_at
from threat_models.audits.kinds import as_declared, columns_of, in_arms, outcome_of
from threat_models.audits.promise import mu_of
from threat_models.audits.records import drawn_records
from threat_models.audits.target import Target, target_of
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_DATASET, _RUN = "canary", b"course under audit"
_RUN_BYTES = 16
_INVENTED_RECORDS = 400
_ROWS_OF_A_PERSON = 4  # of those that count in full
_INVENTIONS = 8
_FAR = 1e6  # a target beyond every bound, where a clip has to act
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class _Session:
    """A session that the party has sent its masked vector to: what it was asked for, and what the canary moves."""

    place: int
    target: Target
    shift: NDArray[np.int64]

    @property
    def weight(self) -> NDArray[np.float64]:
        """Return the weights with which the server adds the entries up: the canary's shift over their variance."""
        return np.asarray(self.shift / self.target.levels() ** 2)

    @property
    def square(self) -> float:
        """The square of how far the canary moves the release, in deviations of the worst session's noise."""
        return float(self.weight @ self.shift)


def audit_course(
    course: Course,
    rng: Generator,
    *,
    promise: Promise | None = None,
    asks: int = 4,
    trials: int = 2000,
    confidence: float = 0.95,
) -> Report:
    """Lower bounds on mu and epsilon of everything that a lying server gets of one record.

    Args:
        promise: what the owners promised for all rounds, which the course need not keep; None: the course's own.
        asks: how often it asks for every round.
        trials: plays of the whole course, each looked at with and without the canary.

    Raises:
        PlanError: a course without DP, or one whose rounds hold different records: that is ``stream``'s.
    """
    if isinstance(course, DisjointRounds):
        raise PlanError("the records of a stream's rounds are kept apart by a registry; audit it with audit_stream")
    privacy = _privacy(course)
    sessions, refused = joined(course, rng, asks)
    separation = math.sqrt(math.fsum(each.square for each in sessions))
    if separation == 0:
        raise PlanError(
            "the canary moves no sum of this course, so nothing can be bounded: `privstats audit budget` and `audit "
            "sensitivity` search the plan of each session, which `privstats course next` writes"
        )
    copies = max(1, round(GROUP_MU / separation))
    noise = np.zeros(trials)
    for each in track("playing", sessions):
        noise += each.target.draw(trials, rng) @ each.weight
    noise /= separation
    result = lower_bounds(noise, noise + copies * separation, confidence, privacy.delta).mu / copies
    promises = [plan.privacy for plan in course.priced if isinstance(plan.privacy, Privacy)]
    claimed = math.hypot(*(mu_of(promise.epsilon, promise.delta) for promise in promises))
    mu = _promised_mu(promise or getattr(course, "promise", None), claimed)
    places = sorted(each.place for each in sessions)
    bounds = (mu, claimed, separation, result, result / claimed, gaussian_epsilon(claimed, privacy.delta))
    epsilon = gaussian_epsilon(result, privacy.delta) if result > 0 else 0.0
    verdict = "violates" if max(result, claimed) > min(mu, claimed) * (1 + _TOLERANCE) else "no evidence"
    row = ("course", len(sessions), refused, *bounds, epsilon, verdict)
    notes = (
        f"{trials} plays; the server asks {asks} times for each of {course.most} rounds; it was given rounds {places}",
        f"worst sessions of the {privacy.model} model; the canary is one {privacy.unit}; {confidence:.0%} confidence",
    )
    columns = (
        *(
            "what",
            "sessions",
            "refused",
            "mu promised",
            "mu claimed",
            "mu moved",
            "mu at least",
            "ratio",
            "eps claimed",
        ),
        *("eps at least", "verdict"),
    )
    return Report(
        "course", columns, (row,), notes, verdict == "violates", json_only=("mu moved", "eps claimed", "verdict")
    )


def _promised_mu(promise: Promise | None, claimed: float) -> float:
    """Return the mu that the owners promised for all rounds; without a promise, the mu that the rounds claim."""
    return claimed if promise is None else mu_of(promise.epsilon, promise.delta)


def joined(course: Course, rng: Generator, asks: int) -> tuple[list[_Session], int]:
    """The sessions in which the server has the party's masked vector at the end, and how many it was refused."""
    course = _with_members(course)
    with TemporaryDirectory() as folder:
        party = _Party(course, Path(folder) / "party.db", rng)
        sessions: list[_Session] = []
        refused = 0
        with progress_bar("asking", asks * course.most) as advance:
            for plan, history in _asked(course, party, rng, asks):
                if party.takes_part(plan, history):
                    sessions.append(_Session(len(history), target_of(plan), party.shift(plan)))
                else:
                    refused += 1
                advance(1)
    return sessions, refused


class _Party:
    """An honest party that holds the canary; only its ledger and the library's own checks decide."""

    def __init__(self, course: Course, path: Path, rng: Generator) -> None:
        privacy = _privacy(course)
        self._course, self._rng = course, rng
        self._ledger = Ledger.create(path)
        cap = {"epsilon": min(100.0, 2 * gaussian_epsilon(course.mu, privacy.delta) + 1), "delta": privacy.delta}
        self._ledger.set_cap(_DATASET, unit=privacy.unit, adjacency=privacy.adjacency, **cap)
        self._entry: Spend = spend(course, self._ledger, _DATASET, _RUN)
        self._people = [secagg.Identity.generate(rng.bytes) for _ in range(course.first.cohort.clients)]
        self._server = _member(0)
        self._copies = copies_of(privacy)
        of_rows = (plan.schema for plan in course.priced if not isinstance(plan.schema, CountSchema))
        summed = next(of_rows, course.first.schema)
        X, y = canary_of(summed, rng)
        self.canary = _as_counted(X, course), y

    def measured(self, plan: Plan, which: int) -> Moments:
        """The moments of the canary (0) or of what is in its place (1): a record, or a client or person of copies."""
        X, y = (_copies_of(each, which, self._copies) for each in self.canary)
        owners: Any = {}
        if plan.person_clip is not None:
            owners = {"persons": np.zeros(self._copies, int), "person_clip": plan.person_clip}
        return sums_of(plan.schema, X, y, published=plan.published, unreadable=plan.unreadable, **owners)

    def shift(self, plan: Plan) -> NDArray[np.int64]:
        """The canary's shift of the flat vector, behind the clip of a client: by its presence, or its exchange."""
        present, absent = (target_of(plan).exact(self.measured(plan, which)) for which in (0, 1))
        return present - absent if _privacy(self._course).adjacency == "replace-one" else present

    def reach(self, plan: Plan) -> float:
        """Return the canary's shift in standard deviations of the worst session's noise, the server's signal."""
        return float(np.linalg.norm(self.shift(plan) / target_of(plan).levels()))

    def takes_part(self, plan: Plan, history: Sequence[Release | None]) -> bool:
        """Whether a client is built and its masked vector would leave; a run name is new every time."""
        publics = tuple(person.public for person in self._people)
        roster = secagg.Roster(publics, server=self._server.public, run=self._rng.bytes(_RUN_BYTES))
        try:
            charge = authorize(self._course, plan, history, self._ledger, self._entry)
            session.client(
                plan,
                self.measured(plan, 0),
                index=0,
                identity=self._people[0],
                roster=roster,
                panel=self._panel(plan, roster),
                charge=charge,
                rng=self._rng,
                allow_reproducible=True,
            )
        except LedgerError:
            return False
        return True

    def _panel(self, plan: Plan, roster: secagg.Roster) -> secagg.Panel | None:
        """Offers for this run of the whole panel, which the server controls; None where the plan has none."""
        if not protocol_of(plan.masking).has_panel:
            return None
        masking: Any = plan.masking
        keys = [
            secagg.HelperKeys(_member(place), place, masking, roster, entropy=self._rng.bytes)
            for place in range(len(plan.panel))
        ]
        return secagg.Panel(tuple(bytes.fromhex(member) for member in plan.panel), tuple(key.offer for key in keys))


def _with_members(course: Course) -> Course:
    """The course with a panel whose keys the audit has, in place of the panel that the plan names."""
    if not protocol_of(course.first.masking).has_panel:
        return course
    members = tuple(_member(place).public.hex() for place in range(len(course.first.panel)))
    origin: Any = course
    plan = fields(origin)[0].name
    changed: Course = replace(origin, **{plan: replace(getattr(origin, plan), panel=members)})
    return changed


def _member(place: int) -> secagg.Identity:
    """A stand-in for a place on the panel: the audit plays all of it."""
    return secagg.Identity((place + 1).to_bytes(32, "big"))


def _privacy(course: Course) -> Privacy:
    privacy = course.first.privacy
    if not isinstance(privacy, Privacy):
        raise PlanError("a course without DP promises nothing that a canary could contradict: give one with a Privacy")
    return privacy


def copies_of(privacy: Privacy) -> int:
    """Records of the canary: one, as many as a client may have, or more than of a person count in full; all alike, so
    that none takes from another."""
    if privacy.unit == "person":
        return _ROWS_OF_A_PERSON * int(privacy.max_records_per_person or 1)
    return 1 if privacy.unit == "record" else int(privacy.max_records_per_client or 1)


def _as_counted(records: Any, course: Course) -> Any:
    """Columns by name with listed values where a session counts them: the last for what is above 0, else the first."""
    if not isinstance(records, Mapping):
        return records
    counts = (plan.schema for plan in every_plan(course) if isinstance(plan.schema, CountSchema))
    listed = {each.name: each.values for schema in counts for each in schema.variables if isinstance(each, Categories)}
    return {
        name: np.where(column > 0, listed[name][-1], listed[name][0])
        if name in listed and column.dtype.kind in "if"
        else column
        for name, column in records.items()
    }


def _copies_of(records: Any, which: int, copies: int) -> Any:
    """So many copies of one of these records, as rows or as columns by name; None for none."""
    if records is None:
        return None
    if isinstance(records, Mapping):
        return {name: _copies_of(column, which, copies) for name, column in records.items()}
    return np.repeat(records[which : which + 1], copies, axis=0)


def canary_of(schema: Schema, rng: Generator) -> tuple[Any, Any]:
    """A record and, under replace-one, the one that takes its place: opposed, with the same label or target.

    Rows, or columns by name; of columns by name nothing is beside them.

    Raises:
        SchemaError: no records are made up for schemas of this kind.
    """
    if isinstance(schema, CountSchema) and not schema.transform:
        corners = records_at(schema, np.outer([0.0, 1 - 1e-9], np.ones(len(schema.read))))
        return {name: np.array(column, object) for name, column in corners.items()}, None
    outcome = outcome_of(schema)
    x = _chance(rng).normal(size=(1, columns_of(schema)))
    rows = in_arms(schema, np.vstack([x, -x]) * (schema.clip_norm / np.linalg.norm(x)))
    return as_declared(schema, rows, outcome.alike(2, _FAR))


def _chance(rng: Generator) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))


def _asked(course: Course, party: _Party, rng: Generator, asks: int) -> Iterator[tuple[Plan, list[Release | None]]]:
    """Yield the server's requests, round by round: plans that follow from a first release that the server invented.

    The server reports every later round as failed, so that the course continues to its last round and retry. Later
    releases without published values (counts, a mean, the sums after it) are reported as failed every other time, and
    invented otherwise. Where several phases may come, all earlier releases are invented every third time.
    """
    yield from [(course.first, [])] * asks
    unpublished = len(list(takewhile(lambda plan: plan.published is None, course.priced[1:])))
    for place in range(1, course.most):
        # A session of another phase may come only behind sums: then the server invents all of them as well.
        invented_before = [1, 1 + unpublished, *([place] if len(plans_by_place(course)[place]) > 1 else [])]
        turns = cycle(invented_before)
        histories = [_history(course, place, next(turns), rng) for _ in range(asks * _INVENTIONS)]
        plans = [(plan, history) for history in histories if (plan := course.next(history)) is not None]
        yield from sorted(plans, key=lambda offer: -party.reach(offer[0]))[:asks]


def _history(course: Course, place: int, many: int, rng: Generator) -> list[Release | None]:
    """Return ``many`` invented releases, each of the plan that follows from the earlier ones, then failed rounds."""
    history: list[Release | None] = []
    while len(history) < min(place, many):
        plan = course.next(history) if history else course.first
        history.append(None if plan is None else as_next(course, history, invented(plan, rng)))
    return [*history, *[None] * (place - len(history))]


def invented(plan: Plan, rng: Generator) -> Release:
    """Invented sums: of synthetic records, so that they look like an honest release.

    Raises:
        SchemaError: no records are made up for schemas of this kind.
    """
    schema = plan.schema
    X, y = drawn_records(schema, _INVENTED_RECORDS, _chance(rng))
    vector = flatten(sums_of(schema, X, y, published=plan.published, unreadable=plan.unreadable))
    return Release(plan, vector, tuple(range(plan.cohort.min_survivors)))
