"""``privstats plan init | check | certify | diff | show``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import Decimal, Encoding, Separator, Target
from privstats.cli.parts.output import Force, writable
from privstats.cli.parts.suggest import suggest
from privstats.cli.parts.terminal import escape, new_table, say, terminal
from privstats.errors import PlanError
from privstats.files.atomic import atomic_write
from privstats.files.jsonable import json_text

if TYPE_CHECKING:
    from rich.table import Table

    from privstats.cli.parts.declaring import Declaration
    from privstats.moments import RecordFile
    from privstats.plan import Difference
    from privstats.workflows.readers import UnreadStatistics

__all__ = ["app"]

app = typer.Typer(
    help="Write, check and show the plan that governs an aggregation.", no_args_is_help=True, rich_help_panel="Plan"
)
app.command()(suggest)

PlanFile = Annotated[Path, typer.Argument(help="The plan document.", metavar="PLAN.TOML")]
_SUMMED, _PARTIES, _PROMISE = "What is summed", "Parties", "Promise"  # lists of the options of `init`
_EFFECT = "Effects and hazards"


@app.command()
def init(
    path: PlanFile = Path("plan.toml"),
    example: Annotated[bool, typer.Option("--example", help="Write the commented example and ask nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; refuse where an answer is missing.")] = False,
    table: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A CSV or Parquet file, of which the names of the columns are read.", metavar="FILE"
        ),
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="What the columns hold: columns.toml, filled in.", metavar="COLUMNS.TOML")
    ] = None,
    public_file: Annotated[
        bool, typer.Option("--public-file", help="The file of --from is public as a whole: read kinds and classes too.")
    ] = False,
    target: Target = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="A column of the file to leave out, such as an id; repeat for more.", metavar="COLUMN"),
    ] = None,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    decimal: Decimal = ".",
    task: Annotated[
        str | None, typer.Option(help="classes, ridge, effect, hazard or score.", rich_help_panel=_SUMMED)
    ] = None,
    classes: Annotated[int | None, typer.Option(help="How many classes.", rich_help_panel=_SUMMED)] = None,
    target_bound: Annotated[
        float | None, typer.Option(help="The largest target of a regression.", rich_help_panel=_SUMMED)
    ] = None,
    features: Annotated[int | None, typer.Option(help="Numbers in a record.", rich_help_panel=_SUMMED)] = None,
    clip_norm: Annotated[
        float | None, typer.Option(help="The longest vector of a record; from public data.", rich_help_panel=_SUMMED)
    ] = None,
    ranges: Annotated[
        str | None,
        typer.Option(help="Columns with public ranges, as age=20:90,sex=female/male.", rich_help_panel=_EFFECT),
    ] = None,
    treatment: Annotated[
        str | None, typer.Option(help="The column of 0 and 1, or as arm=placebo/drug.", rich_help_panel=_EFFECT)
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(help="The outcome's range, as 0:1; by name, as cured=no/yes.", rich_help_panel=_EFFECT),
    ] = None,
    subgroups: Annotated[
        str | None, typer.Option(help="As age=20:55:90 or sex=0/1; none if omitted.", rich_help_panel=_EFFECT)
    ] = None,
    probability: Annotated[
        str | None, typer.Option(help="Of treatment in a trial; none: nobody assigned it.", rich_help_panel=_EFFECT)
    ] = None,
    estimand: Annotated[
        str | None, typer.Option(help="Without a probability: overlap, ate or att.", rich_help_panel=_EFFECT)
    ] = None,
    trim: Annotated[
        float | None, typer.Option(help="Likewise: the least propensity, .1 is usual.", rich_help_panel=_EFFECT)
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="Outcomes of a trial: no, or weights (--trim .5).", rich_help_panel=_EFFECT),
    ] = None,
    bins: Annotated[
        str | None, typer.Option(help="Of hazards: spans of time, as months=0,6,12,18.", rich_help_panel=_EFFECT)
    ] = None,
    event: Annotated[
        str | None, typer.Option(help="Likewise: the column of 0 and 1, or as died=no/yes.", rich_help_panel=_EFFECT)
    ] = None,
    expected_events: Annotated[
        int | None, typer.Option(help="Likewise: a public guess of their number.", rich_help_panel=_EFFECT)
    ] = None,
    head: Annotated[
        Path | None, typer.Option(help="Of a score: the model, as its save() wrote it.", rich_help_panel=_SUMMED)
    ] = None,
    clients: Annotated[int | None, typer.Option(help="Parties.", rich_help_panel=_PARTIES)] = None,
    vanish: Annotated[int | None, typer.Option(help="How many parties may vanish.", rich_help_panel=_PARTIES)] = None,
    colluders: Annotated[
        int | None, typer.Option(help="How many parties may work with the server.", rich_help_panel=_PARTIES)
    ] = None,
    max_records: Annotated[
        int | None, typer.Option(help="Records at most, over all parties.", rich_help_panel=_PARTIES)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Who adds noise: central, distributed or local.", rich_help_panel=_PROMISE)
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Who is protected: record, person or client.", rich_help_panel=_PROMISE)
    ] = None,
    max_records_per_client: Annotated[
        int | None, typer.Option(help="With unit client: records of one party.", rich_help_panel=_PROMISE)
    ] = None,
    person_clip: Annotated[
        str | None,
        typer.Option(
            help="With unit person: average, or rows that a patient weighs at most.", rich_help_panel=_PROMISE
        ),
    ] = None,
    max_records_per_person: Annotated[
        int | None,
        typer.Option(help="Beside a number of these: rows that count in full.", rich_help_panel=_PROMISE),
    ] = None,
    adjacency: Annotated[str | None, typer.Option(help="add-remove or replace-one.", rich_help_panel=_PROMISE)] = None,
    epsilon: Annotated[float | None, typer.Option(help="The promise.", rich_help_panel=_PROMISE)] = None,
    delta: Annotated[float | None, typer.Option(help="The promise.", rich_help_panel=_PROMISE)] = None,
    force: Force = False,
) -> None:
    """Ask for a plan and write it; where nothing is given and nobody can be asked, write a commented example.

    Each question has one line of explanation, and no choice of privacy has a default. Options answer beforehand. With
    --from alone it writes columns.toml, the names with a question mark for each kind: nobody's records answer these.
    """
    from privstats.cli.parts.plan_questions import can_ask, plan_from
    from privstats.cli.parts.score_questions import write_scored
    from privstats.moments import RecordFile

    writable([path], force)
    answers = {
        "task": task,
        "classes": classes,
        "target_bound": target_bound,
        "features": features,
        "clip_norm": clip_norm,
        "ranges": ranges,
        "treatment": treatment,
        "outcome": outcome,
        "subgroups": subgroups,
        "probability": probability,
        "estimand": estimand,
        "trim": trim,
        "missing": missing,
        "bins": bins,
        "event": event,
        "expected_events": expected_events,
        "head": head,
        "clients": clients,
        "vanish": vanish,
        "colluders": colluders,
        "max_records": max_records,
        "model": model,
        "unit": unit,
        "adjacency": adjacency,
        "epsilon": epsilon,
        "delta": delta,
        "max_records_per_client": max_records_per_client,
        "max_records_per_person": max_records_per_person,
        "person_clip": person_clip,
    }
    given = {name: value for name, value in answers.items() if value is not None}
    told = example or any((table, public, target, drop, public_file))
    for option, named in (("--target", target), ("--drop", drop)):
        if named and table is None and public is None:
            raise PlanError(f"{option} names a column: give the table with --from, or its columns with --public")
    file = None
    if table is not None:
        file = RecordFile(table, target, encoding=encoding, separator=separator, decimal=decimal)
    if example or not (yes or given or told or can_ask()):
        atomic_write(path, files(__package__).joinpath("plan.toml").read_bytes(), shared=True)
    elif file is not None and public is None and not public_file:
        _write_columns(path, file, drop or (), given, ask=not yes and can_ask(), force=force)
        return
    else:
        columns = _declared(file, public, public_file, target, drop or ())
        plan, text = plan_from(path, given, columns, ask=not yes and can_ask())
        if plan.schema.scores_head:
            write_scored(path, plan, text, force=force)
            return
        atomic_write(path, text.encode(), shared=True)
        if columns is not None and columns.open:
            say(
                f"the cut points of {columns.named} are found under the promise: divide it with privstats "
                f"course init study.toml --plan {path} --then {columns.then} --expected-records RECORDS"
            )
        if plan.schema.task in ("effect", "hazard"):
            say(f"its promise is for several sessions: divide it with privstats course init study.toml --plan {path}")
    say(f"wrote {path}; edit it, then run: privstats plan check {path}")


def _declared(
    file: RecordFile | None, public: Path | None, public_file: bool, target: str | None, drop: Sequence[str]
) -> Declaration | None:
    """What the columns hold, as it was said where it stands."""
    from privstats.cli.parts import declaring

    if public_file:
        if file is None or public is not None:
            raise PlanError("--public-file says that the table of --from is public: give that, and leave out --public")
        return declaring.of_public_file(file, drop)
    if public is None:
        return None
    found = declaring.declaration(public, target, drop)
    if file is not None:
        declaring.check_header(found, file)
    return found


def _write_columns(
    path: Path, file: RecordFile, drop: Sequence[str], given: dict[str, Any], *, ask: bool, force: bool
) -> None:
    from privstats.cli.parts.declaring import names_of, require_names_alone
    from privstats.cli.parts.plan_questions import columns_file

    place = path.with_name("columns.toml")
    names_of(file, drop)
    require_names_alone(place, given, force=force)
    atomic_write(place, columns_file(place, file, drop, ask=ask).encode(), shared=True)
    say(
        f"wrote {place}: say there what each column holds, from the data dictionary, then run: privstats plan init "
        f"{path} --from {file.path} --public {place} --target COLUMN"
    )


@app.command()
def check(
    path: PlanFile,
    head: Annotated[
        list[str] | None,
        typer.Option(help="A head that will be fitted; repeat for more. Default: the first for the plan."),
    ] = None,
    readers: Annotated[
        list[str] | None,
        typer.Option("--for", help="A table that will be read, or a head; repeat for more.", metavar="READER"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Validate a plan and print its budget, what its masking needs, what dropouts change, and who reads what."""
    from privstats.cli.parts.heads import spelled, spelled_readers
    from privstats.workflows.readers import unread_statistics

    plan = ps.Plan.read(path)
    found = unread_statistics(plan, (*spelled(head or ()), *spelled_readers(readers or ())))
    if as_json:
        typer.echo(json_text(_checked(plan, plan.budget(), found)))
        return
    console = terminal()
    console.print(plan.budget())
    console.print()
    facts = _facts(plan, found)
    for line in facts:
        console.print(f"- {escape(line)}", highlight=False)
    console.print(f"\ndigest: {plan.digest}", highlight=False, soft_wrap=True)
    warnings = sum(line.startswith("WARNING") for line in facts)
    told = f", with {warnings} warning{'' if warnings == 1 else 's'}: see above" if warnings else ""
    say(f"{path} holds together{told}.")


