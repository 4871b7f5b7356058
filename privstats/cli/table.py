"""``privstats table``: the table of a release file, by the reader that fits what it measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

import privstats as ps
from privstats.cli.parts.options import Force, argument, expanded, option
from privstats.cli.parts.terminal import drawable, say, writable
from privstats.errors import ReleaseError
from privstats.files.atomic import atomic_write
from privstats.files.text import json_text

if TYPE_CHECKING:
    from privstats.cli.parts.table_results import TableResult
    from privstats.inference import Summary

Times: TypeAlias = Literal["discrete", "continuous"]

app = typer.Typer(rich_help_panel="Read")

_HEADER_BYTES = 1 << 16


class Reader(Enum):
    """The names of the readers."""

    OLS = "ols"
    FIXED_EFFECTS = "fixed-effects"
    MIXED = "mixed"
    KAPLAN_MEIER = "km"
    PROPORTIONS = "proportions"
    AVERAGES = "averages"
    MISSING = "missing"
    TABLE_ONE = "table-one"
    SCORECARD = "scorecard"
    EFFECT = "effect"
    LOGIT = "logit"
    POISSON = "poisson"
    HAZARDS = "hazards"
    SCORE = "score"
    IMPUTED = "imputed"
    SITE_LEVELS = "site-levels"


_OF_COURSES = (
    Reader.EFFECT,
    Reader.OLS,
    Reader.SCORECARD,
    Reader.LOGIT,
    Reader.POISSON,
    Reader.HAZARDS,
    Reader.SITE_LEVELS,
)


class Form(Enum):
    """The output formats."""

    TEXT = "text"
    CSV = "csv"
    HTML = "html"
    LATEX = "latex"
    JSON = "json"


@dataclass(frozen=True)
class TableOptions:
    """Options of a reader besides the release; many serve only some readers."""

    columns: Annotated[
        list[str] | None,
        option(
            "A column of the model (ols, fixed-effects, mixed, imputed), of table-one (in this order), or of averages; "
            "repeat. Default: all. For proportions: the column. For linear site-levels: a regressor; others are sites.",
            "NAME",
            flag="--column",
        ),
    ] = None
    target: Annotated[int | None, option("ols: the target's index from 0, if there are several.")] = None
    outcome: Annotated[
        str | None, option("imputed: the outcome's column, in sums by gap pattern or in a table of counts.", "NAME")
    ] = None
    records: Annotated[int | None, option("ols: the public number of records, if no constant column states it.")] = None
    unclipped: Annotated[
        bool,
        option("ols, site-levels: state that every party's clip report counts no clipped target.", flag="--unclipped"),
    ] = False
    gaps_as_cells: Annotated[
        bool,
        option(
            "ols, logit, poisson on declared columns: report contrasts although gaps are a cell, which biases them.",
            flag="--gaps-as-cells",
        ),
    ] = False
    time: Annotated[str | None, option("km: the variable of times.", "NAME")] = None
    event: Annotated[str | None, option("km: the variable of events.", "NAME")] = None
    by: Annotated[
        str | None, option("km, missing, table-one and imputed of counts: the variable of groups.", "NAME")
    ] = None
    binary: Annotated[
        list[str] | None,
        option("table-one of class sums: a column of 0 and 1, to be printed as n (%).", "NAME", flag="--binary"),
    ] = None
    times: Annotated[
        Times | None, option("km: discrete if every bin is one time, continuous if it is a span of time.")
    ] = None
    entry: Annotated[
        str | None, option("km: the variable of the times at which records enter, for late entry.", "NAME")
    ] = None
    start: Annotated[float | None, option("km with --entry: the time from which the curve begins.")] = None
    at: Annotated[float | None, option("km, two groups: risks up to a time, their difference and ratio.")] = None
    tau: Annotated[
        float | None, option("km, two groups: mean survival times up to a time, their difference and ratio.")
    ] = None
    follow_up: Annotated[
        bool, option("km: the median follow-up, by the reverse Kaplan-Meier method.", flag="--follow-up")
    ] = False
    forest: Annotated[bool, option("hazards: draw a forest plot, not survival by arm.", flag="--forest")] = False
    balance: Annotated[bool, option("effect: print and draw how similar both arms are.", flag="--balance")] = False
    arms: Annotated[
        bool,
        option("effect: print numbers analysed, events and risks by arm above the effect (CONSORT).", flag="--arms"),
    ] = False
    reference: Annotated[
        list[str] | None,
        option(
            "ols, logit, poisson of declared columns, imputed of counts: the cell that others of its column are "
            "compared with.",
            "COLUMN=CELL",
        ),
    ] = None
    interactions: Annotated[
        list[str] | None,
        option(
            "imputed of counts: two columns whose product is in the regression, in quotes; repeat.",
            "COLUMN*COLUMN",
            flag="--interaction",
        ),
    ] = None
    course: Annotated[
        Path | None, option("effect: the course of the releases, to report what it declares.", "COURSE.TOML")
    ] = None
    exponentiate: Annotated[
        bool,
        option(
            "logit, poisson, site-levels, imputed of counts: odds or rate ratios, with their intervals; hazards print "
            "ratios.",
            flag="--exponentiate",
        ),
    ] = False
    quasi_poisson: Annotated[
        bool,
        option("poisson: errors for a variance that is one multiple of the mean.", flag="--quasi-poisson"),
    ] = False
    alpha: Annotated[float, option("Level of the intervals.")] = 0.05

    @property
    def grouped(self) -> bool:
        """Whether groups are named, and no times."""
        return self.by is not None and self.time is None and self.event is None

    def check(self, reader: Reader, releases: int) -> None:
        """Refuse options that a reader does not accept."""
        if releases > 1 and reader not in _OF_COURSES:
            raise ReleaseError(f"--reader {reader.value} reads one release, got {releases}; name one file")
        for name, serves in _SERVES.items():
            given = getattr(self, name)
            if given in (None, False) or reader in serves:
                continue
            raise ReleaseError(
                f"--{_flag(name)} is for {_readers(serves)}{_REASONS.get(name, '')}, not {reader.value}; omit it"
                f"{_INSTEAD.get((name, reader), '')}"
            )
        if sum(each not in (None, False) for each in (self.at, self.tau, self.follow_up)) > 1:
            raise ReleaseError("--at, --tau and --follow-up print a table each: pass one of them")

    @property
    def references(self) -> dict[str, str]:
        """Reference cell by column."""
        pairs = dict(each.partition("=")[::2] for each in self.reference or ())
        if not all(column and cell for column, cell in pairs.items()):
            raise ReleaseError("--reference names a column and one of its cells: --reference ward=B")
        return pairs

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The two columns of each interaction."""
        parts = (each.partition("*")[::2] for each in self.interactions or ())
        pairs = [(first.strip(), second.strip()) for first, second in parts]
        if not all(first and second for first, second in pairs):
            raise ReleaseError('--interaction names two columns with a star between: --interaction "arm*sex"')
        return pairs


