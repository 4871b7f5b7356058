"""What the papers' commands share: tables as every benchmark has them, and figures drawn from the same rows.

Not a plotting library: a figure is a function from the rows of the run to matplotlib axes, so it can show nothing that
the JSON does not hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.measuring import Row, Rows, Tables, command

__all__ = ["Picture", "Pictures", "paper_command", "points"]

Picture: TypeAlias = Callable[[Any, Mapping[str, Rows]], None]
"""Draws on matplotlib axes what the tables of this run say, by title."""
Pictures: TypeAlias = Mapping[str, Picture]
"""By the name of the file without its ending."""


def paper_command(
    name: str, about: str, tables: Callable[[argparse.Namespace], Tables], pictures: Pictures | None = None
) -> None:
    """``benchmarks.measuring.command`` for ``papers.NAME``, with ``--figures FOLDER``.

    Args:
        name: of the paper; the results go to ``benchmarks/results/papers.NAME.json``.
        about: the module's docstring.
        tables: the benchmark.
        pictures: drawn after the last table, where a folder is given.
    """
    drawn = pictures or {}

    def shown(options: argparse.Namespace) -> Tables:
        kept: dict[str, Rows] = {}
        for title, rows in tables(options):
            kept[title] = rows
            yield title, rows
        if options.figures is not None:
            for picture, draw in drawn.items():
                _save(options.figures / f"{picture}.png", draw, kept)

    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--figures", type=Path, help=f"draw into this folder: {', '.join(drawn) or 'nothing yet'}")

    command(f"papers.{name}", about, shown, options)


def points(rows: Sequence[Row], column: str, value: str = "ours") -> list[tuple[str, float]]:
    """The cells of one column that have a value: their row's name and the value; published text is read as a number."""
    chosen = (row for row in rows if row["column"] == column and row[value] is not None)
    return [(row["row"], float(str(row[value]).partition("±")[0])) for row in chosen]


def _save(path: Path, draw: Picture, tables: Mapping[str, Rows]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    draw(figure.subplots(), tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"drawn: {path}")
