"""Format a treatment effect for publication: the assumptions, the row, then the guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privstats.errors import ReleaseError
from privstats.inference.description import Count, Description, Law
from privstats.inference.reporting import HIDDEN, Source, listed, texts_of
from privstats.inference.summary import Summary, chance_of, ends_of, number_of
from privstats.inference.treatment_effects.arms import arm_labels, is_binary
from privstats.inference.treatment_effects.heterogeneity import heterogeneity_sentence
from privstats.inference.treatment_effects.influence_sums import is_look
from privstats.inference.treatment_effects.subgroup_tests import interaction_sentences
from privstats.kinds import EffectSchema
from privstats.schema import narrowed

if TYPE_CHECKING:
    from privstats.inference.treatment_effects.rows import EffectRows
    from privstats.inference.treatment_effects.table import EffectTable

_TRIAL = (
    "each record, a patient or a whole clinic, was assigned by the plan's probability, alone or in permuted blocks and "
    "not together with other records; the columns were measured before assignment; one outcome per record analysed; "
    "what one receives does not affect another's outcome; honest clients"
)
_INCOMPLETE = _TRIAL.replace(
    "one outcome per record analysed",
    "one outcome per record; the propensity of being observed or the outcome models are right for the records included",
)
_AT_RANDOM = "Outcomes are missing at random given the arm and the columns named in the plan: no sum can test this."
_ASSIGNED = "The effect is that of assignment: people who did not comply count in their assigned arm."
_RATIO = (
    "The ratio is the mean outcome of those assigned to treatment divided by that of the others (for a 0/1 outcome the "
    "risk ratio). Its standard error allows for any covariance of both means, so far from 1 a table of both measures "
    "has a wider interval for it than a table of the ratio alone; the p-value is of a ratio of 1."
)
_FAVOURED = ("non-inferiority", "equivalence")  # claims that arms which come closer favour
_CLOSER = (
    "People who do not comply bring the arms closer, which favours non-inferiority and equivalence: read such a claim "
    "beside how many complied."
)
_CONFOUNDING = "No unmeasured confounding given the columns named in the plan: no sum can test this."
_ADJUSTED = (
    "the columns were measured before treatment; the propensity or the outcome models are right among the records "
    "included; independent records, one outcome per record analysed; what one receives does not affect another's "
    "outcome; honest clients"
)
_HIDDEN = (*[HIDDEN] * 3, "-inf", "inf", HIDDEN, "-inf", "inf")
_ROWS = {"ate": "all", "att": "treated", "overlap": "overlap"}
_FEW, _RARE, _HALF = 50, 0.1, 0.5
_DIGITS = 16


def effect_summary(table: EffectTable, alpha: float) -> Summary:
    """Return the table of one effect."""
    return _summary([(_ROWS[table.estimand], table)], table, alpha)


def effects_summary(rows: EffectRows, alpha: float) -> Summary:
    """Return the table of several effects."""
    plain = _summary(list(rows.named.items()), rows.tables[0], alpha, _preregistered(rows))
    plain = replace(plain, foot=(*plain.foot, *interaction_sentences(rows)))
    if rows.analysis is None:
        return replace(plain, foot=(*plain.foot, _undeclared(rows)))
    adjusted = rows.pvalues_adjusted()
    cells = [
        table.declared if np.isnan(adjusted[place]) else f"{chance_of(float(adjusted[place]))} {table.declared}"
        for place, table in enumerate(rows)
        for _ in table.measures
    ]
    return replace(
        plain,
        columns=(*plain.columns, "Holm's P"),
        rows=tuple((*row, cell) for row, cell in zip(plain.rows, cells, strict=True)),
        foot=(*_declared(rows), *plain.foot),
    )


def _declared(rows: EffectRows) -> list[str]:
    course, analysis = rows.course, rows.analysis
    assert course is not None  # noqa: S101  the course holds the declaration
    assert analysis is not None  # noqa: S101  likewise
    families = [table.declared for table in rows]
    counts = ", ".join(f"{family} {families.count(family)}" for family in ("primary", "secondary"))
    both = ", each a difference and a ratio" if any(table.as_ratio for table in rows) else ""
    date = f" (dated {analysis.date} by its owners, unverified)" if analysis.date else ""
    stated = {
        "how the treatment was assigned": analysis.assignment,
        "that the columns were measured before it": analysis.measured_before,
        "missing outcomes": analysis.missing,
    }
    return [
        f"declared: {counts}{both}; digest {course.digest[:_DIGITS]}...{date}, exploratory: all else.",
        f"Holm's P is adjusted for all declared rows of its family, primary or secondary, each at {analysis.alpha:g}; "
        "parties join by the digest and their ledgers hold it, while releases do not: compare it with theirs.",
        *(f"On {about}, the analysis states: {text or 'nothing'}." for about, text in stated.items()),
        *_verdicts(rows, analysis.alpha),
    ]


def _verdicts(rows: EffectRows, alpha: float) -> list[str]:
    """Return a sentence per declared margin."""
    sentences, verdicts = [], rows.verdicts()
    for margin, low, high, p_value, shown in verdicts:
        result = "shown" if shown else "not shown"
        known = np.isfinite([low, high]).all()
        ends = f"interval {number_of(low)} to {number_of(high)}" if known else "its interval is not reported"
        sentences.append(
            f"{margin.claim.capitalize()} of {margin.outcome} ({margin.region}): {result} at the one-sided level "
            f"{alpha / 2:g}, Holm's P {chance_of(p_value)} over the declared margins; {ends}."
        )
    if any(margin.claim in _FAVOURED for margin, *_ in verdicts):
        sentences.append(_CLOSER)
    return sentences


def _undeclared(rows: EffectRows) -> str:
    """State that nothing was declared only where the course, which would declare it, was given."""
    if rows.course is None:
        return "No course was given, so this table does not state what was declared before the first session."
    return "Nothing was declared before the first session: all is exploratory."


def _preregistered(rows: EffectRows) -> str:
    course, analysis = rows.course, rows.analysis
    if course is None or analysis is None:
        return _undeclared(rows)
    secondary = [*analysis.secondary, *(f"{listed(analysis.primary)} by {each}" for each in analysis.subgroups)]
    return (
        f"Declared before the first session, in a course of digest {course.digest}: primary, "
        f"{listed(analysis.primary)}; secondary, {listed(secondary)}; all else is exploratory. P-values of what was "
        "declared were adjusted by Holm's method within each of both families."
    )


def _summary(named: Sequence[tuple[str, EffectTable]], first: EffectTable, alpha: float, declared: str = "") -> Summary:
    trial, measured = first.design == "trial", _measured(first)
    what = "Effect of a randomised treatment" if trial else "Adjusted difference between the arms"
    source, about = source_of(first, alpha), description_of(named, first)
    law = about.law
    assert law is not None  # noqa: S101  every effect has a P value
    rows = [each for row in named for each in _named(*row)]
    apart = any(table.subgroup for _, table in rows)
    return Summary(
        title=source.title(what),
        promise=source.promise,
        head=(*about.head, *_head(first)),
        columns=(
            "",
            *(["records"] if apart else []),
            measured,
            "std err",
            "noise SE",
            *law.columns,
            law.heading,
            *ends_of(alpha),
        ),
        rows=tuple(
            (name, *([records_of(table).short] if apart else []), *_cells(table, alpha, law.cells(place)))
            for place, (name, table) in enumerate(rows)
        ),
        foot=(
            *([] if first.trim is None else [_population(first)]),
            *source.foot,
            *about.foot,
            *([_ASSIGNED] if trial else []),
            *([_RATIO] if first.as_ratio or measured == "ratio" else []),
            *_after_weighting(first),
            *_between_sites(named, alpha),
            *_hidden_rows(named, alpha),
            *_widened_rows(named, alpha),
            *_few(first),
        ),
        methods=source.methods(f"{_estimated(first)} {declared} {about.methods}"),
        caution=caution_of(first),
        about=about,
    )


def description_of(named: Sequence[tuple[str, EffectTable]], first: EffectTable) -> Description:
    """Return what the rows of effects are."""
    tables = [table for row in named for _, table in _named(*row)]
    noisy = first.release.plan.noise is not None
    ratios = any(table.measure == "ratio" for table in tables)
    degrees = [table.df for table in tables]
    several = len({table.name for table in tables}) > 1
    events = [
        each.count(f"events{f', {table.name}' * several}, {label}")
        for _, table in named
        for each, label in zip(table.events or (), _labels(first), strict=False)
    ]
    return Description(
        estimand=(_measured(first), _estimand([table for _, table in named])),
        counts=(records_of(first), *_by_arm(first), *events),
        law=Law.of(degrees, "by Satterthwaite (1946)", estimated=noisy, inverted=noisy or ratios),
        noisy_rows=noisy and any(table.subgroup for table in tables),
    )


def _estimand(tables: Sequence[EffectTable]) -> str:
    """Return what an effect is: of which outcome, in which direction."""
    first = tables[0]
    treated, others = _labels(first)
    names = list(dict.fromkeys(table.name for table in tables if table.name))
    risks = all(is_binary(_schema(first), place) for place in range(_schema(first).outcomes))
    of = f" of {listed(names)}" if names else " of the outcome"
    difference = f"{'risk' if risks else 'mean'}{of}: {treated} less {others}"
    ratio = f"ratio of {'risks' if risks else 'means'}{of}: {treated} over {others}"
    if first.as_ratio is not None:
        return f"difference in {difference}; {ratio}"
    return ratio if first.measure == "ratio" else f"difference in {difference}"


def _labels(table: EffectTable) -> tuple[str, str]:
    return arm_labels(_schema(table))


def _schema(table: EffectTable) -> EffectSchema:
    return narrowed(table.release.plan.schema, EffectSchema, ReleaseError("this release measures no effect"))


def records_of(table: EffectTable) -> Count:
    """Return the number of records of an effect, with its noise."""
    return Count("records", table.nobs, table.nobs_sigma)


def _measured(table: EffectTable) -> str:
    if table.measure == "ratio":
        return "ratio"
    return "estimate" if table.as_ratio else "effect" if table.design == "trial" else "difference"


def source_of(table: EffectTable, alpha: float) -> Source:
    """Return an effect's releases and assumptions."""
    return Source(table.release, alpha, _assumed(table), table.plans, ahead=is_look(table.release))


