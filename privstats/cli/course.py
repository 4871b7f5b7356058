"""``privstats course init | check | show | next | admit | rehearse``, and what packages announce for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.next_command import next_command
from privstats.cli.parts.options import (
    TABLE,
    Detected,
    Force,
    Json,
    Target,
    argument,
    expanded,
    flags_of,
    option,
    targets_of,
)
from privstats.cli.parts.plan_files import PlanFiles
from privstats.cli.parts.terminal import (
    escape,
    folder_for,
    say,
    table_of,
    terminal,
    warn_of_same_files,
    warned,
    writable,
)
from privstats.errors import PlanError
from privstats.files.text import json_text
from privstats.printable import at_most, delta_text
from privstats.row_options import RowOptions, left_out

if TYPE_CHECKING:
    from rich.table import Table

    from privstats.course.document import Written
    from privstats.course.promise import Promise
    from privstats.moments import RecordFile

app = typer.Typer(
    help="Several sessions under one budget: refinement rounds, centred sums, alignments, streams.",
    no_args_is_help=True,
    rich_help_panel="Plan",
)

CourseFile = Annotated[Path, argument("The course document.", "COURSE.TOML")]
Releases = Annotated[
    list[str] | None, argument("The releases of the rounds so far, in order; 'none' for a round without a sum.")
]

_NONE = "none"
_FAMILIES = ("primary", "secondary", "subgroups")


def _terms() -> RowOptions:
    from privstats.course.kinds import COURSE_KINDS

    return COURSE_KINDS.options("terms")


@app.command()
@expanded
def init(
    path: CourseFile,
    plan: Annotated[Path, option("A plan whose promise is the whole course's.", "PLAN.TOML")],
    terms: Annotated[Any, _terms],
    force: Force = False,
) -> None:
    """Divide a plan's promise over a course's sessions, and write that course and its plan.

    The plan decides the kind of course: columns with open edges get counts for their cut points, then what --then
    names; whole parties get their two rounds; scores, a regression; hazards, counts and rounds; Gaussians, an
    alignment. Any other plan gets refinement rounds, or the course that an option such as --centred selects.
    """
    from privstats.course.document import texts

    course = _new_course(_full_plan(plan), terms)
    writable([path.with_name(name) for name in texts(path.name, course)], force)
    first = ps.course.write(path, course)
    say(f"wrote {path} and {first}; run: {next_command('course', 'check', path)}")


def _new_course(whole: ps.Plan, terms: Any) -> Written:
    from privstats.course.hazard import require_times
    from privstats.course.kinds import converted, kind_for

    require_times(whole.schema)
    chosen = converted(terms)
    kind = kind_for(whole.schema, chosen, left_out(terms))
    flags = [kind.asked] if kind.asked and kind.asked not in kind.options else []
    takes = [*flags, *kind.options]
    unknown = [name for name in chosen if name not in takes]
    if unknown and not kind.takes_others:
        text = f"accepts {flags_of(takes, type(terms))}" if takes else "has no options"
        raise PlanError(f"{kind.what}: such a course {text} besides --plan; omit {flags_of(unknown, type(terms))}")
    if lacking := [name for name in kind.needed if name not in chosen]:
        needed = flags_of(lacking, type(terms))
        raise PlanError(f"{kind.what}: such a course needs {needed}, which only its owners can state")
    course: Written = kind.within(whole, **{name: value for name, value in chosen.items() if name not in flags})
    return course


def _full_plan(path: Path) -> ps.Plan:
    """Values that follow from the schema alone, as a regression's weights do, need not be published."""
    from privstats.course.kinds import kind_for
    from privstats.plan.document import from_toml, read_text

    try:
        return ps.Plan.read(path)
    except PlanError:
        terms, _ = from_toml(read_text(path))
        make = kind_for(terms["schema"], ()).full_plan
        if terms["published"] is not None or make is ps.Plan:
            raise
        return make(**terms)


@app.command()
def check(path: CourseFile, as_json: Json = False) -> None:
    """Validate a course and print the cost of each round and of all together; exit code 1 above its promise."""
    from privstats.course.document import stated

    course, promise = stated(path)
    violated = promise is not None and not promise.holds(course.mu)
    if as_json:
        facts = {"forecast": _forecast(course), "facts": _review(course), **_facts(course, promise)}
        typer.echo(json_text({"violated": violated, "sessions": course.most, **facts}))
    else:
        _print_check(path, course, promise)
    if violated:
        raise typer.Exit(1)


