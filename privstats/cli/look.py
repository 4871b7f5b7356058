"""``privstats look``: a party's own file beside the plan, on its own screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import Decimal, Encoding, Separator
from privstats.cli.parts.terminal import escape, new_table, say, terminal
from privstats.errors import PlanError

if TYPE_CHECKING:
    from privstats.transforms import Column
    from privstats.workflows.look import Looked

__all__ = ["app"]

app = typer.Typer(rich_help_panel="Plan")

_COLUMNS = (
    "column",
    "unit or kind",
    "quartiles, or shares",
    "missing",
    "unread",
    "other",
    "outer",
)
_WORDS = 3


@app.command()
def look(
    file: Annotated[Path, typer.Argument(help="The party's CSV or Parquet file.", metavar="FILE")],
    plan: Annotated[Path, typer.Option(help="The plan, or a course that begins with it.", metavar="PLAN.TOML")],
    key: Annotated[
        str | None, typer.Option(help="The column that tells whose record it is: rows per person.", metavar="COLUMN")
    ] = None,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    decimal: Decimal = ".",
) -> None:
    """Before you join: what your file holds beside the plan's columns. Exact, so it stays on this screen.

    What you find goes into the plan by word: a gap code, a unit, another promise.
    """
    from privstats.moments import RecordFile
    from privstats.moments.table_parts import persons_column
    from privstats.workflows.look import keys_of, looked

    governing = _plan_of(plan)
    columns = _columns_of(governing, plan)
    records = RecordFile(file, encoding=encoding, separator=separator, decimal=decimal, persons=key)
    whose = persons_column(records, list(records.columns))
    table = records.table([*(each.name for each in columns), *([] if whose is None else [whose])])
    _show([looked(each, table.values(each.name)) for each in columns])
    if table.left_out:
        say(f"{table.left_out:,} lines have another number of fields than the header: they are no records")
    if whose is not None:
        found = keys_of(table.values(whose))
        rows = found.records / max(found.keys, 1)
        say(f"{rows:.1f} rows a {whose}, {found.most:,} at most{_promise(governing) if found.repeated else ''}")
    say("exact facts of your records: keep them here, and tell the coordinator gap codes, units and spellings by word")


def _plan_of(path: Path) -> ps.Plan:
    """The plan that reads the records: of a course the one that it was made of."""
    from privstats.course.document import is_course

    if not is_course(path):
        return ps.Plan.read(path)
    course: Any = ps.course.read(path)
    while hasattr(course, "then"):
        course = course.then
    return course if isinstance(course, ps.Plan) else course.first


def _columns_of(plan: ps.Plan, path: Path) -> tuple[Column, ...]:
    transform = getattr(plan.schema, "transform", ())
    if not transform or not isinstance(transform[0], ps.Cells):
        raise PlanError(f"{path} declares no columns, so there is nothing to look at: a plan of Cells does")
    return transform[0].columns


def _promise(plan: ps.Plan) -> str:
    """What the plan promises where a person has several rows."""
    if not isinstance(plan.privacy, ps.Privacy) or plan.privacy.unit != "record":
        return ""
    return ': the promise is for one record, so ask for one row each, or for unit = "person"'


def _show(found: list[Looked]) -> None:
    console = terminal()
    table = new_table()
    for place, heading in enumerate(_COLUMNS):
        table.add_column(
            heading, justify="left" if place < _WORDS else "right", overflow="fold", no_wrap=place >= _WORDS
        )
    for each in found:
        shares = (each.missing, each.unreadable, each.other, each.outermost)
        shown = ["-" if count is None else f"{count / max(each.records, 1):.1%}" for count in shares]
        table.add_row(escape(each.name), escape(each.unit), escape(each.told), *shown)
    console.print(table)
    for each in found:
        for remark in each.remarks:
            console.print(f"- {escape(each.name)}: {escape(remark)}", highlight=False, soft_wrap=True)
