"""Explain facts of a kind of schema, and of devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privstats.dp import Privacy
from privstats.plan.devices import Devices, min_stated_epsilon
from privstats.plan.plan import Plan
from privstats.schema import Categories, Schema
from privstats.transforms import Cells

if TYPE_CHECKING:
    from privstats.kinds import EffectSchema, HazardSchema, ScoreSchema

_EXACT: Mapping[str, str] = {
    "counts": "WARNING: exact count tables reveal every cell of one record, and suppressing small cells does not help "
    "where totals reveal them; release them with a Privacy",
    "sites": "WARNING: exact sums within sites next to exact plain sums of the same records (a RidgeSchema) are one "
    "more pull, and few sites can then be solved for; do not release both exactly (`privstats attack run --attack "
    "site-means` shows how)",
}


def warning_of_exact_sums(schema: Schema) -> list[str]:
    """Warn what exact sums reveal of single records, if anything."""
    return [_EXACT[schema.task]] if schema.task in _EXACT else []


def facts_of_kind(plan: Plan) -> list[str]:
    """Explain groups of sites, open columns, and the sums of the plan's kind."""
    of = _OF_KIND.get(plan.schema.task)
    return [*_groups(plan), *_open(plan), *([] if of is None else of(plan.schema))]


def _groups(plan: Plan) -> list[str]:
    groups = plan.schema.site_groups
    if groups == 1:
        return []
    sites = plan.cohort.clients / groups
    return [
        f"each of the {groups} groups is a sum of its own over about {sites:.3g} sites, among which alone the protocol "
        f"hides one; the sum of all groups carries sqrt({groups}) times the noise of one"
    ]


def _open(plan: Plan) -> list[str]:
    if not plan.schema.open_columns:
        return []
    return [
        f"the cut points of {', '.join(plan.schema.open_columns)} are open, so this plan is not run alone: "
        "`privstats course init STUDY.TOML --plan PLAN.TOML --expected-records N` estimates them first"
    ]


def _of_effect(schema: EffectSchema) -> list[str]:
    outcomes, parts = schema.outcomes, math.prod(schema.crossed)
    names, apart = schema.outcome_names or (), [each.name for each in schema.subgroups or ()]
    shared = f"the outcomes {', '.join(names)} share the budget: each has about sqrt({outcomes}) times the noise of one"
    divided = (
        f"the records are divided into {parts} subgroups by {', '.join(apart)}: each has the noise of one sum on its "
        f"own records, and all together sqrt({parts}) times as much; what is not declared in a course is exploratory"
    )
    gaps = (
        "outcomes may be missing: rounds before the last session sum whether a record has one; the table is valid if "
        "only the arm and the columns decide that, which no sum can test"
    )
    counted = (
        "excluded records are counted, by arm and by whether their outcome or a column cannot be read, at no further "
        "cost: each record is in that count or in the other sums"
    )
    return [
        *([gaps] if schema.missing else []),
        *([counted] if schema.left_out else []),
        *([shared] if outcomes > 1 else []),
        *([divided] if parts > 1 else []),
        *number_facts(schema),
    ]


def number_facts(schema: Any) -> list[str]:
    """Name the columns of 0 and 1, in an effect or hazard, whose texts the plan does not declare.

    Example:
        >>> from privstats.review.special_facts import number_facts
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"died": (0, 1)}, probability=0.5)
        >>> number_facts(schema)[0].partition(":")[0]
        'arm and died must hold numbers, true and false as 1 and 0'
    """
    levels = [step for step in schema.transform[:1] if step.kind == "levels"]
    declared = [each for step in levels for each in (*step.columns, *step.outcomes)]
    worded = {each.name for each in declared if isinstance(each, Categories)}
    names = [each for each in _of_two(schema) if each not in worded]
    if not names:
        return []
    return [
        f"{' and '.join(names)} must hold numbers, true and false as 1 and 0: a record with another text there is "
        f"excluded; where files hold texts, declare both, what means no first, as in {names[0]}=no/yes"
    ]


def _of_two(schema: Any) -> tuple[str, ...]:
    """Return the columns of an effect or hazard that hold 0 and 1: the arm, outcomes from 0 to 1, the event."""
    if schema.task == "hazard":
        return (schema.event,)
    named = bool(schema.transform and schema.feature_names)
    arm = (schema.feature_names[schema.transform[-1].column],) if named else ()
    return (*arm, *(schema.outcome_names or ("the outcome",)) * (schema.outcome == (0.0, 1.0)))


def gap_facts(schema: Any) -> list[str]:
    """State what gaps in declared columns do to a regression; nothing where no columns are declared.

    Example:
        >>> from privstats.review.special_facts import gap_facts
        >>> columns = (ps.Truth("cause"), ps.Truth("drug"))
        >>> transform = (ps.Cells(columns, missing="left out"), ps.transforms.ConstantFeature(1.0))
        >>> schema = ps.RidgeSchema(clip_norm=2**0.5, target_bound=5.0, transform=transform)
        >>> gap_facts(schema)[0].partition(":")[0]
        'a record with a gap in a declared column is in no sum, and its data holder alone sees how many of its own are'
    """
    cells = schema.transform[0] if schema.transform else None
    if not isinstance(cells, Cells) or (cells.missing is None and len(cells.columns) == 1):
        return []
    if cells.missing:
        return [
            "a record with a gap in a declared column is in no sum, and its data holder alone sees how many of its own "
            "are: estimates are of complete records"
        ]
    warning = "WARNING: " if schema.task == "score" else ""  # rounds of scores end in a table of estimates
    return [
        f"{warning}gaps in declared columns count as cells of their own, which suits predictions and biases estimates: "
        "a table (ols, logit, poisson) reports no contrast where a column has more gaps than noise could show; for a "
        'table, state missing = "left out" beside the columns, as `privstats plan init --gaps excluded` does'
    ]


_UNSURE: Mapping[str, str] = {
    "hazard": "that hazards are proportional given the columns",
    "logistic": "that log odds are linear in the columns",
    "poisson": "that the variance of counts with equal columns equals their mean, and counts of visits or relapses "
    "usually vary more",
}
"""The assumption of the model's own standard errors, by task or family."""


def _errors_of(schema: HazardSchema | ScoreSchema, model: str) -> list[str]:
    """State the assumption of a plan without robust errors."""
    if schema.errors == "robust":
        return []
    return [
        f"intervals will assume {_UNSURE[model]}; where that is false they miss too often: set errors = "
        '"robust", which does not assume it, for 5 % of the budget'
    ]


def _of_hazard(schema: HazardSchema) -> list[str]:
    return [*number_facts(schema), *_errors_of(schema, schema.task)]


def _of_score(schema: ScoreSchema) -> list[str]:
    propensity = schema.by_arm or schema.missing  # rounds for the weights of an effect, which no table reads
    return [*gap_facts(schema), *([] if propensity else _errors_of(schema, schema.family))]


_OF_KIND: Mapping[str, Callable[[Any], list[str]]] = {
    "effect": _of_effect,
    "hazard": _of_hazard,
    "ridge": gap_facts,
    "score": _of_score,
}


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
        f"another ({least:.4g} is enough); only the registrar's list counts runs, and a person with two codes has "
        "twice the mu"
    ]


def _listed(names: list[str]) -> str:
    *first, last = map(repr, names)
    return f"{', '.join(first)} and {last}" if first else last
