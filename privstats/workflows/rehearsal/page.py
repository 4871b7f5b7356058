"""Write a rehearsal's page, one file stamped as a rehearsal, without any release."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import tomli_w

from privstats.course import Binned, Course
from privstats.course.promise import total_of
from privstats.files.atomic import atomic_write
from privstats.heads.diagnostics import RANKS
from privstats.printable import delta_text
from privstats.printable.command_line import command_line
from privstats.workflows.rehearsal.assumed import MOST_ROWS, Sentence, words_of
from privstats.workflows.rehearsal.shapes import decisive, drawn
from privstats.workflows.rehearsal.sources import Source, file_of, unusual
from privstats.workflows.report.layout import Cell, Figure, Table, render

if TYPE_CHECKING:
    from privstats.workflows.rehearsal.areas import Auc, Decided
    from privstats.workflows.rehearsal.run import Opened, Own, Rehearsal

STAMP = "A REHEARSAL: read from the files themselves"
UNSURE = (
    "± is the standard error over the records held out; for a difference, of both models on the same records. It "
    "excludes the variation of the noise, sampled once, and of the records to learn from."
)
_SURE = 2.0
"""Standard errors from which a difference counts as clear."""
_OPEN = "?"
_LEFT = {
    "unlabelled": "records without a class, excluded",
    "unowned": "records without an id, excluded",
    "broken": "records that do not fit the names, excluded",
}
_READ = ("transform", "features", "classes", "class_names")


@dataclass(frozen=True)
class Bar:
    """One model's AUC, if it has one; ``private`` marks a guarantee."""

    name: str
    area: Auc | None
    private: bool = False

    @property
    def shown(self) -> str:
        """The area as text; ``-`` for none."""
        return "-" if self.area is None else f"{self.area.value:.3f}{_spread(self.area.error)}"

    @property
    def width(self) -> float:
        """Length of the drawn bar: 0 for guessing, 1 for a perfect order."""
        return 0.0 if self.area is None else max(2 * self.area.value - 1, 0.0)


def _spread(error: float | None) -> str:
    return "" if error is None else f" ± {error:.3f}"


def assumptions(what: Opened) -> tuple[Sentence, ...]:
    """Return public facts and defaults, with their place in a study."""
    words = words_of(len(what.parties), persons=what.asked.persons is not None)
    chosen = {name: getattr(what.asked, name, None) for name in words}
    promise = [
        Sentence(name, str(word), f"your own choice: {why}")
        for name, (word, why) in words.items()
        if chosen[name] is None
    ]
    written = [
        Sentence(f"how {Path(file_of(file)).name} is written", _words(options), "its owner states it, in every command")
        for file in what.files
        if (options := _written(file))
    ]
    return (*what.public.sentences, *written, *promise)


def _words(options: Mapping[str, object]) -> str:
    return " ".join(flag if value is True else f"{flag} {quote(str(value))}" for flag, value in options.items())


def promised(what: Opened) -> str:
    """Return the guarantee in one line, with its condition."""
    privacy = what.privacy
    unit = "record" if what.asked.persons is None else "person at one party"
    return (
        f"epsilon {privacy.epsilon:g}, delta {delta_text(privacy.delta)}, {privacy.adjacency}, one {unit}, noise: "
        f"{privacy.model}, while {total_of(what.course).condition}"
    )


def scored_on(what: Opened) -> str:
    """Return which records are scored."""
    if what.asked.persons is None:
        return "records of all parties that were in no sum"
    return "records of persons of all parties who were in no sum"


@dataclass(frozen=True)
class Worth:
    """The joint model's value on one party's held-out records."""

    bars: tuple[Bar, Bar]
    conclusion: str


def worths(rehearsal: Rehearsal) -> list[Worth]:
    """Return the joint model's worth to every party."""
    joint = f"all together, epsilon {rehearsal.opened.privacy.epsilon:g}"
    whose = "records" if rehearsal.opened.asked.persons is None else "patients"
    return [
        Worth(
            (
                Bar(f"{name}'s own records: alone, no privacy", own.alone),
                Bar(f"{name}'s own records: {joint}", own.private, True),
            ),
            _worth(f"{name}'s own {whose}", own),
        )
        for name, own in rehearsal.own.items()
    ]


def _worth(whose: str, own: Own) -> str:
    if not own.records:
        return f"For {whose} there is no area to compare: no record is held out."
    if own.gain is None:
        where, lacking = ("held out", own.unscored) if own.unscored else ("summed", own.unfitted)
        what = "area to compare" if own.unscored else "model of its own to compare with"
        return f"For {whose} there is no {what}: no record {where} has the class {' or '.join(lacking)}."
    value, error = own.gain.value, own.gain.error
    sentence = f"For {whose} the joint model is worth {value:+.3f}{_spread(error)}"
    if error is None:
        return f"{sentence}: too few records of a class are held out to estimate its error."
    if abs(value) < _SURE * error:
        return f"{sentence}: its {own.records:,} records held out cannot distinguish that from 0."
    return f"{sentence}." if value > 0 else f"{sentence}: its own model predicts them better."


