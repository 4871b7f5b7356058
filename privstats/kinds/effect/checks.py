"""Check an effect's fields, and partition its sums by outcome and subgroup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from privstats.errors import SchemaError
from privstats.intake.declared.categories import Categories
from privstats.intake.meaning import checked_names
from privstats.records.variables import Bins, Variable, variable_of
from privstats.schema.base import INFLUENCES, Statistic
from privstats.schema.checks import checked_groups, settle
from privstats.transforms import ByArm, ConstantFeature, Interactions

if TYPE_CHECKING:
    from privstats.kinds.effect.schema import EffectSchema
    from privstats.transforms import Transform

# fmt: off
_RECORDS = Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.14)
_INFLUENCE = Statistic("e", "pooled", ("power",), (0, 1), share=0.86,
    meaning="two sums: each record's influence on the effect, scaled to at most 1, and 1 minus its square")
_BALANCE = Statistic("b", "pooled", ("feature",), (0, 1), share=0.2,
    meaning="the sum of the columns over the treated minus that over the others, each record weighted for its arm")
"""Columns weighted by arm, in units of the largest contribution of one record."""
_EXCLUSION = Statistic("O", "pooled", ("exclusion",), (0, 0), share=0.5,
    meaning="how many records are excluded, by arm and by whether the outcome or a column is unreadable")
"""Counts of excluded records: a record adds 1 to one of these numbers, or 1 to N."""

TRIAL_TABLE: tuple[Statistic, ...] = (_RECORDS, _INFLUENCE)
"""Records, and t and 1 - t^2 of each record's influence t on the effect of a randomised treatment, in wire order."""
EFFECT_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    Statistic("W", "pooled", (), (0, 1), share=0.12,
        meaning="the sum of the weights with which records count in the effect"),
    replace(_INFLUENCE, share=0.76),
)
"""The same for a treatment that was not randomised, with the records' weights."""
RATIO_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    replace(_INFLUENCE, letter="W", share=0.12,
        meaning="two sums: each record's influence on the mean outcome without treatment, scaled to at most 1, and 1 "
        "minus its square"),
    replace(_INFLUENCE, share=0.76),
)
"""The same for a ratio, with the sum of its denominator."""
# fmt: on

EXCLUSIONS = 6
"""Counts of excluded records: three arms (treated, untreated, unknown) by two reasons."""

_MAX_BLOCKS = 64
_LARGEST = 1e12

Measure: TypeAlias = Literal["ratio", "both"]
Missing: TypeAlias = Literal["weights"]
LeftOut: TypeAlias = Literal["counted"]

MAX_RATIO = 4.0
"""The largest guess of a ratio, and one over the smallest: an extreme guess would cost noise."""

_PROBABILITIES = (0.05, 0.95)
_TRIMS = (0.02, 0.4)
_BALANCES = (0.05, 0.5)
_SEEN_TRIMS = (0.2, 0.8)


@cache
def rows_of(table: tuple[Statistic, ...], names: tuple[str, ...], partition: str) -> tuple[Statistic, ...]:
    """Return the statistics of several outcomes, for all records or per block.

    Args:
        table: one outcome's statistics, influence values last.
        names: outcomes, which divide the share.
        partition: what divides the records, if anything.
    """
    *counts, influence = table
    share = None if influence.share is None else influence.share / max(len(names), 1)
    meanings = (influence.meaning.replace("the effect", f"the effect on {name}") for name in names)
    several = [
        replace(influence, letter=letter, share=share, meaning=meaning)
        for letter, meaning in zip(INFLUENCES, meanings, strict=False)
    ]
    rows = (*counts, *(several or [influence]))
    if not partition:
        return rows
    return tuple(replace(row, partition="block", meaning=f"in every {partition}, {row.meaning}") for row in rows)


@cache
def with_balance(table: tuple[Statistic, ...], balance: float | None) -> tuple[Statistic, ...]:
    """Add the weighted columns, reducing the other shares in proportion."""
    if balance is None:
        return table
    *counts, influence = (row if row.share is None else replace(row, share=row.share * (1 - balance)) for row in table)
    return (*counts, replace(_BALANCE, share=balance), influence)


@cache
def with_excluded(table: tuple[Statistic, ...]) -> tuple[Statistic, ...]:
    """Add the excluded records, with a share equal to all others' together.

    No record is both excluded and in the other sums, so default shares cost nothing.
    """
    count, *others = (replace(row, share=None if row.share is None else row.share / 2) for row in table)
    return (count, _EXCLUSION, *others)


