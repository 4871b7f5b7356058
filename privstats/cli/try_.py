"""``privstats try``: a rehearsal of as many parties as files."""

from __future__ import annotations

from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privstats.cli.parts.output import Force, writable
from privstats.cli.parts.terminal import escape, new_table, say, terminal
from privstats.errors import DataError
from privstats.files.atomic import atomic_write
from privstats.files.jsonable import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from privstats.workflows.rehearsal import Bar, Opened, Rehearsal

__all__ = ["app"]

app = typer.Typer(rich_help_panel="Begin")

_EXAMPLE = ("north.csv", "south.csv")
_COLUMNS = "columns.toml"
_OF_ALL = "Of all CSV files, and else found in each:"


@app.command(name="try")
def rehearse(
    target: Annotated[str, typer.Option(help="The column that is predicted, of a few classes.", metavar="COLUMN")],
    epsilon: Annotated[float, typer.Option(help="The promise.")],
    tables: Annotated[
        list[Path] | None, typer.Argument(help="A CSV or Parquet file for each party, at least two.", metavar="FILE...")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The promise; a word of the rehearsal if it is not said.")] = None,
    adjacency: Annotated[str | None, typer.Option(help="add-remove or replace-one; likewise.")] = None,
    model: Annotated[str | None, typer.Option(help="Who adds noise: central, distributed or local; likewise.")] = None,
    test: Annotated[float, typer.Option(help="About the share of the records to score on, 0 to 1.")] = 0.25,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; repeat for more.", metavar="COLUMN")
    ] = None,
    persons: Annotated[
        str | None,
        typer.Option(
            help="Whose a record is: a promise per person, who is summed or scored on whole.", metavar="COLUMN"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The page that is written.", metavar="PAGE.HTML")] = Path("try.html"),
    keep: Annotated[
        bool, typer.Option("--keep", help=f"Write {_COLUMNS} too: the names of the columns alone, to be declared.")
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help=f"Write {' and '.join(_EXAMPLE)}, two made-up hospitals, and take these.")
    ] = False,
    encoding: Annotated[str | None, typer.Option(help=f"{_OF_ALL} text, such as cp1252.")] = None,
    separator: Annotated[
        str | None, typer.Option(help=f"{_OF_ALL} fields: , ; | : or tab.", metavar="CHARACTER")
    ] = None,
    decimal: Annotated[str | None, typer.Option(help=f"{_OF_ALL} decimals: . or ,.", metavar="CHARACTER")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    force: Force = False,
) -> None:
    """Rehearse a study on files that you may look at: from nothing to a page, with real masks and real noise.

    What a study must know beforehand is read from the files and said first, so what comes of it is no release.
    """
    from privstats.moments import RecordFile
    from privstats.workflows import rehearsal
    from privstats.workflows.report import require_extra

    require_extra()
    writable([*([] if _is_rehearsal(out) else [out]), *([Path(_COLUMNS)] if keep else [])], force)
    paths = _files(tables or [], example)
    asked = rehearsal.Asked(target, epsilon, delta, adjacency, model, test, tuple(drop or ()), persons)
    said = (encoding, separator, decimal)
    files = [rehearsal.written_as(RecordFile(path, target), said) for path in paths]
    what = rehearsal.opened(files, asked)
    if not as_json:
        _show_taken(what)
    found = rehearsal.with_progress(what)
    rehearsal.write_page(found, out, kept=keep)
    if as_json:
        typer.echo(json_text(rehearsal.facts(found)))
    else:
        _show_found(found, out, kept=keep)
    if keep:
        _keep(what, quiet=as_json)


def _files(tables: list[Path], example: bool) -> list[Path]:
    """The parties' files; those of the example are written first, where they are not there already."""
    if example:
        if tables:
            raise DataError("--example brings its own files: leave yours out, or leave out --example")
        tables = [Path(name) for name in _EXAMPLE]
        for path in tables:
            data = resources("privstats.workflows.rehearsal").joinpath(path.name).read_bytes()
            if path.exists() and path.read_bytes() != data:
                raise DataError(f"{path} exists and is another file; go to another folder, or move it away")
            atomic_write(path, data, shared=True)
    if len(tables) < 2:
        raise DataError("a rehearsal needs two files or more, one for each party; or --example")
    return tables


def _is_rehearsal(page: Path) -> bool:
    """Whether an earlier rehearsal wrote it, so that a new one may replace it."""
    from privstats.workflows.rehearsal import STAMP

    return page.is_file() and STAMP.encode() in page.read_bytes()


def _show_taken(what: Opened) -> None:
    from privstats.workflows.rehearsal import STAMP, oddities, promised, taken

    console = terminal()
    console.print(f"[bold]{STAMP}[/]", highlight=False)
    console.print(f"promise, as asked and as below: {escape(promised(what))}\n", highlight=False, soft_wrap=True)
    table = new_table("taken for public, which a study must know without looking at a record")
    for heading in ("what", "taken here", "where a study finds it"):
        table.add_column(heading, overflow="fold")
    for each in taken(what):
        table.add_row(*map(escape, each))
    console.print(table)
    if found := oddities(what):
        console.print("look at these first, and rehearse again when they are mended:", highlight=False)
        for said in found:
            console.print(f"- {escape(said)}", highlight=False, soft_wrap=True)
        console.print()


def _show_found(found: Rehearsal, out: Path, *, kept: bool) -> None:
    from privstats.workflows.rehearsal import UNSURE, bars, before_a_score, costs, next_commands, scored_on, worths

    console, each = terminal(), worths(found)
    console.print(_areas("each party's own records that were in no sum", [bar for own in each for bar in own.bars]))
    for own in each:
        console.print(f"- {escape(own.said)}", highlight=False)
    console.print(f"{escape(UNSURE)}\n", highlight=False)
    console.print(_areas(scored_on(found.opened), bars(found)))
    for what, here in costs(found):
        console.print(f"- {escape(what)}: {escape(here)}", highlight=False)
    console.print("\nnext:", highlight=False)
    for command, why in next_commands(found.opened, kept=kept):
        console.print(f"  {escape(command)}\n    {escape(why)}", highlight=False, soft_wrap=True)
    command, why = before_a_score(found.opened)
    console.print(f"\nfor a score later: {escape(command)}\n  {escape(why)}\n", highlight=False, soft_wrap=True)
    say(f"wrote {out}, a page for those who may see the files")


def _areas(of: str, bars: Sequence[Bar]) -> Table:
    table = new_table(f"area under the ROC curve, on {of}")
    table.add_column("model")
    table.add_column("area ± standard error", justify="right")
    for bar in bars:
        table.add_row(escape(bar.name), escape(bar.shown))
    return table


def _keep(what: Opened, *, quiet: bool) -> None:
    from privstats.plan.columns import undeclared

    names = [*(each.name for each in what.public.columns), what.public.target]
    atomic_write(_COLUMNS, undeclared(names).encode(), shared=True)
    if not quiet:
        say(f"wrote {_COLUMNS}: the names alone; say what each column holds, from your data dictionary")