def _print_check(path: Path, course: Written, promise: Promise | None) -> None:
    from privstats.course.promise import total_of

    console = terminal()
    console.print(_table(course))
    cost = total_of(course)
    price = f"mu {at_most(course.mu)}, {cost.claim}; charged before the first round, never refunded"
    claim = cost.claim if math.isinf(course.mu) else price
    console.print(f"all together, {course.most} sessions at most: {claim}", soft_wrap=True)
    console.print(f"each party sends {cost.upload_bytes:,} bytes in total", soft_wrap=True)
    if promise is not None:
        console.print(f"promise for all sessions: {_promised(promise, course.mu)}", soft_wrap=True)
    if analysis := getattr(course, "analysis", None):
        claim = "; ".join(
            f"{name} {', '.join(getattr(analysis, name))}" for name in _FAMILIES if getattr(analysis, name)
        )
        looks = f"; {analysis.looks.number} looks, {analysis.looks.spending} spending" if analysis.looks else ""
        console.print(f"declared: {escape(claim)}; all else is exploratory{looks}", soft_wrap=True)
    if cost.conditions:
        console.print("epsilon bounds what all released sums reveal together, on these conditions:", soft_wrap=True)
    for condition in cost.conditions:
        console.print(f"- {escape(condition)}", soft_wrap=True)
    console.print()
    facts = _review(course)
    for line in facts:
        console.print(f"- {escape(line)}", soft_wrap=True)
    console.print(f"\ndigest: {course.digest}", soft_wrap=True)
    if promise is None or promise.holds(course.mu):
        say(f"{path} is consistent{warned(facts)}.")


def _review(course: Written) -> list[str]:
    """Return the facts of all sessions together, the course's remarks and its forecast, one sentence each."""
    from privstats.course.promise import promise_facts
    from privstats.inference.prediction import cap_warnings

    remark, refused = getattr(course, "remark", ""), _refused(course)
    return [
        *([f"WARNING: {remark}"] if remark else []),
        *([f"WARNING: no table or head reads its last release: {refused}"] if refused else []),
        *promise_facts(course),
        *cap_warnings(course.priced[-1]),
        *_forecast(course),
    ]


@app.command()
def show(path: CourseFile) -> None:
    """Print a course, its rounds and their cost as JSON."""
    course = ps.course.read(path)
    typer.echo(json_text(_facts(course, course.promise)))


def _facts(course: Written, promise: Promise | None) -> dict[str, Any]:
    from privstats.course.promise import total_of

    total = total_of(course)
    return {
        "digest": course.digest,
        "nodes": _rows(course),
        "mu": course.mu,
        "epsilon": total.epsilon,
        "delta": total.delta,
        "condition": total.condition,
        "conditions": total.conditions,
        "epsilon_toward_party": total.party_epsilon,
        "upload_bytes": total.upload_bytes,
        "first": course.first.digest,
        "promise": None if promise is None else asdict(promise),
        "unreadable": _refused(course),
    }


def _refused(course: Written) -> str:
    from privstats.workflows.readers import unread_statistics

    return unread_statistics(course.priced[-1]).refused


def _forecast(course: Written) -> list[str]:
    if not course.priced[-1].schema.several_sessions:
        return []
    from privstats.inference.forecasts import forecast_sentences

    return forecast_sentences(course)


@app.command(name="next", hidden=True)  # machines do it by themselves: for scripts that have none
def following(
    path: CourseFile,
    releases: Releases = None,
    out: Annotated[Path, option("The plan's file; its values go next to it.")] = Path("next.toml"),
    force: Force = False,
) -> None:
    """Write the plan of the next round, and the values it publishes, from the releases so far."""
    files = PlanFiles(out)
    course = ps.course.read(path)
    plan = course.next(_loaded(releases))
    if plan is None:
        say("the course has ended: fit a head on its releases")
        return
    say(f"round {len(releases or ())}: {files.write(plan, force)}")


@app.command(hidden=True)
def admit(
    path: CourseFile,
    plan: Annotated[Path, argument("The received plan.", "PLAN.TOML")],
    releases: Releases = None,
    as_json: Json = False,
) -> None:
    """Compute the plan of the next round and compare the received one with it; exit code 1 if they differ."""
    course, sent = ps.course.read(path), ps.Plan.read(plan)
    loaded = _loaded(releases)
    try:
        ps.course.verify_next(course, sent, loaded)
        refused = None
    except PlanError as error:
        refused = str(error)
    if as_json:
        typer.echo(json_text({"violated": refused is not None, "node": len(loaded), "why": refused}))
    else:
        say(refused or f"{plan} is the plan of round {len(loaded)}")
    if refused:
        raise typer.Exit(1)


