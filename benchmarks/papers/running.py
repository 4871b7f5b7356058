"""Shared parts of the papers' commands: tables as every benchmark has them, and figures drawn from the same rows.

Not a plotting library: a figure is a function from the rows of the run to matplotlib axes, so it can show nothing that
the JSON does not hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.measuring import Row, Rows, Tables, command, results

__all__ = ["Parts", "Picture", "Pictures", "lines", "paper_command", "points"]

Parts: TypeAlias = Mapping[str, Callable[[argparse.Namespace], Tables]]
"""The tables of a paper by the name under which ``--only`` measures them, in the paper's order."""

Picture: TypeAlias = Callable[[Any, Mapping[str, Rows]], None]
"""Draws on matplotlib axes what the tables of this run say, by title."""
Pictures: TypeAlias = Mapping[str, Picture]
"""By the name of the file without its ending."""


_DASHES: Sequence[Any] = ("-", (0, (5, 3)), (0, (1, 2)), (0, (5, 2, 1, 2)))


def paper_command(name: str, about: str, parts: Parts, pictures: Pictures | None = None) -> None:
    """``benchmarks.measuring.command`` for ``papers.NAME``, with ``--only PART ...`` and ``--figures FOLDER``.

    ``--only`` measures some parts and keeps the committed results of the others; without a name it measures nothing, so
    that ``--only --figures FOLDER`` draws what is committed.

    Args:
        name: of the paper; the results go to ``benchmarks/results/papers.NAME.json``.
        about: the module's docstring.
        parts: the benchmark.
        pictures: drawn after the last table, where a folder is given.
    """
    drawn = pictures or {}

    def before(options: argparse.Namespace) -> Mapping[str, Any]:
        return {} if options.only is None else results(f"papers.{name}")

    def shown(options: argparse.Namespace) -> Tables:
        kept = dict(before(options))
        for part in parts if options.only is None else options.only:
            for title, rows in parts[part](options):
                kept[title] = rows
                yield title, rows
        if options.figures is not None:
            for picture, draw in drawn.items():
                _save(options.figures / f"{picture}.png", draw, kept)

    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--only", nargs="*", choices=list(parts), help="measure these parts, keep the others")
        parser.add_argument("--figures", type=Path, help=f"draw into this folder: {', '.join(drawn) or 'nothing yet'}")

    command(f"papers.{name}", about, shown, options, before)


def points(rows: Sequence[Row], column: str, value: str = "ours") -> list[tuple[str, float]]:
    """The cells of one column that have a value: their row's name and the value; published text is read as a number."""
    chosen = (row for row in rows if row["column"] == column and row[value] is not None)
    return [(row["row"], float(str(row[value]).partition("±")[0].lstrip("<"))) for row in chosen]


def lines(axes: Any, rows: Rows, columns: Sequence[str], *, published: bool) -> None:
    """Draw columns whose rows are named by numbers: ours as lines, what was printed as crosses of the same colour.

    Bars are two standard errors. Lines may lie on one another, so that each has its own dashes.

    Args:
        axes: of matplotlib.
        rows: of one table.
        columns: which of its columns.
        published: whether to draw what was printed, too.
    """
    for place, column in enumerate(columns):
        chosen = [row for row in rows if row["column"] == column and _is_number(row["row"])]
        ours = [(float(row["row"]), row["ours"], 2 * row["se"]) for row in chosen if row["ours"] is not None]
        style = {"linestyle": _DASHES[place % len(_DASHES)], "marker": "o", "markersize": 3, "capsize": 2}
        (line, *_) = axes.errorbar(*zip(*ours, strict=True), label=column, **style)
        printed = points(chosen, column, "published") if published else []
        if printed:
            told = [(float(row), value) for row, value in printed]
            axes.plot(*zip(*told, strict=True), "x", color=line.get_color(), label=f"{column}, published")
    axes.legend(fontsize="x-small")


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _save(path: Path, draw: Picture, tables: Mapping[str, Rows]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    draw(figure.subplots(), tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"drawn: {path}")
