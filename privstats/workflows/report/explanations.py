"""A plan's numbers in plain words, for people who answer for data and not for statistics.

Sentences and tables of sentences; every number in them is the plan's own. No layout: ``layout`` has that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from privstats.course import Course, Stream
from privstats.course.kinds import course_kind
from privstats.dp import Guarantee, Noise, NoPrivacy, Privacy, group_mu
from privstats.dp.privacy import Adjacency, Unit
from privstats.moments.code_rows import cells_of, levels_of
from privstats.plan import Devices, Plan, dropout_table
from privstats.plan.budget import columns
from privstats.plan.devices import exchanged_mu
from privstats.schema import Schema
from privstats.workflows.report.layout import Cell, Table, Text

__all__ = [
    "bounded",
    "budget_table",
    "chance",
    "collected",
    "collected_table",
    "conditions",
    "course_table",
    "dropouts",
    "found",
    "guarantee_of",
    "headline",
    "left_out",
    "not_promised",
    "of_group",
    "persons",
    "persons_in_sessions",
    "promised",
    "rests_on",
    "worth",
]

_FALSE_ALARMS = 0.01
_WHOM: dict[Unit, str] = {
    "record": "records",
    "client": "parties (each with all its records)",
    "person": "patients (each with all rows at one party)",
}
_SEVERAL: dict[Unit, tuple[str, tuple[int, ...]]] = {
    "record": ("records of one person", (1, 2, 5, 10, 20)),
    "client": ("parties", (1,)),
    "person": ("parties at which a patient is", (1, 2, 3)),
}
"""By unit, of what somebody may have several, and for how many the worth of a promise is shown."""


def guarantee_of(plan: Plan) -> Guarantee:
    """What a release of the plan keeps; nothing without DP."""
    return Guarantee(math.inf) if plan.noise is None else plan.noise.guarantee


def found(kept: Guarantee) -> float:
    """Of 100 records, the most that anybody finds at 1 false alarm in 100; rounded up to a tenth."""
    return math.ceil(1000 * kept.tpr(_FALSE_ALARMS)) / 10


def headline(plan: Plan, kept: Guarantee | None = None) -> str:
    """What the promise of a plan, or of the course that it begins, is worth, in one sentence."""
    kept = guarantee_of(plan) if kept is None else kept
    if math.isinf(kept.mu):
        return (
            "Nothing bounds what the released sums tell about single records: masking hides who sent what, and the "
            "total is released as it is."
        )
    whom = _WHOM[_unit(plan)]
    if plan.devices is not None and plan.noise is not None and not plan.noise.pure:
        kept, whom = _told_apart(plan, plan.noise, plan.devices.most_runs), "answers"
    return (
        f"At most {found(kept):g} of 100 {whom} found at 1 false alarm in 100, whatever else somebody knows and "
        "however they try. Guessing finds 1."
    )


def collected(plan: Plan) -> list[str]:
    """What leaves a party, and what bounds it."""
    schema, cohort = plan.schema, plan.cohort
    parts = f"with at most {cohort.max_records:,} records between them. Each adds up its own records"
    if schema.whole_parties:
        parts = "each with any number of records. Each computes one direction from all of its own records"
    return [
        f"{cohort.clients} parties take part, {parts} "
        f"and sends {plan.masking.upload_bytes:,} bytes of masked sums; no record leaves a party.",
        *bounded(schema),
        *persons(plan),
        *left_out(plan),
    ]


def left_out(plan: Plan) -> list[str]:
    """What becomes of rare classes; nothing where no minimum count is set."""
    if not plan.min_count:
        return []
    return [
        f"A class whose noisy count is below {plan.min_count} is left out of the release. That keeps poor numbers "
        "out; it hides nobody by itself."
    ]


def bounded(schema: Schema) -> list[str]:
    """What a record is, what becomes of it before it is added up, and what bounds its weight."""
    return [f"A record is {schema.record}.", *_mapped(schema), schema.clipping]


def persons(plan: Plan) -> list[str]:
    """What becomes of several rows of one patient."""
    if plan.person_clip is None:
        return []
    most = f"{plan.person_clip.records:.3g}"
    weighed = (
        f"All rows of one patient at one party are added up first. Where they weigh more than {most} rows can, all of "
        "them are shrunk by one factor, so that no patient weighs more."
    )
    if plan.person_clip.averaged:
        weighed = (
            "Of all rows of one patient at one party the average is taken first, and that is added up: a patient "
            "counts once, however many rows there are, and what is learned is of patients who all weigh the same."
        )
    whose = (
        "Whose a row is, a party tells by an id of its own, which does not leave it; a row without an id is left out."
    )
    return [f"{weighed} {whose}"]


def persons_in_sessions(course: Course | None) -> list[str]:
    """What becomes of a patient's rows in every session of a course."""
    if course is None or course.first.person_clip is None:
        return []
    limit = "The limit counts what one patient adds to all sessions together."
    if isinstance(course, Stream):
        leaves = "; who leaves is taken out with the rows that entered" if course.deletions else ""
        return [
            "All rows of a patient enter in one epoch, and a party keeps to them by a keyed hash. Rows that come later "
            f"are left out{leaves}. {limit}"
        ]
    return [
        "Every session shrinks the rows of a patient anew, by those rows and the public plan of the session. " + limit
    ]


