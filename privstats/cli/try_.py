"""``privstats try``: a rehearsal of as many parties as files."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privstats.cli.parts.next_command import this_command
from privstats.cli.parts.options import TABLE, Detected, Force, argument, expanded, flags_of, option
from privstats.cli.parts.terminal import escape, say, table_of, terminal, warn_of_same_files, writable
from privstats.errors import DataError
from privstats.files.atomic import atomic_write
from privstats.files.text import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from privstats.workflows.rehearsal import Bar, Opened, Rehearsal

app = typer.Typer(rich_help_panel="Begin")

_EXAMPLE = ("north.csv", "south.csv")
_COLUMNS = "columns.toml"
# No rehearsal writes a page of this size, so a larger file is another one and is not read.
_MAX_PAGE_BYTES = 1 << 24


@dataclass(frozen=True)
class TryOptions:
    """Options of a rehearsal, for ``rehearsal.RehearsalOptions``."""

    target: Annotated[str | None, option("The column that is predicted, of a few classes; needed.", "COLUMN")] = None
    epsilon: Annotated[
        float | None, option("The promise's epsilon; needed. Smaller is safer and noisier: 1 to 10 is usual.")
    ] = None
    delta: Annotated[float | None, option("The promise's delta; chosen by the rehearsal if omitted.")] = None
    adjacency: Annotated[str | None, option("add-remove or replace-one; chosen if omitted.")] = None
    model: Annotated[str | None, option("Who adds noise: central, distributed or local; chosen if omitted.")] = None
    test: Annotated[float, option("The approximate share of the records to score on, 0 to 1.")] = 0.25
    drop: Annotated[list[str] | None, option("A column to drop; repeat for more.", "COLUMN")] = None
    persons: Annotated[
        str | None, option("The column of person ids: a promise per person, whose rows stay together.", "COLUMN")
    ] = None
    gaps: Annotated[
        list[str] | None, option("A word that means a gap, or COLUMN=CODE for one column; repeat for more.", "WORD")
    ] = None
    read: Annotated[
        list[str] | None,
        option("A column to read although its values look like ids; repeat for more.", "COLUMN"),
    ] = None

    def check(self, *, of_files: bool) -> None:
        """Refuse a call without target or epsilon, with the command to type."""
        usual = {"target": "COLUMN", "epsilon": 3} if of_files else {"target": "ill", "epsilon": 3, "example": True}
        lacking = [name for name in ("target", "epsilon") if getattr(self, name) is None]
        if lacking:
            stated: dict[str, Any] = {name: value for name, value in usual.items() if getattr(self, name, None) is None}
            raise DataError(f"missing: {flags_of(lacking)}; type: {this_command(**stated)}")


@app.command(name="try")
@expanded
def rehearse(
    options: TryOptions,
    written: Detected,
    tables: Annotated[list[Path] | None, argument(f"For each party, at least two: {TABLE}.", "FILE...")] = None,
    out: Annotated[Path, option("The page to write.", "PAGE.HTML")] = Path("try.html"),
    keep: Annotated[
        bool, option(f"Also write {_COLUMNS}: only the names of the columns, to be declared.", flag="--keep")
    ] = False,
    forms: Annotated[
        bool, option("Like --keep, with the forms that were found, to be confirmed.", flag="--forms")
    ] = False,
    example: Annotated[
        bool, option(f"Write {' and '.join(_EXAMPLE)}, two made-up hospitals, and use them.", flag="--example")
    ] = False,
    as_json: Annotated[bool, option("Print one JSON object instead.", flag="--json")] = False,
    force: Force = False,
) -> None:
    """Rehearse a study on files that you may look at, with real masks and real noise, and write a page.

    The files supply what a study must know in advance, which is printed first; so the result is no release.
    """
    from privstats.workflows import rehearsal
    from privstats.workflows.report import require_extra

    require_extra()
    options.check(of_files=bool(tables))
    keep = keep or forms
    writable([*([] if _is_rehearsal(out) else [out]), *([Path(_COLUMNS)] if keep else [])], force)
    what = _opened(_files(tables or [], example), options, written)
    if not as_json:
        _show_assumptions(what)
    result = rehearsal.with_progress(what)
    rehearsal.write_page(result, out, kept=keep)
    if as_json:
        typer.echo(json_text(rehearsal.facts(result)))
    else:
        _show_result(result, out, kept=keep)
    if keep:
        _keep(what, forms=forms, quiet=as_json)


def _opened(paths: list[Path], options: TryOptions, written: Detected) -> Opened:
    from privstats.workflows import rehearsal

    files = [written.file(path, options.target) for path in paths]
    lists = {name: tuple(getattr(options, name) or ()) for name in ("drop", "gaps", "read")}
    return rehearsal.opened(files, rehearsal.RehearsalOptions(**vars(options) | lists))


def _files(tables: list[Path], example: bool) -> list[Path]:
    if example:
        if tables:
            raise DataError("--example has its own files: omit yours, or omit --example")
        tables = [Path(name) for name in _EXAMPLE]
        for path in tables:
            data = resources("privstats.workflows.rehearsal").joinpath(path.name).read_bytes()
            if path.exists() and (path.stat().st_size != len(data) or path.read_bytes() != data):
                raise DataError(f"{path} exists and is another file; go to another folder, or move it away")
            atomic_write(path, data, shared=True)
    if len(tables) < 2:
        raise DataError("a rehearsal needs two files or more, one for each party; or --example")
    warn_of_same_files(tables)
    return tables


def _is_rehearsal(page: Path) -> bool:
    """A new rehearsal may replace an earlier one's page only."""
    from privstats.workflows.rehearsal import STAMP

    return page.is_file() and page.stat().st_size <= _MAX_PAGE_BYTES and STAMP.encode() in page.read_bytes()


