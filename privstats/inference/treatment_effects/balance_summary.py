"""Both arms beside one another as a table: means, and their standardised differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import Summary, ends_of, number_of

if TYPE_CHECKING:
    from privstats.inference.treatment_effects.table import EffectTable

__all__ = ["balance_summary"]


_HIDDEN = [*[HIDDEN] * 3, "-inf", "inf", HIDDEN, "-inf", "inf"]


def balance_summary(table: EffectTable, alpha: float) -> Summary:
    """The balance of an effect's arms, one row per column."""
    balance = table.balance(alpha)
    after = [] if balance.weighted is None else list(balance.weighted.T)
    numbers = zip(*balance.means.T, balance.difference, balance.low, balance.high, *after, strict=True)
    columns = (
        "",
        "treated",
        "others",
        "difference",
        *ends_of(alpha),
        *(["weighted", *ends_of(alpha)] if after else []),
    )
    rows = tuple(
        (name, *(map(number_of, values) if told else _HIDDEN[: len(columns) - 1]))
        for name, told, values in zip(balance.columns, balance.told, numbers, strict=True)
    )
    weighting = "before any weighting" if not after else "before weighting and after it"
    source = Source(table.release, alpha, "negligible clipping, honest clients", table.plans)
    treated, others = table.arms or (0.0, 0.0)
    return Summary(
        title=source.title("Balance of both arms"),
        promise=source.promise,
        head=(("treated, others", f"{treated:,.0f} and {others:,.0f} (noisy)"),),
        columns=columns,
        rows=rows,
        foot=(
            *source.foot,
            "Means are in the units of the columns. Differences are standardised by the root of the mean of both arms' "
            f"variances, {weighting}; their intervals are about these records, so that noise alone is in them.",
        ),
    )