_COLUMNS = (Reader.OLS, Reader.FIXED_EFFECTS, Reader.MIXED, Reader.PROPORTIONS, Reader.AVERAGES, Reader.TABLE_ONE)
_DECLARED = (Reader.OLS, Reader.LOGIT, Reader.POISSON)
_SERVES: Mapping[str, tuple[Reader, ...]] = {
    "columns": (*_COLUMNS, Reader.IMPUTED, Reader.SITE_LEVELS),
    **dict.fromkeys(("target", "records"), (Reader.OLS,)),
    "outcome": (Reader.IMPUTED,),
    "unclipped": (Reader.OLS, Reader.SITE_LEVELS),
    "gaps_as_cells": _DECLARED,
    "reference": (*_DECLARED, Reader.IMPUTED),
    "interactions": (Reader.IMPUTED,),
    "by": (Reader.KAPLAN_MEIER, Reader.MISSING, Reader.TABLE_ONE, Reader.IMPUTED),
    "binary": (Reader.TABLE_ONE,),
    **dict.fromkeys(("time", "event", "times", "entry", "start", "at", "tau", "follow_up"), (Reader.KAPLAN_MEIER,)),
    "forest": (Reader.HAZARDS,),
    **dict.fromkeys(("balance", "arms", "course"), (Reader.EFFECT,)),
    "exponentiate": (Reader.LOGIT, Reader.POISSON, Reader.HAZARDS, Reader.SITE_LEVELS, Reader.IMPUTED),
    "quasi_poisson": (Reader.POISSON,),
}
"""The readers that each option serves; another reader refuses it. ``alpha`` serves all."""

