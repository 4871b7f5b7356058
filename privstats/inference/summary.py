"""Format results as rows, frames, text, HTML, LaTeX, Markdown, CSV and, through pandoc, Word."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats import optional_dependencies
from privstats.errors import MissingExtraError, ReleaseError
from privstats.files.atomic import atomic_write
from privstats.printable import csv_text

if TYPE_CHECKING:
    from privstats.inference.description import Description

_WIDTH = 80
_LEAST_NAME = 12
_FACT, _MOST_FACT = 18, 26  # letters of a name in the head
_LEAST_P = 1e-4
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_STARRED = re.compile(r"([0-9.e+-]+)\*")
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",  # these three print as other characters in LaTeX's default font encoding
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_MARKDOWN = {character: f"\\{character}" for character in r"\`*_[]<>#|~$&"}
ENDINGS = (".txt", ".csv", ".html", ".tex", ".md", ".docx")
"""Endings of the files that :func:`write_summary` writes."""
_SECONDS = 60


@dataclass(frozen=True)
class Summary:
    """A table with a head and a foot.

    Attributes:
        columns: headings, row names' first.
        foot: sentences on guarantee, claim and assumptions.
        promise: epsilon, delta, unit and adjacency, for a caption.
        about: what the rows are; head, foot and methods hold it already. None for a table without.

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
    about: Description | None = None

    def __str__(self) -> str:
        return self.as_text()

    def as_text(self) -> str:
        """Return plain text of 80 columns, or more where the numbers need them; a long name has a line of its own."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        widths[0] = min(widths[0], max(_WIDTH - sum(width + 2 for width in widths[1:]), _LEAST_NAME))
        lines = [self.title, "=" * _WIDTH, *textwrap.wrap(self.caution, _WIDTH)]
        named = min(max([_FACT, *(len(name) for name, _ in self.head)]), _MOST_FACT)
        for name, value in self.head:
            indent = " " * (named + 1)
            lines += textwrap.wrap(f"{name:<{named}} {value}", _WIDTH, subsequent_indent=indent, drop_whitespace=True)
        lines.append("-" * _WIDTH)
        for row in (self.columns, *self.rows):
            lines += _lines(row, widths)
        lines.append("-" * _WIDTH)
        for sentence in self.foot:
            lines += textwrap.wrap(sentence, _WIDTH, subsequent_indent="  ")
        return "\n".join(line.rstrip() for line in lines)

    def as_html(self) -> str:
        """Return an unstyled HTML fragment; the caption names the guarantee."""
        head = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in self.head
        )
        titles = "".join(f"<th>{html.escape(column)}</th>" for column in self._headings)
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
        """Return a booktabs ``table`` with caption; head and foot are notes."""
        lines = [r"% needs \usepackage{booktabs}", r"\begin{table}[htbp]", r"\centering"]
        lines += [rf"\caption{{{_escaped(self._caption)}}}", rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}"]
        lines += [r"\toprule", " & ".join(map(_escaped, self._headings)) + r" \\", r"\midrule"]
        for name, *cells in self.rows:
            lines.append(" & ".join([_indented(name, r"\quad ", _escaped), *map(_escaped, cells)]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        notes = [*filter(None, [self.caution]), *(f"{name}: {value}." for name, value in self.head), *self.foot]
        return "\n".join([*lines, *(rf"\par\footnotesize {_escaped(each)}" for each in notes), r"\end{table}"])

    def as_markdown(self) -> str:
        """Return a Markdown table between its caption and head, and its foot as a list.

        Example:
            >>> head, rows, foot = (("records", "3"),), (("x_1", "0.04"),), ("Noisy.",)
            >>> print(ps.inference.Summary("T", head, ("", "P>|t|"), rows, foot).as_markdown())
            **T**
            <BLANKLINE>
            - records: 3
            <BLANKLINE>
            | | P\\>\\|t\\| |
            | :--- | ---: |
            | x\\_1 | 0.04 |
            <BLANKLINE>
            - Noisy.
        """
        head = [f"- {_marked(name)}: {_marked(value)}" for name, value in self.head]
        lines = [_marked_row(map(_marked, self._headings)), _marked_row([":---", *["---:"] * (len(self.columns) - 1)])]
        for name, *cells in self.rows:
            lines.append(_marked_row([_indented(name, "&emsp;", _marked), *map(_marked, cells)]))
        caution = [f"**{_marked(self.caution)}**"] if self.caution else []
        foot = [f"- {_marked(sentence)}" for sentence in self.foot]
        parts = [[f"**{_marked(self._caption)}**"], caution, head, lines, foot]
        return "\n\n".join("\n".join(part) for part in parts if part)

    def save(self, path: str | Path, *, methods: bool = False) -> None:
        """Write the table as .txt, .csv, .html, .tex, .md, or .docx through pandoc.

        Args:
            path: the file, which is replaced.
            methods: whether to append the Methods paragraph (not in .csv).

        Raises:
            ReleaseError: another ending, .csv with methods, or pandoc failed.
            PrivstatsError: the file cannot be written.
            MissingExtraError: .docx without pandoc.
        """
        write_summary(self, Path(path), methods=methods)

    @property
    def _caption(self) -> str:
        return f"{self.title}. {self.promise}" if self.promise else self.title

    def as_csv(self) -> str:
        """Return comma-separated rows without thousands' commas, stars or runnable formulas."""
        head = [each or ("" if place else "name") for place, each in enumerate(self._headings)]
        return csv_text([head, *([name, *map(_plain, cells)] for name, *cells in self.rows)])

    @property
    def _headings(self) -> tuple[str, ...]:
        named = list(self.columns)
        for place, (each, after) in enumerate(pairwise(named)):
            if each.startswith("[") and after == "]":
                named[place : place + 2] = f"{each[1:]} low", f"{each[1:]} high"
        return tuple(named)


