"""Word a plan's guarantee, limits and costs in full sentences, for pages to people who answer for data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal

from privstats.course import Course
from privstats.course.promise import Total, total_of
from privstats.dp import Guarantee, Noise, NoPrivacy, Privacy, group_mu
from privstats.dp.privacy import Adjacency, Unit
from privstats.plan import Devices, Plan
from privstats.plan.conditions import assumption, clauses
from privstats.plan.device_rules import exchanged_mu
from privstats.plan.views import columns
from privstats.printable import at_most, delta_text, levels_text
from privstats.review.drop_outs import REMEDY, party_factor, plan_dropouts
from privstats.schema import Schema
from privstats.secagg.masking_facts import CLASSICAL_UNTIL
from privstats.workflows.report.layout import Cell, Table, Text

_FALSE_ALARMS = 0.01
_CLASSICAL = (1, 0, 0, 1)
"""Version 1.0.0rc1, the last with commits before that day; it has commits after that day, too."""
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:rc(\d{1,3}))?")
WHOM: dict[Unit, str] = {
    "record": "records",
    "client": "parties (each with all its records)",
    "person": "patients (each with all rows at one party)",
}
"""The units that an attacker looks for."""
CHANGES: dict[Adjacency, str] = {"add-remove": "added or taken away", "replace-one": "exchanged for another"}
"""What makes two data sets neighbours, of one unit."""
_SEVERAL: dict[Unit, tuple[str, tuple[int, ...]]] = {
    "record": ("records of one person", (1, 2, 5, 10, 20)),
    "client": ("parties", (1,)),
    "person": ("parties at which a patient is", (1, 2, 3)),
}
"""By unit: the thing that a person may have several of, and the numbers for which a promise's worth is shown."""


def hits(guarantee: Guarantee) -> float:
    """Return how many of 100 records an attacker finds at most, at 1 false alarm in 100; rounded up to a tenth."""
    return math.ceil(1000 * guarantee.tpr(_FALSE_ALARMS)) / 10


def pairs(guarantee: Guarantee) -> float:
    """Return in how many of 100 pairs a record is distinguished from a stranger at most; rounded up to a tenth."""
    return math.ceil(1000 * guarantee.auc) / 10


def right(guarantee: Guarantee) -> float:
    """Return the largest share of right answers to a yes-or-no question, of 100; rounded up to a tenth."""
    return math.ceil(500 * (1 + guarantee.operating_point()[2])) / 10


def found(guarantee: Guarantee, whom: str) -> str:
    """State how many an attacker singles out, a clause."""
    return f"at most {hits(guarantee):g} of 100 {whom} found at 1 false alarm in 100"


def linked(guarantee: Guarantee) -> str:
    """State how often an attacker links a record, a clause."""
    return f"distinguished from a stranger in at most {pairs(guarantee):g} of 100 pairs; guessing gets 50"


def inferred(guarantee: Guarantee) -> str:
    """State how often an attacker infers a value, a clause."""
    return (
        f"the right one of two equally likely values guessed in at most {right(guarantee):g} of 100; guessing gets 50"
    )


def headline(plan: Plan, guarantee: Guarantee | None = None) -> str:
    """State what a plan's or course's guarantee is worth."""
    guarantee = total_of(plan).guarantee if guarantee is None else guarantee
    if math.isinf(guarantee.mu):
        return (
            "Nothing bounds what the released sums reveal about single records: masking hides who sent what, and the "
            "exact total is released."
        )
    if plan.devices is not None and plan.noise is not None:
        guarantee = answer_guarantee(plan, plan.noise, plan.devices)
    factor = party_factor(plan)
    attacker = "an attacker" if factor == 1 else f"an attacker outside the {_senders(plan)}"
    text = (
        f"{_sentence(found(guarantee, whom(plan)))}, whatever else {attacker} knows and however they try. "
        "Guessing finds 1."
    )
    if factor == 1:
        return text
    most = hits(Guarantee(guarantee.mu * factor))
    return f"{text} Another of the {_senders(plan)}, which can subtract its own noise, finds at most {most:g}."


