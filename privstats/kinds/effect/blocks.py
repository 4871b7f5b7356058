"""Partition an effect's sums: one letter per outcome, one block per subgroup."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from privstats.errors import SchemaError
from privstats.intake.meaning import checked_names
from privstats.schema.base import INFLUENCES, Statistic
from privstats.schema.checks import checked_groups
from privstats.schema.variables import Bins, Variable, variable_of
from privstats.transforms import ByArm, ConstantFeature
from privstats.transforms.columns import Categories

if TYPE_CHECKING:
    from privstats.kinds.effect.schema import EffectSchema
    from privstats.transforms import Levels, Transform

# fmt: off
_RECORDS = Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.14)
_INFLUENCE = Statistic("e", "pooled", ("power",), (0, 1), share=0.86,
    meaning="the sum of each record's influence on the effect, scaled to at most 1, and of 1 minus its square")
_BALANCE = Statistic("b", "pooled", ("feature",), (0, 1), share=0.2,
    meaning="the sum of the columns of the treated less those of the others, each record weighted for its arm")
"""Columns weighted by arm, in units of the largest contribution of one record."""
_LEFT_OUT = Statistic("O", "pooled", ("exclusion",), (0, 0), share=0.5,
    meaning="how many records are left out, by arm and by whether the outcome or a column is unreadable")
"""Records that are in no other sum: one of these numbers grows by 1, or N does."""

TRIAL_TABLE: tuple[Statistic, ...] = (_RECORDS, _INFLUENCE)
"""Records, and t and 1 - t^2 of each record's influence t on the effect of a randomised treatment, in wire order."""
EFFECT_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    Statistic("W", "pooled", (), (0, 1), share=0.12,
        meaning="the sum of the records' weights in the population of the effect"),
    replace(_INFLUENCE, share=0.76),
)
"""The same of a treatment that nobody assigned, with the weights of the records."""
RATIO_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    replace(_INFLUENCE, letter="W", share=0.12,
        meaning="the sum of each record's influence on the mean outcome without treatment, scaled to at most 1, and of "
        "1 minus its square"),
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


def is_worded(declared: Any, most: float = math.inf) -> bool:
    """Return whether two or more texts stand where a range may."""
    texts = isinstance(declared, tuple | list) and all(isinstance(each, str) for each in declared)
    return texts and 2 <= len(declared) <= most


def levels_of(columns: Mapping[str, Any], treatment: str | Mapping[str, Any], outcome: Any) -> tuple[Levels, ...]:
    """Return the declaration of all texts that stand in a range's place; none where there are none.

    Raises:
        SchemaError: a treatment that is no name, or names no two texts.
    """
    arm = {} if isinstance(treatment, str) else treatment
    two = isinstance(arm, Mapping) and all(is_worded(each, 2) for each in arm.values())
    if not isinstance(arm, Mapping) or (arm == treatment and (len(arm) != 1 or not two)):
        raise SchemaError(
            "treatment must name the column of arms, whose values are 0 and 1, or both its texts, that of the others "
            "first: {'arm': ('placebo', 'drug')}"
        )
    if is_worded(outcome, 2):
        raise SchemaError("outcome must name the column of these two texts: {'recovered': ('no', 'yes')}")
    if not any(map(is_worded, (*columns.values(), *arm.values(), *goals_of(outcome).values()))):
        return ()
    from privstats.transforms import Levels, Numeric

    worded = tuple(Categories(name, tuple(each)) for name, each in {**columns, **arm}.items() if is_worded(each))
    spread = tuple(place for place, each in enumerate(columns.values()) if is_worded(each) and len(each) > 2)
    outcomes = goals_of(outcome) if any(map(is_worded, goals_of(outcome).values())) else {}
    goals = (Categories(name, tuple(each)) if is_worded(each) else Numeric(name) for name, each in outcomes.items())
    return (Levels(worded, tuple(goals), spread),)


def goals_of(outcome: Any) -> Mapping[str, Any]:
    """Outcomes by name; none where one has none."""
    return outcome if isinstance(outcome, Mapping) else {}


def shared_range(outcome: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return the one range of all outcomes, and their names where they have some; of two texts it is 0 to 1.

    Raises:
        SchemaError: they have several.
    """
    if not isinstance(outcome, Mapping):
        return outcome, None
    for name, each in outcome.items():
        if is_worded(each) and not is_worded(each, 2):
            raise SchemaError(f"outcome {name!r} must be a range or two texts, got {len(each)} texts")
    ranges = {name: range_of(each, f"the range of {name!r}") for name, each in outcome.items()}
    if len(set(ranges.values())) != 1:
        raise SchemaError(
            "outcomes must share one public range, because their lines come from one sum: divide each by a public "
            "number so that they do"
        )
    return next(iter(ranges.values())), tuple(ranges)


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


def range_of(declared: Any, field: str) -> tuple[float, float]:
    """Return a public range; of two texts 0 to 1, and of more -1 to 1, which leaves columns of 0 and 1 as they are."""
    if is_worded(declared):
        return (0.0, 1.0) if len(declared) == 2 else (-1.0, 1.0)
    return checked_range(declared, field)


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


def facts_of(schema: EffectSchema) -> list[str]:
    """Return facts for a reviewer about outcomes, missing outcomes and subgroups."""
    outcomes, parts = schema.outcomes, math.prod(schema.crossed)
    names, apart = schema.outcome_names or (), [each.name for each in schema.subgroups or ()]
    shared = f"the outcomes {', '.join(names)} share the budget: each has about sqrt({outcomes}) times the noise of one"
    divided = (
        f"the records are divided into {parts} subgroups by {', '.join(apart)}: each has the noise of one sum on its "
        f"own records, and all together sqrt({parts}) times as much; what is not declared in a course is exploratory"
    )
    gaps = (
        "outcomes may be missing: whether a record has one is summed, too, in rounds before the last session, and the "
        "table holds where nothing but the arm and the columns decides it, which no sum can test"
    )
    counted = (
        "records that are left out are counted, by arm and by whether their outcome or a column cannot be read, at no "
        "further price: a record is in that count or in the other sums"
    )
    return [
        *([gaps] if schema.missing else []),
        *([counted] if schema.left_out else []),
        *([shared] if outcomes > 1 else []),
        *([divided] if parts > 1 else []),
    ]


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