def _mapped(schema: Schema) -> list[str]:
    """What becomes of a record before it is added up."""
    cells, maps = cells_of(schema), ", ".join(step.kind for step in schema.transform)
    if cells is None:
        levels = levels_of(schema)
        texts = "" if levels is None else f" Of texts, {levels.said}; a record with any other value there is left out."
        return [f"Before anything is added up, fixed public maps are applied to it: {maps}.{texts}"] if maps else []
    out = ["Of each value it is told into which cell of its column it falls, and nothing else; a gap has a cell too."]
    if cells.open and not schema.finds_cuts:
        out.append(
            f"The cut points between the cells of {', '.join(cells.open)} are open: counts of the same records find "
            "them first, under the one promise."
        )
    if schema.transform[1:]:
        out.append(f"Then fixed public maps are applied: {', '.join(step.kind for step in schema.transform[1:])}.")
    return out


def collected_table(plan: Plan) -> Table:
    """The statistics that are summed, and how many numbers each has."""
    sizes = plan.schema.sizes
    rows = [(row.letter, row.meaning, f"{row.blocks(sizes) * row.entries(sizes):,}") for row in plan.schema.sent]
    return Table("what is collected", ("statistic", "what it is", "numbers"), rows, words=True)


def course_table(course: Course) -> Table:
    """The sessions of a course, what each collects and what it spends."""
    header: tuple[Text, ...] = (
        Cell("session", ("in the order in which they are run",)),
        Cell("statistics", ("what is summed",)),
        Cell("mu", ("what can be told of one record from it: 0 is nothing, 1 much, 4 nearly all",)),
        Cell("epsilon alone", ("the promise if nothing else were released",)),
        Cell("bytes", ("that a party sends",)),
    )
    rows = []
    for label, plan in zip(course_kind(course).labels(course), course.priced, strict=True):
        budget = plan.budget()
        numbers = (f"{budget.mu:.4g}", f"{budget.epsilon:.4g}", f"{plan.masking.upload_bytes:,}")
        rows.append((label, plan.schema.statistics, *numbers))
    return Table("the sessions of the course", header, rows)


def promised(plan: Plan) -> Table:
    """Who is promised what, and what it rests on."""
    rows = [*_people(plan), _parties(plan)]
    return Table("what is promised", ("to whom", "what is promised", "what it rests on"), rows, words=True)


def conditions(plan: Plan) -> list[str]:
    """What has to hold beside the plan for the promise to mean what it says; nothing without DP."""
    return [f"{_sentence(condition)}." for condition in plan.budget().conditions]