_REASONS = {"exponentiate": ", whose coefficients are logarithms"}
_INSTEAD = dict.fromkeys(
    (("by", Reader.PROPORTIONS), ("by", Reader.AVERAGES)),
    ": --reader table-one --by NAME has shares by group, and averages has the groups of a number's `by`",
)


def _flag(name: str) -> str:
    return {"columns": "column", "interactions": "interaction"}.get(name, name.replace("_", "-"))


def _readers(serves: Sequence[Reader]) -> str:
    *first, last = (each.value for each in serves)
    return f"{', '.join(first)} and {last}" if first else f"--reader {last}"


@dataclass(frozen=True)
class Output:
    """Form and destination of the table."""

    figure: Annotated[
        Path | None,
        option("Also draw it (.svg, .png, .pdf): survival, a scorecard, a head's score, or else a forest plot."),
    ] = None
    methods: Annotated[
        bool, option("Print a paragraph for a paper's Methods in place of the table.", flag="--methods")
    ] = False
    out: Annotated[
        Path | None,
        option(
            "Write it to a file: .csv as data (numbers in full, NA), or .txt, .html, .tex, and .docx by pandoc; "
            "--methods adds its paragraph.",
            "FILE",
        ),
    ] = None
    force: Force = False
    form: Annotated[Form, option("The output format.", flag="--format")] = Form.TEXT

    def check(self) -> None:
        """Refuse an unwritable file before a release is read."""
        from privstats.inference.summary import require_ending

        if self.out is not None:
            if self.form is not Form.TEXT:
                raise ReleaseError("--out derives the format from the file's ending; omit --format")
            require_ending(self.out, methods=self.methods)
            writable([self.out], self.force)
        drawable(self.figure)

    def write(self, made: TableResult, reader: Reader, facts: dict[str, object]) -> None:
        """Draw the table, and print or write it."""
        if self.figure is not None:
            if made.draw is None:
                raise ReleaseError(f"--figure cannot draw --reader {reader.value}; omit it")
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
    options: TableOptions,
    output: Output,
    chosen: Annotated[
        Reader | None, option("The table to compute. Default: the first that fits the release.", flag="--reader")
    ] = None,
) -> None:
    """Print estimates with intervals that hold under the release's noise: a regression, survival, shares or means.

    On declared columns a regression is a table of their cells, and a classifier a scorecard. Exit code 1 where noise
    hides all of it.
    """
    from privstats.cli.parts.table_results import READERS

    output.check()
    for release in releases:
        _require_no_synthetic_rows(release)
    rounds = [ps.Release.load(release) for release in releases]
    last = rounds[-1]
    reader = chosen or _fitting(rounds, grouped=options.grouped, timed=options.time is not None)
    options.check(reader, len(rounds))
    result = READERS[reader.value](rounds, options)
    facts: dict[str, object] = {
        "reader": reader.value,
        "plan_digest": last.plan.digest,
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


def _fitting(releases: list[ps.Release], *, grouped: bool, timed: bool) -> Reader:
    """Return the first reader that accepts the last release; for counts, means unless timed, or table one by group."""
    from privstats.course.positions import in_places
    from privstats.inference.releases import require_gaussian
    from privstats.workflows.readers import TABLES, sent

    release = releases[-1]
    schema = release.plan.schema
    fitting = [name for name, reader in TABLES.items() if reader.takes(release.plan)]
    if (
        not fitting
        and isinstance(schema, ps.ClassSchema | ps.GradientSchema)
        and schema.reading.declaration is not None
    ):
        return Reader.SCORECARD
    if not fitting:
        if len(releases) > 1:
            in_places(releases)  # refuses another order
        require_gaussian(release)
        raise ReleaseError(
            f"no table is read from {', '.join(sent(schema))} of a {type(schema).__name__}; fit a head, or read sums "
            "by gap pattern with --reader imputed --outcome NAME"
        )
    if grouped and isinstance(schema, ps.CountSchema):
        return Reader.TABLE_ONE
    return Reader.AVERAGES if "averages" in fitting and not timed else Reader(fitting[0])


def _written(summary: Summary, form: Form) -> str:
    match form:
        case Form.HTML:
            return summary.as_html()
        case Form.LATEX:
            return summary.as_latex()
        case _:
            return summary.as_text()
