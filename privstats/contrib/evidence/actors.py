"""State, actor by actor, which means each has to identify a person: single out, link, or infer.

Whether data are personal is judged for each actor by the means that actor has (Court of Justice of the European Union,
C-413/23 P, EDPS v SRB, 2025; the three means are those of the Article 29 Working Party's opinion 05/2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from privstats.course import Course
from privstats.dp import Guarantee, Privacy
from privstats.extend.courses import Total, total_of
from privstats.extend.plans import PROTOCOLS
from privstats.plan import Plan
from privstats.plan.device_rules import exchanged_mu
from privstats.workflows.report import Statement, Table, explanations

_NOTHING = Guarantee(0.0)
_NO_LIMIT = Guarantee(math.inf)
_UNITS: Mapping[str, str] = {"record": "a record", "person": "a patient", "client": "a party's records"}
_ONE_PARTY = "; each patient's rows are at one party"


@dataclass(frozen=True)
class Actor:
    """One actor's view of a study.

    Attributes:
        who: the actor.
        sees: all that the study shows the actor about other parties' records.
        presence: limit on telling whether a unit is in the data, by which it is singled out or linked; infinite mu
            where no proof limits it.
        value: limit on telling which of two values a unit has; infinite mu likewise.
        shown: the page that proves the limit, and the attacks or audits that measure it.
        condition: a clause after "while"; empty where the limit needs none.
    """

    who: str
    sees: str
    presence: Guarantee
    value: Guarantee
    shown: str
    condition: str = ""


@dataclass(frozen=True)
class _Shown:
    """Where limits are proved and measured: pages of the documentation, attacks and audits by name."""

    pages: tuple[str, ...]
    attacks: tuple[str, ...] = ()
    audits: tuple[str, ...] = ()

    def __str__(self) -> str:
        tried = [f"attack run: {', '.join(self.attacks)}"] * bool(self.attacks)
        return "; ".join([*self.pages, *tried, *(f"audit {name}" for name in self.audits)])


SHOWN: Mapping[str, _Shown] = {
    "server": _Shown(("proofs/masking.md",), ("protocol-lies", "ring-wrap")),
    "exact server": _Shown(("proofs/noise.md",), ("protocol-lies",)),
    "leader": _Shown(("proofs/one_upload.md",), ("split-lies",)),
    "helper": _Shown(("proofs/one_upload.md",), ("split-lies",)),
    "everyone on the panel": _Shown(("threat_model.md",)),
    "party": _Shown(("proofs/noise.md",), ("likelihood-ratio",), ("noise",)),
    "colluders": _Shown(("proofs/masking.md", "proofs/random_graph.md"), ("protocol-lies", "several-lists")),
    "too many colluders": _Shown(("threat_model.md",)),
    "reader": _Shown(("attacks.md",), ("likelihood-ratio", "likeliest-unit"), ("canary", "run")),
    "registrar": _Shown(("proofs/one_upload.md",)),
    "page": _Shown(("threat_model.md",)),
    "observer": _Shown(("wire/interactive.md",), ("recorded",)),
}
"""Proofs and measurements by kind of actor."""


def actors(plan: Plan, course: Course | None = None) -> list[Actor]:
    """Return each actor's view of a plan, or of all sessions of a course.

    Everyone who sees the roster or the network sees which parties take part, and no limit covers that. Where the unit
    is a party, the limits concern its records, given that it takes part.

    Formula: an actor who sees only releases under mu-GDP answers a yes-or-no question about one unit rightly with
    probability at most Phi(mu / 2), where both answers are equally likely before. Presence is such a question under
    add-remove adjacency; which of two values a unit has is one under replace-one adjacency, whose mu under an
    add-remove promise is at most :func:`~privstats.plan.device_rules.exchanged_mu`.

    Example:
        >>> from privstats.contrib.evidence.actors import actors
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> cohort = ps.Cohort(5, 5, 10, colluders=1)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=cohort, privacy=privacy)
        >>> [(each.who, round(each.presence.mu, 2)) for each in actors(plan)][-2:]
        [('a reader of the release', 0.27), ('an observer of the network', 0.0)]
    """
    released = released_limits(plan, course)
    return [
        *_servers(plan, released),
        *_parties(plan, total_of(course or plan), released),
        *_devices(plan),
        Actor("a reader of the release", _total(plan), *released, str(SHOWN["reader"]), _while(plan)),
        Actor(
            "an observer of the network",
            "who takes part, and when",
            *(_NOTHING, _NOTHING),
            str(SHOWN["observer"]),
            plan.masks_condition,
        ),
    ]


def actors_table(plan: Plan, course: Course | None = None) -> Table:
    """Return the views as a table for a privacy officer: each actor's means, and the limit on each of three aims.

    Singling out is limited by the hits among 100 records at one false alarm in 100, linking by the pairs of a record
    and a stranger that are told apart, and inference by the right one of two equally likely values.
    """
    whom = explanations.whom(plan)
    unit = _UNITS[plan.privacy.unit] if isinstance(plan.privacy, Privacy) else "a record"
    if plan.devices is not None or unit == _UNITS["client"]:
        unit += ", participation aside"
    header = (
        *("who", "by which means: what they see of others"),
        *(f"single out {unit}", "link it", "infer a value of it"),
        *("while", "proved and measured by"),
    )
    rows = [
        (
            *(each.who, each.sees),
            *(singled_out(each.presence, whom), linked(each.presence), inferred(each.value)),
            *(each.condition, each.shown),
        )
        for each in actors(plan, course)
    ]
    return Table("means by actor", header, rows, words=True)


def released_limits(plan: Plan, course: Course | None = None) -> tuple[Guarantee, Guarantee]:
    """Return the limits on presence and on a value against a reader of every release.

    Example:
        >>> from privstats.contrib.evidence.actors import released_limits
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(5, 5, 10), privacy=privacy)
        >>> [round(each.mu, 2) for each in released_limits(plan)]  # that a record is in the data is no secret
        [inf, 0.27]
    """
    kept, privacy, noise = total_of(course or plan).guarantee, plan.privacy, plan.noise
    if noise is None or not isinstance(privacy, Privacy):
        return _NO_LIMIT, _NO_LIMIT
    if plan.devices is not None:  # that a person answered is no secret
        return _NO_LIMIT, Statement(plan, course=course).promise
    if privacy.adjacency == "replace-one":
        return _NO_LIMIT, kept
    if course is not None or noise.pure or plan.person_clip is not None:
        return kept, kept.of_group(2)
    return kept, Guarantee(exchanged_mu(plan.schema, privacy, noise))


def _servers(plan: Plan, released: tuple[Guarantee, Guarantee]) -> Iterator[Actor]:
    noise, masks = plan.noise, plan.masks_condition
    exact = noise is None or noise.trust.drawn_by == "server"
    sees = "the exact total, before its noise" if noise is not None and exact else _total(plan)
    limits = (_NO_LIMIT, _NO_LIMIT) if exact else released
    names = "who takes part, and when"
    if not PROTOCOLS[plan.protocol].has_panel:
        shown = str(SHOWN["exact server" if exact else "server"])
        yield Actor("the server", f"{names}; {sees}", *limits, shown, masks if exact else _while(plan))
        return
    part = "one part of each message, which is random"
    yield Actor("the leader", f"{names}; {part}; {sees}", *limits, str(SHOWN["leader"]), _while(plan))
    yield Actor("a helper", f"{part}; {_total(plan)}", *released, str(SHOWN["helper"]), _while(plan))
    own = noise is not None and noise.trust.drawn_by == "client"
    what = "each party's sums, with that party's own noise" if own else "each party's sums"
    shown = str(SHOWN["everyone on the panel"])
    yield Actor("leader and all helpers together", what, _NO_LIMIT, _NO_LIMIT, shown)


def _parties(plan: Plan, total: Total, released: tuple[Guarantee, Guarantee]) -> Iterator[Actor]:
    noise, colluders = plan.noise, plan.cohort.colluders
    own = noise is not None and noise.trust.divided
    sees = f"{_total(plan)}, from which it can subtract its own sums" + " and its own noise" * own
    limits = _without_own_noise(total, released)
    yield Actor("another party", sees, *limits, str(SHOWN["party"]), _while(plan))
    server = "the leader" if PROTOCOLS[plan.protocol].has_panel else "the server"
    if colluders:
        exact = noise is None or noise.trust.drawn_by == "server"
        what = "the sum of all other parties" + (
            "" if noise is None else ", without noise" if exact else ", with noise"
        )
        yield Actor(
            f"{server} with {colluders} parties",
            what,
            *((_NO_LIMIT, _NO_LIMIT) if exact else released),
            str(SHOWN["colluders"]),
            _while(plan),
        )
    if not PROTOCOLS[plan.protocol].has_panel:
        most = f"more than {colluders} parties" if colluders else "a party"
        sums = "perhaps each party's sums: no proof excludes it"
        yield Actor(f"{server} with {most}", sums, _NO_LIMIT, _NO_LIMIT, str(SHOWN["too many colluders"]))


def _without_own_noise(total: Total, released: tuple[Guarantee, Guarantee]) -> tuple[Guarantee, Guarantee]:
    """Return the limits for one party that subtracts its own share of the noise, if it knows one."""
    if not total.weaker_toward_party:
        return released
    factor = total.toward_party.mu / total.guarantee.mu
    presence, value = (Guarantee(each.mu * factor) for each in released)
    return presence, value


def _devices(plan: Plan) -> Iterator[Actor]:
    if plan.devices is None:
        return
    yield Actor(
        plan.devices.registrar,
        "who is invited; no answer",
        *(_NOTHING, _NOTHING),
        str(SHOWN["registrar"]),
        "the page is the released one",
    )
    yield Actor(
        f"{plan.devices.page_server}, which serves the page",
        "each answer, if it serves another page",
        *(_NO_LIMIT, _NO_LIMIT),
        str(SHOWN["page"]),
    )


def _total(plan: Plan) -> str:
    return "the exact total" if plan.noise is None else "the total with its noise"


def _while(plan: Plan) -> str:
    persons = isinstance(plan.privacy, Privacy) and plan.privacy.unit == "person"
    return plan.condition + _ONE_PARTY * persons


def singled_out(guarantee: Guarantee, whom: str) -> str:
    """State the limit on singling out one of these units, a clause."""
    return _limit(guarantee, lambda: f"{explanations.found(guarantee, whom)}; guessing finds 1")


def linked(guarantee: Guarantee) -> str:
    """State the limit on linking a unit, a clause."""
    return _limit(guarantee, lambda: explanations.linked(guarantee))


def inferred(guarantee: Guarantee) -> str:
    """State the limit on inferring a value of a unit, a clause."""
    return _limit(guarantee, lambda: explanations.inferred(guarantee))


def _limit(guarantee: Guarantee, words: Callable[[], str]) -> str:
    if math.isinf(guarantee.mu):
        return "no limit is proved"
    return "no better than a guess" if guarantee.mu == 0 else words()