@app.command()
@expanded
def rehearse(
    path: CourseFile,
    dialect: Detected,
    files: Annotated[list[Path], argument(f"For each party, in order: {TABLE}.", "FILES...")],
    out: Annotated[Path, option("The folder for the releases.")],
    target: Target = None,
    persons: Annotated[
        str | None, option("The column of patient ids, if the promise or the split is per patient.")
    ] = None,
    split: Annotated[
        float | None, option("The share of each file's records to keep out of every sum, to score on, 0 to 1.")
    ] = None,
    seed: Annotated[
        int,
        option("The seed of the split. Each file has coins of its own; with --persons a person has one everywhere."),
    ] = 0,
    force: Force = False,
) -> None:
    """Run a whole course in this process, with real masks and noise, over files that you may look at.

    Nothing is charged: one process sees all records, so they are public, made up, or one owner's.
    """
    from privstats.heads.registry import suited
    from privstats.intake.record_files import of_party

    course = ps.course.read(path)
    if persons is not None and split is None and course.first.person_clip is None:
        raise PlanError("the promise is not per person, so no column of ids is read: omit --persons")
    places = [out / f"{place}.release" for place in range(course.most)]
    writable(places, force, makes=out)
    how: dict[str, Any] = {"persons": persons, "split": split, "seed": seed}
    goal = targets_of(course, target)
    records = [of_party(dialect.file(file, goal, **how), place) for place, file in enumerate(files)]
    shards = _shards(course, records)
    warn_of_same_files(files)
    _warn_of_outside(course, records)
    say(f"{len(files)} parties, one for each path: {', '.join(map(str, files))}")
    folder_for(out)
    releases = ps.simulate(course, shards)
    held = _saved(places, releases)
    say(f"{len(held)} of {course.most} sessions ended with a sum in {out}")
    _say_readers(path, course, held)
    if suited([release.plan.schema for release in releases if release is not None]):
        say(f"fit a model: {next_command('head', 'fit', out)}")
        if split is not None:
            _say_scores(records, split)


def _say_readers(path: Path, course: Written, held: Sequence[Path]) -> None:
    from privstats.course.kinds import course_kind
    from privstats.workflows.readers import unread_statistics

    if unread_statistics(course.priced[-1]).refused:
        return
    words = [each.format(path=path) for each in course_kind(course).read_by.split()[1:]]
    say(f"read what they measure: {next_command(*words, *held, without=('target', 'persons', 'seed', 'split'))}")


def _saved(paths: Sequence[Path], releases: Sequence[ps.Release | None]) -> list[Path]:
    held = [(path, release) for path, release in zip(paths, releases, strict=False) if release is not None]
    for path, release in held:
        release.save(path)
    return [path for path, _ in held]


def _say_scores(files: Sequence[RecordFile], split: float) -> None:
    """Print how the model is scored on the records that were held out: files in different forms one by one."""
    from privstats.workflows.rehearsal import unusual

    say(f"about {split:.0%} of the records are in no sum; score the model on them:")
    if len({file.dialect for file in files}) == 1:
        written = unusual(files[0].dialect)
        say(f"  {next_command('score', 'model.head', *(file.path for file in files), **written)}")
        return
    for file in files:
        say(f"  {next_command('score', 'model.head', file.path, seed=file.seed, **unusual(file.dialect))}")


def _shards(course: Written, files: Sequence[RecordFile]) -> list[Any]:
    from privstats.course.kinds import file_of
    from privstats.records.from_file import persons_in, records_in
    from privstats.workflows.simulate import NamedShard

    reading, unreadable = course.priced[-1].schema.reading, course.first.unreadable
    persons = course.first.person_clip is not None
    read: Any = persons_in if persons else partial(records_in, at_once=True)
    return [NamedShard(str(file.path), read(file_of(course, file), reading, unreadable)) for file in files]


def _warn_of_outside(course: Written, files: Sequence[RecordFile]) -> None:
    """Warn of values outside declared ranges, as a party's own check of its file does."""
    from privstats.records.outside_ranges import outside_remarks

    for file in files:
        for remark in outside_remarks(file, course.priced[-1].schema.reading):
            say(f"warning: {file.path}: {remark}", err=True)


def _loaded(paths: Sequence[str] | None) -> list[ps.Release | None]:
    return [None if name == _NONE else ps.Release.load(name) for name in paths or ()]


def _promised(promise: Promise, mu: float) -> str:
    verdict = "which its sessions keep" if promise.holds(mu) else "and its sessions cost more: write the course anew"
    return f"epsilon {at_most(promise.epsilon)} at delta {delta_text(promise.delta)}, {verdict}"


def _rows(course: ps.course.Course) -> list[dict[str, Any]]:
    from privstats.course.promise import longest

    rows = []
    for place, (plan, sent) in enumerate(zip(course.priced, longest(course), strict=True)):
        budget = plan.budget()
        rows.append(
            {
                "node": place,
                "measures": plan.schema.task,
                "statistics": plan.schema.statistics,
                "mu": budget.mu,
                "epsilon": budget.epsilon,
                "upload_bytes": sent.masking.upload_bytes,
            }
        )
    return rows


def _table(course: ps.course.Course) -> Table:
    from privstats.course.kinds import labels_of

    words = ("measures", "statistics")
    rows = [
        (label, *(row[word] for word in words), at_most(row["mu"]), at_most(row["epsilon"]), f"{row['upload_bytes']:,}")
        for label, row in zip(labels_of(course), _rows(course), strict=True)
    ]
    return table_of(("round", *words, "mu", "epsilon alone", "bytes up"), rows, left=words)