def _named(name: str, table: EffectTable) -> list[tuple[str, EffectTable]]:
    if table.as_ratio is None:
        return [(name, table)]
    before = "" if name in _ROWS.values() else f"{name}, "
    return [(f"{before}{measure}", each) for measure, each in table.measures]


def _assumed(table: EffectTable) -> str:
    return _ADJUSTED if table.design != "trial" else _INCOMPLETE if table.missing else _TRIAL


def caution_of(table: EffectTable) -> str:
    """Return the untestable assumption, if any."""
    if table.design != "trial":
        return _CONFOUNDING
    return _AT_RANDOM if table.missing else ""


def _estimated(table: EffectTable) -> str:
    schema = table.release.plan.schema
    *columns, arm = getattr(schema, "feature_names", None) or ("the columns of the plan", "the treatment")
    (low, high), adjusted = table.outcome, listed(columns)
    names = getattr(schema, "outcome_names", None) or ()
    outcome = f"{listed(names) if names else 'an outcome'} from {low:g} to {high:g}"
    weighted = "augmented inverse-probability weighting (Robins, Rotnitzky and Zhao 1994)"
    if table.probability is not None:
        lines = f" with linear outcome models of {adjusted} in each arm" if table.arms is not None else ""
        seen = (
            " and a logistic propensity of being observed in each arm, both published before the last session"
            if table.missing
            else ""
        )
        more = f" {_AT_RANDOM} {_population(table)}" if table.missing else ""
        return (
            f"The effect of {arm}, assigned with {_chances(table)}, on {outcome} was estimated{_as_ratio(table)} by "
            f"{weighted} at that probability{lines}{seen}. {_ASSIGNED}{_counted(table)}{more}"
        )
    return (
        f"{_CONFOUNDING} The difference in {outcome} between records with {arm} and without was adjusted for "
        f"{adjusted} by {weighted}, with a logistic propensity and linear outcome models, both published before the "
        f"last session. {_population(table)}{_counted(table)}"
    )


