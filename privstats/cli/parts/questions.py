"""The choices behind a plan: the questions of ``plan init``, their reasons, and how an answer is read.

:func:`questions` lists ours (``QUESTIONS``), and before them the task and the questions of tasks that packages bring.

Each row is a question, an option, and a field of a part of the plan, which checks its bounds. No choice of privacy has
a default.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import make_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import privstats as ps
from privstats.cli.parts.options import option
from privstats.cli.parts.plan_tasks import TASK, TASKS, Condition, Part, PlanTask, Question
from privstats.cli.parts.verifying import party_key
from privstats.errors import PlanError
from privstats.plan.settings import SETTINGS
from privstats.row_options import RowOptions, left_out

_SUMMED, _PARTIES, _PROMISE = "What is summed", "Parties", "Promise"  # lists of the options of `init`
_EFFECTS = "Effects and hazards"
_SURVEYS = "Surveys"
_SURVEY: Condition = ("task", ("survey",))
GAPS: Mapping[str, Literal["left out"] | None] = {"excluded": "left out", "cell": None}
"""Answers to what a gap in a declared column of a regression does, with the word of :class:`privstats.Cells` for it."""


def governs(question: Question) -> bool:
    """Return whether other questions depend on this one."""
    return any(name == question.name for each in questions() for name, _ in each.conditions)


def values(part: Part, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers as fields of a part."""
    read = {
        each.name: each.read(answers[each.name]) for each in questions() if each.part == part and each.name in answers
    }
    return {name: value for name, value in read.items() if value is not None}