def bars(rehearsal: Rehearsal) -> list[Bar]:
    """Return areas: each party alone, all without noise, all with the guarantee."""
    alone = [Bar(f"{name} alone, no privacy", auc) for name, auc in rehearsal.alone.items()]
    epsilon = rehearsal.opened.privacy.epsilon
    joint = Bar(f"all together, epsilon {epsilon:g}", rehearsal.private, True)
    return [*alone, Bar("all together, no privacy", rehearsal.exact), joint]


def oddities(what: Opened) -> list[str]:
    """Return questions about columns that were not read, and remarks on odd columns."""
    return [*what.public.questions, *(remark for party in what.parties for remark in party.odd)]


def costs(rehearsal: Rehearsal) -> list[tuple[str, str]]:
    """Return budget, bytes and seconds."""
    what = rehearsal.opened
    excluded = [(label, sum(getattr(party, name) for party in what.parties)) for name, label in _LEFT.items()]
    sizes = [("records", what.public.records, sum(int(party.test.sum()) for party in what.parties))]
    if what.public.persons is not None:
        sizes.insert(0, ("persons", what.public.persons, sum(party.persons(test=True) for party in what.parties)))
    return [
        ("promise for all sessions together", promised(what)),
        *((f"{unit} summed", f"{summed:,}") for unit, summed, _ in sizes),
        *((f"{unit} held out to score on", f"{held:,}") for unit, _, held in sizes),
        *((label, f"{count:,}") for label, count in excluded if count),
        ("balanced accuracy under the promise", f"{rehearsal.decided.balanced:.1%}"),
        *_flagged(rehearsal.decided),
        *([("what that means, and what to do", remark)] if (remark := rehearsal.decided.remark) else []),
        *([("this head predicts one class", "for all records held out")] if rehearsal.decided.one_class else []),
        *([("probabilities of this head", RANKS)] if rehearsal.ranks else []),
        *_faint(what.course),
        ("sessions", f"{len(rehearsal.releases)}"),
        ("bytes that each party sent, masked", f"{rehearsal.upload_bytes:,}"),
        ("seconds, all parties in one process", f"{rehearsal.seconds:.0f}"),
    ]


def _flagged(decided: Decided) -> Iterator[tuple[str, str]]:
    if decided.sensitivity is not None and decided.specificity is not None:
        name, share = decided.classes[1], decided.shares[1]
        yield (
            f'sensitivity and specificity of {name} from a probability of {share:.3g} on (threshold="prevalence")',
            f"{decided.sensitivity:.1%}, {decided.specificity:.1%}",
        )


def text_of(rehearsal: Rehearsal) -> str:
    """Return areas and costs as text."""
    lines = [
        STAMP,
        "",
        *(f"- {remark}" for remark in oddities(rehearsal.opened)),
        "",
        "On each party's own records that were in no sum:",
    ]
    for each in worths(rehearsal):
        lines += [*(f"{bar.name}: {bar.shown}" for bar in each.bars), each.conclusion]
    lines += [
        UNSURE,
        "",
        f"On {scored_on(rehearsal.opened)}:",
        *(f"{bar.name}: {bar.shown}" for bar in bars(rehearsal)),
        "",
    ]
    return "\n".join([*lines, *(f"- {what}: {here}" for what, here in costs(rehearsal))])