def _checked(plan: ps.Plan, budget: ps.Budget, found: UnreadStatistics) -> dict[str, Any]:
    """What ``check`` says, for scripts."""
    return {
        "digest": plan.digest,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "mu": budget.mu,
        "heads": found.heads,
        "for": found.chosen,
        "readers": found.readers,
        "unread": found.letters,
        "unread_share": found.share,
        "conditions": budget.conditions,
        "facts": _facts(plan, found),
    }


def _facts(plan: ps.Plan, found: UnreadStatistics) -> list[str]:
    from privstats.plan import facts
    from privstats.plan.grid_cost import grid_sentences

    width: list[str] = []
    if plan.schema.scores_head:
        from privstats.inference.head_scores.expected import expected_sentences

        width = expected_sentences(plan)
    return [*facts(plan), *width, *grid_sentences(plan), *found.sentences()]


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="The plan as it was.", metavar="A.TOML")],
    after: Annotated[Path, typer.Argument(help="The plan as it shall be.", metavar="B.TOML")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """What changed between two plans, and what it means for epsilon, noise, bytes and survivors."""
    from privstats.plan import difference

    found = difference(ps.Plan.read(before), ps.Plan.read(after))
    if as_json:
        typer.echo(json_text(asdict(found)))
        return
    console = terminal()
    if found.changes:
        console.print(_table("changed", [(each.key, each.before, each.after) for each in found.changes]))
    console.print(_effects(found))
    for note in found.notes:
        console.print(f"- {escape(note)}", highlight=False)


def _effects(found: Difference) -> Table:
    rows = [(each.of, _number(each.before), _number(each.after), each.means) for each in found.effects]
    return _table("what follows", rows, "what it means")


def _table(title: str, rows: list[Any], *more: str) -> Table:
    table = new_table()
    for heading in (title, "A", "B", *more):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*("-" if cell is None else escape(cell) for cell in row))
    return table


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


