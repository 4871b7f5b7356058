"""Explain to a privacy officer how declared columns of a kind are read."""

from __future__ import annotations

from collections.abc import Sequence

from privstats.intake.declared.categories import Categories
from privstats.records.variables import Bins
from privstats.schema.base import Schema


def number_facts(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of 0 and 1 whose texts the plan does not declare.

    Args:
        schema: of an effect or of hazards.
        names: its columns that hold 0 and 1: the arm, outcomes from 0 to 1, the event.
    """
    levels = schema.reading.levels
    declared = () if levels is None else (*levels.columns, *levels.outcomes)
    worded = {each.name for each in declared if isinstance(each, Categories)}
    plain = [each for each in names if each not in worded]
    if not plain:
        return ()
    return (
        f"{' and '.join(plain)} must hold numbers, true and false as 1 and 0: a record with another text there is "
        f"excluded; where files hold texts, declare both, what means no first, as in {plain[0]}=no/yes",
    )


def first_bin_facts(bins: Bins, condition: str = "") -> tuple[str, ...]:
    """Ask for a short first bin where the bins of a time begin at 0 with one that is no shorter than the next.

    Args:
        condition: begins the sentence where the plan does not state that the column is a time.
    """
    start, end, after, *_ = bins.edges
    if start != 0 or end - start < after - end:
        return ()
    return (
        f"{condition}the first bin of {bins.name} ends at {end:g}, and readers take hazards as even inside it: where "
        "many events come soon after 0, as after surgery, and many leave in that bin, risks are wrong. Add an edge "
        "where the early events end, such as the end of the first month",
    )


def gap_facts(schema: Schema, warning: str = "") -> tuple[str, ...]:
    """State what gaps in declared columns do to a regression; nothing where no columns are declared.

    Args:
        warning: a prefix, where the sums end in a table of estimates.
    """
    cells = schema.reading.declaration
    if cells is None or (cells.missing is None and len(cells.columns) == 1):
        return ()
    if cells.missing:
        return (
            "a record with a gap in a declared column is in no sum, and its data holder alone sees how many of its own "
            "are: estimates are of complete records",
        )
    return (
        f"{warning}gaps in declared columns count as cells of their own, which suits predictions and biases estimates: "
        "a table (ols, logit, poisson) reports no contrast where a column has more gaps than noise could show; for a "
        'table, state missing = "left out" beside the columns, as `privstats plan init --gaps excluded` does',
    )
