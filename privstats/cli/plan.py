"""``privstats plan init | check | certify | diff | show``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

import privstats as ps
from privstats.cli.parts.next_command import next_command
from privstats.cli.parts.options import (
    TABLE,
    Dialect,
    Force,
    Target,
    argument,
    expanded,
    flags_given,
    flags_of,
    for_readers,
    option,
)
from privstats.cli.parts.plan_tasks import Part
from privstats.cli.parts.questions import answers_in, options_of
from privstats.cli.parts.suggest import suggest
from privstats.cli.parts.terminal import escape, say, table_of, terminal, warned, writable
from privstats.errors import PlanError
from privstats.files.atomic import atomic_write
from privstats.files.text import json_text
from privstats.row_options import Option, RowOptions, flag_of, left_out

if TYPE_CHECKING:
    from rich.table import Table

    from privstats.cli.parts.declaring import Declaration
    from privstats.cli.parts.plan_tasks import Declared
    from privstats.moments import RecordFile
    from privstats.review import Difference
    from privstats.workflows.readers import UnreadStatistics
    from privstats.workflows.sources import Study

app = typer.Typer(
    help="Write, check and show the plan that governs an aggregation.", no_args_is_help=True, rich_help_panel="Plan"
)
app.command()(suggest)

PlanFile = Annotated[Path, argument("The plan document.", "PLAN.TOML")]
_TABLE = "--from"
_OF_TASKS = (_TABLE, "--public")
"""Options of columns that every task with declared columns accepts."""
_for = partial(for_readers, "A table that will be read, or a head; repeat for more.", several=True)
ANSWERS = partial(options_of, get_args(Part))


@dataclass(frozen=True)
class Columns:
    """The plan's table, and where its columns are declared."""

    table: Annotated[
        Path | None, Option(f"A table, of which the column names alone are written: {TABLE}.", "FILE", "--from")
    ] = None
    public: Annotated[Path | None, Option("What the columns hold: columns.toml, filled in.", "COLUMNS.TOML")] = None
    public_file: Annotated[
        bool, Option("The --from file itself is public: read kinds and classes too.", flag="--public-file")
    ] = False
    target: Target = None
    drop: Annotated[
        list[str] | None, Option("A column of the file to drop, such as an id; repeat for more.", "COLUMN")
    ] = None
    read: Annotated[
        list[str] | None,
        Option("A column of a public file to read although its values look like ids; repeat for more.", "COLUMN"),
    ] = None

    def check(self) -> None:
        """Refuse a named column without a table."""
        for name, named in (("--target", self.target), ("--drop", self.drop)):
            if named and self.table is None and self.public is None:
                raise PlanError(f"{name} names a column: pass the table with --from, or its columns with --public")
        if self.read and not self.public_file:
            raise PlanError("--read names a column of a public file: pass --from and --public-file, or omit --read")

    def declared(self, file: RecordFile | None, task: str | None) -> Declaration | Declared | None:
        """Return the declaration of the columns."""
        from privstats.cli.parts import declaring
        from privstats.cli.parts.plan_tasks import TASKS

        drop, row = self.drop or (), TASKS.get(task or "")
        columns: Declaration | Declared
        if row is not None and row.declared is not None:
            with TASKS.using(row.name):
                columns = row.declared(self.public, [each for each in flags_given(self) if each not in _OF_TASKS])
        elif row is not None and (unread := [each for each in flags_given(self) if each != _TABLE]):
            raise PlanError(f"--task {row.name} declares no columns: omit {', '.join(unread)}")
        elif self.public_file:
            if file is None or self.public is not None:
                raise PlanError("--public-file declares the table of --from public: pass --from, and omit --public")
            columns = declaring.of_public_file(file, drop, self.read or ())
        elif self.public is None:
            return None
        else:
            columns = declaring.declaration(self.public, self.target, drop)
        if file is not None and not self.public_file:
            declaring.check_header(columns, file)
        return columns


def _of_sources() -> RowOptions:
    from privstats.workflows.sources import SOURCES

    return SOURCES.options("terms")


