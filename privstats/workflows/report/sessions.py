"""Explain a course's sessions on pages; a plan alone is one session."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from privstats.course import Course, DisjointRounds
from privstats.course.kinds import course_kind, labels_of
from privstats.course.promise import Total, longest, total_of
from privstats.plan import Plan
from privstats.printable import at_most, delta_text
from privstats.schema.base import Statistic
from privstats.workflows.report import explanations
from privstats.workflows.report.layout import Cell, Table, Text


@dataclass(frozen=True)
class Session:
    """Consecutive sessions with equal sums."""

    name: str
    times: int
    plan: Plan


def sessions_in(plan: Plan, course: Course | None) -> Iterator[Session]:
    """Yield a course's sessions in order, equal ones grouped."""
    if course is None:
        yield Session("the one session", 1, plan)
        return
    if isinstance(course, DisjointRounds):
        yield Session(f"each of {course.most}", course.most, course.priced[0])
        return
    begin = 0
    for _, alike in groupby(course.priced, key=_alike):
        plans = list(alike)
        last = begin + len(plans) - 1
        yield Session(str(begin) if last == begin else f"{begin} to {last}", len(plans), plans[0])
        begin = last + 1


def _alike(plan: Plan) -> tuple[object, ...]:
    noise = () if plan.noise is None else tuple(f"{row.sigma:.3g}" for row in plan.noise.rows)
    return plan.schema.task, plan.schema.statistics, plan.layout.size, noise


def collected(plan: Plan, course: Course | None = None) -> list[str]:
    """Explain what a party sends, and its bounds."""
    sessions = list(sessions_in(plan, course))
    return [
        _leaves(plan, total_of(course or plan)),
        *records_of(sessions),
        *explanations.persons(plan),
        *persons_in_sessions(course),
        *explanations.suppressed(plan),
    ]


def taking_part(plan: Plan) -> str:
    """State which parties take part, with how many records."""
    held = f"with at most {plan.cohort.max_records:,} records between them"
    if plan.schema.party_is_record:
        held = "each with any number of records"
    return f"{plan.cohort.clients} parties take part, {held}."


def in_sessions(total: Total) -> str:
    """State in how many sessions a party sends, a clause; empty for one."""
    return "" if total.sessions == 1 else f" in at most {total.sessions} sessions"


def _leaves(plan: Plan, total: Total) -> str:
    computes = "adds up its own records"
    if plan.schema.party_is_record:
        computes = "computes one direction from all of its own records"
    return (
        f"{taking_part(plan)} Each {computes} and sends {total.upload_bytes:,} bytes of masked sums"
        f"{in_sessions(total)}; no record leaves a party."
    )


def records_of(sessions: Sequence[Session]) -> list[str]:
    """State once what a record is and its bound, by session where these differ."""
    records = by_session(sessions, lambda plan: [plan.schema.record])
    bounds = by_session(sessions, lambda plan: explanations.bounded(plan.schema))
    phrases = (f"{record} (in session {where})" if where else record for record, where in records.items())
    lines = (f"In session {where}: {line}" if where else line for line, where in bounds.items())
    return [f"A record is {'; '.join(phrases)}.", *lines]


def by_session(sessions: Sequence[Session], phrases: Callable[[Plan], Sequence[str]]) -> dict[str, str]:
    """Return each phrase with its sessions, ``"2 to 9"``, or empty for all."""
    names: dict[str, list[str]] = {}
    for each in sessions:
        for phrase in phrases(each.plan):
            names.setdefault(phrase, []).append(each.name)
    return {phrase: ", ".join(where) if len(where) < len(sessions) else "" for phrase, where in names.items()}


def persons_in_sessions(course: Course | None) -> list[str]:
    """Explain a patient's rows in a course's sessions."""
    if course is None or course.first.person_clip is None:
        return []
    limit = "The limit counts what one patient adds to all sessions together."
    if (changing := course_kind(course).changing) is not None:
        return [f"{changing.persons(course)} {limit}"]
    return ["Every session clips the rows of a patient anew, by those rows and the session's public plan. " + limit]


def collected_table(plan: Plan, course: Course | None = None) -> Table:
    """Return summed statistics, their sizes and sessions."""
    sessions = list(sessions_in(plan, course))
    rows = [(each.name, *row) for each in sessions for row in _sums(each.plan)]
    header = ("session", "statistic", "what it is", "numbers")
    start = 0 if len(sessions) > 1 or sessions[0].times > 1 else 1
    return Table("what is collected", header[start:], [row[start:] for row in rows], words=True)


def summed(plan: Plan) -> Iterator[tuple[Statistic, int]]:
    """Yield the statistics that a party sends, each with its count of numbers."""
    sizes = plan.schema.sizes
    for row in plan.schema.sent:
        yield row, row.blocks(sizes) * row.entries(sizes)


def _sums(plan: Plan) -> list[tuple[str, str, str]]:
    return [(row.letter, row.meaning, f"{numbers:,}") for row, numbers in summed(plan)]


def course_table(course: Course) -> Table:
    """Return a course's sessions with sums and spending."""
    header: tuple[Text, ...] = (
        Cell("session", ("in the order in which they are run",)),
        Cell("statistics", ("what is summed",)),
        Cell("mu", ("what can be learned about one record from it: 0 is nothing, 1 much, 4 nearly all",)),
        Cell("epsilon alone", ("the promise if only this session were released",)),
        Cell("bytes", ("that a party sends in each session, at most",)),
    )
    lines = [
        (label.partition(": "), _spent(plan, sent))
        for label, plan, sent in zip(labels_of(course), course.priced, longest(course), strict=True)
    ]
    rows: list[tuple[Text, ...]] = []
    for (named, spent), alike in groupby(lines, key=lambda line: (line[0][1:], line[1])):
        places = [label[0] for label, _ in alike]
        rows.append((" to ".join(dict.fromkeys((places[0], places[-1]))) + "".join(named), *spent))
    total = total_of(course)
    if total.sessions > 1 and not math.isinf(total.guarantee.mu):
        every = Cell(f"all {total.sessions} together", (f"at delta {delta_text(total.delta)}",))
        rows.append((every, "", at_most(total.guarantee.mu), at_most(total.epsilon), f"{total.upload_bytes:,}"))
    return Table("the sessions of the course", header, rows)


def _spent(plan: Plan, sent: Plan) -> tuple[str, str, str, str]:
    budget = plan.budget()
    return plan.schema.statistics, at_most(budget.mu), at_most(budget.epsilon), f"{sent.masking.upload_bytes:,}"