def not_promised(plan: Plan) -> list[str]:
    """What somebody could take for promised and must not."""
    budget = plan.budget()
    out = []
    if plan.noise is None:
        out.append("That single records stay hidden: the exact total is released, and exact totals can be taken apart.")
    else:
        out += list(_limits(plan, plan.noise))
        if budget.delta:
            out.append(
                f"Certainty: with a chance of at most {chance(budget.delta)} for each release, more is learned than "
                "epsilon says."
            )
    if plan.devices is not None:
        out.append(
            "Anything towards whoever serves the page: another script reads every answer. Nor can a sent answer be "
            "called back."
        )
    if plan.schema.whole_parties:
        out.append("That a single record stays hidden within its party: it may turn the party's whole direction.")
    out += [
        "That the sums teach nothing. What holds for many people, such as a link between a habit and a disease, is "
        "what they are for, and it is learned of those who did not take part, too.",
        "That a second release costs nothing. Each release of the same records adds to the last, and only a ledger "
        "keeps the total.",
        "Secrecy of who took part: the names of the parties, this plan, its classes and its columns are known.",
        "True sums from a party that lies: it can shift the total by anything, and nobody sees it.",
    ]
    return out


def worth(plan: Plan, noise: Noise) -> Table:
    """What the promise is worth to somebody, by how many of the records are theirs."""
    header: tuple[Text, ...] = (
        Cell(_SEVERAL[_unit(plan)][0]),
        Cell("found of 100", ("at most, at 1 false alarm in 100; guessing finds 1",)),
        Cell("told from a stranger", ("of 100 pairs, in how many the right one is picked; guessing has 50",)),
    )
    rows = []
    for count in _SEVERAL[_unit(plan)][1]:
        kept = noise.guarantee if count == 1 else of_group(plan, noise, count)
        rows.append((str(count), f"{found(kept):g}", f"{math.ceil(1000 * kept.auc) / 10:g}"))
    return Table("what the promise is worth", header, rows)


def of_group(plan: Plan, noise: Noise, count: int) -> Guarantee:
    """What so many records together are promised, or a patient at so many parties."""
    if noise.pure or plan.person_clip is not None:
        return noise.guarantee.of_group(count)
    return Guarantee(max(noise.mu, group_mu(plan.schema, noise.sigma, _adjacency(plan), count)))


def dropouts(plan: Plan) -> Table:
    """What happens when parties vanish, in numbers of parties."""
    cohort, noise = plan.cohort, plan.noise
    header: tuple[Text, ...] = (
        Cell("parties that vanish"),
        Cell("that stay"),
        Cell("epsilon", ("of the release, whatever colluders take off",)),
        Cell("what happens"),
    )
    if noise is None:
        gone = cohort.clients - cohort.min_survivors
        rows = [("0", str(cohort.clients), "none", "released")] + [
            (str(count), str(cohort.clients - count), "none", told)
            for count, told in ((gone, "released"), (gone + 1, "no release"))
            if count
        ]
        return Table("dropouts", header, rows)
    table = dropout_table(noise, clients=cohort.clients, min_survivors=cohort.min_survivors, colluders=cohort.colluders)
    told = [
        (
            str(row.gone),
            str(row.survivors),
            *(("-", "no release") if row.epsilon is None else (_short(row.epsilon), "released")),
        )
        for row in table
    ]
    return Table("dropouts", header, told)


def budget_table(plan: Plan) -> Table:
    """The budget, every term explained where it stands, and the whole in the last row."""
    budget = plan.budget()
    private = math.isfinite(budget.mu)
    meanings = {row.letter: row.meaning for row in plan.schema.sent}
    shown = columns(private=private)
    rows: list[tuple[Text, ...]] = [
        (Cell(row.statistic, (meanings[row.statistic],)), *(column.shown(row) for column in shown))
        for row in budget.rows
    ]
    if private:
        whole = (f"{budget.mu:.4f}", _short(budget.epsilon), "100.0%")
        rows.append((Cell("all together", (f"at delta {budget.delta:.3g}",)), "", "", *whole, "", ""))
    header = [Cell("statistic", ("what is summed",)), *(Cell(each.heading, (each.meaning,)) for each in shown)]
    return Table("budget", header, rows)


def _told_apart(plan: Plan, noise: Noise, runs: int) -> Guarantee:
    """What keeps one answer from being told from another, over so many runs."""
    assert isinstance(plan.privacy, Privacy)  # noqa: S101  a plan with noise has one
    return Guarantee(math.sqrt(runs) * exchanged_mu(plan.schema, plan.privacy, noise))


