"""The words of the pages for an ethics board that follow from a protocol, a unit or an adjacency.

Those of a kind of schema or course stand with the kind (``makes``, ``why``).

One row per kind and no row that stands for another: a kind that nobody has written words for is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from privstats.course import Course
from privstats.course.kinds import course_kind
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.schema import KINDS, Schema, row_of

__all__ = ["HIDDEN", "KEYS", "UNITS", "WORDS", "keys_of", "made_of", "sessions_of", "word_for"]

_Row = TypeVar("_Row")

KEYS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "interactive": (
        (
            "Each party",
            "a key that signs for it, and secret keys of one session, which cover its numbers; parts of these lie with "
            "other parties, so that a total can be opened although a party has vanished",
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
            "The leader, and {helpers} beside it",
            "each a key of its own for this session; every message is split so that each of them holds one part",
            "together the total of at least {least} parties; single parties only if all of them work together",
        ),
    ),
}
"""By a masking protocol: who, which keys, and what these open."""

UNITS: Mapping[str, str] = {
    "record": "One record: a patient of whom the data have one. Who has several is promised less, as below.",
    "person": "One patient with all rows at one party. Who is at two parties, or under two ids, has less.",
    "client": "One party with all of its records, and so every patient in them, however many records one has.",
}
"""By the unit of a promise, whom it is made to."""

HIDDEN: Mapping[str, str] = {
    "add-remove": "whether {unit} is in the data at all",
    "replace-one": "what is in {unit}; that it is in the data is no secret",
}
"""By the adjacency of a promise, what nobody can tell well."""

WORDS: tuple[tuple[str, str], ...] = (
    ("party", "a hospital, or whoever else holds records and takes part"),
    ("record", "what a party holds of one patient, visit or measurement"),
    ("sum, total", "of one party's records; of all parties"),
    ("session", "one time at which all parties are asked for sums"),
    ("to mask", "to add numbers that look random and that cancel in the total, and only there"),
    ("noise", "random numbers that stay in the total; two of three are below the typical one, if all parties send"),
    ("released total", "the total that may be published: where there is a promise, with its noise and never without"),
    ("false alarm", "somebody is said to be in the data who is not"),
    ("digest", "64 digits that change when anything in a plan changes"),
)
"""Terms, in the order in which the pages need them."""


def made_of(schema: Schema) -> str:
    """What is made of a schema's sums, as a phrase.

    Raises:
        SchemaError: nobody has written it for this kind.
    """
    rows = {task: kind.makes for task, kind in KINDS.items() if kind.makes}
    return row_of(rows, schema, "sentence for an ethics board")


def sessions_of(course: Course) -> str:
    """Why a course has several sessions, as a sentence.

    Raises:
        PlanError: nobody has written it for this kind.
    """
    kind = course_kind(course)
    why = word_for({kind.name: kind.why} if kind.why else {}, kind.name, "courses of the kind")
    return why if isinstance(why, str) else why(course)


def keys_of(plan: Plan) -> list[tuple[str, str, str]]:
    """Who holds which keys, and what these open.

    Raises:
        PlanError: nobody has written it for this protocol.
    """
    helpers = "one helper" if plan.helpers == 1 else f"{plan.helpers} helpers"
    colluders = plan.cohort.colluders
    more = f"more than {colluders} others" if colluders else "another party"
    told = {"least": plan.cohort.min_survivors, "more": more, "helpers": helpers}
    rows = word_for(KEYS, plan.protocol, "the protocol")
    return [(who.format_map(told), keys.format_map(told), opens.format_map(told)) for who, keys, opens in rows]


def word_for(rows: Mapping[str, _Row], name: str, what: str) -> _Row:
    """The row of a name.

    Raises:
        PlanError: it has none; it is named.
    """
    if name not in rows:
        raise PlanError(
            f"the pages for an ethics board have no words for {what} {name!r} yet, and no other words stand in for "
            "them: write its row, or use report.html"
        )
    return rows[name]
