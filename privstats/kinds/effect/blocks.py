"""Partition an effect's sums: one letter per outcome, one block per subgroup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from privstats.errors import SchemaError
from privstats.intake.meaning import checked_names
from privstats.schema.base import INFLUENCES, Statistic
from privstats.schema.checks import checked_groups
from privstats.schema.variables import Bins, Variable, variable_of
from privstats.transforms import ByArm, ConstantFeature
from privstats.transforms.categories import Categories

if TYPE_CHECKING:
    from privstats.kinds.effect.schema import EffectSchema
    from privstats.transforms import Transform

# fmt: off
_RECORDS = Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.14)
_INFLUENCE = Statistic("e", "pooled", ("power",), (0, 1), share=0.86,
    meaning="the sum of what each record says of the effect, in units of the most that one can say, and of what its "
    "square leaves of 1")
_BALANCE = Statistic("b", "pooled", ("feature",), (0, 1), share=0.2,
    meaning="the sum of the columns of the treated less those of the others, each record weighted for its arm")
"""Columns weighted by arm, in units of the most that one record can say."""
_LEFT_OUT = Statistic("O", "pooled", ("exclusion",), (0, 0), share=0.5,
    meaning="how many records are left out, by arm and by whether it is the outcome or a column that cannot be read")
"""Records that are in no other sum: one of these numbers grows by 1, or N does."""

TRIAL_TABLE: tuple[Statistic, ...] = (_RECORDS, _INFLUENCE)
"""Records, and t and 1 - t^2 of each record's influence t on the effect of a randomised treatment, in wire order."""
EFFECT_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    Statistic("W", "pooled", (), (0, 1), share=0.12,
        meaning="the sum of the records' weights in the population that the effect is of"),
    replace(_INFLUENCE, share=0.76),
)
"""The same of a treatment that nobody assigned, with the weights of the records."""
RATIO_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    replace(_INFLUENCE, letter="W", share=0.12,
        meaning="the sum of what each record says of the mean outcome without treatment, in units of the most that one "
        "can say, and of what its square leaves of 1"),
    replace(_INFLUENCE, share=0.76),
)
"""The same of a ratio, with what stands below its line."""
# fmt: on

_MOST_BLOCKS = 64
_LARGEST = 1e12


@cache
def rows_of(table: tuple[Statistic, ...], names: tuple[str, ...], apart: str) -> tuple[Statistic, ...]:
    """Return the rows of several outcomes, of all records or of each block apart.

    Args:
        table: of one outcome and all records, the influence values last.
        names: of the outcomes; they share what one would get. Empty: one without a name.
        apart: by what the records are divided; empty where they are not.
    """
    *counts, influence = table
    share = None if influence.share is None else influence.share / max(len(names), 1)
    meanings = (influence.meaning.replace("the effect", f"the effect on {name}") for name in names)
    several = [
        replace(influence, letter=letter, share=share, meaning=meaning)
        for letter, meaning in zip(INFLUENCES, meanings, strict=False)
    ]
    rows = (*counts, *(several or [influence]))
    if not apart:
        return rows
    return tuple(replace(row, cells="block", meaning=f"in every {apart}, {row.meaning}") for row in rows)


@cache
def with_balance(table: tuple[Statistic, ...], balance: float | None) -> tuple[Statistic, ...]:
    """Return the rows with that of weighted columns, which takes its part of what the others would get."""
    if balance is None:
        return table
    *counts, influence = (row if row.share is None else replace(row, share=row.share * (1 - balance)) for row in table)
    return (*counts, replace(_BALANCE, share=balance), influence)


@cache
def with_excluded(table: tuple[Statistic, ...]) -> tuple[Statistic, ...]:
    """Add the row of excluded records, with a share equal to all others' together.

    This costs nothing, because no record is both excluded and in the other sums.
    """
    count, *others = (replace(row, share=None if row.share is None else row.share / 2) for row in table)
    return (count, _LEFT_OUT, *others)


def checked_outcomes(names: Any) -> tuple[str, ...] | None:
    """Names of one outcome or several.

    Raises:
        SchemaError: more than there are letters for.
    """
    checked = checked_names("outcome_names", names)
    if checked is not None and not 1 <= len(checked) <= len(INFLUENCES):
        raise SchemaError(
            f"outcome_names must name 1 to {len(INFLUENCES)} outcomes, got {len(checked)}: each takes a part of mu^2"
        )
    return checked