def _invited(plan: Plan, devices: Devices, noise: Noise) -> tuple[str, str, str]:
    """What is promised to a person of whom everybody may know that they answered."""
    runs = "this run" if devices.most_runs == 1 else f"{devices.most_runs} runs together"
    epsilon, delta = devices.stated_epsilon or math.inf, plan.budget().delta
    panel = noise.trust.drawn_by == "member"
    honest = "One member of the panel that adds its noise, and the page; not the list of the invited"
    return (
        "Each person who is invited",
        f"With their answer exchanged for another, nothing that is released in {runs} gets more than "
        f"{math.exp(min(epsilon, 700)):.3g} times as likely (epsilon {_short(epsilon)}){_unless(delta)}. That they "
        "answered is no secret.",
        honest if panel else rests_on(plan, noise),
    )


def _people(plan: Plan) -> Iterator[tuple[str, str, str]]:
    if plan.noise is None:
        return
    if plan.devices is not None:
        yield _invited(plan, plan.devices, plan.noise)
        return
    budget, noise = plan.budget(), plan.noise
    unit = _unit(plan)
    whom = {"client": "Each party, with all its records", "person": "Each patient, with all rows at one party"}.get(
        unit, "The person behind each record"
    )
    change = "added or taken away" if _adjacency(plan) == "add-remove" else "exchanged for another"
    what = {"client": "party", "person": "rows"}.get(unit, "record")
    yield (
        whom,
        f"With their {what} {change}, nothing that is released gets more than {math.exp(budget.epsilon):.3g} times as "
        f"likely (epsilon {_short(budget.epsilon)}){_unless(budget.delta)}. So nobody can tell well whether they are "
        "in.",
        rests_on(plan, noise),
    )
    yield (
        "Those who use the release",
        "A model, a table or this page made from it costs nothing more, however often.",
        "Nothing: what is computed from a release tells no more than the release",
    )


def rests_on(plan: Plan, noise: Noise) -> str:
    """Whom the promise of the noise trusts, in numbers of parties."""
    honest = plan.cohort.min_survivors - plan.cohort.colluders
    if noise.trust.divided:
        return f"At least {honest} honest parties add their part of the noise; the server need not be trusted"
    return _sentence(noise.trust.trusted)


def _parties(plan: Plan) -> tuple[str, str, str]:
    cohort, who = plan.cohort, "parties" if plan.devices is None else "answers, some of them perhaps an attacker's"
    rests = plan.masking.condition or (
        f"no more than {_count(cohort.colluders, 'other party')} may work with the server"
        if cohort.colluders
        else "no other party may work with the server"
    )
    return (
        "Each party",
        f"Nobody sees its sums by themselves: what is opened is the total of at least {cohort.min_survivors} {who}.",
        _sentence(rests),
    )


def _limits(plan: Plan, noise: Noise) -> Iterator[str]:
    """Where the promise of the noise ends."""
    cohort = plan.cohort
    if _unit(plan) == "record":
        yield "As much for somebody with several records: the table above says how much less."
    if _unit(plan) == "person":
        yield (
            "As much for a patient who is at several parties, or under two ids at one: the table above says how much "
            "less. Each party tells by its own ids who is one patient; nobody can check them."
        )
    if noise.trust.drawn_by == "server":
        yield "Anything towards the server: it sees the exact total before it adds the noise."
    elif noise.trust.drawn_by == "member":
        yield "Anything if the leader and all helpers work together, or if none of them adds its noise."
    elif noise.trust.divided:
        yield (
            f"Anything if fewer than {cohort.min_survivors - cohort.colluders} honest parties add their part of the "
            f"noise, or if more than {cohort.colluders} work with whoever wants to know."
        )


def _unless(delta: float) -> str:
    return f", but for a chance of {chance(delta)}" if delta else ", without exception (delta 0)"


def chance(delta: float) -> str:
    """A small chance in words."""
    return f"1 in {int(1 / delta * (1 + 1e-9)):,} (delta {delta:.2g})"


def _count(number: int, noun: str) -> str:
    """A number of things."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"


def _unit(plan: Plan) -> Unit:
    return "record" if isinstance(plan.privacy, NoPrivacy) else plan.privacy.unit


def _adjacency(plan: Plan) -> Adjacency:
    return "add-remove" if isinstance(plan.privacy, NoPrivacy) else plan.privacy.adjacency


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(value: float) -> str:
    return f"{value:.4g}"