def whom(plan: Plan) -> str:
    """Return the units that an attacker looks for."""
    return "answers" if plan.devices is not None and plan.noise is not None else WHOM[_unit(plan)]


def _senders(plan: Plan) -> str:
    return "parties" if plan.devices is None else "people who answer"


def toward_party(plan: Plan, course: Course | None = None) -> list[tuple[str, str, str]]:
    """Return the row of the guarantee toward another party; none where the promise holds toward it."""
    total = total_of(course or plan)
    if not total.weaker_toward_party:
        return []
    return [
        (
            "The same, toward another party",
            f"A party that sees {'the release' if total.sessions == 1 else 'the releases'} can subtract its own "
            f"noise: toward it epsilon is {at_most(total.party_epsilon)}, and it finds at most "
            f"{hits(total.toward_party):g} of 100 {WHOM[_unit(plan)]} at 1 false alarm in 100.",
            f"{plan.cohort.min_survivors - 1} other {_plural(plan.cohort.min_survivors - 1)} of the noise; {REMEDY}",
        )
    ]


def _plural(parties: int) -> str:
    return "party that adds its part" if parties == 1 else "parties that add their parts"


def suppressed(plan: Plan) -> list[str]:
    """Explain rare classes' treatment."""
    if not plan.min_count:
        return []
    return [
        f"A class whose noisy count is below {plan.min_count} is excluded from the release. That removes imprecise "
        "numbers; it hides no one by itself."
    ]


def bounded(schema: Schema) -> list[str]:
    """Explain a record's treatment before summation, and its bound."""
    return [*_mapped(schema), schema.clipping]


def persons(plan: Plan) -> list[str]:
    """Explain the treatment of one patient's rows."""
    if plan.person_clip is None:
        return []
    most = f"{plan.person_clip.records:.3g}"
    weighed = (
        f"All rows of one patient at one party are added up first. If they weigh more than {most} rows can, one "
        "factor clips all of them, so that no patient weighs more."
    )
    if plan.person_clip.averaged:
        weighed = (
            "The rows of one patient at one party are averaged first, and the averages are added up: each patient "
            "counts once, and all patients weigh the same."
        )
    whose = "A party assigns rows to patients by its own ids, which do not leave it; a row without an id is excluded."
    return [f"{weighed} {whose}"]


def _mapped(schema: Schema) -> list[str]:
    cells, maps = schema.reading.declaration, ", ".join(map_.kind for map_ in schema.transform)
    if cells is None:
        levels = schema.reading.levels
        words = "" if levels is None else levels_text(levels)
        texts = f" Of texts, {words}; a record with any other value is excluded." if words else ""
        return [f"Before anything is added up, fixed public maps are applied to it: {maps}.{texts}"] if maps else []
    gaps = "a record with a missing value is excluded" if cells.missing else "a missing value has a cell too"
    out = [f"Each value counts only by its cell in the column; {gaps}."]
    if cells.open and not schema.finds_cuts:
        out.append(
            f"The cut points between the cells of {', '.join(cells.open)} are open: counts of the same records "
            "estimate them first, under the same promise."
        )
    if schema.transform[1:]:
        out.append(f"Then fixed public maps are applied: {', '.join(map_.kind for map_ in schema.transform[1:])}.")
    return out


def promised(plan: Plan, course: Course | None = None) -> Table:
    """Return the guarantees: who has each, and their basis."""
    people = list(_people(plan, total_of(course or plan)))
    rows = [*people[:1], *toward_party(plan, course), *people[1:], _parties(plan)]
    return Table("what is promised", ("to whom", "what is promised", "what it rests on"), rows, words=True)


def conditions(plan: Plan, course: Course | None = None) -> list[str]:
    """Return the guarantee's conditions outside the plans; none without DP."""
    return [f"{_sentence(condition)}." for condition in total_of(course or plan).conditions]