@app.command()
def show(path: PlanFile) -> None:
    """Print a plan, its budget and what follows from it as JSON."""
    plan = ps.Plan.read(path)
    document = {
        "digest": plan.digest,
        "plan": plan.tables,
        "budget": _budget(plan.budget()),
        "masking": plan.masking.numbers(),
        "upload_bytes": plan.masking.upload_bytes,
    }
    typer.echo(json_text(document))


@app.command()
def certify(
    path: PlanFile,
    out: Annotated[Path | None, typer.Option(help="The certificate. [PLAN.certificate.json]", metavar="FILE")] = None,
    checker: Annotated[
        Path | None,
        typer.Option(help="Also write the program that checks it, which needs Python alone.", metavar="FILE.py"),
    ] = None,
    force: Force = False,
) -> None:
    """Write what the promise rests on as exact numbers, for a checker that does not trust this library."""
    from privstats.course.document import is_course
    from privstats.plan import certificate_checker
    from privstats.plan.certificate import certificate_text

    if is_course(path):
        raise PlanError(
            f"{path} is a course, whose sessions are priced together: a certificate is of one plan, so give the plan "
            "of a session"
        )
    place = out or path.with_suffix(".certificate.json")
    writable([place, *([checker] if checker else [])], force)
    text = certificate_text(ps.Plan.read(path))
    atomic_write(place, text.encode(), shared=True)
    if checker is not None:
        atomic_write(checker, Path(certificate_checker.__file__).read_bytes(), shared=True)
    program = checker or "-m privstats.plan.certificate_checker"
    say(f"wrote {place}; check it with: python {program} {path} {place}")


def _budget(budget: ps.Budget) -> dict[str, Any]:
    whole = {name: getattr(budget, name) for name in ("mu", "epsilon", "delta", "masking_failure", "promise")}
    return {**whole, "rows": [vars(row) for row in budget.rows]}