def _show_assumptions(what: Opened) -> None:
    from privstats.workflows.rehearsal import STAMP, assumptions, oddities, promised

    console = terminal()
    console.print(f"[bold]{STAMP}[/]")
    console.print(f"promise, with your options and the defaults below: {escape(promised(what))}\n", soft_wrap=True)
    title = "treated as public, which a study must know without looking at a record"
    headings = ("what", "value here", "where a study finds it")
    console.print(table_of(headings, assumptions(what), title=title, overflow="fold"))
    if remarks := oddities(what):
        console.print("check these first, correct them, and rehearse again:")
        for remark in remarks:
            console.print(f"- {escape(remark)}", soft_wrap=True)
        console.print()


def _show_result(rehearsal: Rehearsal, out: Path, *, kept: bool) -> None:
    from privstats.workflows.rehearsal import UNSURE, bars, before_a_score, costs, next_commands, scored_on, worths

    console, each = terminal(), worths(rehearsal)
    console.print(_areas("each party's own records that were in no sum", [bar for own in each for bar in own.bars]))
    for own in each:
        console.print(f"- {escape(own.conclusion)}")
    console.print(f"{escape(UNSURE)}\n")
    console.print(_areas(scored_on(rehearsal.opened), bars(rehearsal)))
    for what, here in costs(rehearsal):
        console.print(f"- {escape(what)}: {escape(here)}")
    console.print("\nnext:")
    for command, why in next_commands(rehearsal.opened, kept=kept):
        console.print(f"  {escape(command)}\n    {escape(why)}", soft_wrap=True)
    command, why = before_a_score(rehearsal.opened)
    console.print(f"\nfor a score later: {escape(command)}\n  {escape(why)}\n", soft_wrap=True)
    say(f"wrote {out}, a page for those who may see the files")


def _areas(of: str, bars: Sequence[Bar]) -> Table:
    rows = [(bar.name, bar.shown) for bar in bars]
    title = f"area under the ROC curve, on {of}"
    return table_of(("model", "area ± standard error"), rows, title=title, left=("model",))


def _keep(what: Opened, *, forms: bool, quiet: bool) -> None:
    from privstats.cli.parts.declared_columns import undeclared
    from privstats.workflows.forms import form_of

    public = what.public
    names = [*(each.name for each in public.columns), public.target]
    found = {each.name: form_of(each) for each in public.columns} if forms else {}
    if forms and (gaps := public.gaps.get(public.target)):
        found[public.target] = {"gaps": list(gaps)}
    atomic_write(_COLUMNS, undeclared(names, found, public.orders if forms else {}).encode(), shared=True)
    if not quiet:
        written, confirm = ("names and forms", ", and confirm the forms,") if forms else ("the names alone", ",")
        say(f"wrote {_COLUMNS}: {written}; say what each column holds{confirm} from your data dictionary")