def not_promised(plan: Plan, course: Course | None = None, written_by: str = "") -> list[str]:
    """Return what a reader could mistake for guaranteed; ``written_by`` is the version that wrote the release."""
    total = total_of(course or plan)
    out = []
    if plan.noise is None:
        out.append("That single records stay hidden: exact totals are released, and their differences reveal records.")
    else:
        out += list(_limits(plan, plan.noise))
        if total.delta:
            which = "for each release" if total.sessions == 1 else "for all sessions together"
            out.append(
                f"Certainty: with a chance of at most {chance(total.delta)} {which}, more is learned than epsilon says."
            )
    if plan.devices is not None:
        out.append(
            "Anything towards the party that serves the page: another script could read every answer. A sent answer "
            "cannot be called back."
        )
    if plan.schema.party_is_record:
        out.append("That a single record stays hidden within its party: it may change the party's whole direction.")
    out += [
        _recorded(plan, written_by),
        "That the sums reveal nothing: what holds for many people, such as a link between a habit and a disease, is "
        "also learned about those who stayed away.",
        f"That {'a second' if total.sessions == 1 else 'any other'} release costs nothing: each adds to the last, "
        "and only a ledger records the total.",
        "Secrecy of who took part, or of this plan.",
        f"True sums from a party that lies: it can {_lie(plan)}, unseen.",
    ]
    return out


def _lie(plan: Plan) -> str:
    if plan.validity is None or plan.claim is None:
        return "shift the total by anything"
    return f"invent {plan.validity.most_records} records, and several such parties as many each"


def _recorded(plan: Plan, written_by: str) -> str:
    """State what a recording of the sessions is worth later."""
    if plan.key_agreement is None and written_by and not _is_later(written_by):
        noise = plan.noise
        own = "but what the party itself added" if noise is not None and noise.trust.drawn_by == "client" else "at all"
        return (
            f"Permanent secrecy: until {CLASSICAL_UNTIL}, the version that wrote the release masked plans without "
            "key_agreement under X25519 alone. An attacker who stored the messages of such a session and breaks X25519 "
            f"later, as a large quantum computer would, reads each party's sums, with no noise {own}."
        )
    return f"Permanent secrecy, {both_broken(plan)}"


def both_broken(plan: Plan) -> str:
    """State what opens recorded messages later, a clause and its exception."""
    both = "should X25519 and ML-KEM-768 both be broken: breaking one alone opens no stored message."
    earlier = (
        f" Sessions of versions until {CLASSICAL_UNTIL} under this plan, without key_agreement, used X25519 alone."
    )
    return both + (earlier if plan.key_agreement is None else "")


def _is_later(version: str) -> bool:
    """Return whether a version is known to be later than :data:`_CLASSICAL`."""
    found = _VERSION.fullmatch(version)
    # A final version follows its release candidates.
    return found is not None and tuple(map(int, found.groups("999"))) > _CLASSICAL


def worth(plan: Plan, noise: Noise, course: Course | None = None) -> Table:
    """Return the guarantee's worth to a person, by number of records."""
    total = total_of(course or plan)
    header: tuple[Text, ...] = (
        Cell(_SEVERAL[_unit(plan)][0]),
        Cell("found of 100", ("at most, at 1 false alarm in 100; guessing finds 1",)),
        Cell("distinguished from a stranger", ("of 100 pairs, the number picked rightly; guessing gets 50",)),
    )
    rows = []
    for count in _SEVERAL[_unit(plan)][1]:
        of_all = of_group(plan, noise, count) if total.sessions == 1 < count else total.guarantee.of_group(count)
        rows.append((str(count), f"{hits(of_all):g}", f"{pairs(of_all):g}"))
    return Table("what the promise is worth", header, rows)


def of_group(plan: Plan, noise: Noise, count: int) -> Guarantee:
    """Return the guarantee for ``count`` records, or a patient at ``count`` parties."""
    if noise.pure or plan.person_clip is not None:
        return noise.guarantee.of_group(count)
    return Guarantee(max(noise.mu, group_mu(plan.schema, noise.sigma, _adjacency(plan), count)))


