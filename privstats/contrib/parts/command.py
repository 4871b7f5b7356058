"""``privstats sql``: print the statement that counts a plan's records in a data base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privstats.extend.commands import Force, argument, option

app = typer.Typer(rich_help_panel="Plan")


@app.command()
def sql(
    plan: Annotated[Path, argument("The plan, whose columns are declared.", "PLAN.TOML")],
    dialect: Annotated[str, option("The data base: duckdb, postgres or spark.", "NAME")],
    table: Annotated[str, option("The table or view, such as hospital.patients.", "NAME")],
    target: Annotated[str | None, option("The column of labels, for a plan of classes.", "COLUMN")] = None,
    persons: Annotated[
        str | None, option("The column of person ids, integers, for a promise per person.", "COLUMN")
    ] = None,
    out: Annotated[Path | None, option("Write the statement to this file.", "FILE")] = None,
    force: Force = False,
) -> None:
    """Print one statement that counts a plan's records where they are; it reads no record.

    Its rows are exact counts: keep them where the records are. records.py of a party reads them (docs/sql.md).
    """
    import privstats as ps
    from privstats.contrib.parts.sql import Query
    from privstats.extend.commands import say, writable
    from privstats.extend.support import atomic_write

    text = Query.of(ps.Plan.read(plan), table, target, dialect=dialect, persons=persons).text + ";"
    if out is None:
        typer.echo(text)
        return
    writable([out], force)
    atomic_write(out, f"{text}\n".encode(), shared=True)
    say(f"wrote {out}; it reads no record before the data base runs it, and its rows are exact counts: keep them there")
