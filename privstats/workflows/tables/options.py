"""Define the options of table readers; several readers share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from privstats.errors import PrivstatsError, ReleaseError
from privstats.row_fields import option_hints
from privstats.row_options import Option, RowOptions, option_in

Times: TypeAlias = Literal["discrete", "continuous"]

BECAUSE = "because"
"""Key of a field's metadata: a clause on the readers that have the option, for its refusal by others."""


@dataclass(frozen=True)
class Options:
    """Options of every table reader. A reader with more options has a frozen dataclass that derives from this one.

    Each field has a default, and an :class:`~privstats.row_options.Option` in its annotation. The help is a clause
    without the reader's name, which ``privstats table --help`` adds.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> from privstats.row_options import Option
        >>> from privstats.workflows.tables import Options
        >>> @dataclass(frozen=True)
        ... class Rounded(Options):
        ...     digits: Annotated[int, Option("digits after the point.")] = 3
        >>> Rounded(digits=1)
        Rounded(alpha=0.05, digits=1)
    """

    alpha: Annotated[float, Option("level of the intervals.")] = 0.05


@dataclass(frozen=True)
class OfColumns(Options):
    """Options of a regression that reads some columns."""

    columns: Annotated[list[str] | None, Option("a column of the model; repeat. Default: all.", "NAME", "--column")] = (
        None
    )


@dataclass(frozen=True)
class Grouped(Options):
    """Options of a table by group."""

    by: Annotated[str | None, Option("the variable of groups.", "NAME")] = None


@dataclass(frozen=True)
class Ratios(Options):
    """Options of a regression on the scale of logarithms."""

    exponentiate: Annotated[bool, Option("odds or rate ratios, with their intervals.", flag="--exponentiate")] = field(
        default=False, metadata={BECAUSE: "whose coefficients are logarithms"}
    )


@dataclass(frozen=True)
class Referred(Options):
    """Options of a table whose cells are compared with a reference."""

    reference: Annotated[
        list[str] | None,
        Option("on declared columns, the cell that others of its column are compared with.", "COLUMN=CELL"),
    ] = None

    @property
    def references(self) -> dict[str, str]:
        """Reference cell by column."""
        pairs = dict(each.partition("=")[::2] for each in self.reference or ())
        if not all(column and cell for column, cell in pairs.items()):
            raise ReleaseError("--reference names a column and one of its cells: --reference ward=B")
        return pairs


@dataclass(frozen=True)
class OfCells(Referred):
    """Options of a regression that may be on declared columns."""

    gaps_as_cells: Annotated[
        bool,
        Option(
            "on declared columns, report contrasts although gaps are a cell, which biases them.",
            flag="--gaps-as-cells",
        ),
    ] = False


@dataclass(frozen=True)
class Unclipped(Options):
    """Options of a linear regression whose targets may have been clipped."""

    unclipped: Annotated[
        bool, Option("state that every party's clip report counts no clipped target.", flag="--unclipped")
    ] = False


@dataclass(frozen=True)
class OfOls(OfCells, Unclipped, OfColumns):
    """Options of ``ols``."""

    target: Annotated[int | None, Option("the target's index from 0, if there are several.")] = None
    records: Annotated[int | None, Option("the public number of records, if no constant column states it.")] = None


@dataclass(frozen=True)
class OfLogit(OfCells, Ratios):
    """Options of ``logit``."""


@dataclass(frozen=True)
class OfPoisson(OfCells, Ratios):
    """Options of ``poisson``."""

    quasi_poisson: Annotated[
        bool, Option("errors for a variance that is one multiple of the mean.", flag="--quasi-poisson")
    ] = False


@dataclass(frozen=True)
class OfHazards(Ratios):
    """Options of ``hazards``."""

    exponentiate: Annotated[bool, Option("hazard ratios, which are printed without it too.", flag="--exponentiate")] = (
        field(default=False, metadata={BECAUSE: "whose coefficients are logarithms"})
    )
    forest: Annotated[bool, Option("draw a forest plot, not survival by arm.", flag="--forest")] = False