def dropouts(plan: Plan, course: Course | None = None) -> Table:
    """Return what happens when parties vanish."""
    cohort, noise, total = plan.cohort, plan.noise, total_of(course or plan)
    of = "of the release" if total.sessions == 1 else "of the first session's release alone"
    together = (
        "" if total.sessions == 1 or noise is None else f"of all sessions together at most {at_most(total.epsilon)}"
    )
    header: tuple[Text, ...] = (
        Cell("parties that vanish"),
        Cell("that stay"),
        Cell("epsilon", tuple(filter(None, (f"{of}, even if colluders subtract their noise", together)))),
        Cell("what happens"),
    )
    if noise is None:
        gone = cohort.clients - plan.masking.min_listed
        rows = [("0", str(cohort.clients), "none", "released")] + [
            (str(count), str(cohort.clients - count), "none", ending)
            for count, ending in ((gone, "released"), (gone + 1, "no release"))
            if count
        ]
        return Table("dropouts", header, rows)
    ending = [
        (
            str(row.gone),
            str(row.survivors),
            *(("-", "no release") if row.epsilon is None else (at_most(row.epsilon), "released")),
        )
        for row in plan_dropouts(plan, noise)
    ]
    return Table("dropouts", header, ending)


def budget_table(plan: Plan, course: Course | None = None) -> Table:
    """Return the budget, every term explained."""
    budget, together = plan.budget(), total_of(course or plan)
    private = math.isfinite(budget.mu)
    meanings = {row.letter: row.meaning for row in plan.schema.sent}
    shown = columns(budget)
    rows: list[tuple[Text, ...]] = [
        (Cell(row.statistic, (meanings[row.statistic],)), *(column.shown(row) for column in shown))
        for row in budget.rows
    ]
    if private:
        one = "all together" if together.sessions == 1 else "the first session alone"
        totals = (at_most(budget.mu, ".4f"), at_most(budget.epsilon), "100.0%")
        rows.append((Cell(one, (f"at delta {delta_text(budget.delta)}",)), "", "", *totals, "", ""))
    if private and together.sessions > 1:
        mu, epsilon = at_most(together.guarantee.mu, ".4f"), at_most(together.epsilon)
        every = Cell(f"all {together.sessions} sessions", (f"at delta {delta_text(together.delta)}",))
        rows.append((every, "", "", mu, epsilon, "", "", ""))
    header = [Cell("statistic", ("what is summed",)), *(Cell(each.heading, (each.meaning,)) for each in shown)]
    return Table("budget", header, rows)


def times_as_likely(epsilon: float) -> str:
    """Return the maximum factor by which one unit makes any outcome likelier."""
    return f"{at_most(math.exp(min(epsilon, 700)), '.3g')} times"


def answer_guarantee(plan: Plan, noise: Noise, devices: Devices) -> Guarantee:
    """Return the guarantee of a person's answer, exchanged for another in every run."""
    assert isinstance(plan.privacy, Privacy)  # noqa: S101  a plan with noise has one
    if noise.pure:
        answers = 1 if plan.privacy.adjacency == "replace-one" else 2
        return noise.guarantee.of_group(answers).repeated(devices.most_runs)
    return Guarantee(exchanged_mu(plan.schema, plan.privacy, noise)).repeated(devices.most_runs)


def _invited(plan: Plan, devices: Devices, noise: Noise) -> tuple[str, str, str]:
    runs = "this run" if devices.most_runs == 1 else f"{devices.most_runs} runs together"
    epsilon, delta = devices.stated_epsilon or math.inf, plan.budget().delta
    panel = noise.trust.drawn_by == "member"
    honest = "One member of the panel that adds its noise, and the page; not the list of the invited"
    return (
        "Each person who is invited",
        f"With their answer {CHANGES['replace-one']}, nothing that is released in {runs} gets more than "
        f"{times_as_likely(epsilon)} as likely (epsilon {at_most(epsilon)}){unless(delta)}. That they answered is no "
        "secret.",
        honest if panel else rests_on(plan, noise),
    )