def ends_of(alpha: float) -> tuple[str, str]:
    """Return the headings of interval ends."""
    return f"[{100 * (1 - alpha):g}%", "]"


def chance_of(p: float) -> str:
    """Return a p-value as printed."""
    return "<.0001" if p < _LEAST_P else f"{p:.4f}"


def p_value_text(p_value: float | None, method: str, hidden: str) -> str:
    """Return a test as printed: its p-value and method, or without a p-value what is not reported.

    Example:
        >>> from privstats.inference.summary import p_value_text
        >>> p_value_text(0.2, "Wald", "the product"), p_value_text(None, "Wald", "the product")
        ('P = 0.2000 (Wald)', 'not tested: the product is not reported')
    """
    return f"not tested: {hidden} is not reported" if p_value is None else f"P = {chance_of(p_value)} ({method})"


def number_of(value: float) -> str:
    """Return a number as printed."""
    return f"{value:.4g}"


def count_of(value: float) -> str:
    """Return a count as printed; noise may have moved it below 0.

    Example:
        >>> from privstats.inference.summary import count_of
        >>> count_of(-50.2), count_of(1234.4)
        ('0', '1,234')
    """
    return f"{max(value, 0.0):,.0f}"


def _lines(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return a row's line, and before it one of a name that is too long for it."""
    name, *others = cells
    numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
    if len(name) <= widths[0]:
        return [f"{name:<{widths[0]}}{numbers}"]
    indent = " " * (len(name) - len(name.lstrip(" ")))
    named = textwrap.wrap(name.strip(), _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
    return [*named, " " * widths[0] + numbers] if any(others) else named


def _plain(cell: str) -> str:
    starred = _STARRED.fullmatch(cell)
    return starred[1] if starred else _THOUSANDS.sub("", cell)


def _indented(name: str, space: str, escaped: Callable[[str], str]) -> str:
    plain = name.lstrip(" ")
    return (space if plain != name else "") + escaped(plain)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _marked(text: str) -> str:
    """Return text that Markdown prints as it is, on one line."""
    return "".join(_MARKDOWN.get(character, character) for character in " ".join(text.split()))


def _marked_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def require_ending(path: Path, *, methods: bool = False) -> None:
    """Refuse an unwritable file before anything is computed."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ReleaseError(
            f"a table is written as {', '.join(ENDINGS)}, and {path.name} ends otherwise; name such a file"
        )
    if ending == ".csv" and methods:
        raise ReleaseError("a .csv file cannot hold the Methods paragraph: name another ending, or omit it")
    if ending == ".docx" and shutil.which("pandoc") is None:
        raise MissingExtraError(
            "a .docx file is written by pandoc, which is not on the PATH: install it (https://pandoc.org), or name a "
            ".html file, which Word opens"
        )


def write_summary(summary: Summary, path: Path, *, methods: bool) -> None:
    """Write a table, as :meth:`Summary.save`."""
    require_ending(path, methods=methods)
    paragraph = summary.methods if methods else ""
    match path.suffix.lower():
        case ".docx":
            _through_pandoc(_page(summary, paragraph), path)
            return
        case ".html":
            text = _page(summary, paragraph)
        case ".tex":
            text = summary.as_latex() + (f"\n\n{_escaped(paragraph)}\n" if paragraph else "\n")
        case ".md":
            text = summary.as_markdown() + (f"\n\n{_marked(paragraph)}\n" if paragraph else "\n")
        case ".csv":
            text = summary.as_csv()
        case _:
            text = summary.as_text() + (f"\n\n{paragraph}\n" if paragraph else "\n")
    atomic_write(path, text.encode(), shared=True)


def _page(summary: Summary, paragraph: str) -> str:
    more = f"<p>{html.escape(paragraph)}</p>" if paragraph else ""
    title = html.escape(summary.title)
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title>{summary.as_html()}{more}</html>\n'
    )


def _through_pandoc(page: str, path: Path) -> None:
    command = [shutil.which("pandoc") or "pandoc", "--from=html", "--to=docx", f"--output={path}"]
    try:
        done = subprocess.run(command, input=page.encode(), capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReleaseError(f"pandoc did not write {path} ({type(error).__name__}); name a .html file") from None
    if done.returncode:
        *_, last = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise ReleaseError(f"pandoc did not write {path}: {last}; name another file, or a .html file, which Word opens")


class Framed(ABC):
    """A result with rows of plain values."""

    @abstractmethod
    def to_rows(self) -> Sequence[Mapping[str, object]]:
        """Return plain values, a mapping per row."""

    def to_frame(self) -> Any:
        """Return :meth:`to_rows` as a pandas DataFrame; :data:`~privstats.inference.FRAME_COLUMNS` explains its
        columns."""
        return framed(self.to_rows())


class RowTable(Framed):
    """A reader's table."""

    @abstractmethod
    def summary(self) -> Summary:
        """Return the table for publication."""

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def framed(rows: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as a pandas DataFrame."""
    return optional_dependencies.load("pandas", by="to_frame").DataFrame(rows)


def rows_by(columns: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return one mapping per row."""
    plain = (np.asarray(values).tolist() for values in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]
