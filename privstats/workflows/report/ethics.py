"""Write two pages for an ethics board about what will be computed from people's records.

They follow from a plan or its course alone, so everyone with the plan gets identical bytes. A kind without words is
refused. Needs the ``report`` extra (jinja2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeVar

from privstats.course import Course
from privstats.course.kinds import course_kind, labels_of
from privstats.course.promise import Total, total_of
from privstats.dp import Guarantee, Noise, Privacy
from privstats.errors import PlanError
from privstats.plan import Devices, Plan
from privstats.printable import at_most
from privstats.review.drop_outs import party_factor
from privstats.workflows.report import explanations
from privstats.workflows.report.layout import Table, render
from privstats.workflows.report.privacy_report import Statement
from privstats.workflows.report.sessions import (
    Session,
    in_sessions,
    persons_in_sessions,
    records_of,
    sessions_in,
    summed,
    taking_part,
)

_Row = TypeVar("_Row")

KEYS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "interactive": (
        (
            "Each party",
            "a key that signs for it, and secret keys of one session, which cover its numbers; other parties store "
            "parts of these, so that a total can be opened if a party vanishes",
            "its own numbers",
        ),
        (
            "The server",
            "a key that signs for it; none that opens what one party sends",
            "the total of at least {least} parties; single parties only with {more} on its side",
        ),
    ),
    "split": (
        ("Each party", "a key that signs its one message", "its own numbers"),
        (
            "The leader, and {helpers} next to it",
            "each a key of its own for this session; every message is split so that each of them holds one part",
            "together the total of at least {least} parties; single parties only if all of them work together",
        ),
    ),
}
"""Rows by masking protocol: the holder, the keys, and what these open."""

UNITS: Mapping[str, str] = {
    "record": "One record: a patient with one record in the data. A patient with several is promised less, as below.",
    "person": "One patient with all rows at one party. A patient at two parties, or under two ids, is promised less.",
    "client": "One party with all of its records, and so every patient in them, however many records one has.",
}
"""The protected party or person, by the unit of a promise."""

HIDDEN: Mapping[str, str] = {
    "add-remove": "whether {unit} is in the data at all",
    "replace-one": "what is in {unit}; that it is in the data is no secret",
}
"""The hidden fact, by the adjacency of a promise."""

WORDS: tuple[tuple[str, str], ...] = (
    ("party", "a hospital, or any other holder of records that takes part"),
    ("record", "what a party holds of one patient, visit or measurement"),
    ("sum, total", "of one party's records; of all parties"),
    ("session", "one time at which all parties are asked for sums"),
    ("to mask", "to add numbers that look random and that cancel in the total, and only there"),
    ("noise", "random numbers that stay in the total; two of three are below the typical one, if all parties send"),
    ("released total", "the total that may be published: where there is a promise, with its noise and never without"),
    ("false alarm", "a person is reported to be in the data and is not"),
    ("digest", "64 digits that change when anything in a plan changes"),
)
"""Terms, in the order in which the pages need them."""


def sessions_of(course: Course) -> str:
    """Return why a course has several sessions, and which it has."""
    kind = course_kind(course)
    why = word_for({kind.name: kind.why} if kind.why else {}, kind.name, "courses of the kind")
    names = list(dict.fromkeys(label.partition(": ")[2] for label in labels_of(course)))
    listed = f" In order: {'; '.join(names)}." if len(names) > 1 else ""
    return (why if isinstance(why, str) else why(course)) + listed


def keys_of(plan: Plan) -> list[tuple[str, str, str]]:
    """Return who holds which keys, and what these open."""
    helpers = "one helper" if plan.helpers == 1 else f"{plan.helpers} helpers"
    colluders = plan.cohort.colluders
    more = f"more than {colluders} others" if colluders else "another party"
    counts = {"least": plan.cohort.min_survivors, "more": more, "helpers": helpers}
    rows = word_for(KEYS, plan.protocol, "the protocol")
    return [(who.format_map(counts), keys.format_map(counts), opens.format_map(counts)) for who, keys, opens in rows]


def word_for(rows: Mapping[str, _Row], name: str, what: str) -> _Row:
    """Return the row of a name, or raise ``PlanError``."""
    if name not in rows:
        raise PlanError(f"the pages for an ethics board have no text for {what} {name!r}: use report.html")
    return rows[name]


_MOST_ROWS = 12
_SEVERAL = (2, 5, 10)
_OPENED = (
    "It is computed from the released total alone, with its noise, which is all that may be published. Later "
    "analyses of it reveal nothing more about a patient."
)
_OPENED_EXACT = (
    "It is computed from the exact total alone, which has no noise. Later analyses of it reveal nothing more about a "
    "patient."
)
_EXACT_KEPT = (
    "The total is exact. Anyone with a second total over nearly the same records can subtract one from the other, "
    "and obtains the sum of the records that differ, perhaps one patient. Each further total reveals more."
)
_WITHDRAWN = {
    False: "Afterwards no record can be removed from the total.",
    True: "Afterwards a record is removed from the total at the next session.",
}


def ethics_page(statement: Statement) -> str:
    """Return the pages as HTML in one file, A4 in print, with nothing to fetch.

    Only the statement's plan and course are read.

    Raises:
        MissingExtraError: jinja2 is not installed.
        SchemaError: a schema of a kind without a phrase.
        PlanError: a course, protocol, unit or adjacency without words.

    Example:
        >>> from privstats.workflows.report import Statement, ethics_page
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> html = ethics_page(Statement(plan))
        >>> "What will be computed" in html, plan.digest in html, html == ethics_page(Statement(plan))
        (True, True, True)
    """
    plan, course = statement.plan, statement.course
    sessions = list(sessions_in(plan, course))
    guarantee, notes = statement.promise, [] if course is None else [sessions_of(course)]
    return render(
        __package__,
        "ethics.html",
        plan=plan,
        course=course,
        in_short=[*_taking_part(plan), *notes, _leaves(plan, total_of(course or plan))],
        records=[*records_of(sessions), *explanations.persons(plan), *persons_in_sessions(course)],
        sums=_sums(sessions),
        made=[
            *_computed(sessions),
            _OPENED_EXACT if plan.noise is None else _OPENED,
            f"M{explanations.masked(plan)[1:]}.",
        ],
        headline=explanations.headline(plan, statement.guarantee),
        private=not math.isinf(guarantee.mu),
        promise=_promise(plan, course, guarantee),
        not_promised=[*_chosen(plan), *explanations.not_promised(plan, course)],
        keys=Table("keys", ("who", "which keys", "what they open"), [*keys_of(plan), *_more_keys(plan)], words=True),
        kept=_retention(plan, course),
        counts=[*_least(plan), *explanations.suppressed(plan)],
        words=WORDS,
    )


def _taking_part(plan: Plan) -> Iterator[str]:
    devices = plan.devices
    if devices is None:
        yield f"{taking_part(plan)} Records stay with the party that holds them."
        return
    runs = "once" if devices.most_runs == 1 else f"at most {devices.most_runs} times"
    yield (
        f"{devices.registrar} invites {plan.cohort.clients:,} people, {runs}; each answers on a device of their own, "
        "which is a party by itself, and the answer stays there."
    )


def _leaves(plan: Plan, total: Total) -> str:
    what = "directions from" if plan.schema.party_is_record else "sums over"
    return (
        f"A party sends {total.numbers:,} numbers{in_sessions(total)}, {total.upload_bytes:,} bytes: {what} its "
        "records, and no record. They are masked: no one can read one party's sums while the keys of the masks hold, "
        "and only the total over parties is opened. It also sends keys, signatures and messages, which reveal nothing "
        "about a record."
    )


def _sums(sessions: list[Session]) -> Table:
    rows = [(each, row, numbers) for each in sessions for row, numbers in summed(each.plan)]
    shown = rows if len(rows) <= _MOST_ROWS else rows[: _MOST_ROWS - 1]
    cells = [(each.name, row.meaning, f"{numbers:,}", _noise(each.plan, row.letter)) for each, row, numbers in shown]
    if rest := rows[len(shown) :]:
        numbers = sum(numbers for _, _, numbers in rest)
        cells.append(("", f"and {len(rest)} further sums, listed in report.html", f"{numbers:,}", ""))
    header = (
        "session",
        "what is added up over the records of a party",
        "numbers",
        "typical noise on each released total",
    )
    start = 0 if len(sessions) > 1 or sessions[0].times > 1 else 1
    return Table("sums", header[start:], [row[start:] for row in cells], words=True)


def _noise(plan: Plan, letter: str) -> str:
    return "none" if plan.noise is None else f"{plan.noise.released_sigma(plan.cohort.clients)[letter]:.3g}"


def _computed(sessions: list[Session]) -> list[str]:
    phrases: dict[str, list[str]] = {}
    for each in sessions:
        phrases.setdefault(each.plan.schema.purpose, []).append(each.name)
    if len(phrases) == 1:
        return [f"{phrase[:1].upper()}{phrase[1:]}." for phrase in phrases]
    return [f"Of session {', '.join(names)}: {phrase}." for phrase, names in phrases.items()]


def _promise(plan: Plan, course: Course | None, kept: Guarantee) -> Table | None:
    privacy, noise = plan.privacy, plan.noise
    if noise is None or not isinstance(privacy, Privacy):
        return None
    rows = [
        ("to whom", word_for(UNITS, privacy.unit, "the unit")),
        ("what is hidden", _hidden(privacy, plan.devices)),
        ("how well", _how_well(plan, course)),
        ("a guess", _guess(plan, kept)),
        *_several(plan, course, noise, kept),
        *(("toward another party", promise) for _, promise, _ in explanations.toward_party(plan, course)),
        ("it rests on", f"{explanations.rests_on(plan, noise)}."),
    ]
    return Table("the promise", ("", ""), rows, words=True)


def _hidden(privacy: Privacy, devices: Devices | None) -> str:
    unit = {"record": "the record", "person": "the patient"}.get(privacy.unit, "the party")
    if devices is not None:
        return f"An attacker cannot reliably tell what is in {unit}; that a person has answered is no secret."
    return f"An attacker cannot reliably tell {word_for(HIDDEN, privacy.adjacency, 'the adjacency').format(unit=unit)}."


def _how_well(plan: Plan, course: Course | None) -> str:
    total, devices = total_of(course or plan), plan.devices
    epsilon, delta, what = total.epsilon, total.delta, "of the study"
    if course is not None:
        what = "of all sessions together"
    elif devices is not None and devices.stated_epsilon is not None:
        epsilon, what = devices.stated_epsilon, f"of at most {devices.most_runs} runs together"
    return (
        f"No outcome {what} gets more than {explanations.times_as_likely(epsilon)} as likely, or as unlikely, through "
        f"it (epsilon {at_most(epsilon)}){explanations.unless(delta)}."
    )


def _guess(plan: Plan, kept: Guarantee) -> str:
    """State how often the best attacker is right, of 100, rounded up to a tenth."""
    outside = "" if party_factor(plan) == 1 else " outside the parties"
    return (
        f"An attacker{outside} who must decide which of two equally likely cases is true is right in at most "
        f"{explanations.right(kept):g} of 100 cases, whatever else they know and compute. Guessing gets 50."
    )


def _several(plan: Plan, course: Course | None, noise: Noise, kept: Guarantee) -> Iterator[tuple[str, str]]:
    privacy = plan.privacy
    if not isinstance(privacy, Privacy) or privacy.unit == "client":
        return
    if privacy.unit == "person":
        twice = explanations.hits(kept.of_group(2))
        yield (
            "several parties",
            f"At 1 false alarm in 100, at most {explanations.hits(kept):g} of 100 patients are found who are at one "
            f"party, and {twice:g} of 100 who are at two.",
        )
        return
    alone = course is None and plan.devices is None
    chances = [
        explanations.hits(explanations.of_group(plan, noise, count) if alone else kept.of_group(count))
        for count in _SEVERAL
    ]
    text = ", ".join(f"{each:g} of 100 with {count}" for count, each in zip(_SEVERAL, chances, strict=True))
    yield (
        "several records",
        f"At 1 false alarm in 100, at most {explanations.hits(kept):g} of 100 patients with one record are found, and "
        f"{text} records of one patient.",
    )


def _chosen(plan: Plan) -> list[str]:
    if plan.noise is None:
        return []
    return [
        "Choices made by looking at records: of groups, columns and bounds in the plan, or of a party to stay away. "
        "They must rest on public knowledge, because no number above counts them."
    ]


def _more_keys(plan: Plan) -> Iterator[tuple[str, str, str]]:
    if plan.noise is None or plan.noise.trust.drawn_by == "server":
        yield "Who opens the total", "no key more", "the total as it is" + _before_noise(plan)
    if plan.devices is not None:
        yield plan.devices.registrar, "the codes with which people answer", "no answer"
        yield (
            plan.devices.page_server,
            "no key: it serves the page on which people answer",
            "every answer, if it served another page",
        )


def _before_noise(plan: Plan) -> str:
    if plan.noise is None:
        return ", and everyone who receives it"
    return ", before it adds the noise; it must add it and keep both secret"


def _retention(plan: Plan, course: Course | None) -> list[str]:
    return [
        "Keys of a session are overwritten at its end and are in no backup. Keys that sign stay with their owner.",
        _EXACT_KEPT
        if plan.noise is None
        else "The released total, with its noise, and everything computed from it may be stored and published for "
        "ever: it reveals no more later than on the first day.",
        f"A patient who withdraws before a session is excluded from it. {_withdrawn(plan, course)}",
        *_accounts(plan),
    ]


def _withdrawn(plan: Plan, course: Course | None) -> str:
    changing = None if course is None else course_kind(course).changing
    removed = changing is not None and changing.leaves(course)
    discloses = " That discloses the record: two totals differ only by the records that came and went between them."
    return _WITHDRAWN[removed] + (discloses if removed and plan.noise is None else "")


def _accounts(plan: Plan) -> Iterator[str]:
    limit = "with a limit that it sets itself"
    if (devices := plan.devices) is not None:
        runs = "once" if devices.most_runs == 1 else f"{devices.most_runs} times"
        yield f"{devices.registrar} invites nobody more than {runs}; its list alone counts that."
        if plan.noise is not None:
            yield f"{devices.organisations[0]}, the leader, keeps the account of all released totals, {limit}."
    elif plan.noise is not None:
        yield f"Each party keeps an account of all released totals that its records were in, {limit}."
    else:
        yield "No account with a limit is needed, because nothing is promised."


def _least(plan: Plan) -> list[str]:
    cohort = plan.cohort
    who = "answers" if plan.devices is not None else "parties"
    most = f"at most {cohort.colluders}" if cohort.colluders else "none"
    return [
        f"A total of fewer than {cohort.min_survivors} of the {cohort.clients:,} {who} is never opened. Of them "
        f"{most} may work against the others with the party that opens it."
    ]