def checked_outcomes(names: Any) -> tuple[str, ...] | None:
    """Return outcome names."""
    checked = checked_names("outcome_names", names)
    if checked is not None and not 1 <= len(checked) <= len(INFLUENCES):
        raise SchemaError(
            f"outcome_names must name 1 to {len(INFLUENCES)} outcomes, got {len(checked)}: each spends a part of mu^2"
        )
    return checked


def checked_site_groups(groups: Any, subgroups: object) -> int | None:
    """Return the number of site groups, None for one."""
    if groups is None or checked_groups(groups) == 1:
        return None
    if subgroups is not None:
        raise SchemaError("groups and subgroups cannot be combined: each of their pairs would need many records")
    return int(groups)


def checked_subgroups(variables: Any) -> tuple[Variable, ...] | None:
    """Return the subgroups' variables."""
    if variables is None:
        return None
    if not isinstance(variables, tuple | list) or not variables:
        raise SchemaError("subgroups must be a tuple of Categories and Bins, for example (Bins('age', (20, 50, 90)),)")
    checked = tuple(variable_of(each) for each in variables)
    for variable in checked:
        if variable.missing or (isinstance(variable, Bins) and variable.open != "both"):
            raise SchemaError(
                f"subgroups by {variable.name!r} must put every record into one of them: omit missing, and leave bins "
                "open at both ends"
            )
    if math.prod(len(each.cells) for each in checked) > _MAX_BLOCKS:
        raise SchemaError(f"subgroups must be at most {_MAX_BLOCKS} where crossed: each has noise of its own")
    return checked


def checked_range(value: object, field: str = "outcome") -> tuple[float, float]:
    """Return a public range."""
    ends = list(value) if isinstance(value, tuple | list) else []
    numbers = len(ends) == 2 and all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
    if not numbers or not -_LARGEST <= ends[0] < ends[1] <= _LARGEST:
        raise SchemaError(
            f"{field} must be (low, high) with low < high; take it from public knowledge, not from records"
        )
    return float(ends[0]), float(ends[1])


def check_maps(schema: EffectSchema) -> None:
    """Refuse a transform, unless empty, that does not end in a constant and ``ByArm``."""
    if any(isinstance(map_, Interactions) for map_ in schema.transform):
        raise SchemaError(
            "transform must hold no Interactions in an effect: name subgroups=, whose effects are compared with one "
            "another"
        )
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
    """Refuse outcomes, a treatment or subgroups that do not fit the columns."""
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
                f"subgroups must be by different columns measured before treatment, got {name!r}: name each of "
                f"{', '.join(each for each in names if each != arm) or 'feature_names'} at most once"
            )
    for each in schema.subgroups or ():
        texts = levels.of(each.name) if levels is not None else None
        _check_codes(each, texts)


def _arm(names: Sequence[str], last: Transform | None) -> str | None:
    if not isinstance(last, ByArm) or not names:
        return None
    if last.column >= len(names):
        raise SchemaError(f"by-arm has column {last.column}, and feature_names has {len(names)} names: 0 is the first")
    return names[last.column]


def _check_codes(subgroups: Variable, texts: Categories | None) -> None:
    if isinstance(subgroups, Bins):
        return
    if texts is not None and set(subgroups.values) != set(texts.values):
        raise SchemaError(f"subgroups by {subgroups.name!r} must be of its texts, {', '.join(map(str, texts.values))}")
    if texts is None and not all(type(value) is int for value in subgroups.values):
        raise SchemaError(f"subgroups by {subgroups.name!r} must be of integers, the codes in that column")


def check_design(schema: EffectSchema) -> None:
    """Refuse design fields that are out of range or do not go together."""
    if schema.probability is None:
        settle(schema, trim=_checked_trim(schema.trim))
    else:
        settle(schema, probability=_checked_probability(schema.probability))
        if schema.trim is not None and schema.missing is None:
            raise SchemaError("trim must be omitted in a trial: its probability is known")
        if schema.estimand != "ate":
            raise SchemaError("estimand must be 'ate' in a trial: all its estimands are one")
    settle(schema, measure=_checked_measure(schema), balance=_checked_balance(schema.balance))
    if schema.missing is not None:
        _check_missing(schema)
    if schema.left_out not in (None, "counted"):
        raise SchemaError(f"left_out must be 'counted' or omitted, got {schema.left_out!r}")
    if schema.left_out and schema.groups:
        raise SchemaError("left_out and groups cannot be combined: an excluded record is in no group of sites")


