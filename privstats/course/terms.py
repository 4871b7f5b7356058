"""Options of ``privstats course init`` for our kinds of course; an option that several kinds read is defined once.

A field's metadata ``read``, if any, converts its value of the command line into that of the kind's ``within``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from privstats.row_options import Option

Rounds: TypeAlias = Annotated[
    int | None, Option("Gradient rounds after the first release, or those of a regression. Default: 4, 5 or 6.")
]
ExpectedRecords: TypeAlias = Annotated[
    int | None, Option("The number of records that the owners expect, a public guess. Default: cohort.max_records.")
]
Retries: TypeAlias = Annotated[int | None, Option("Spare rounds, for those that end without a sum. Default: none.")]
Calibrated: TypeAlias = Annotated[
    bool, Option("Add a sum for the temperature of probabilities (with --centred, LDA's).", flag="--calibrated")
]
Share: TypeAlias = Annotated[
    float | None,
    Option("The part of the promise for cut points (default: a fifth), or for outcome lines (default: a tenth)."),
]


@dataclass(frozen=True)
class RefinementTerms:
    """Options of refinement rounds."""

    rounds: Rounds = None
    expected_records: ExpectedRecords = None
    retries: Retries = None
    calibrated: Calibrated = False
    module: Annotated[
        str | None, Option("KIND/SIZE: rounds of a module that another package defines. Default: a linear softmax.")
    ] = None
    pairs: Annotated[
        bool | None,
        Option("Search pairs of a table's columns. Default: the plan decides.", flag="--pairs/--no-pairs"),
    ] = None


@dataclass(frozen=True)
class CentredTerms:
    """Options of a mean first."""

    centred: Annotated[
        bool, Option("First the mean of all rows, then the plan's centred sums; no gradient rounds.", flag="--centred")
    ] = False
    expected_records: ExpectedRecords = None
    calibrated: Calibrated = False


@dataclass(frozen=True)
class StandardisedTerms:
    """Options of ranges first."""

    standardised: Annotated[
        bool, Option("For a regression: ranges of columns and target, then sums scaled to them.", flag="--standardised")
    ] = False
    share: Share = None


@dataclass(frozen=True)
class BinnedTerms:
    """Options of cut points."""

    then: Annotated[str | None, Option("After cut points: centred, rounds or newton. Default: the plan itself.")] = None
    expected_records: ExpectedRecords = None
    share: Share = None
    sessions: Annotated[int | None, Option("The number of count sessions for cut points. Default: 4.")] = None
    finer_ends: Annotated[
        bool | None,
        Option(
            "Four more cut points at a column's ends. Default: the plan decides.", flag="--finer-ends/--no-finer-ends"
        ),
    ] = None


@dataclass(frozen=True)
class RegressionTerms:
    """Options of a regression's rounds."""

    rounds: Rounds = None
    retries: Retries = None


@dataclass(frozen=True)
class HazardTerms(RegressionTerms):
    """Options of proportional hazards."""

    by: Annotated[
        str | None, Option("For hazards: the column of 0 and 1 that is crossed with bins and events, such as the arm.")
    ] = None
    early_bins: Annotated[
        int | None,
        Option("For hazards: a further session tests if each column's ratio changes after this number of bins."),
    ] = None


def _analysis(path: Path) -> Any:
    from privstats.course.analysis import Analysis

    return Analysis.read(path)


@dataclass(frozen=True)
class EffectTerms(RegressionTerms):
    """Options of a treatment effect."""

    share: Share = None
    analysis: Annotated[
        Path | None, Option("For an effect: a file whose table [analysis] declares what will be reported.")
    ] = field(default=None, metadata={"read": _analysis})