def facts(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return plain values, for scripts."""
    return {
        "stamp": STAMP,
        "own_records": {name: _own_facts(own) for name, own in rehearsal.own.items()},
        "auc": rehearsal.private.value,
        "balanced_accuracy": rehearsal.decided.balanced,
        "balanced_accuracy_by_shares": rehearsal.decided.by_shares,
        "balanced_accuracy_by_mean_probabilities": rehearsal.decided.by_expected,
        "sensitivity_by_shares": rehearsal.decided.sensitivity,
        "specificity_by_shares": rehearsal.decided.specificity,
        "missed_classes": rehearsal.decided.remark,
        "one_class": rehearsal.decided.one_class,
        "probabilities_only_rank": rehearsal.ranks,
        "auc_no_privacy": rehearsal.exact.value,
        "auc_alone": {name: _value(auc) for name, auc in rehearsal.alone.items()},
        "promise": promised(rehearsal.opened),
        "odd": oddities(rehearsal.opened),
        "assumed_public": [f"{each.what}: {each.assumed}" for each in assumptions(rehearsal.opened)],
        "sessions": len(rehearsal.releases),
        "upload_bytes": rehearsal.upload_bytes,
        "seconds": rehearsal.seconds,
    }


def _own_facts(own: Own) -> dict[str, Any]:
    return {
        "records": own.records,
        "auc_alone": _value(own.alone),
        "auc": _value(own.private),
        "gain": _value(own.gain),
        "gain_error": None if own.gain is None else own.gain.error,
    }


def _value(area: Auc | None) -> float | None:
    return None if area is None else area.value


def _faint(course: Course) -> list[tuple[str, str]]:
    remark = course.remark if isinstance(course, Binned) else ""
    return [("how faintly cut points are seen", remark)] if remark else []


def study_plan(what: Opened) -> str:
    """Return a study's plan; inferred facts have question marks."""
    tables: Mapping[str, Any] = what.plan.tables
    columns = [{"name": each.name, "kind": _OPEN} for each in what.public.columns]
    schema = {key: value for key, value in tables["schema"].items() if key not in _READ}
    cohort = {**tables["cohort"], "max_records": _OPEN}
    privacy = {"epsilon": what.asked.epsilon, "unit": _OPEN}
    if what.asked.persons is not None:
        privacy |= {name: getattr(what.privacy, name) for name in ("unit", "person_clip", "max_records_per_person")}
    for name in ("delta", "adjacency", "model"):
        stated = getattr(what.asked, name)
        privacy[name] = _OPEN if stated is None else stated
    shown = {
        "schema": {**schema, "classes": _OPEN, "transform": [{"kind": "cells", "columns": columns}]},
        "cohort": cohort,
        "privacy": privacy,
    }
    return tomli_w.dumps(shown)


def next_commands(what: Opened, *, kept: bool) -> list[tuple[str, str]]:
    """Return a study's next commands with purposes; ``kept`` omits the first."""
    first, persons = what.files[0], what.asked.persons
    table = {"--from": file_of(first), **_written(first)}
    dropped = {"--drop": tuple(dict.fromkeys((*what.asked.drop, *filter(None, [persons]))))}
    declared = {"--public": "columns.toml", "--target": what.asked.target}
    unit = {} if persons is None else _OF_PERSONS
    rows = "" if persons is None else _rows_of(persons)
    commands = [
        (
            command_line("plan", "init", "plan.toml", options={**table, **dropped}),
            "writes columns.toml, the names, each with a question mark for its kind: fill it in from the data "
            "dictionary",
        ),
        (
            command_line("plan", "init", "plan.toml", options={**table, **declared, **unit}),
            "writes the plan from the filled-in columns.toml, and asks for what only you can choose",
        ),
        *(
            (
                command_line(
                    "look", file_of(file), options={**_written(file), "--plan": "plan.toml", "--key": persons}
                ),
                f"at the party that holds it: its file compared with the plan{rows}",
            )
            for file in what.files
        ),
    ]
    return commands[1:] if kept else commands


def before_a_score(what: Opened) -> tuple[str, str]:
    """Return the command that holds records out."""
    file, asked = what.files[0], what.asked
    options = {**_written(file), "--target": asked.target, "--split": asked.test, "--persons": asked.persons}
    return (
        command_line("flower", "records", "STUDY/party", file_of(file), options=options),
        "in the study, at every party: holds this share out of every sum. Without --split no record remains for "
        "privstats score",
    )


_OF_PERSONS = {"--unit": "person", "--person-clip": MOST_ROWS, "--max-records-per-person": MOST_ROWS}


def _rows_of(column: str) -> str:
    return f", and how many rows a patient has; `privstats flower records` needs --persons {quote(column)}"


def _written(file: Source) -> dict[str, object]:
    return {f"--{name}": each for name, each in unusual(file.dialect).items()}


def shape(rehearsal: Rehearsal) -> Figure:
    """Draw the points of the columns that decide most."""
    hidden = len(rehearsal.card.columns) - len(decisive(rehearsal.card))
    others = f" The other {hidden} columns matter less." if hidden else ""
    return Figure.of_png(
        "points of the private model",
        "Points of the private model over the values of a column: log odds relative to the mean record. The band "
        f"covers 95 % of the noise; grey where noise may explain all of it, or the cell may be empty.{others}",
        drawn(rehearsal.card),
    )


def write_page(rehearsal: Rehearsal, path: str | os.PathLike[str], *, kept: bool = False) -> None:
    """Render the page and write it to ``path``; ``kept``: columns.toml exists.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    what = rehearsal.opened
    html = render(
        __package__,
        "rehearsal.html",
        stamp=STAMP,
        target=what.asked.target,
        names=[party.name for party in what.parties],
        oddities=oddities(what),
        worths=worths(rehearsal),
        bars=bars(rehearsal),
        unsure=UNSURE,
        scored_on=scored_on(what),
        assumptions=Table(
            "treated as public",
            ("what", Cell("value here", notes=("below: where a study finds it",))),
            [(each.what, Cell(each.assumed, notes=(each.elsewhere,))) for each in assumptions(what)],
            words=True,
        ),
        costs=Table("what it cost", ("what", "here"), costs(rehearsal), words=True),
        plan=study_plan(what),
        commands=next_commands(what, kept=kept),
        score=before_a_score(what),
        card=shape(rehearsal),
    )
    atomic_write(path, html.encode(), shared=True)
