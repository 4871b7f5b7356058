"""Explain what a plan's kind of schema and its devices mean to a privacy officer."""

from __future__ import annotations

from privstats.dp import Privacy
from privstats.plan.device_rules import min_stated_epsilon
from privstats.plan.devices import Devices
from privstats.plan.plan import Plan
from privstats.printable import at_most
from privstats.schema import Schema


def warning_of_exact_sums(schema: Schema) -> list[str]:
    """Warn what exact sums reveal of single records, if anything."""
    return [f"WARNING: {schema.exact_warning}"] if schema.exact_warning else []


def facts_of_kind(plan: Plan) -> list[str]:
    """Explain groups of sites, and the sums of the plan's kind."""
    return [*_groups(plan), *plan.schema.facts]


def _groups(plan: Plan) -> list[str]:
    groups = plan.schema.site_groups
    if groups == 1:
        return []
    sites = plan.cohort.clients / groups
    return [
        f"each of the {groups} groups is a sum of its own over about {sites:.3g} sites, among which alone the protocol "
        f"hides one; the sum of all groups carries sqrt({groups}) times the noise of one"
    ]


def needs_course(plan: Plan) -> bool:
    """Return whether a plan never runs alone: earlier sessions of its course find cut points or published values.

    Example:
        >>> from privstats.review.special_facts import needs_course
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", 1.0), ps.Cohort(2, 2, 10)
        >>> needs_course(ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy()))
        False
    """
    later = plan.schema.several_sessions and plan.published is not None and plan.published.values is None
    return bool(plan.schema.open_columns) or later


def open_facts(plan: Plan) -> list[str]:
    """State that a plan needs a course, where it does."""
    if not needs_course(plan):
        return []
    if not (columns := plan.schema.open_columns):
        return [
            "the promise is for several sessions, so this plan is not run alone: `privstats course init STUDY.TOML "
            "--plan PLAN.TOML` divides it"
        ]
    return [
        f"the cut points of {', '.join(columns)} are open, so this plan is not run alone: "
        "`privstats course init STUDY.TOML --plan PLAN.TOML --expected-records N` estimates them first"
    ]


def device_facts(plan: Plan) -> list[str]:
    """Explain the table ``[devices]`` to a privacy officer; none without it."""
    devices = plan.devices
    if devices is None:
        return []
    leader, *helpers = devices.organisations
    server = "the registrar" if devices.registrar_serves else repr(devices.page)
    return [
        f"devices of invited people send one message each, to {leader!r}, with {_listed(helpers)} as "
        f"{'helper' if len(helpers) == 1 else 'helpers'}; {devices.registrar!r} invites, and a code that it hands out "
        "is a person's right to answer once a run",
        f"{server}, which serves the page, could read every answer by serving another script; nothing here prevents "
        "that",
        *_rests_on(plan),
        *_device_lines(plan, devices),
        "the leader knows which codes have answered, and its journal, the release and the statements store them; a "
        "sent answer cannot be called back: to honour a withdrawal, give the run up before any helper has answered "
        "and mail again",
    ]


def changed_devices(before: Devices | None, after: Devices | None) -> str:
    """Explain a changed table ``[devices]`` for invited people, in one sentence."""
    if after is None:
        return "devices of invited people no longer answer: parties hold their own keys, and no page informs people"
    if before is None:
        return "devices of invited people send now, one message each: see `plan check` for whom they trust"
    if before.most_runs != after.most_runs or before.stated_epsilon != after.stated_epsilon:
        return "the page's numbers change: people invited under the other plan read other numbers"
    if before.texts != after.texts:
        return "the page's texts change: people invited under the other plan read other texts"
    return "the named organisations change: people invited under the other plan read other names"


def _rests_on(plan: Plan) -> list[str]:
    if plan.noise is not None and plan.noise.trust.drawn_by == "member":
        return [
            "the promise rests on one honest member of the panel and on the page, and not on the list of the invited: "
            "it holds if all other codes are an attacker's"
        ]
    return [
        f"the leader sees the exact sum, and single answers too where more than colluders={plan.cohort.colluders} "
        "codes are in wrong hands; no one can know how many of the mailed codes are"
    ]


def _device_lines(plan: Plan, devices: Devices) -> list[str]:
    runs = devices.runs
    if not isinstance(plan.privacy, Privacy) or plan.noise is None:
        return [f"a person is invited to at most {runs}, by the registrar's list alone, and is promised no epsilon"]
    least = min_stated_epsilon(plan.schema, plan.privacy, plan.noise, devices.most_runs)
    per = " of each record" if devices.words else ""
    return [
        f"the page tells a person epsilon {devices.stated_epsilon:g} for at most {runs}, one answer{per} against "
        f"another ({at_most(least)} is enough); only the registrar's list counts runs, and a person with two codes has "
        "twice the mu"
    ]


def _listed(names: list[str]) -> str:
    *first, last = map(repr, names)
    return f"{', '.join(first)} and {last}" if first else last