def _study(sources: Any, columns: Sequence[str]) -> Study | None:
    """Return the study of the source that is named, if any.

    Args:
        columns: other options of columns that were given.
    """
    from privstats.workflows.sources import SOURCES

    stated = flags_given(sources)
    rows = [row for name, row in SOURCES.rows().items() if name not in left_out(sources)]
    source = next((source for source in rows if getattr(sources, source.field) is not None), None)
    if source is None:
        if stated:
            *some, last = [flag_of(source.terms, source.field) for source in rows]
            named = f"{', '.join(some)} or {last}" if some else last
            raise PlanError(f"{', '.join(stated)} goes with a source that is not named: pass {named}, or omit it")
        return None
    own = source.terms(**{each.name: getattr(sources, each.name) for each in fields(source.terms)})
    if others := [*columns, *(flag for flag in stated if flag not in flags_given(own))]:
        means = flag_of(source.terms, source.field)
        raise PlanError(f"{means} declares every column and the outcome: omit {', '.join(others)}")
    with SOURCES.using(source.name):
        return source.study(own)


@app.command()
@expanded
def init(
    columns: Columns,
    sources: Annotated[Any, _of_sources],
    dialect: Dialect,
    answers: Annotated[Any, ANSWERS],
    path: PlanFile = Path("plan.toml"),
    example: Annotated[bool, option("Write the commented example and ask nothing.", flag="--example")] = False,
    yes: Annotated[bool, option("Ask nothing; refuse where an answer is missing.", flag="--yes")] = False,
    force: Force = False,
) -> None:
    """Ask for a plan and write it; with no options and no terminal, write a commented example.

    Each question has one line of explanation, and no choice of privacy has a default. Options answer in advance. With
    --from alone it writes columns.toml: the names of the columns, each with a question mark for its kind, and no value.
    A file whose first line is a record is refused.
    """
    from privstats.cli.parts.wizard import can_ask

    writable([path], force)
    options = answers_in(answers)
    if why := left_out(answers).get(options.get("task", "")):
        raise PlanError(why)
    study = _study(sources, flags_given(columns))
    columns.check()
    file = None if columns.table is None else dialect.file(columns.table, columns.target)
    answered = [*flags_given(answers), *flags_given(columns), *flags_given(sources)]
    if example and answered:
        raise PlanError(f"--example writes a fixed plan: omit {', '.join(answered)}, or omit --example")
    if example or not (yes or answered or can_ask()):
        atomic_write(path, files(__package__).joinpath("plan.toml").read_bytes(), shared=True)
        _say_written(path)
    elif study is not None:
        _write_study(path, study, options, ask=not yes and can_ask(), force=force)
    elif file is not None and columns.public is None and not columns.public_file:
        _write_columns(path, file, columns.drop or (), options, ask=not yes and can_ask(), force=force)
    else:
        _write_plan(path, options, columns.declared(file, options.get("task")), ask=not yes and can_ask(), force=force)


def _write_plan(
    path: Path, given: dict[str, Any], columns: Declaration | Declared | None, *, ask: bool, force: bool
) -> None:
    from privstats.cli.parts.declaring import Declaration
    from privstats.cli.parts.wizard import plan_from, write_scored
    from privstats.inference.prediction import cap_warnings

    plan, text = plan_from(given, columns, ask=ask)
    if plan.schema.scores_head:
        write_scored(path, plan, text, force=force)
        return
    atomic_write(path, text.encode(), shared=True)
    if isinstance(columns, Declaration):
        _say_of_columns(columns, path)
    elif columns is not None:
        say(columns.next_step(path))
    for line in cap_warnings(plan):
        say(line)
    for line in plan.schema.column_facts:
        say(line)
    if plan.schema.several_sessions or plan.published is not None:  # published values are those of a first round
        divided = next_command("course", "init", "study.toml", plan=path)
        say(f"its promise is for several sessions: divide it with: {divided}")
    _say_written(path)


def _say_written(path: Path) -> None:
    say(f"wrote {path}; edit it, then run: {next_command('plan', 'check', path, without=('head',))}")


def _say_of_columns(columns: Declaration, path: Path) -> None:
    """State which columns are not read, and which need a course."""
    from privstats.workflows.identifiers import Question

    for name, why in columns.left_out.items():
        asks = f". If it names no person or record, pass --read {quote(name)}" if isinstance(why, Question) else ""
        say(f"not read: {name}: {why}{asks}")
    if columns.open:
        divided = next_command("course", "init", "study.toml", plan=path, then=columns.then, expected_records="RECORDS")
        say(f"the cut points of {columns.named} are estimated under the promise: divide it with: {divided}")