def checked_site_groups(groups: Any, subgroups: object) -> int | None:
    """Groups of sites, where their sums are apart; None where they are not."""
    if groups is None or checked_groups(groups) == 1:
        return None
    if subgroups is not None:
        raise SchemaError("groups and subgroups do not go together: each group of sites would need a crowd in each")
    return int(groups)


def checked_subgroups(variables: Any) -> tuple[Variable, ...] | None:
    """Variables that put every record into one subgroup.

    Raises:
        SchemaError: they do not, or make too many.
    """
    if variables is None:
        return None
    if not isinstance(variables, tuple | list) or not variables:
        raise SchemaError("subgroups must be a tuple of Categories and Bins, for example (Bins('age', (20, 50, 90)),)")
    checked = tuple(variable_of(each) for each in variables)
    for each in checked:
        if each.missing or (isinstance(each, Bins) and each.open != "both"):
            raise SchemaError(
                f"subgroups by {each.name!r} must put every record into one of them: leave missing out, and bins open "
                "at both ends"
            )
    if math.prod(len(each.cells) for each in checked) > _MOST_BLOCKS:
        raise SchemaError(f"subgroups must be at most {_MOST_BLOCKS} where crossed: each has noise of its own")
    return checked


def checked_range(value: object, field: str = "outcome") -> tuple[float, float]:
    """Return a public range, low below high.

    Raises:
        SchemaError: it is none.
    """
    ends = list(value) if isinstance(value, tuple | list) else []
    numbers = len(ends) == 2 and all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
    if not numbers or not -_LARGEST <= ends[0] < ends[1] <= _LARGEST:
        raise SchemaError(
            f"{field} must be (low, high) with low < high; say it from public knowledge, not from records"
        )
    return float(ends[0]), float(ends[1])


def check_maps(schema: EffectSchema) -> None:
    """Refuse a transform that does not end in a constant and ``ByArm``; none is for rows that are mapped already."""
    match schema.transform:
        case ():
            return
        case (*_, ConstantFeature(), ByArm()):
            return
    raise SchemaError(
        "transform must end in ConstantFeature and then ByArm, so that each arm has a constant of its own; build the "
        "schema with EffectSchema.of"
    )


def check_columns(schema: EffectSchema) -> None:
    """Refuse subgroups of what is no column, or twice of the same one, or of the treatment."""
    names, last = schema.feature_names or (), schema.transform[-1] if schema.transform else None
    first: Any = schema.transform[0] if schema.transform else None
    levels = first if first is not None and first.kind == "levels" else None
    goals = levels.outcomes if levels is not None else ()
    if goals and tuple(each.name for each in goals) != schema.outcome_names:
        raise SchemaError("outcomes of Levels must be those that outcome_names names, in order, or none at all")
    if any(isinstance(each, Categories) and len(each.values) > 2 for each in goals):
        raise SchemaError("an outcome column of an effect must hold numbers, or two texts")
    arm = _arm(names, last)
    if levels is not None and arm in [each.name for each in levels.several]:
        raise SchemaError(f"the treatment {arm!r} must be a column of 0 and 1, or of two texts")
    divided = [each.name for each in schema.subgroups or ()]
    for name in divided:
        if name not in names or name == arm or divided.count(name) > 1:
            raise SchemaError(
                f"subgroups must each be of another of the columns measured before treatment, {', '.join(names)}, and "
                f"{name!r} is not; name it in feature_names"
            )
    for each in schema.subgroups or ():
        texts = levels.of(each.name) if levels is not None else None
        _check_codes(each, texts)


def _arm(names: Sequence[str], last: Transform | None) -> str | None:
    """Return the treatment's name, where columns have names.

    Raises:
        SchemaError: its place is beyond them.
    """
    if not isinstance(last, ByArm) or not names:
        return None
    if last.column >= len(names):
        raise SchemaError(f"by-arm has column {last.column}, and feature_names has {len(names)} names: 0 is the first")
    return names[last.column]


def _check_codes(subgroups: Variable, texts: Categories | None) -> None:
    """Refuse subgroups by values that the column does not hold."""
    if isinstance(subgroups, Bins):
        return
    if texts is not None and set(subgroups.values) != set(texts.values):
        raise SchemaError(f"subgroups by {subgroups.name!r} must be of its texts, {', '.join(map(str, texts.values))}")
    if texts is None and not all(type(value) is int for value in subgroups.values):
        raise SchemaError(f"subgroups by {subgroups.name!r} must be of whole numbers, the codes in that column")