def _people(plan: Plan, total: Total) -> Iterator[tuple[str, str, str]]:
    if plan.noise is None:
        return
    if plan.devices is not None:
        yield _invited(plan, plan.devices, plan.noise)
        return
    noise, unit = plan.noise, _unit(plan)
    whom = {"client": "Each party, with all its records", "person": "Each patient, with all rows at one party"}.get(
        unit, "The person behind each record"
    )
    what = {"client": "party", "person": "rows"}.get(unit, "record")
    together = "" if total.sessions == 1 else f" in all {total.sessions} sessions together"
    yield (
        whom,
        f"With their {what} {CHANGES[_adjacency(plan)]}, nothing that is released{together} gets more than "
        f"{times_as_likely(total.epsilon)} as likely (epsilon {at_most(total.epsilon)}){unless(total.delta)}. So an "
        "attacker cannot reliably tell whether they are in.",
        rests_on(plan, noise),
    )
    yield (
        "Those who use the release",
        "A model, a table or this page computed from it costs nothing more, however often.",
        "Nothing: it reveals no more than the release",
    )


def rests_on(plan: Plan, noise: Noise) -> str:
    """Explain which parties the noise's guarantee trusts, in numbers."""
    honest = plan.cohort.min_survivors - plan.cohort.colluders
    if noise.trust.divided:
        return f"At least {honest} honest parties add their part of the noise, while {plan.condition}"
    further = (clause for clause in clauses(plan, "noise") if clause != noise.trust.condition)
    return "; ".join((_sentence(noise.trust.trusted), *further, masked(plan)))


def masked(plan: Plan) -> str:
    """Explain on which condition masks hide each party's sums."""
    return f"masks hide each party's sums while {assumption(plan, 'masks')}"


def opened(plan: Plan) -> str:
    """State which sums are opened, a clause."""
    who = "parties" if plan.devices is None else "answers, some of them perhaps an attacker's"
    return f"only the total is opened, of at least {plan.cohort.min_survivors} {who}"


def _parties(plan: Plan) -> tuple[str, str, str]:
    rests = _sentence(assumption(plan, "masks"))
    return "Each party", f"No one sees its sums alone: {opened(plan)}.", rests


def _limits(plan: Plan, noise: Noise) -> Iterator[str]:
    cohort = plan.cohort
    if _unit(plan) == "record":
        yield "As much for a person with several records: the table above states how much less."
    if _unit(plan) == "person":
        yield (
            "As much for a patient who is at several parties, or under two ids at one: the table above states how "
            "much less. Each party identifies patients by its own ids, which no one can check."
        )
    if noise.trust.drawn_by == "server":
        yield "Anything towards the server: it sees the exact total before it adds the noise."
    elif noise.trust.drawn_by == "member":
        yield "Anything if the leader and all helpers work together, or if none of them adds its noise."
    elif noise.trust.divided:
        yield (
            f"Anything if fewer than {cohort.min_survivors - cohort.colluders} honest parties add their part of the "
            f"noise, or if more than {cohort.colluders} work with the attacker."
        )


def unless(delta: float) -> str:
    """State the exception to a promise, a clause after it."""
    return f", but for a chance of {chance(delta)}" if delta else ", without exception (delta 0)"


def chance(delta: float) -> str:
    """Return a small chance in words; from decimal text, because ``1 / 1e-5`` is below 100,000."""
    return f"1 in {int(1 / Decimal(repr(delta))):,} (delta {delta_text(delta)})"


def _count(number: int, noun: str) -> str:
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"


def _unit(plan: Plan) -> Unit:
    return "record" if isinstance(plan.privacy, NoPrivacy) else plan.privacy.unit


def _adjacency(plan: Plan) -> Adjacency:
    return "add-remove" if isinstance(plan.privacy, NoPrivacy) else plan.privacy.adjacency


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