def _check_missing(schema: EffectSchema) -> None:
    if schema.missing != "weights":
        raise SchemaError(f"missing must be 'weights' or omitted, got {schema.missing!r}")
    if not isinstance(schema.probability, float):
        raise SchemaError(
            "missing='weights' needs a trial with one probability of treatment. With a fitted propensity of "
            "treatment, no bound covers the errors of both propensities: omit missing, and use complete records"
        )
    unsupported = {
        "measure": schema.measure,
        "balance": schema.balance,
        "subgroups": schema.subgroups,
        "groups": schema.groups,
        "several outcomes": len(schema.outcome_names or ()) > 1,
    }
    if named := [name for name, value in unsupported.items() if value]:
        raise SchemaError(f"missing='weights' needs one outcome in all records, and no {named[0]}: omit one of both")
    low, high = _SEEN_TRIMS
    trim: Any = schema.trim
    if type(trim) not in (int, float) or not low <= trim <= high:
        raise SchemaError(
            f"trim must be a number from {low} to {high} where outcomes may be missing, got {trim!r}: records whose "
            "published probability of being observed is below it are excluded; .5 is usual"
        )
    settle(schema, trim=float(trim))


def _checked_probability(value: Any) -> float | tuple[float, ...]:
    several = list(value) if isinstance(value, tuple | list) else [value]
    low, high = _PROBABILITIES
    for pi in several or [None]:
        if not isinstance(pi, float | int) or isinstance(pi, bool) or not low <= pi <= high:
            raise SchemaError(
                f"probability must be a number from {low} to {high}, got {pi!r}: the one by which each record was "
                "assigned, or one per roster index; if whole clinics or wards were assigned, no record was randomised"
            )
    numbers = tuple(float(pi) for pi in several)
    return numbers if isinstance(value, tuple | list) and len(set(numbers)) > 1 else numbers[0]


def _checked_trim(trim: Any) -> float:
    low, high = _TRIMS
    if not isinstance(trim, float | int) or isinstance(trim, bool) or not low <= trim <= high:
        raise SchemaError(
            f"trim must be a number from {low} to {high} where treatment was not assigned, got {trim!r}: .1 is "
            "usual; for a randomised trial give the probability of treatment instead"
        )
    return float(trim)


def _checked_balance(balance: Any) -> float | None:
    if balance is None or (type(balance) in (int, float) and balance == 0):
        return None
    low, high = _BALANCES
    if type(balance) not in (int, float) or not low <= balance <= high:
        raise SchemaError(f"balance must be 0, or a number from {low} to {high}, got {balance!r}: .2 is usual")
    return float(balance)


def _checked_measure(schema: EffectSchema) -> Measure | None:
    measure: Any = schema.measure
    if measure in (None, "difference"):
        return None
    if measure not in get_args(Measure):
        raise SchemaError(f"measure must be 'difference', 'ratio' or 'both', got {measure!r}")
    if schema.probability is None:
        raise SchemaError(
            f"measure={measure!r} is for trials: its sums do not hold the share of records that a propensity "
            "includes; use the difference"
        )
    if schema.outcome[0] != 0:
        raise SchemaError(f"measure={measure!r} needs outcomes from 0, got a range from {schema.outcome[0]:g}")
    if schema.outcome_names is not None and len(schema.outcome_names) > 1:
        raise SchemaError(f"measure={measure!r} needs one outcome: each ratio has its own denominator")
    if schema.groups is not None:
        raise SchemaError(f"measure={measure!r} and groups cannot be combined: groups compare differences, not ratios")
    return "ratio" if measure == "ratio" else "both"


def ratio_cap(treated: float, others: float, ratio: float) -> float:
    """Return the maximum of ``psi_1 - ratio psi_0``, with outcomes and lines in 0..1.

    psi_a = m_a + [in arm a] (y - m_a) / p_a. For treated records psi_1 is in 1 - 1 / p_1..1 / p_1 and psi_0 in 0..1;
    for the others the reverse.

    Args:
        treated, others: each arm's smallest probability.
        ratio: the subtracted guess.
    """
    return max(1 / treated, 1 / treated - 1 + ratio, ratio / others, 1 + ratio * (1 / others - 1))
