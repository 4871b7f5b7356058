"""``privstats synthesise``: rows from the releases of a synthetic course."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import privstats as ps
from privstats.errors import PlanError
from privstats.extend.commands import Force, argument, option, say, writable

app = typer.Typer(rich_help_panel="Read")

_NONE = "none"


@app.command()
def synthesise(
    course: Annotated[Path, argument("The course document.", "COURSE.TOML")],
    releases: Annotated[
        list[str], argument("The releases of its sessions, in order; 'none' where there was no sum.", "RELEASE...")
    ],
    rows: Annotated[int, option("Number of rows.")],
    out: Annotated[Path, option("The CSV file to write; a page of text is written next to it.", "FILE")],
    seed: Annotated[int, option("The same releases and seed give the same rows.")] = 0,
    columns: Annotated[
        Path | None,
        option("columns.toml, by which dates and truths are written as such. Default: the course's.", "FILE"),
    ] = None,
    page: Annotated[Path | None, option("An HTML page to write: released tables next to the rows'.", "FILE")] = None,
    force: Force = False,
) -> None:
    """Draw rows of no real person from the released counts: they cost no budget, and may not be counted again.

    The text next to the file states the promise, the measured pairs, and how far the rows are from each exact table.
    """
    from privstats.cli.parts.declared_columns import tables_in
    from privstats.contrib.synthetic.columns import column_of
    from privstats.contrib.synthetic.course import Synthetic
    from privstats.contrib.synthetic.rows import NO_INTERVALS, synthetic

    writable((out, out.with_suffix(".txt"), *([] if page is None else [page])), force)
    own = ps.course.read(course)
    if not isinstance(own, Synthetic):
        raise PlanError(f"{course} is no course of synthetic rows: write one with `privstats course init --synthetic`")
    loaded = [None if name == _NONE else ps.Release.load(name) for name in releases]
    declared = own.declared if columns is None else tuple(map(column_of, tables_in(columns)))
    drawn = synthetic(own, loaded, rows=rows, seed=seed, columns=declared)
    drawn.save(out)
    if page is not None:
        from privstats.contrib.synthetic.page import write_page

        write_page(drawn, page)
    say(f"wrote {out} and {out.with_suffix('.txt')}: {drawn.promise}. {NO_INTERVALS}")