_OF_PERSONS = {"unit": "person", "max_records_per_person": 1, "person_clip": "1"}
"""Answers that follow from one row per person."""


def _write_study(path: Path, study: Study, given: dict[str, Any], *, ask: bool, force: bool) -> None:
    """Write a view of one row per person, and a plan whose unit is the person."""
    from privstats.cli.parts.declaring import Declaration

    view = path.with_suffix(".sql")
    writable([view], force)
    if fixed := flags_of(name for name in given if name in _OF_PERSONS):
        raise PlanError(f"the study fixes the unit as the person, with one row each: omit {fixed}")
    _write_plan(path, given | _OF_PERSONS, Declaration(study.columns, study.outcome), ask=ask, force=force)
    atomic_write(view, f"{study.view};\n".encode(), shared=True)
    say(
        f"wrote {view}, which creates the view {study.name} with one row per person: run it {study.where}, then "
        f"measure its rows with --target {study.outcome.name} --persons person_id"
    )
    if study.warning:
        say(f"warning: {study.warning}")


def _write_columns(
    path: Path, file: RecordFile, drop: Sequence[str], given: dict[str, Any], *, ask: bool, force: bool
) -> None:
    from privstats.cli.parts.declaring import names_of, require_names_alone
    from privstats.cli.parts.wizard import columns_file

    place = path.with_name("columns.toml")
    names_of(file, drop)
    require_names_alone(place, given, force=force)
    atomic_write(place, columns_file(place, file, drop, ask=ask).encode(), shared=True)
    target = "COLUMN" if file.target is None else file.target
    say(
        f"wrote {place}: state there what each column holds and how it is written, as its first lines show, from the "
        f"data dictionary, then run: {next_command('plan', 'init', path, public=place, target=target)}"
    )


@app.command()
@expanded
def check(
    path: PlanFile,
    head: Annotated[
        list[str] | None, option("A head that will be fitted; repeat for more. Default: the first for the plan.")
    ] = None,
    *,
    chosen: Annotated[Any, _for],
    as_json: Annotated[bool, option("Print one JSON object instead.", flag="--json")] = False,
) -> None:
    """Validate a plan and print its budget, what its masking needs, what dropouts change, and who reads what."""
    from privstats.cli.parts.options import heads_spelled, readers_spelled
    from privstats.workflows.readers import unread_statistics

    plan = ps.Plan.read(path)
    unread = unread_statistics(plan, (*heads_spelled(head or ()), *readers_spelled(chosen.readers or ())))
    above = _course_above(path)
    if as_json:
        course = None if above is None else above[1].digest
        typer.echo(json_text(_checked(plan, plan.budget(), unread, course)))
        return
    console = terminal()
    console.print(plan.budget())
    console.print()
    facts = _facts(plan, unread)
    for line in facts:
        console.print(f"- {escape(line)}")
    for line in (f"\ndigest: {plan.digest}", *_of_course(plan, above)):
        console.print(escape(line), soft_wrap=True)
    say(f"{path} is consistent{warned(facts)}.")


def _course_above(path: Path) -> tuple[Path, ps.course.Course] | None:
    """Courses are loaded only where the file's name has two dots."""
    if not Path(path.stem).suffix:
        return None
    from privstats.course.document import course_beside

    return course_beside(path)


def _of_course(plan: ps.Plan, above: tuple[Path, ps.course.Course] | None) -> list[str]:
    from privstats.review.special_facts import needs_course

    if above is None:
        needed = "this plan never runs alone: sign the digest of its course, which `privstats course check` prints"
        return [needed] if needs_course(plan) else []
    from privstats.course.promise import total_of

    (place, course), total = above, total_of(above[1])
    return [
        f"digest of the course in {place.name}, built from this plan: {course.digest}",
        f"all its {total.sessions} sessions together: {total.claim}; {total.upload_bytes:,} bytes from each party; the "
        "numbers above are of this plan alone",
    ]


def _checked(plan: ps.Plan, budget: ps.Budget, unread: UnreadStatistics, course: str | None) -> dict[str, Any]:
    from privstats.course.promise import total_of

    return {
        "digest": plan.digest,
        "course": course,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "epsilon_toward_party": total_of(plan).party_epsilon,
        "mu": budget.mu,
        "heads": unread.heads,
        "for": unread.chosen,
        "readers": unread.readers,
        "unread": unread.letters,
        "unread_share": unread.share,
        "conditions": budget.conditions,
        "facts": _facts(plan, unread),
    }


