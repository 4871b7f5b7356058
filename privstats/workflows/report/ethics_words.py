"""The words of the pages for an ethics board that follow from a kind: of schema, course, protocol, unit, adjacency.

One row per kind and no row that stands for another: a kind that nobody has written words for is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from privstats.course import Course
from privstats.course.kinds import course_kind
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.schema import Schema, row_of

__all__ = ["COURSES", "HIDDEN", "KEYS", "MADE", "UNITS", "WORDS", "keys_of", "made_of", "sessions_of", "word_for"]

_Row = TypeVar("_Row")

MADE: Mapping[str, str] = {
    "classes": "a rule that tells the classes apart, from averages of the classes and from how values vary together",
    "ridge": "a regression, which is a formula that predicts the targets from the columns",
    "counts": "tables of how many records lie in each group",
    "scoring": "how well a model that is already published does: how often it is right, where, and how sure it may be",
    "sites": "a regression that compares records within a party, and never one party with another",
    "score": "a step of a regression for an outcome that is yes or no, or a count",
    "hazard": "a step of a survival analysis: which columns raise or lower the rate at which an event happens",
    "effect": "how much a treatment changes an outcome, on average over many records",
    "gradients": "a step in which a model is improved: which way its numbers should move, on average over all records",
    "calibration": "how sure of itself the model that this study makes may be",
    "mean": "the average of every column over all records",
    "within": "a rule that tells the classes apart, less what the averages of one party alone explain",
    "gaussians": "averages, and how columns vary together, by which the measurements of parties are made alike",
    "party-softmax": "a rule that tells the classes apart, to which each party gives one direction, as one vote",
    "party-update": "a step in which such a rule is improved, to which each party gives one direction, as one vote",
}
"""By a schema's task, what is made of its sums."""

COURSES: Mapping[str, str] = {
    "single": "There is one session.",
    "rounds": "The first session makes a model, and each of the others improves it a step.",
    "alignment": "Parties are asked again until their measurements can be made alike; each session begins with what "
    "the last one found.",
    "stream": "Records come and go. After every period the parties send what has changed since they last sent, and the "
    "total is brought up to date.",
    "newton": "The regression is found in steps; each session begins with what the last one found.",
    "hazard": "The first session counts; the others find the survival analysis in steps.",
    "centred": "The first session finds the average of every column; the next measures from there, which needs less "
    "noise for the same promise.",
    "effect": "The first sessions describe who is treated and how patients fare; the last adds up what each record "
    "says of the effect.",
    "standardised": "The first session finds the ranges of the columns; the second makes the regression within them.",
    "parties": "Each party is asked twice for one direction: the first makes a model, the second improves it.",
    "binned": "The first sessions count, to find where columns are cut into groups; then the study itself begins.",
}
"""By a course's kind, why there is more than one session."""

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
    ("noise", "random numbers added to the total that do not cancel; two of three are below the typical one"),
    ("false alarm", "somebody is said to be in the data who is not"),
    ("digest", "64 digits that change when anything in a plan changes"),
)
"""Terms, in the order in which the pages need them."""


def made_of(schema: Schema) -> str:
    """What is made of a schema's sums, as a phrase.

    Raises:
        SchemaError: nobody has written it for this kind.
    """
    return row_of(MADE, schema, "sentence for an ethics board")


def sessions_of(course: Course) -> str:
    """Why a course has several sessions, as a sentence.

    Raises:
        PlanError: nobody has written it for this kind.
    """
    return word_for(COURSES, course_kind(course).name, "courses of the kind")


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
