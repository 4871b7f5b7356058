"""``privstats table``: the table of a release file, by the reader that fits what it measures."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

import privstats as ps
from privstats.cli.parts.output import Force, drawable, writable
from privstats.cli.parts.terminal import say
from privstats.errors import ReleaseError
from privstats.files.jsonable import json_text

if TYPE_CHECKING:
    from privstats.cli.parts.table_results import TableResult
    from privstats.inference import Summary

__all__ = ["app"]

Times: TypeAlias = Literal["discrete", "continuous"]

app = typer.Typer(rich_help_panel="Read")


class Reader(Enum):
    """The names of the readers."""

    OLS = "ols"
    FIXED_EFFECTS = "fixed-effects"
    MIXED = "mixed"
    KAPLAN_MEIER = "km"
    PROPORTIONS = "proportions"
    TABLE_ONE = "table-one"
    SCORECARD = "scorecard"
    EFFECT = "effect"
    LOGIT = "logit"
    POISSON = "poisson"
    HAZARDS = "hazards"
    SCORE = "score"


_OF_COURSES = (Reader.EFFECT, Reader.OLS, Reader.SCORECARD, Reader.LOGIT, Reader.POISSON, Reader.HAZARDS)


class Form(Enum):
    """The output formats."""

    TEXT = "text"
    CSV = "csv"
    HTML = "html"
    LATEX = "latex"
    JSON = "json"


@app.command()
def table(
    releases: Annotated[list[Path], typer.Argument(help="A release; of a course those of all its sessions, in order.")],
    chosen: Annotated[
        Reader | None, typer.Option("--reader", help="The table to compute. Default: the first that fits the release.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="ols, fixed-effects, mixed: of the model; table-one: of the table, in this order; all if none is "
            "named. proportions: which.",
            metavar="NAME",
        ),
    ] = None,
    target: Annotated[int | None, typer.Option(help="ols: which target, where there are several.")] = None,
    records: Annotated[
        int | None, typer.Option(help="ols: number of records, public, where no constant column tells it.")
    ] = None,
    unclipped: Annotated[
        bool, typer.Option("--unclipped", help="ols: every party's clip report counts no clipped target.")
    ] = False,
    time: Annotated[str | None, typer.Option(help="km: the variable of times.", metavar="NAME")] = None,
    event: Annotated[str | None, typer.Option(help="km: the variable of events.", metavar="NAME")] = None,
    by: Annotated[
        str | None, typer.Option(help="km, table-one of counts: the variable of groups.", metavar="NAME")
    ] = None,
    binary: Annotated[
        list[str] | None,
        typer.Option(
            "--binary", help="table-one of class sums: a column of 0 and 1, to be printed as n (%).", metavar="NAME"
        ),
    ] = None,
    times: Annotated[
        Times, typer.Option(help="km: discrete where every bin is one time, continuous where it is a span of them.")
    ] = "discrete",
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw it too (.svg, .png, .pdf): survival, a scorecard, a head's score, or else a forest plot."
        ),
    ] = None,
    forest: Annotated[
        bool, typer.Option("--forest", help="hazards: draw a forest plot, and not survival by arm.")
    ] = False,
    balance: Annotated[
        bool, typer.Option("--balance", help="effect: print, and draw, how alike both arms are.")
    ] = False,
    methods: Annotated[
        bool, typer.Option("--methods", help="Print a paragraph for a paper's Methods in place of the table.")
    ] = False,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            help="ols, logit, poisson of declared columns: the cell that others of its column are compared with.",
            metavar="COLUMN=CELL",
        ),
    ] = None,
    course: Annotated[
        Path | None,
        typer.Option(help="effect: the course of the releases, for what it declares.", metavar="COURSE.TOML"),
    ] = None,
    exponentiate: Annotated[
        bool,
        typer.Option(
            "--exponentiate", help="logit, poisson: odds or rate ratios, with their intervals; hazards print ratios."
        ),
    ] = False,
    alpha: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.05,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write it to a file: .txt, .csv, .html, .tex, or .docx by pandoc; --methods adds its paragraph.",
            metavar="FILE",
        ),
    ] = None,
    force: Force = False,
    form: Annotated[Form, typer.Option("--format", help="The output format.")] = Form.TEXT,
) -> None:
    """Print estimates with intervals that hold under the release's noise: a regression, survival, shares or means.

    Of declared columns a regression is a table of their cells, and a classifier a scorecard. Exit code 1 where noise
    hides all of it.
    """
    from privstats import inference
    from privstats.cli.parts import table_results

    _check_out(out, form, force=force, methods=methods)
    drawable(figure)
    rounds = [ps.Release.load(release) for release in releases]
    read = rounds[-1]
    reader = chosen or _fitting(read, grouped=by is not None and time is None and event is None)
    if len(rounds) > 1 and reader not in _OF_COURSES:
        raise ReleaseError(f"--reader {reader.value} takes one release, got {len(rounds)}; name one file")
    asked = _references(reference or [])
    if asked and reader not in (Reader.OLS, Reader.LOGIT, Reader.POISSON):
        raise ReleaseError(f"--reference serves regressions on declared columns, not {reader.value}; leave it out")
    of_effects = [("--balance", balance, Reader.EFFECT), ("--course", course is not None, Reader.EFFECT)]
    of_groups = ("--binary", binary is not None, Reader.TABLE_ONE)
    for option, given, serves in (("--forest", forest, Reader.HAZARDS), *of_effects, of_groups):
        if given and reader is not serves:
            raise ReleaseError(f"{option} serves --reader {serves.value}, not {reader.value}; leave it out")
    if exponentiate and reader not in (Reader.LOGIT, Reader.POISSON, Reader.HAZARDS):
        raise ReleaseError(
            f"--exponentiate makes ratios of logit, poisson and hazards, whose coefficients are logarithms, not of "
            f"{reader.value}; leave it out"
        )
    match reader:
        case Reader.EFFECT:
            declared: Any = None if course is None else ps.course.read(course)
            result = table_results.balance if balance else table_results.effects
            made = result(inference.effects(rounds, declared), alpha)
        case Reader.LOGIT:
            made = table_results.regression(inference.logit(rounds), alpha, asked, exponentiate=exponentiate)
        case Reader.POISSON:
            made = table_results.regression(inference.poisson(rounds), alpha, asked, exponentiate=exponentiate)
        case Reader.HAZARDS:
            made = table_results.hazard_ratios(inference.hazards(rounds), alpha, forest=forest)
        case Reader.OLS:
            sums: Any = rounds if len(rounds) > 1 else read
            least_squares = inference.ols(sums, columns=columns, target=target, records=records, unclipped=unclipped)
            made = table_results.regression(least_squares, alpha, asked)
        case Reader.SCORECARD:
            points = inference.scorecard(_head_of(rounds), rounds, alpha=alpha)
            made = table_results.card(points)
        case Reader.FIXED_EFFECTS:
            made = table_results.regression(inference.fixed_effects(read, columns=columns), alpha, asked)
        case Reader.MIXED:
            made = table_results.regression(inference.mixed(read, columns=columns), alpha, asked)
        case Reader.KAPLAN_MEIER:
            if time is None or event is None:
                raise ReleaseError(
                    "--reader km needs --time and --event: name the variables of the plan; for a first table give --by "
                    "alone, for shares --reader proportions --column"
                )
            survival = inference.kaplan_meier(read, time=time, event=event, by=by, times=times, alpha=alpha)
            made = table_results.curves(survival, time)
        case Reader.PROPORTIONS:
            if columns is None or len(columns) != 1:
                raise ReleaseError("--reader proportions needs one --column: name a variable of the plan")
            cells = inference.proportions(read, columns[0], alpha=alpha)
            made = table_results.shares(columns[0], cells, read, alpha)
        case Reader.SCORE:
            made = table_results.score(inference.head_score(read, alpha=alpha))
        case Reader.TABLE_ONE:
            first = inference.table_one(read, by=by, columns=columns, binary=binary or (), alpha=alpha)
            made = table_results.table_one(first)
    if figure is not None:
        if made.draw is None:
            raise ReleaseError(f"--figure has nothing to draw of --reader {reader.value}; leave it out")
        if made.told:
            made.draw(figure)
    facts = {"reader": reader.value, "plan_digest": read.plan.digest, "alpha": alpha, "rows": made.rows}
    if methods and not made.summary.methods:
        raise ReleaseError("this table has no paragraph of its own; leave --methods out")
    if out is not None:
        made.summary.save(out, methods=methods)
        say(f"{out} is written")
    else:
        _print(made, form, {**facts, "caution": made.summary.caution, "methods": made.summary.methods}, methods=methods)
    if not made.told:
        if figure is not None:
            say(f"noise hides every row, so {figure} is not drawn", err=True)
        raise typer.Exit(1)


def _print(made: TableResult, form: Form, facts: dict[str, object], *, methods: bool) -> None:
    """The table, or its paragraph; what must be read before any number goes beside rows that have no room for it."""
    if form is Form.CSV and made.summary.caution:
        say(made.summary.caution, err=True)
    if form is Form.JSON:
        typer.echo(json_text(facts))
    else:
        typer.echo(made.summary.methods if methods else _written(made.summary, form))


def _check_out(out: Path | None, form: Form, *, force: bool, methods: bool) -> None:
    """Refuse a file that cannot be written before a release is read."""
    from privstats.inference.summary_file import require_ending

    if out is None:
        return
    if form is not Form.TEXT:
        raise ReleaseError("--out takes its format from the file's ending; leave --format out")
    require_ending(out, methods=methods)
    writable([out], force)


def _references(given: list[str]) -> dict[str, str]:
    """By column the cell that its others are compared with."""
    found = dict(each.partition("=")[::2] for each in given)
    if not all(column and cell for column, cell in found.items()):
        raise ReleaseError("--reference names a column and one of its cells: --reference ward=B")
    return found


def _head_of(releases: list[ps.Release]) -> Any:
    """The classifier whose points a scorecard shows: of gradient rounds the one that they refine."""
    from privstats import heads

    if any(isinstance(each.plan.schema, ps.GradientSchema) for each in releases):
        return heads.RefinedSoftmax().fit_releases(releases)
    return heads.LDA().fit_release(releases if len(releases) > 1 else releases[0])


def _fitting(release: ps.Release, *, grouped: bool) -> Reader:
    """The first reader that takes such a release; of counts by group, without times, the first table."""
    from privstats.inference.evidence import require_gaussian
    from privstats.moments.code_rows import cells_of
    from privstats.workflows.readers import TABLES, sent

    schema = release.plan.schema
    fitting = [name for name, reader in TABLES.items() if reader.takes(release.plan)]
    if not fitting and isinstance(schema, ps.ClassSchema | ps.GradientSchema) and cells_of(schema) is not None:
        return Reader.SCORECARD
    if not fitting:
        require_gaussian(release)
        raise ReleaseError(f"no table is read from {', '.join(sent(schema))} of a {type(schema).__name__}; fit a head")
    if grouped and isinstance(schema, ps.CountSchema):
        return Reader.TABLE_ONE
    return Reader(fitting[0])


def _written(summary: Summary, form: Form) -> str:
    match form:
        case Form.CSV:
            return summary.as_csv().rstrip("\n")
        case Form.HTML:
            return summary.as_html()
        case Form.LATEX:
            return summary.as_latex()
        case _:
            return summary.as_text()