def _facts(plan: ps.Plan, unread: UnreadStatistics) -> list[str]:
    from privstats.inference.expected_widths import width_sentences
    from privstats.review import facts
    from privstats.review.grid_cost import grid_sentences
    from privstats.review.person_cost import person_sentences
    from privstats.review.plan_notes import plan_notes

    width = [*width_sentences(plan), *plan_notes(plan)]
    return [*facts(plan), *width, *grid_sentences(plan), *person_sentences(plan), *unread.sentences()]


@app.command()
def diff(
    before: Annotated[Path, argument("The plan as it was.", "A.TOML")],
    after: Annotated[Path, argument("The plan as it will be.", "B.TOML")],
    as_json: Annotated[bool, option("Print JSON instead of tables.", flag="--json")] = False,
) -> None:
    """Show what changed between two plans, and what it means for epsilon, noise, bytes and survivors."""
    from privstats.review import difference

    change = difference(ps.Plan.read(before), ps.Plan.read(after))
    if as_json:
        typer.echo(json_text(asdict(change)))
        return
    console = terminal()
    if change.changes:
        console.print(_table("changed", [(each.key, each.before, each.after) for each in change.changes]))
    console.print(_effects(change))
    for note in change.notes:
        console.print(f"- {escape(note)}")


def _effects(change: Difference) -> Table:
    rows = [(each.of, _number(each.before), _number(each.after), each.means) for each in change.effects]
    return _table("what follows", rows, "what it means")


def _table(title: str, rows: list[Any], *more: str) -> Table:
    cells = (["-" if cell is None else cell for cell in row] for row in rows)
    return table_of((title, "A", "B", *more), cells, overflow="fold")


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


@app.command()
def show(path: PlanFile) -> None:
    """Print a plan, its budget and what follows from it as JSON."""
    from privstats.secagg.masking_facts import masking_numbers

    plan = ps.Plan.read(path)
    document = {
        "digest": plan.digest,
        "plan": plan.tables,
        "budget": _budget(plan.budget()),
        "masking": masking_numbers(plan.masking),
        "upload_bytes": plan.masking.upload_bytes,
    }
    typer.echo(json_text(document))


@app.command()
def certify(
    path: Annotated[Path, argument("The plan document, or a course's.", "PLAN.TOML")],
    out: Annotated[Path | None, option("The certificate. [PLAN.certificate.json]", "FILE")] = None,
    checker: Annotated[
        Path | None, option("Also write the program that checks it, which needs only Python.", "FILE.py")
    ] = None,
    force: Force = False,
) -> None:
    """Write what the promise rests on as exact numbers, for a checker that does not trust this library.

    Of a course, the certificate holds each session's, and that all sessions together keep the course's promise.
    """
    from privstats.course.document import is_course
    from privstats.review import certificate_checker
    from privstats.review.certificate import certificate_text

    place = out or path.with_suffix(".certificate.json")
    writable([place, *([checker] if checker else [])], force)
    text = _course_certificate(path) if is_course(path) else certificate_text(ps.Plan.read(path))
    atomic_write(place, text.encode(), shared=True)
    if checker is not None:
        atomic_write(checker, Path(certificate_checker.__file__).read_bytes(), shared=True)
    program = checker or "-m privstats.review.certificate_checker"
    say(f"wrote {place}; check it with: python {program} {path} {place}")


def _course_certificate(path: Path) -> str:
    from privstats.course import DisjointRounds
    from privstats.course.document import read
    from privstats.plan.document import read_text
    from privstats.review.course_certificate import course_certificate_text

    course = read(path)
    if isinstance(course, DisjointRounds):
        raise PlanError(
            f"{path} is a stream, whose rounds hold different records, which no certificate can show: `privstats plan "
            "certify` answers for its plan, and `privstats audit course` for the stream"
        )
    return course_certificate_text(read_text(path), course.digest, course.priced)


def _budget(budget: ps.Budget) -> dict[str, Any]:
    totals = {name: getattr(budget, name) for name in ("mu", "epsilon", "delta", "masking_failure", "promise")}
    return {**totals, "rows": [vars(row) for row in budget.rows]}
