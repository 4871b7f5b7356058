"""What a table says of effects that may differ between sites, in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.summary import chance_of, number_of

if TYPE_CHECKING:
    from privstats.inference.treatment_effects.table import EffectTable

__all__ = ["heterogeneity_said"]


def heterogeneity_said(table: EffectTable, alpha: float) -> str:
    """Q, I2, the spread of sites, and the effect at other sites like these; or why noise hides them."""
    try:
        found = table.heterogeneity()
    except ReleaseError as error:
        return f"Between groups of sites: {error}."
    each, level = f"{found.sites / found.groups:.3g}", f"{1 - alpha:.0%}"
    return (
        f"Between {found.groups} groups of {each} sites: Q {found.q:.3g}, P {chance_of(found.p_value)} (Welch), I2 "
        f"between groups of {each} sites {found.i_squared:.0%}, standard deviation of effects between sites "
        f"{found.site_sd:.3g} if all are of one size. The common effect, if sites do not differ, is "
        f"{number_of(found.pooled)} ({level}: {_ends(found.pooled_int(alpha))}); at other sites like these its mean is "
        f"{number_of(found.mean)} ({_ends(found.mean_int(alpha))}). No estimate of a single site is released."
        + ("" if table.design == "trial" else " Sites may also differ by confounding.")
    )


def _ends(interval: Array) -> str:
    low, high = map(float, interval)
    return f"{number_of(low)} to {number_of(high)}"
