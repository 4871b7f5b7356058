"""The table of hazard ratios, as it is printed: ratios first, and what a ratio is not above everything else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privstats.estimates.spectrum import Array
from privstats.inference.proportionality import Proportionality
from privstats.inference.summary import HIDDEN, Summary, chance_of, ends_of, foot_of, number_of, title_of

if TYPE_CHECKING:
    from privstats.inference.regression import Regression

__all__ = ["HazardFacts", "hazard_summary"]

NO_EFFECT = (
    "A hazard ratio is not a causal effect, even in a trial: it compares those still at risk, and changes with the "
    "columns; kaplan_meier of the same releases gives risks."
)


@dataclass(frozen=True)
class HazardFacts:
    """What the table of hazard ratios says beside its coefficients.

    Attributes:
        by: the column that was crossed in the counts; None where there is none.
        cap_bin: the bin in which the cap is reached at the mean of the columns.
        ratios: intervals of the ratios, ``(m, 2)``.
        test: of proportionality; None where the counts give none.
    """

    by: str | None
    cap_bin: str | None
    ratios: Array
    test: Proportionality | None


def hazard_summary(table: Regression, alpha: float, facts: HazardFacts) -> Summary:
    """Ratios with their intervals, one row per column; errors are of their logarithms."""
    told = table.errors.told(alpha)
    columns = (table.errors.estimate, table.bse, table.noise_bse, table.pvalues, *facts.ratios.T)
    rows = tuple(
        (name, *_cells(bool(seen), *(float(value) for value in values)))
        for name, seen, *values in zip(table.names, told, *columns, strict=True)
    )
    return Summary(
        title=title_of(table.release, "Hazard ratios"),
        head=(
            ("not an effect", NO_EFFECT),
            *_proportional(facts),
            ("cap of 1", _cap(facts)),
            ("standard errors", f"of log ratios, {table.cov_reason}"),
        ),
        columns=("", "ratio", *ends_of(alpha), "log ratio", "std err", "of it noise", "P>|t|"),
        rows=rows,
        foot=(
            *foot_of(
                table.release,
                alpha,
                f"{table.assumed}, independent persons, negligible clipping, honest clients",
                (*table.counts, *(table.release.plan,) * table.rounds),
            ),
            "A person counts up to a cumulative hazard of 1; where hazards are not proportional, the ratio is of that "
            "time.",
            *_cautions(facts),
            *(f"Warning: {note}." for note in table.notes),
        ),
    )


def _cells(told: bool, log: float, error: float, noise: float, p: float, low: float, high: float) -> list[str]:
    if not told:
        return [HIDDEN, "0", "inf", HIDDEN, HIDDEN, HIDDEN, chance_of(p)]
    return [*(number_of(each) for each in (math.exp(log), low, high, log, error, noise)), chance_of(p)]


def _cap(facts: HazardFacts) -> str:
    if facts.cap_bin is None:
        return "not reached at the mean of the columns"
    return f"the cap is reached in bin {facts.cap_bin} at the mean of the columns"


def _proportional(facts: HazardFacts) -> tuple[tuple[str, str], ...]:
    test = facts.test
    if test is None:
        return ()
    said = f"P = {chance_of(test.p_value)}" if test.told else "not told"
    return ((f"proportional, {facts.by}", f"{said}, over {test.bins} bins"),)


def _cautions(facts: HazardFacts) -> tuple[str, ...]:
    if facts.test is None:
        return ()
    return (
        f"The check of proportionality is of {facts.by} alone, from the counts. Not rejecting is no evidence that "
        "hazards are proportional, and a rejection does not make the ratio wrong: it is then an average over time.",
    )
