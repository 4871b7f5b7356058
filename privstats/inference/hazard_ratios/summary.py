"""The table of hazard ratios, as it is printed: ratios first, and what a ratio is not above everything else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privstats.estimates.spectrum import Array
from privstats.inference.hazard_ratios.proportionality import Proportionality
from privstats.inference.reporting import HIDDEN, Source, listed, texts_of
from privstats.inference.summary import Summary, chance_of, ends_of, number_of

if TYPE_CHECKING:
    from privstats.inference.regression.table import Regression

__all__ = ["HazardFacts", "hazard_summary"]

_NOT_CAUSAL = (
    "A hazard ratio is not a causal effect, even in a trial: it compares those still at risk, and changes with the "
    "columns"
)
_NO_EFFECT = f"{_NOT_CAUSAL}; kaplan_meier of the same releases gives risks."


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
    assumed = f"{table.assumed}, independent persons, negligible clipping, honest clients"
    source = Source(table.release, alpha, assumed, (*table.counts, *(table.release.plan,) * table.rounds))
    return Summary(
        title=source.title("Hazard ratios"),
        promise=source.promise,
        head=(
            *_proportional(facts),
            ("cap of 1", _cap(facts)),
            ("standard errors", f"of log ratios, {table.cov_reason}"),
            *texts_of(table.release),
        ),
        columns=("", "ratio", *ends_of(alpha), "log ratio", "std err", "of it noise", "P>|t|"),
        rows=rows,
        foot=(
            *source.foot,
            "A person counts up to a cumulative hazard of 1; where hazards are not proportional, the ratio is of that "
            "time.",
            *_cautions(facts),
            *(f"Warning: {note}." for note in table.notes),
        ),
        methods=source.methods(_estimated(table)),
        caution=_NO_EFFECT,
    )


def _estimated(table: Regression) -> str:
    """How the ratios were estimated, and what they are not."""
    schema: Any = table.release.plan.schema
    bins = f"{schema.periods} bins of {schema.bins.name} up to {schema.bins.edges[-1]:g}"
    counted = "counts of bins and events and " if table.counts else ""
    return (
        f"Hazard ratios of {schema.event} on {listed(table.names)} were estimated by proportional hazards in {bins} "
        f"(Prentice and Gloeckler 1978), from {counted}{table.rounds} rounds of score and information. {_NOT_CAUSAL}."
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
