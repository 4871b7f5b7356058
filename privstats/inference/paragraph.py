"""Write a paragraph for a paper's Methods, for every table of this room."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from privstats.errors import ReleaseError
from privstats.inference.counts.survival import SurvivalCurve, SurvivalCurves, curve_summary
from privstats.inference.counts.table import Interval, count_table
from privstats.inference.description import Count, Description
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import Summary, ends_of
from privstats.release import Release

if TYPE_CHECKING:
    from privstats.inference.groups.means import GroupMeans
    from privstats.inference.regression.cell_table import CellTable
    from privstats.inference.regression.table import Regression
    from privstats.inference.scorecard_table import Scorecard
    from privstats.inference.treatment_effects.rows import EffectRows
    from privstats.inference.treatment_effects.table import EffectTable

    Table: TypeAlias = EffectTable | EffectRows | Regression | CellTable | Scorecard | GroupMeans
    Curves: TypeAlias = SurvivalCurve | SurvivalCurves | Mapping[str, SurvivalCurve]
    Result: TypeAlias = Table | Curves | Mapping[str, Interval]


def methods(result: Result, release: Release | None = None, *, alpha: float = 0.05) -> str:
    """Return a paragraph: computation, parties, guarantee, assumptions, plans and software.

    Args:
        result: from :func:`effect`, :func:`hazards`, a regression, :func:`scorecard`, :func:`kaplan_meier`,
            :func:`proportions` or :func:`table_one`.
        release: needed for shares, which do not hold it.

    Raises:
        ReleaseError: the release is missing, or the result is none of these.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"sex": ["f"] * 60 + ["m"] * 40}))
        >>> paragraph = ps.inference.methods(ps.inference.proportions(release, "sex"), release)
        >>> release.plan.digest in paragraph, "Assumed: independent records" in paragraph
        (True, True)
    """
    return _summary_of(result, release, alpha).methods


def _summary_of(result: Any, release: Release | None, alpha: float) -> Summary:
    summary = getattr(result, "summary", None)
    if summary is not None:
        table: Summary = summary(alpha) if hasattr(result, "conf_int") else summary()
        return table
    several: dict[str, Any] = dict(result) if isinstance(result, Mapping) else {}
    match next(iter(several.values()), None):
        case SurvivalCurve():
            return curve_summary(several)
        case Interval():
            if release is None:
                raise ReleaseError("this result does not hold its release; pass it as the second argument")
            return proportions_summary(several, release, alpha)
    raise ReleaseError(f"no paragraph is written for a {type(result).__name__}; give what a reader of a table returned")


def proportions_summary(
    shares: Mapping[str, Interval], release: Release, alpha: float, name: str | None = None
) -> Summary:
    """Return one variable's shares.

    Args:
        shares: by cell, from :func:`proportions`.
        release: of the counts.
        alpha: level of the intervals.
        name: the variable; None: the first with these cells.
    """
    schema: Any = release.plan.schema
    variable = name or next(each.name for each in schema.variables if each.cells == tuple(shares))
    table = count_table(release, variable)
    rows = [
        (cell, Count("n", float(n), table.sigma).short, f"{share.value:.4f}", f"{share.low:.4f}", f"{share.high:.4f}")
        if share.reported
        else (cell, Count("n", float(n), table.sigma).short, HIDDEN, "0", "1")
        for (cell, share), n in zip(shares.items(), table.counts, strict=True)
    ]
    source = Source(release, alpha, "independent records, honest clients")
    words = "Shares of records have Wilson's intervals, widened by the noise of the counts."
    about = Description(
        estimand=("proportion", f"share of the records with each value of {variable}"),
        counts=(Count("records", table.total, table.sigma * math.sqrt(table.counts.size)),),
        noisy_rows=table.sigma > 0,
    )
    columns = (variable, "n", "proportion", *ends_of(alpha))
    return source.summary("Proportions", columns, rows, methods=words, about=about)