@dataclass(frozen=True)
class OfEffect(Options):
    """Options of ``effect``."""

    balance: Annotated[bool, Option("print and draw how similar both arms are.", flag="--balance")] = False
    arms: Annotated[
        bool,
        Option("print numbers analysed, events and risks by arm above the effect (CONSORT).", flag="--arms"),
    ] = False
    course: Annotated[Path | None, Option("the course of the releases, to report what it declares.", "COURSE.TOML")] = (
        None
    )


@dataclass(frozen=True)
class OfSurvival(Grouped):
    """Options of ``km``."""

    time: Annotated[str | None, Option("the variable of times.", "NAME")] = None
    event: Annotated[str | None, Option("the variable of events.", "NAME")] = None
    times: Annotated[Times | None, Option("discrete if every bin is one time, continuous if it is a span of time.")] = (
        None
    )
    entry: Annotated[
        str | None, Option("the variable of the times at which records enter, for late entry.", "NAME")
    ] = None
    start: Annotated[float | None, Option("with --entry, the time from which the curve begins.")] = None
    at: Annotated[float | None, Option("of two groups, risks up to a time, their difference and ratio.")] = None
    tau: Annotated[
        float | None, Option("of two groups, mean survival times up to a time, their difference and ratio.")
    ] = None
    follow_up: Annotated[
        bool, Option("the median follow-up, by the reverse Kaplan-Meier method.", flag="--follow-up")
    ] = False


@dataclass(frozen=True)
class OfShares(Options):
    """Options of ``proportions``."""

    columns: Annotated[list[str] | None, Option("the variable.", "NAME", "--column")] = None


@dataclass(frozen=True)
class OfAverages(Options):
    """Options of ``averages``."""

    columns: Annotated[list[str] | None, Option("a number; repeat. Default: all.", "NAME", "--column")] = None


@dataclass(frozen=True)
class OfTableOne(Grouped):
    """Options of ``table-one``."""

    by: Annotated[str | None, Option("of counts, the variable of groups.", "NAME")] = None
    columns: Annotated[
        list[str] | None, Option("a column, in this order; repeat. Default: all.", "NAME", "--column")
    ] = None
    binary: Annotated[
        list[str] | None, Option("of class sums, a column of 0 and 1, to be printed as n (%).", "NAME")
    ] = None
    tests: Annotated[
        bool,
        Option("P values of differences between groups; not for a trial's baseline (CONSORT 15).", flag="--tests"),
    ] = False


def options_of(
    every: Mapping[str, type[Options]], origin: Callable[[str], str] = lambda _: "", noun: str = "table reader"
) -> RowOptions:
    """Return the options of several readers; an option's help names the readers that have it.

    Args:
        every: each reader's options, by the reader's name.
        origin: returns the package of a reader; empty for ours.
        noun: what has the options, for messages.

    Example:
        >>> from privstats.workflows.tables.options import Grouped, Options, options_of
        >>> options_of({"shares": Grouped, "sums": Options}).joined()(by="ward")
        Options(alpha=0.05, by='ward')
    """
    return RowOptions(every, origin, noun, help=_help)


def names_in(options: type[Options]) -> list[str]:
    """Return the names of a reader's options."""
    return [each.name for each in fields(options)]


def stated(options: type[Options], name: str) -> Option:
    """Return how an option is shown; refuse one that does not state it."""
    shown = option_in(option_hints(options)[name])
    if shown is None:
        raise PrivstatsError(f"the option {name!r} of {options.__qualname__} has no help: annotate it with an Option")
    return shown


def clause_of(options: type[Options], name: str) -> str:
    """Return what the readers with an option have in common, or empty."""
    return next((each.metadata.get(BECAUSE, "") for each in fields(options) if each.name == name), "")


def _help(name: str, every: Mapping[str, type[Options]]) -> str:
    clauses: dict[str, list[str]] = {}
    for reader, own in every.items():
        if name in names_in(own):
            clauses.setdefault(stated(own, name).help, []).append(reader)
    (clause, readers), *others = clauses.items()
    if len(readers) == len(every):
        return f"{clause[:1].upper()}{clause[1:]}"
    return " ".join(f"{', '.join(names)}: {each}" for each, names in ((clause, readers), *others))
