"""``privstats table``: the table of a release file, by the reader that fits what it measures."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

import privstats as ps
from privstats.cli.parts.options import Force, argument, expanded, option
from privstats.cli.parts.terminal import drawable, say, writable
from privstats.errors import ReleaseError
from privstats.files.atomic import atomic_write
from privstats.files.text import json_text
from privstats.row_options import Option, RowOptions, given, left_out

if TYPE_CHECKING:
    from privstats.inference import Summary
    from privstats.workflows.tables import TableResult

app = typer.Typer(rich_help_panel="Read")

_HEADER_BYTES = 1 << 16


class Form(Enum):
    """The output formats."""

    TEXT = "text"
    CSV = "csv"
    HTML = "html"
    LATEX = "latex"
    MARKDOWN = "markdown"
    JSON = "json"


def _chosen() -> type[Any]:
    """Return the option that names a reader, with the readers of this installation."""
    from privstats.workflows.tables.rows import READERS

    named = option(
        f"The table to compute: {', '.join(READERS)}. Default: the first that fits the release.",
        "READER",
        click_type=click.Choice(list(READERS)),
    )
    return make_dataclass("Chosen", [("reader", Annotated[str | None, named], None)])


def _options() -> RowOptions:
    """Return the options of all readers."""
    from privstats.workflows.tables.options import options_of
    from privstats.workflows.tables.rows import READERS

    return options_of({name: reader.options for name, reader in READERS.rows().items()}, READERS.origin, READERS.noun)


@dataclass(frozen=True)
class Output:
    """Form and destination of the table."""

    figure: Annotated[
        Path | None,
        Option("Also draw it (.svg, .png, .pdf): survival, a scorecard, a head's score, or else a forest plot."),
    ] = None
    methods: Annotated[
        bool, Option("Print a paragraph for a paper's Methods in place of the table.", flag="--methods")
    ] = False
    out: Annotated[
        Path | None,
        Option(
            "Write it to a file: .csv as data (numbers in full, NA), or .txt, .html, .tex, .md, and .docx by pandoc; "
            "--methods adds its paragraph.",
            "FILE",
        ),
    ] = None
    force: Force = False
    form: Annotated[Form, Option("The output format.", flag="--format")] = Form.TEXT

    def check(self) -> None:
        """Refuse an unwritable file before a release is read."""
        from privstats.inference.summary import require_ending

        if self.out is not None:
            if self.form is not Form.TEXT:
                raise ReleaseError("--out derives the format from the file's ending; omit --format")
            require_ending(self.out, methods=self.methods)
            writable([self.out], self.force)
        drawable(self.figure)

    def write(self, made: TableResult, reader: str, facts: dict[str, object]) -> None:
        """Draw the table, and print or write it."""
        if self.figure is not None:
            if made.draw is None:
                raise ReleaseError(f"--figure cannot draw --reader {reader}; omit it")
            if made.reported:
                made.draw(self.figure)
        if self.methods and not made.summary.methods:
            raise ReleaseError("this table has no Methods paragraph; omit --methods")
        if self.out is not None:
            self._save(made, self.out)
            say(f"{self.out} is written")
        else:
            self._print(
                made,
                {
                    **facts,
                    **({} if made.summary.about is None else {"about": made.summary.about.data}),
                    "promise": made.summary.promise,
                    "caution": made.summary.caution,
                    "methods": made.summary.methods,
                },
            )
        if not made.reported and self.figure is not None:
            say(f"noise hides every row, so {self.figure} is not drawn", err=True)

    def _save(self, result: TableResult, path: Path) -> None:
        """Write the table, and to a .csv file the rows as data, as ``--format csv`` prints them."""
        data = path.suffix.lower() == f".{Form.CSV.value}"
        self._caution(result, data=data)
        if data:
            atomic_write(path, result.csv.encode(), shared=True)
        else:
            result.summary.save(path, methods=self.methods)

    def _caution(self, result: TableResult, *, data: bool) -> None:
        """Print the caution to standard error where data has no room for it."""
        if data and result.summary.caution:
            say(result.summary.caution, err=True)

    def _print(self, result: TableResult, facts: dict[str, object]) -> None:
        self._caution(result, data=self.form is Form.CSV)
        if self.form is Form.JSON:
            typer.echo(json_text(facts))
        elif self.form is Form.CSV and not self.methods:
            typer.echo(result.csv.rstrip("\n"))
        else:
            typer.echo(result.summary.methods if self.methods else _written(result.summary, self.form))


@app.command()
@expanded
def table(
    releases: Annotated[list[Path], argument("A release; for a course, those of all its sessions, in order.")],
    options: Annotated[Any, _options],
    output: Output,
    chosen: Annotated[Any, _chosen],
) -> None:
    """Print estimates with intervals that hold under the release's noise: a regression, survival, shares or means.

    On declared columns a regression is a table of their cells, and a classifier a scorecard. Exit code 1 where noise
    hides all of it.
    """
    from privstats.workflows.tables.reading import fitting, table_of

    output.check()
    for release in releases:
        _require_no_synthetic_rows(release)
    rounds, named = [ps.Release.load(release) for release in releases], given(options)
    without = left_out(options)
    reader = chosen.reader or fitting(rounds, named, without)
    if reader in without:
        raise ReleaseError(without[reader])
    result = table_of(reader, rounds, named, flags=True)
    facts: dict[str, object] = {
        "reader": reader,
        "plan_digest": rounds[-1].plan.digest,
        "alpha": options.alpha,
        "rows": result.data,
        **({"tests": list(result.tests)} if result.tests else {}),
    }
    output.write(result, reader, facts)
    if not result.reported:
        raise typer.Exit(1)


def _require_no_synthetic_rows(path: Path) -> None:
    from privstats.intake.column_names import SYNTHETIC_MARK
    from privstats.system import open_plain

    if not path.is_file():
        return
    with open_plain(path) as file:
        header = file.readline(_HEADER_BYTES)
    if SYNTHETIC_MARK.encode() in header:
        raise ReleaseError(
            f"{path} holds synthetic rows, from which no estimate has an interval: pass the release of a session "
            "that counted the records"
        )


def _written(summary: Summary, form: Form) -> str:
    match form:
        case Form.HTML:
            return summary.as_html()
        case Form.LATEX:
            return summary.as_latex()
        case Form.MARKDOWN:
            return summary.as_markdown()
        case _:
            return summary.as_text()