def completed(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers, and harmless ones to open questions."""
    full = dict(answers)
    for each in questions():
        if each.name not in full and each.belongs(full):
            full[each.name] = each.harmless
    return full


def options_of(parts: Iterable[Part], heading: str = "") -> RowOptions:
    """Return the options of some parts' questions: ours, then those of each task of a package."""
    return _options((_task(), *QUESTIONS), parts, heading)


def _options(ours: Iterable[Question], parts: Iterable[Part], heading: str = "") -> RowOptions:
    """Return questions as options; two tasks share none, because an answer belongs to one question."""
    rows = {"": ours, **{name: row.questions for name, row in TASKS.rows().items()}}
    asked = {name: [each for each in own if each.part in parts] for name, own in rows.items()}
    answers = {name: _answers(own, heading) for name, own in asked.items() if own}
    return RowOptions(answers, lambda name: name and TASKS.origin(name), TASKS.noun, shared=False)


def _tasks() -> dict[str, PlanTask]:
    """Return the tasks of packages, without those with a question of a name that an earlier question has."""
    without = left_out(_options(QUESTIONS, get_args(Part)).joined())
    return {name: row for name, row in TASKS.rows().items() if name not in without}


def _answers(asked: Iterable[Question], heading: str) -> type[Any]:
    options = [
        (each.name, Annotated[each.kind | None, option(each.help, panel=heading or each.heading)], None)
        for each in asked
    ]
    return make_dataclass("Answers", options, frozen=True)


def answers_in(answers: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in vars(answers).items() if value is not None}


def _number(what: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise PlanError(f"{what} must hold plain numbers, got {text.strip()!r}")
    return number


def _range(what: str, text: str) -> tuple[float, float]:
    low, parted, high = str(text).partition(":")
    if not parted:
        raise PlanError(f"{what} must be low:high, such as 20:90, got {text!r}; take it from public knowledge")
    ends = _number(what, low), _number(what, high)
    if not ends[0] < ends[1]:
        raise PlanError(f"{what} must be low:high with low below high, got {text!r}")
    return ends


def _texts(what: str, text: str, most: float = 2) -> tuple[str, ...]:
    """The first text counts as 0 or is the reference."""
    texts = tuple(each.strip() for each in text.split("/"))
    if not 2 <= len(texts) <= most or not all(texts):
        several = "two" if most == 2 else "two or more"
        raise PlanError(f"{what} must be {several} with a slash between, such as placebo/drug, got {text!r}")
    return texts


def _by_column(what: str, text: str) -> dict[str, str]:
    columns: dict[str, str] = {}
    for part in text.split(","):
        name, parted, values = part.partition("=")
        if not parted or not name.strip() or name.strip() in columns:
            raise PlanError(
                f"{what} must name each column once with its range, as age=20:90, or with its two texts, as "
                f"sex=female/male, got {part!r}"
            )
        columns[name.strip()] = values
    return columns


def _columns(what: str, text: str, most: float = 2) -> dict[str, Any]:
    columns = _by_column(what, text).items()
    return {
        name: _texts(f"the texts of {name!r}", each, most) if "/" in each else _range(f"the range of {name!r}", each)
        for name, each in columns
    }


def _treatment(text: str) -> Any:
    return _columns("treatment", text) if "=" in text else text


def _outcome(text: str) -> Any:
    return _columns("outcome", text) if "=" in text else _range("outcome", text)


def _subgroups(text: str) -> tuple[ps.Bins | ps.Categories, ...] | None:
    return None if text == "none" else _variables("subgroups", text)


def _variables(what: str, text: str) -> tuple[ps.Bins | ps.Categories, ...]:
    return tuple(_subgroup(name, values) for name, values in _by_column(what, text).items())


def _subgroup(name: str, text: str) -> ps.Bins | ps.Categories:
    if "/" not in text:
        return ps.Bins(name, tuple(_number(f"the edges of {name!r}", each) for each in text.split(":")))
    texts = [each.strip() for each in text.split("/")]
    integers = all(each.lstrip("-").isdecimal() for each in texts)
    return ps.Categories(name, tuple(map(int, texts)) if integers else tuple(texts))


def _bins(text: str) -> ps.Bins:
    name, _, edges = text.partition("=")
    return ps.Bins(name.strip(), tuple(_number("bins, as months=0,6,12,", each) for each in edges.split(",")))


def _event(text: str) -> tuple[str, tuple[str, ...]]:
    name, parted, texts = text.partition("=")
    return name.strip(), _texts("event", texts, math.inf) if parted else ()


def _strata(text: str) -> ps.Categories | None:
    if text.strip() == "none":
        return None
    name, _, texts = text.partition("=")
    return ps.Categories(name.strip(), _texts(f"the texts of {name.strip()!r}", texts, math.inf))


def _interactions(text: str) -> tuple[tuple[str, ...], ...] | None:
    return None if text.strip() == "none" else tuple(tuple(_names(pair, "*")) for pair in _names(text))


def _exposure(text: str) -> tuple[str, float] | None:
    """Parse ``years=5`` into a column's name and largest value."""
    if text.strip() == "none":
        return None
    name, parted, bound = text.partition("=")
    if not parted or not name.strip():
        raise PlanError(f"exposure must name a column with its largest value, as years=5, or be none, got {text!r}")
    return name.strip(), _number("the largest exposure", bound)


def _survey_questions(text: str) -> tuple[ps.Bins | ps.Categories | ps.Number, ...]:
    """Each question may stay unanswered; for a number with a range the mean is released."""
    return tuple(
        ps.Number(*_mean(name, values), missing=True)
        if ".." in values
        else replace(_subgroup(name, values), missing=True)
        for name, values in _by_column("questions", text).items()
    )


def _mean(name: str, values: str) -> tuple[str, float, float, tuple[str, ...]]:
    """Parse ``hours*smokes=0..80`` into a number's name, bounds and groups."""
    number, *by = _names(name, "*")
    low, high = (_number(f"the range of {number!r}", each) for each in values.split("..", 1))
    return number, low, high, tuple(by)


def _crossed(text: str) -> tuple[tuple[str, ...], ...] | None:
    return None if text == "each" else tuple(tuple(_names(table, "*")) for table in _names(text))


def _names(text: str, mark: str = ",") -> list[str]:
    return [each.strip() for each in text.split(mark)]


def _key(text: str) -> str:
    return party_key(text.strip()).hex()


def person_clip(answer: Any) -> Any:
    """Return a per-person clip as a number where possible."""
    try:
        return answer if answer is None else float(answer)
    except ValueError:
        return answer


def _of_row(table: str, name: str, harmless: Any, *, more: str = "", **words: Any) -> Question:
    """Return the question for a setting, whose answers and help are those of its row; ``more`` ends the help."""
    row = SETTINGS[table][name]
    named: dict[str, Any] = {"part": table, **words}
    return Question(name, harmless, help=f"{row.help} {more}".strip(), form=row.form, **named)


_sum = partial(Question, heading=_SUMMED, part="schema")
_model = partial(_sum, where=("task", ("classes", "ridge")))
_effect = partial(Question, kind=str, heading=_EFFECTS, part="schema", where=("task", ("effect",)))
_hazard = partial(_effect, where=("task", ("hazard",)))
_survey = partial(Question, kind=str, heading=_SURVEYS, part="schema", where=_SURVEY)
_people = partial(_of_row, "devices", kind=str, heading=_SURVEYS, where=_SURVEY)
_party = partial(_of_row, "cohort", kind=int, heading=_PARTIES)
_promise = partial(_of_row, "privacy", kind=str, heading=_PROMISE)

_MADE: Mapping[str, str] = {
    "classes": "a model of labels",
    "ridge": "a model of a number",
    "effect": "the effect of a treatment",
    "hazard": "hazard ratios of an event",
    "rates": "rate ratios of a count, such as falls per year",
    "score": "the quality of an existing model",
    "survey": "counts of answers on people's devices",
}
"""What is learned, by our own tasks."""

# fmt: off
QUESTIONS: tuple[Question, ...] = (
    _sum("classes", 2, kind=int, where=("task", ("classes",)),
        asks="How many classes?",
        why="Labels are 0, 1, ... or names; they are public.",
        help="The number of classes."),
    _sum("target_bound", 1.0, kind=float, where=("task", ("ridge", "rates")),
        asks="What is the largest target?",
        why="The number to predict, or the count. Larger ones are clipped to it; take it from public knowledge.",
        help="The largest target of a regression; the largest count of rates."),
    _sum("gaps", "cell", kind=str, part="", where=("declared", ("regression",)), choices=tuple(GAPS), usual="excluded",
        asks="Does a gap in a declared column exclude its record?",
        why="excluded: for a table of estimates, which a cell for gaps would bias; each party sees how many of its own "
            "records are excluded. cell: for predictions of records with gaps; a table is then hidden where a column "
            "has gaps.",
        help="Regression on declared columns: excluded, for a table of estimates (default), or cell, for predictions."),
    _model("features", 2, kind=int,
        asks="How many features has a record?",
        why="All columns except the one that is predicted.",
        help="The number of features of a record."),
    _model("clip_norm", 1.0, kind=float,
        asks="What is the largest norm of a record's features?",
        why="Records with a larger norm are clipped to it. Take it from public data: from private records it is a leak "
            "outside the budget.",
        help="The largest norm of a record's features; larger ones are clipped. From public data."),
    _effect("ranges", "age=20:90", where=("task", ("effect", "hazard", "rates")),
        read=partial(_columns, "ranges", most=math.inf),
        asks="Which columns, with which public ranges?",
        why="As age=20:90,sex=female/male: measured before treatment, known from the literature and not from records; "
            "two texts count as 0 and 1; of more, as smoking=never/former/current, each is compared with the first.",
        help="Columns and public ranges, as age=20:90,sex=female/male,smoking=never/former/current."),
    _effect("treatment", "treated", read=_treatment,
        asks="Which column holds the treatment, 1 or 0?",
        why="It is none of the columns above. If it holds two texts, name the untreated one first: arm=placebo/drug.",
        help="The treatment's column of 0 and 1, or as arm=placebo/drug."),
    _effect("outcome", "0:1", read=_outcome,
        asks="What is the public range of the outcome?",
        why="As 0:1, or 0:30 for days; by name, as cured=no/yes, and several as cured=0:1,died=0:1. Values beyond it "
            "are clipped.",
        help="The outcome's range, as 0:1; by name, as cured=no/yes."),
    _effect("subgroups", "none", usual="none", read=_subgroups,
        asks="Which subgroups, in addition to all records?",
        why="As age=20:55:90 for spans, sex=0/1 for values: they cost no budget, and each has the full noise; none: no "
            "subgroups.",
        help="Subgroups, as age=20:55:90 or sex=0/1. Default: none."),
    _effect("probability", "0.5", read=lambda answer: None if answer == "none" else _number("probability", answer),
        asks="With which probability was each record assigned to treatment?",
        why="A number for a randomised trial, such as 0.5; none without randomisation: then a propensity is fitted.",
        help="The probability of treatment in a trial; or none, if not randomised."),
    _effect("measure", "difference", choices=("difference", "ratio", "both"), unless=("probability", ("none",)),
        usual="difference", read=lambda answer: None if answer == "difference" else answer,
        asks="Is the effect a difference, a ratio, or both?",
        why="Of both arms' mean outcomes or risks; a ratio needs one outcome from 0. both has 6 % more noise, and a "
        "wider interval of a ratio far from 1.",
        help="For a trial: difference, ratio or both."),
    _effect("missing", "no", choices=("no", "weights"), unless=("probability", ("none",)), usual="no",
        read=lambda answer: None if answer == "no" else answer,
        asks="May outcomes be missing?",
        why="no: a record without one is excluded; weights: it counts, if arm and columns alone explain who has none.",
        help="Missing outcomes of a trial: no, or weights (--trim .5)."),
    _effect("left_out", "no", choices=("no", "counted"), usual="no",
        read=lambda answer: None if answer == "no" else answer,
        asks="Are records that cannot be read counted?",
        why="counted: by arm and reason with noise, for a trial's report, at no further price; no: each party sees its "
            "own.",
        help="Count records that are excluded (CONSORT 13b): no, or counted."),
    _effect("estimand", "overlap", choices=("overlap", "ate", "att"), where=("probability", ("none",)),
        asks="Whose difference is estimated?",
        why="overlap: of those who could get either arm, with the least noise; ate: of all; att: of the treated.",
        help="For a study without randomisation: overlap, ate or att."),
    _effect("trim", 0.3, kind=float, where=("probability", ("none",)), also=("missing", ("weights",)),
        asks="Below which propensity is a record excluded?",
        why="Of treatment .02 to .4, usually .1; of an observed outcome .2 to .8, usually .5: others do not compare.",
        help="The smallest propensity of a study without randomisation, usually .1; of --missing weights, .5."),
    _effect("exposure", "none", where=("task", ("rates",)), read=_exposure,
        asks="Which column holds the exposure, and what is its largest value?",
        why="As years=5: rates are then per year; a record with a larger value is excluded; none: every record has the "
            "same.",
        help="For rates: the column of exposures with its largest value, as years=5; or none."),
    _effect("rate", "none", where=("task", ("rates",)), usual="none",
        read=lambda answer: None if answer == "none" else _number("rate", answer),
        asks="How many events are expected, per unit of exposure?",
        why="A public guess of the mean, from which the rounds start: 0.4 per year; none: nothing is known.",
        help="For rates: a public guess of events per unit of exposure. Default: none."),
    _effect("negative_binomial", "none", where=("task", ("rates",)), usual="none",
        read=lambda answer: None if answer == "none" else _number("negative_binomial", answer),
        asks="Which dispersion of a negative binomial model weighs the records?",
        why="alpha of the variance m + alpha m^2, as an earlier study found it: intervals hold where it is wrong. "
            "Under noise a large one widens them; none: records weigh as in a Poisson model.",
        help="For rates: a public guess of the negative binomial dispersion, as 1. Default: none."),
    _effect("overdispersion", "no", choices=("no", "estimated"), where=("task", ("rates",)), usual="no",
        read=lambda answer: None if answer == "no" else answer,
        asks="Is it estimated how much counts vary beyond a Poisson model?",
        why="estimated: alpha of a negative binomial model's variance m + alpha m^2, with an interval, for 5 % of the "
            "budget; no: the table has the variance over the mean alone.",
        help="For rates: estimated, for the dispersion of a negative binomial model. Default: no."),
    _effect("interactions", "none", usual="none", read=_interactions, where=("task", ("hazard", "rates")),
        asks="Whose ratio may depend on another column?",
        why="As arm*sex: the product is a further column, with a test of the interaction; none: ratios are the same "
            "for all.",
        help="For hazards and rates: interactions, as arm*sex,arm*age. Default: none."),
    _hazard("bins", "months=0,6,12", read=_bins,
        asks="Which spans of time?",
        why="As months=0,6,12,18,24, from 0 to the end of follow-up: about six keep the noise small.",
        help="For hazards: spans of time, as months=0,6,12,18."),
    _hazard("event", "died", read=_event,
        asks="Which column holds the event, 1 or 0?",
        why="0: last seen without the event. If it holds texts, name no event first: died=no/yes; further texts are "
            "other causes, which end the time without the event: ended=seen/relapse/death.",
        help="For hazards: the event's column of 0 and 1, or as died=no/yes, or ended=seen/relapse/death."),
    _hazard("ratios", "cause-specific", choices=("cause-specific", "subdistribution"), usual="cause-specific",
        read=lambda answer: None if answer == "cause-specific" else answer,
        asks="Which ratio, where other causes rule the event out?",
        why="cause-specific: of rates among persons without any event so far; subdistribution (Fine and Gray): the "
            "event happens more often where it is above 1. It needs an event of three or more texts.",
        help="For hazards of several causes: cause-specific (default), or subdistribution (Fine and Gray)."),
    _hazard("times", "continuous", choices=("continuous", "discrete"),
        asks="Do people leave at any time, or at visits?",
        why="continuous: at any time, which the sums allow for; discrete: a span of time is one visit.",
        help="For hazards: continuous, or discrete if each span of time is one visit."),
    _hazard("time_unit", "0", usual="0", where=("times", ("continuous",)),
        read=lambda answer: _number("time_unit", answer) or None,
        asks="To which unit are times rounded down?",
        why="1 for completed months: half a unit is added to censored times; 0 for exact times.",
        help="For hazards: 1 if continuous times are in whole units. Default: 0, exact times."),
    _hazard("strata", "none", usual="none", read=_strata,
        asks="Which column has a baseline for each of its values?",
        why="As site=north/south, at most four values: Cox's model is stratified by the column, which then has no "
            "ratio; none: one baseline.",
        help="For hazards: strata, as site=north/south. Default: one baseline for all."),
    _hazard("entry", "none", usual="none", read=lambda answer: None if answer == "none" else answer,
        asks="Which column holds the time at which a person enters?",
        why="Its name, if people come under observation after time 0 and those with an earlier event are in no file; "
            "none: everyone is at risk from 0 on.",
        help="For hazards: the column of entry times, for late entry. Default: none."),
    _hazard("errors", "robust", choices=("robust", "model"), usual="robust",
        asks="Do standard errors rely on the model?",
        why="robust: on the measured variance of persons' scores, for 5 % of the budget, so intervals hold for the "
            "estimated ratio even where hazards are not proportional; model: on proportional hazards, so a small study "
            "reports more ratios.",
        help="For hazards: standard errors that are robust (default), or by model."),
    _hazard("expected_events", 1000, kind=int,
        asks="How many events are expected, over all parties?",
        why="A public guess: fewer than ten for a span of time are refused, and half widths follow from it.",
        help="For hazards: a public guess of the number of events."),
    _survey("questions", "age=18:40:60", read=_survey_questions,
        asks="Which questions are asked?",
        why="As age=18:40:60:80,smokes=yes/no,hours=0..80: a number counted in groups between edges, one of these "
        "answers, or a number whose mean is released; hours*smokes=0..80: that mean by answer.",
        help="Questions: age=18:40:60:80 for groups of a number, smokes=yes/no for answers, hours=0..80 for a mean."),
    _survey("tables", "each", usual="each", read=_crossed,
        asks="Which answers are counted together?",
        why="As age*smokes to count two answers jointly; an answer counts in every table, so noise grows with the root "
            "of the number of tables.",
        help="Tables, as age*smokes,region. Default: each question alone."),
    Question("head", None, kind=Path, heading=_SUMMED, part="head", where=("task", ("score",)),
        asks="Which head?",
        why="The file of a classifier, as its save() wrote it: the plan publishes it to all parties.",
        help="For a score: the model, as its save() wrote it."),
    _party("clients", 2,
        asks="How many parties?",
        why="Hospitals, companies or devices: each sends one sum."),
    Question("vanish", 0, kind=int, heading=_PARTIES, part="cohort",
        asks="How many of them may drop out?",
        why="If more do, there is no release.",
        help="How many parties may drop out."),
    _party("colluders", 0,
        asks="How many parties may work with the server?",
        why="The others stay protected against that many; 0 trusts that none does."),
    _party("max_records", 1, unless=_SURVEY,
        asks="How many records at most, over all parties?",
        why="It sizes the numbers that are sent; take a public upper bound."),
    _of_row("aggregation", "panel", f"{'a' * 64},{'b' * 64}", kind=str, heading=_SURVEYS, part="devices",
        where=_SURVEY, read=lambda answer: tuple(map(_key, _names(answer))),
        more="As leader.pub,helper.pub: files (PEM or hex), or hex.",
        asks="Which public keys has the panel, the leader's first?",
        why="Leader and helpers each add noise; an answer stays secret unless all of them work together. Files from "
            "`privstats identity new`, or hex: leader.pub,helper.pub."),
    _people("organisations", "leader,helper", read=_names, more="In the order of --panel, with commas between.",
        asks="Which organisations are the panel?",
        why="By the names that people know them by, in the same order: University of Ulm,Bonn Clinic."),
    _people("registrar", "registrar",
        asks="Which organisation invites?",
        why="It holds every code, so it must not be in the panel."),
    _people("registrar_key", "c" * 64, read=_key, more="A file (PEM or hex), or hex.",
        asks="Which is the registrar's public key?",
        why="It signs the list of those who may answer: trier.pub, or hex."),
    _people("page", "page",
        asks="Which organisation serves the page?",
        why="It could read every answer with another script, so it must be a separate organisation."),
    _people("most_runs", 1, kind=int,
        asks="In how many runs may one person be asked?",
        why="All of them count together in the epsilon that the page states."),
    _promise("model", "central", unless=_SURVEY, choices=("central", "distributed", "local"),
        asks="Who adds the noise?",
        why="central: a trusted server; distributed: the parties together; local: each party all, the most noise."),
    _promise("unit", "record", unless=_SURVEY,
        asks="Who is protected?",
        why="record: one record (a person with ten is protected less); person: all rows of a patient at one party; "
            "client: all records of one party."),
    _promise("person_clip", "average", where=("unit", ("person",)), read=person_clip,
        asks="How does a patient with several rows count?",
        why="average: as one record, for tables and intervals. A number: as at most that many rows, for a model; 1 was "
            "best on all data tried. Each party needs a column of patient ids."),
    _promise("max_records_per_person", 1 << 53, kind=int, where=("unit", ("person",)),
        unless=("person_clip", ("average",)),
        asks="Up to how many rows of a patient count in full?",
        why="At least person_clip, where that is a number; a patient with more rows counts as that many."),
    _promise("max_records_per_client", 1, kind=int, where=("unit", ("client",)),
        asks="How many records may one party hold?",
        why="Noise grows with it, and a party with more is refused."),
    _promise("adjacency", "add-remove", unless=_SURVEY,
        asks="What must stay secret?",
        why="add-remove: whether a record (or the unit above) is in the data at all; replace-one: only the content of "
            "a record or patient, not with unit client."),
    _promise("epsilon", 1.0, kind=float,
        asks="Which epsilon?",
        why="Smaller is safer and noisier: `privstats audit budget` shows what the best attacker finds at it."),
    _promise("delta", 1e-06, kind=float,
        asks="Which delta?",
        why="The chance that more is learned than epsilon allows: well below 1 / records, such as 1e-6; or 0, with "
            "central."),
)
# fmt: on


@cache
def questions() -> tuple[Question, ...]:
    """Return all questions in order: the task, those of tasks that packages bring, and our own."""
    return (_task(), *(each for row in _tasks().values() for each in row.questions), *QUESTIONS)


def _task() -> Question:
    made = {**_MADE, **{name: row.makes for name, row in _tasks().items()}}
    *names, last = made
    return Question(
        TASK,
        "classes",
        kind=str,
        heading=_SUMMED,
        part="",
        choices=tuple(made),
        asks="What shall be learned?",
        why="; ".join(f"{name}: {what}" for name, what in made.items()) + ".",
        help=f"{', '.join(names)} or {last}.",
    )
