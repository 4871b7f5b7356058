"""Results as tables for publication: text, HTML, LaTeX, CSV.

Words and columns only; every number comes from the result. For a parameter that is not told no estimate is printed,
because readers use a number even beside an infinite interval.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privstats.files.csv_text import csv_text
from privstats.inference.reporting import HIDDEN, Source, listed
from privstats.release import Release

if TYPE_CHECKING:  # the results that are shown: a regression brings its own summary, so nothing of them is run here
    from privstats.inference.cell_table import CellTable
    from privstats.inference.counts import Interval
    from privstats.inference.regression import Regression
    from privstats.inference.scorecards import ColumnPoints, Scorecard

__all__ = [
    "Summary",
    "card_summary",
    "cells_summary",
    "chance_of",
    "ends_of",
    "fitted_words",
    "head_of",
    "number_of",
    "proportions_summary",
    "source_of",
    "summarise",
]

_WIDTH = 80
_LEAST_NAME = 12
_LEAST_P = 1e-4
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",  # these three print as other characters in LaTeX's default font encoding
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


@dataclass(frozen=True)
class Summary:
    """A table with a head and a foot.

    Attributes:
        title: one line.
        head: pairs of a name and a value.
        columns: headings of the table, the first that of the row names.
        rows: one per parameter, as texts.
        foot: sentences on promise, claim and assumptions, and warnings.
        methods: a paragraph to paste into a paper's Methods; empty where a table has none.
        caution: what must be read before any number; empty for most tables.
        promise: epsilon, delta, unit and adjacency in one sentence, for a caption; empty where nothing is promised.

    Example:
        >>> records, rows = (("records", "3"),), (("f", "1.68"), ("m", "1.81"))
        >>> print(ps.inference.Summary("Heights", records, ("", "mean"), rows, foot=()))
        Heights
        ================================================================================
        records            3
        --------------------------------------------------------------------------------
           mean
        f  1.68
        m  1.81
        --------------------------------------------------------------------------------
    """

    title: str
    head: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    foot: tuple[str, ...]
    methods: str = ""
    caution: str = ""
    promise: str = ""

    def __str__(self) -> str:
        return self.as_text()

    def as_text(self) -> str:
        """80 columns of plain text, more for long cells; row names are cut to what is left, but not below 12, and not
        where two rows would have one name."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        left = max(_WIDTH - sum(width + 2 for width in widths[1:]), _LEAST_NAME)
        names = {row[0] for row in self.rows}
        widths[0] = min(widths[0], left) if len({name[: left - 1] for name in names}) == len(names) else widths[0]
        lines = [self.title, "=" * _WIDTH, *textwrap.wrap(self.caution, _WIDTH)]
        for name, value in self.head:
            lines += textwrap.wrap(f"{name:<18} {value}", _WIDTH, subsequent_indent=" " * 19, drop_whitespace=True)
        lines += ["-" * _WIDTH, _line(self.columns, widths)]
        lines += [_line(row, widths) for row in self.rows]
        lines.append("-" * _WIDTH)
        for sentence in self.foot:
            lines += textwrap.wrap(sentence, _WIDTH, subsequent_indent="  ")
        return "\n".join(line.rstrip() for line in lines)

    def as_html(self) -> str:
        """An HTML fragment without a style of its own; the caption names the promise."""
        head = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in self.head
        )
        titles = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        body = "".join(
            f"<tr><th>{_indented(row[0], '&emsp;', html.escape)}</th>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        foot = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.foot)
        caution = f"<br><strong>{html.escape(self.caution)}</strong>" if self.caution else ""
        facts = f"<table><tbody>{head}</tbody></table>" if head else ""
        return (
            f"{facts}<table><caption>{html.escape(self._caption)}{caution}</caption>"
            f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table><ul>{foot}</ul>"
        )

    def _repr_html_(self) -> str:
        return self.as_html()

    def as_latex(self) -> str:
        """A ``table`` with a caption and the rules of booktabs; head and foot are notes below."""
        lines = [r"% needs \usepackage{booktabs}", r"\begin{table}[htbp]", r"\centering"]
        lines += [rf"\caption{{{_escaped(self._caption)}}}", rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}"]
        lines += [r"\toprule", " & ".join(map(_escaped, self.columns)) + r" \\", r"\midrule"]
        for name, *cells in self.rows:
            lines.append(" & ".join([_indented(name, r"\quad ", _escaped), *map(_escaped, cells)]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        notes = [*filter(None, [self.caution]), *(f"{name}: {value}." for name, value in self.head), *self.foot]
        return "\n".join([*lines, *(rf"\par\footnotesize {_escaped(each)}" for each in notes), r"\end{table}"])

    def save(self, path: str | Path, *, methods: bool = False) -> None:
        """Write the table as the ending says: .txt, .csv, .html, .tex, or .docx through pandoc.

        Args:
            path: the file, which is replaced.
            methods: whether the paragraph for a paper's Methods follows the table; a .csv file has no room for it.

        Raises:
            ReleaseError: another ending, no room for the paragraph, or pandoc did not write the file.
            PrivstatsError: the file cannot be written.
            MissingExtraError: a .docx file, and pandoc is not installed.
        """
        from privstats.inference.summary_file import write_summary

        write_summary(self, Path(path), methods=methods)

    @property
    def escaped_methods(self) -> str:
        """The paragraph for LaTeX."""
        return _escaped(self.methods)

    @property
    def _caption(self) -> str:
        return f"{self.title}. {self.promise}" if self.promise else self.title

    def as_csv(self) -> str:
        """Comma-separated rows under their headings; the numbers as they are shown.

        A name that a spreadsheet would run as a formula has an apostrophe before it.
        """
        return csv_text([self.columns, *self.rows])


def summarise(table: Regression, alpha: float) -> Summary:
    """The table of a regression at one level."""
    told = table.errors.told(alpha)
    low, high = table.conf_int(alpha).T
    columns = (table.errors.estimate, table.bse, table.noise_bse, table.tvalues, table.pvalues, low, high)
    rows = tuple(
        (name, *_cells(seen, *(float(value) for value in values)))
        for name, seen, *values in zip(table.names, told, *columns, strict=True)
    )
    shown = len(table.names) - (table.names[0] == "const")
    source = source_of(table, alpha)
    return Summary(
        title=source.title(table.model),
        promise=source.promise,
        head=head_of(table),
        columns=("", "coef", "std err", "of it noise", "t", "P>|t|", *ends_of(alpha)),
        rows=rows,
        foot=(
            *source.foot,
            f"{shown} of {table.columns} released {'contrasts' if table.column_cells else 'columns'} shown.",
            *(f"Warning: {note}." for note in table.notes),
        ),
        methods=source.methods(fitted_words(table)),
    )


def source_of(table: Regression, alpha: float, more: str = "") -> Source:
    """What a regression's table rests on; ``more`` is assumed too."""
    assumed = f"{table.assumed},{more} independent records, negligible clipping, honest clients"
    return Source(table.release, alpha, assumed, (*table.counts, *(table.release.plan,) * table.rounds))


def fitted_words(table: Regression) -> str:
    """How a regression was fitted."""
    columns = [each.name for each in table.column_cells] or [name for name in table.names if name != "const"]
    rounds = f", in {table.rounds} rounds of score and information" if table.rounds > 1 else ""
    return f"{table.model} on {listed(columns)}{rounds}; standard errors are {table.cov_type} ({table.cov_reason})."


def cells_summary(table: CellTable) -> Summary:
    """Contrasts of each column's cells, one row per cell."""
    fit, level = table.regression, table.level
    shown = _cells(level.told, level.value, 0.0, 0.0, 0.0, level.pvalue, level.low, level.high)
    rows = [("all references", shown[0], "", "", *shown[4:])]
    errors = (table.estimate, table.error, table.noise_error, table.pvalue, table.low, table.high)
    before = ""
    for place, (column, cell, told) in enumerate(zip(table.columns, table.cells, table.told, strict=True)):
        estimate, error, noise, p, low, high = (float(values[place]) for values in errors)
        said = ["reference", "", "", "", "", ""]
        if not table.reference[place]:
            said = _cells(bool(told), estimate, error, noise, 0.0, p, low, high)
            del said[3]
        if column != before:
            rows.append((column, *[""] * 6))
        rows.append((f"  {cell}", *said))
        before = column
    source = source_of(fit, table.alpha, " effects of columns add up,")
    return Summary(
        title=source.title(f"{fit.model}: contrasts of cells"),
        promise=source.promise,
        head=head_of(fit),
        columns=("", "contrast", "std err", "of it noise", "P>|t|", *ends_of(table.alpha)),
        rows=tuple(rows),
        foot=(
            *source.foot,
            "A contrast is the difference to the column's reference cell, other columns equal.",
            *(f"Warning: {note}." for note in fit.notes),
        ),
        methods=source.methods(f"{fitted_words(fit)} A contrast is the difference to its column's reference cell."),
    )


def proportions_summary(shares: Mapping[str, Interval], release: Release, alpha: float) -> Summary:
    """Shares of the cells of one variable."""
    rows = [
        (cell, f"{share.value:.4f}", f"{share.low:.4f}", f"{share.high:.4f}")
        if share.told
        else (cell, HIDDEN, "0", "1")
        for cell, share in shares.items()
    ]
    source = Source(release, alpha, "independent records, honest clients")
    return Summary(
        title=source.title("Proportions"),
        promise=source.promise,
        head=(),
        columns=("", "proportion", *ends_of(alpha)),
        rows=tuple(rows),
        foot=tuple(source.foot),
        methods=source.methods("Shares of records have Wilson's intervals, widened by the noise of the counts."),
    )


def card_summary(card: Scorecard) -> Summary:
    """Points per column and cell; those of a cell that may be empty stand in parentheses, without a band."""
    rows = []
    for row, outcome in enumerate(card.outcomes):
        for column in card.columns:
            first = column.name if len(card.outcomes) == 1 else f"{outcome}: {column.name}"
            for place, cell in enumerate(column.cells):
                share = f"{100 * max(column.shares[place], 0.0):.0f} %"
                rows.append((first if not place else "", cell, share, *_points(column, row, place)))
    release, bands = (
        card.releases[0],
        (
            "Bands are about what these records would have given without noise, its spread and the head's own bias "
            "under it: not about what other records would have given."
        ),
    )
    source = Source(release, card.alpha, "", tuple(each.plan for each in card.releases))
    return Summary(
        title=source.title("Scorecard"),
        promise=f"Privacy: {card.promise}.",
        head=tuple(
            (f"base, {outcome}", f"{value:+.3f}") for outcome, value in zip(card.outcomes, card.base, strict=True)
        ),
        columns=("", "cell", "records", "points", *ends_of(card.alpha)),
        rows=tuple(rows),
        foot=(
            "A record's score is the base and its points: "
            + ("log odds." if len(card.outcomes) == 1 else "the softmax of all scores gives the probabilities."),
            *(() if card.exact else ("Rows are taken at one length; the head divides each by its own.",)),
            "Points in parentheses: noise alone could show so few records, so they are no finding.",
            bands,
            f"Privacy: {card.promise}.",
            f"Plan {release.plan.digest[:16]}, {len(release.survivors)} of {release.plan.cohort.clients} clients.",
        ),
        methods=source.methods(
            f"Points of {listed([column.name for column in card.columns])}: the log odds that a classifier from sums "
            "over cells of the columns gives each cell, less their mean over all records.",
            claim=bands,
            privacy=f"Privacy: {card.promise}.",
        ),
    )


def _points(column: ColumnPoints, row: int, place: int) -> tuple[str, str, str]:
    """The points of a cell and its band; of several steps the first and the last, and the band of all."""
    steps = column.intervals.of_steps == place
    points = [f"{value:+.2f}" for value in column.points[row, steps]]
    said = points[0] if points[0] == points[-1] else f"{points[0]} to {points[-1]}"
    if not column.filled[place]:
        return f"({said})", "", ""
    return said, f"{column.low[row, steps].min():+.2f}", f"{column.high[row, steps].max():+.2f}"


def ends_of(alpha: float) -> tuple[str, str]:
    """Headings of the ends of an interval."""
    return f"[{100 * (1 - alpha):g}%", "]"


def chance_of(p: float) -> str:
    """A p-value as it is printed."""
    return "<.0001" if p < _LEAST_P else f"{p:.4f}"


def head_of(table: Regression) -> tuple[tuple[str, str], ...]:
    """Records and measures of a regression, the last of them the standard errors."""
    noisy = " (noisy)" if table.release.plan.noise is not None else ""
    records = () if table.nobs is None else (("records", f"{table.nobs:,.0f}{noisy}"),)
    linear = (
        ("degrees of freedom", f"{table.df_resid:,.0f}"),
        ("R-squared", HIDDEN if table.rsquared is None else f"{table.rsquared:.3f}"),
        ("residual std", f"{math.sqrt(table.scale):.4g}"),
    )
    return (
        *records,
        *(linear if math.isfinite(table.df_resid) else ()),
        ("condition number", HIDDEN if table.condition_number is None else f"{table.condition_number:.3g}"),
        ("standard errors", f"{table.cov_type} ({table.cov_reason})"),
    )


def _cells(
    told: bool, coef: float, error: float, noise: float, t: float, p: float, low: float, high: float
) -> list[str]:
    chance = chance_of(p)
    if not told:
        return [HIDDEN, HIDDEN, HIDDEN, HIDDEN, chance, "-inf", "inf"]
    return [number_of(coef), number_of(error), number_of(noise), f"{t:.2f}", chance, number_of(low), number_of(high)]


def number_of(value: float) -> str:
    """A number as it is printed."""
    return f"{value:.4g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name = cells[0] if len(cells[0]) <= widths[0] else cells[0][: widths[0] - 1] + "~"
    return f"{name:<{widths[0]}}" + "".join(
        f"  {cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True)
    )


def _indented(name: str, space: str, escaped: Callable[[str], str]) -> str:
    """The name of a row, with what stands for the spaces before it."""
    plain = name.lstrip(" ")
    return (space if plain != name else "") + escaped(plain)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
