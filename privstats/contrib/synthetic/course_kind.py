"""The row of the counts for synthetic rows as a kind of course, which loads them on use."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from privstats.extend.courses import CourseKind, Share
from privstats.extend.doors import Option


def _declared(path: Path) -> list[Any]:
    from privstats.cli.parts.declared_columns import tables_in

    return tables_in(path)


@dataclass(frozen=True)
class Terms:
    """Options of ``course init`` for synthetic rows."""

    synthetic: Annotated[
        bool, Option("For one-way tables: then count pairs of columns, for synthetic rows.", flag="--synthetic")
    ] = False
    share: Share = None
    screen: Annotated[
        float | None, Option("For synthetic rows: the part of the promise for all pairs. Default: a fifth.")
    ] = None
    levels: Annotated[
        int | None,
        Option(
            "For synthetic rows: the maximum number of cells of a column in a pair. Default: noise alone limits it."
        ),
    ] = None
    columns: Annotated[
        Path | None,
        Option("For synthetic rows: columns.toml, by which each party's file is read.", "COLUMNS.TOML"),
    ] = field(default=None, metadata={"read": _declared})


KIND = CourseKind(
    "synthetic",
    "counts for synthetic rows",
    "privstats.contrib.synthetic.course:Synthetic",
    why="The first session counts each column, the next all pairs of columns roughly; the last counts the "
    "pairs that go together most. Rows of no real person are drawn from these counts.",
    asked="synthetic",
    draws="rows",
    terms=Terms,
    read_by="privstats synthesise {path}",
)