def _counted(table: EffectTable) -> str:
    return "".join(f" Of texts, {text}." for _, text in texts_of(table.release))


def _cells(table: EffectTable, alpha: float, degrees: tuple[str, ...]) -> tuple[str, ...]:
    low, high = table.conf_int(alpha)
    if table.why_at(alpha):
        return (*[HIDDEN] * 3, *[HIDDEN] * len(degrees), chance_of(table.pvalue), "-inf", "inf")
    values = (table.estimate, table.bse, table.noise_bse)
    return (*map(number_of, values), *degrees, chance_of(table.pvalue), number_of(float(low)), number_of(float(high)))


def _by_reason(lead: str, reasons: Sequence[tuple[str, str]], *, several: bool) -> list[str]:
    """Return one sentence per reason, with the names of its rows."""
    why: dict[str, list[str]] = {}
    for name, text in reasons:
        why.setdefault(text, []).append(name)
    return [f"{lead}{f' ({listed(tuple(names))})' if several else ''}: {text}." for text, names in why.items()]


def _hidden_rows(named: Sequence[tuple[str, EffectTable]], alpha: float) -> list[str]:
    hidden = [(name, text) for name, table in named if (text := table.why_at(alpha))]
    return _by_reason("Not reported", hidden, several=len(named) > 1)


def _widened_rows(named: Sequence[tuple[str, EffectTable]], alpha: float) -> list[str]:
    widened = [(name, text) for name, table in named if not table.why_at(alpha) for text in table.widened]
    return _by_reason("Widened", widened, several=len(named) > 1)


