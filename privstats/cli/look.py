"""``privstats look``: compare a party's own file with the plan, on the party's own screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import TABLE, Dialect, argument, expanded, option
from privstats.cli.parts.terminal import escape, new_table, say, terminal
from privstats.errors import PlanError

if TYPE_CHECKING:
    from privstats.records.reading import Reading
    from privstats.schema import Schema
    from privstats.transforms import Column
    from privstats.workflows.look import Looked

app = typer.Typer(rich_help_panel="Plan")

_COLUMNS = ("column", "unit or kind", "quartiles, or shares", "missing", "unread", "other", "outer")
_WORDS = 3


@app.command()
@expanded
def look(
    file: Annotated[Path, argument(f"The party's records: {TABLE}.", "FILE")],
    plan: Annotated[Path, option("The plan, or a course that begins with it.", "PLAN.TOML")],
    dialect: Dialect,
    key: Annotated[str | None, option("The column of person ids, to count rows per person.", "COLUMN")] = None,
    target: Annotated[
        str | None, option("The column of labels or targets, to compare with the plan's classes.", "COLUMN")
    ] = None,
) -> None:
    """Compare your file with the plan's columns, before you join. Its counts are exact: do not share them.

    Tell the others what the plan should change: a gap code, a unit, the promise.
    """
    from privstats.intake.shared_ids import id_remarks
    from privstats.intake.table_parts import misfits, persons_column
    from privstats.records.outside_ranges import outside_remarks
    from privstats.workflows.identifiers import id_questions
    from privstats.workflows.look import keys_of, looked, times_remark

    governing, declared, reading = _plan_of(plan)
    columns = (*(declared or _columns_of(governing, plan)), *_target_of(governing, target))
    records, names = dialect.file(file, persons=key), [each.name for each in columns]
    whose = persons_column(records, records.opened_by(names if key is None else [*names, key]))
    names += [] if whose is None else [whose]
    table = records.table(names, [each.marks for each in columns])
    say(f"{len(table.values(names[0])):,} records of {file}")
    if left_out := records.left_out:
        say(f"left out, as bookkeeping of other programs or empty: {', '.join(path.name for path in left_out)}")
    _show([looked(each, table.values(each.name)) for each in columns])
    readings = {each.name: each.readings(table.values(each.name)) for each in columns if each.name != target}
    without_edges = {each.name: each for each in columns if each.name in readings and _is_open(each)}
    for name, why in id_questions(readings, without_edges).items():
        say(f"{name}: {why}. If it names persons or records, no plan should read it: tell the coordinator")
    for remark in outside_remarks(records, reading):
        say(remark)
    schema = governing.schema
    if isinstance(schema, ps.HazardSchema) and (remark := times_remark(schema, table.values(schema.bins.name))):
        say(remark)
    if table.left_out:
        say(misfits(table.left_out, table.first_left_out))
    if table.nameless:
        say(f"no name, and so not read: column {', '.join(map(str, table.nameless))}")
    if whose is not None:
        keys = keys_of(table.values(whose))
        rows = keys.records / max(keys.keys, 1)
        say(f"{rows:.1f} rows per {whose}, {keys.most:,} at most{_promise(governing) if keys.repeated else ''}")
        if keys.nameless:
            say(
                f"{keys.nameless:,} rows have no {whose} that names a person: under a promise per person they are "
                "excluded. Put a letter before an id that is a date or a number with decimals"
            )
        for remark in id_remarks(table.values(whose)):
            say(remark)
    say("exact facts of your records: do not share them; report only gap codes, units and spellings to the coordinator")


def _plan_of(path: Path) -> tuple[ps.Plan, tuple[Column, ...], Reading]:
    """Return the plan that reads the records, for a course its original one; columns that a course declares; a reading.

    The reading is that of a course's last round, because a first round may only count.
    """
    from privstats.course.document import is_course

    if not is_course(path):
        alone = ps.Plan.read(path)
        return alone, (), alone.schema.reading
    course: Any = ps.course.read(path)
    reading = course.priced[-1].schema.reading
    while hasattr(course, "then"):
        course = course.then
    if isinstance(course, ps.Hazard | ps.Effect):
        course = course.plan
    return course if isinstance(course, ps.Plan) else course.first, getattr(course, "declared", ()), reading


def _columns_of(plan: ps.Plan, path: Path) -> tuple[Column, ...]:
    schema = plan.schema
    if isinstance(schema, ps.HazardSchema):
        _, *others = schema.counted().variables
        columns = _features(schema)
        return ps.Numeric(schema.bins.name, schema.bins.edges), *others, *columns  # type: ignore[arg-type]
    if isinstance(schema, ps.EffectSchema) and schema.feature_names:
        outcomes = tuple(ps.Numeric(name) for name in schema.outcome_names or ())
        return *_features(schema), *(_outcomes(schema) or outcomes)
    if schema.reading.declaration is not None:
        return schema.reading.declared
    if not schema.reading.names:
        raise PlanError(f"{path} names no columns to compare with: `privstats plan init --public` declares them")
    return _features(schema)


def _target_of(plan: ps.Plan, name: str | None) -> tuple[Column, ...]:
    """Return the labels as a column of the plan's classes, or the targets as numbers."""
    if name is None:
        return ()
    from privstats.records.reading import Labels, Targets, Unread

    match plan.schema.reading.goal:
        case Labels(classes):
            values: Any = tuple(classes)
            return (ps.Categories(name, values),)
        case Targets():
            return (ps.Numeric(name),)
        case Unread():
            raise PlanError(f"--target names {name!r}, and the plan reads no labels or targets; omit it")


def _features(schema: Schema) -> tuple[Column, ...]:
    """Return the columns as their declared texts, a treatment as 0 and 1, or numbers."""
    levels, names = schema.reading.levels, schema.reading.names or ()
    last = (schema.reading.maps or (None,))[-1]
    arm = names[last.column] if isinstance(last, ps.transforms.ByArm) else None
    texts = {name: None if levels is None else levels.of(name) for name in names}
    return tuple(
        each or (ps.Categories(name, (0, 1)) if name == arm else ps.Numeric(name)) for name, each in texts.items()
    )


def _is_open(column: Column) -> bool:
    """Return whether a column is of numbers for which nobody stated cut points, as one of ids might be."""
    return isinstance(column, ps.Numeric) and column.edges is None


def _outcomes(schema: ps.EffectSchema) -> tuple[Column, ...]:
    levels = schema.reading.levels
    return () if levels is None else levels.outcomes


def _promise(plan: ps.Plan) -> str:
    if not isinstance(plan.privacy, ps.Privacy) or plan.privacy.unit != "record":
        return ""
    return ': the promise is for one record, so request one row each, or unit = "person"'


def _show(columns: list[Looked]) -> None:
    console = terminal()
    table = new_table()
    for place, heading in enumerate(_COLUMNS):
        table.add_column(heading, justify="left" if place < _WORDS else "right")
    for each in columns:
        shares = (each.missing, each.unreadable, each.other, each.outermost)
        shown = ["-" if count is None else f"{count / max(each.records, 1):.1%}" for count in shares]
        table.add_row(escape(each.name), escape(each.unit), escape(each.values), *shown)
    console.print(table)
    for each in columns:
        for remark in each.remarks:
            console.print(f"- {escape(each.name)}: {escape(remark)}", soft_wrap=True)
