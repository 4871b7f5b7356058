"""A treatment effect as a table for publication: the assumptions first, then the row, then the promise."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from privstats.inference.summary import HIDDEN, Summary, chance_of, ends_of, foot_of, number_of, title_of

if TYPE_CHECKING:
    from privstats.inference.effects import EffectTable

__all__ = ["effect_summary"]

_TRIAL = (
    "each record was assigned by the plan's probability, alone or in permuted blocks and not by clinic, ward or any "
    "other cluster; the columns were measured before assignment; one outcome per record, none missing; what one "
    "receives does not move another's outcome; honest clients"
)
_ROWS = {"ate": "mean effect"}


def effect_summary(table: EffectTable, alpha: float) -> Summary:
    """The table of an effect at one level."""
    why = table.row(alpha)["told"] is False and (table.untold or table.why_not_told)
    low, high = table.conf_int(alpha)
    cells = [number_of(table.estimate), number_of(table.bse), number_of(table.noise_bse), chance_of(table.pvalue)]
    shown = (
        [*([HIDDEN] * 3), cells[-1], "-inf", "inf"] if why else [*cells, number_of(float(low)), number_of(float(high))]
    )
    return Summary(
        title=title_of(table.release, "Effect of a randomised treatment"),
        head=_head(table),
        columns=("", "effect", "std err", "of it noise", "P>|t|", *ends_of(alpha)),
        rows=((_ROWS[table.estimand], *shown),),
        foot=(
            *foot_of(table.release, alpha, _TRIAL, table.plans),
            "The effect is that of assignment: who did not comply counts where assigned.",
            *([f"Not told: {why}."] if why else []),
            *_few(table),
        ),
    )


def _head(table: EffectTable) -> tuple[tuple[str, str], ...]:
    low, high = table.outcome
    arms = () if table.arms is None else (("treated, others", " and ".join(f"{each:,.0f}" for each in table.arms)),)
    return (
        ("records", f"{table.nobs:,.0f} (noisy)"),
        *arms,
        ("assigned", f"with probability {table.probability:g}"),
        ("outcome", f"from {low:g} to {high:g}"),
    )


def _few(table: EffectTable) -> list[str]:
    """A warning about an arm of few records."""
    if table.arms is None or min(table.arms) >= 50:
        return []
    return [textwrap.shorten("Warning: an arm has fewer than 50 records above noise.", 80)]