def _head(table: EffectTable) -> tuple[tuple[str, str], ...]:
    low, high = table.outcome
    design = (
        ("assigned", f"with {_chances(table)}") if table.design == "trial" else ("propensity", f"kept {_ends(table)}")
    )
    seen = [("observed", f"kept from {table.trim:g}")] if table.missing else []
    return (
        design,
        *seen,
        ("outcome", f"from {low:g} to {high:g}"),
        *texts_of(table.release),
        *([] if table.r_ is None else [("nuisances", f"at most {table.r_:.2f} of the other standard error")]),
    )


def _chances(table: EffectTable) -> str:
    pi = table.probability
    if isinstance(pi, tuple):
        return f"probability {min(pi):g} to {max(pi):g}, by site"
    return f"probability {pi:g}"


def _as_ratio(table: EffectTable) -> str:
    if table.as_ratio is not None:
        return " as the difference and the ratio of both arms' mean outcomes"
    return " as the ratio of both arms' mean outcomes" if table.measure == "ratio" else ""


def _after_weighting(table: EffectTable) -> list[str]:
    if table.released_balance:
        after = table.balance().weighted
        if after is None or not np.isfinite(after).all():
            return ["Noise hides the balance after weighting."]
        most = float(np.abs(after[:, 0]).max())
        return [f"After weighting no column's standardised difference is larger than {most:.2f} (balance table)."]
    return [] if table.design == "trial" else ["Balance after weighting was not released."]


def _between_sites(named: Sequence[tuple[str, EffectTable]], alpha: float) -> list[str]:
    sentences = []
    for name, table in named:
        if table.in_groups:
            what = f" ({name})" if len(named) > 1 else ""
            sentences.append(heterogeneity_sentence(table, alpha).replace("sites:", f"sites{what}:", 1))
    return sentences


def _ends(table: EffectTable) -> str:
    low = table.trim or 0.0
    return f"{1 - low:g}" if table.estimand == "att" else f"{low:g} to {1 - low:g}"


def _population(table: EffectTable) -> str:
    share = table.mean_weight or 0.0
    if table.missing:
        share = min(share, 1.0)
        few = " Most records are not in it." if share < _HALF else ""
        return (
            f"{share:.0%} of records are in this population, with and without an outcome; the rest have in one of the "
            f"arms a published probability of being observed below {table.trim:g}.{few}"
        )
    beyond = f"have a published propensity outside {_ends(table)}"
    match table.estimand:
        case "overlap":
            return (
                "It is about the records weighted by e (1 - e), e the published propensity, and excludes those that "
                f"{beyond}; their mean weight is {share:.3f} of at most .25."
            )
        case "att":
            above = beyond.replace("outside", "above")
            return f"It is about {share:.0%} of all records: the treated, except those that {above}."
    few = " Most records are not in it." if share < _HALF else ""
    return f"{share:.0%} of records are in this population; the rest {beyond}.{few}"


def _few(table: EffectTable) -> list[str]:
    if table.arms is None:
        return []
    if min(table.arms) < _FEW or (table.design != "trial" and min(table.arms) < _RARE * sum(table.arms)):
        remedy = "" if table.design == "trial" else ": set estimand='overlap', or 'att'"
        return [f"Warning: few are in one arm{remedy}."]
    return []


def balance_summary(table: EffectTable, alpha: float) -> Summary:
    """Return an effect's balance for publication."""
    balance = table.balance(alpha)
    after = [] if balance.weighted is None else list(balance.weighted.T)
    numbers = zip(*balance.means.T, balance.difference, balance.low, balance.high, *after, strict=True)
    weighted = ["weighted", *ends_of(alpha)] if after else []
    columns = ("", "treated", "others", "difference", *ends_of(alpha), *weighted)
    weighting = "before weighting and after it" if after else "before any weighting"
    return Source(table.release, alpha, "negligible clipping, honest clients", table.plans).summary(
        "Balance of both arms",
        columns,
        (
            (name, *(map(number_of, values) if reported else _HIDDEN[: len(columns) - 1]))
            for name, reported, values in zip(balance.columns, balance.reported, numbers, strict=True)
        ),
        about=Description(counts=_by_arm(table)),
        notes=(
            "Means are in the units of the columns. Differences are standardised by the root of the mean of both "
            f"arms' variances, {weighting}; their intervals are about these records, and cover noise alone.",
        ),
        methods="",
    )


def _by_arm(table: EffectTable) -> tuple[Count, ...]:
    """Return each arm's number of records; none where the course has no session that divides them."""
    rows = zip(table.numbers or (), _labels(table), strict=False)
    return tuple(each.count(f"records, {label}") for each, label in rows)
