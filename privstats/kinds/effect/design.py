"""Check an effect's design: the chance of treatment, the measure, and the largest influence of one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from privstats.errors import SchemaError
from privstats.schema.checks import settle

if TYPE_CHECKING:
    from privstats.kinds.effect.schema import EffectSchema

Measure: TypeAlias = Literal["ratio", "both"]
Missing: TypeAlias = Literal["weights"]
LeftOut: TypeAlias = Literal["counted"]

MOST_RATIO = 4.0
"""The largest guess of a ratio, and one over the smallest: a wild one would cost noise."""

_PROBABILITIES = (0.05, 0.95)
_TRIMS = (0.02, 0.4)
_BALANCES = (0.05, 0.5)
_LEAST_SEEN = (0.2, 0.8)


def check_design(schema: EffectSchema) -> None:
    """Refuse a probability or a trim out of range, or what goes with another design.

    Raises:
        SchemaError: naming the field.
    """
    if schema.probability is None:
        settle(schema, trim=_checked_trim(schema.trim))
    else:
        settle(schema, probability=_checked_probability(schema.probability))
        if schema.trim is not None and schema.missing is None:
            raise SchemaError("trim must be left out of a trial: its probability is known")
        if schema.estimand != "ate":
            raise SchemaError("estimand must be 'ate' in a trial: all its estimands are one")
    settle(schema, measure=_checked_measure(schema), balance=_checked_balance(schema.balance))
    if schema.missing is not None:
        _check_missing(schema)
    if schema.left_out not in (None, "counted"):
        raise SchemaError(f"left_out must be 'counted' or left out, got {schema.left_out!r}")
    if schema.left_out and schema.groups:
        raise SchemaError("left_out and groups do not go together: a record left out is in no group of sites")


def _check_missing(schema: EffectSchema) -> None:
    """Refuse missing outcomes where their weights are not proved, and a trim that is none of being observed."""
    if schema.missing != "weights":
        raise SchemaError(f"missing must be 'weights' or left out, got {schema.missing!r}")
    if not isinstance(schema.probability, float):
        raise SchemaError(
            "missing='weights' is for trials of one probability: with a propensity of treatment beside that of being "
            "observed two products of errors would add up, which no bound here holds; state complete cases instead"
        )
    beside = {
        "measure": schema.measure,
        "balance": schema.balance,
        "subgroups": schema.subgroups,
        "groups": schema.groups,
        "several outcomes": len(schema.outcome_names or ()) > 1,
    }
    if named := [name for name, value in beside.items() if value]:
        raise SchemaError(f"missing='weights' takes one outcome in all records, and no {named[0]}: leave one of both")
    low, high = _LEAST_SEEN
    trim: Any = schema.trim
    if type(trim) not in (int, float) or not low <= trim <= high:
        raise SchemaError(
            f"trim must be a number from {low} to {high} where outcomes may be missing, got {trim!r}: records whose "
            "published probability of being observed lies below it are left out; .5 is usual"
        )
    settle(schema, trim=float(trim))


def _checked_probability(value: Any) -> float | tuple[float, ...]:
    """The probability of treatment in a trial, or that of each place of the roster; one for all where they agree.

    Raises:
        SchemaError: a value is out of range.
    """
    several = list(value) if isinstance(value, tuple | list) else [value]
    least, most = _PROBABILITIES
    for pi in several or [None]:
        if not isinstance(pi, float | int) or isinstance(pi, bool) or not least <= pi <= most:
            raise SchemaError(
                f"probability must be a number from {least} to {most}, got {pi!r}: the one by which each record was "
                "assigned, or one for each place of the roster; whole clinics or wards in one arm are no records' trial"
            )
    numbers = tuple(float(pi) for pi in several)
    return numbers if isinstance(value, tuple | list) and len(set(numbers)) > 1 else numbers[0]


def _checked_trim(trim: Any) -> float:
    """Return the propensity beyond which records are excluded, where the treatment was not assigned.

    Raises:
        SchemaError: a value is out of range.
    """
    low, high = _TRIMS
    if not isinstance(trim, float | int) or isinstance(trim, bool) or not low <= trim <= high:
        raise SchemaError(
            f"trim must be a number from {low} to {high} where nobody assigned the treatment, got {trim!r}: .1 is "
            "usual; for a randomised trial give the probability of treatment instead"
        )
    return float(trim)


def _checked_balance(balance: Any) -> float | None:
    """The part of the last session that balance takes; None for none.

    Raises:
        SchemaError: a value is out of range.
    """
    if balance is None or (type(balance) in (int, float) and balance == 0):
        return None
    low, high = _BALANCES
    if type(balance) not in (int, float) or not low <= balance <= high:
        raise SchemaError(f"balance must be 0, or a number from {low} to {high}, got {balance!r}: .2 is usual")
    return float(balance)


def _checked_measure(schema: EffectSchema) -> Measure | None:
    """Return the effect's measure: ``"ratio"``, ``"both"``, or None for a difference.

    Raises:
        SchemaError: another value, or a ratio where none is defined.
    """
    measure: Any = schema.measure
    if measure in (None, "difference"):
        return None
    if measure not in get_args(Measure):
        raise SchemaError(f"measure must be 'difference', 'ratio' or 'both', got {measure!r}")
    if schema.probability is None:
        raise SchemaError(
            f"measure={measure!r} is for trials: its sums have no place for the share of records that a "
            "propensity keeps; take the difference"
        )
    if schema.outcome[0] != 0:
        raise SchemaError(f"measure={measure!r} needs outcomes from 0, got a range from {schema.outcome[0]:g}")
    if schema.outcome_names is not None and len(schema.outcome_names) > 1:
        raise SchemaError(f"measure={measure!r} takes one outcome: each ratio has a sum of its own below the line")
    if schema.groups is not None:
        raise SchemaError(f"measure={measure!r} and groups do not go together: sites' spread is one of differences")
    return "ratio" if measure == "ratio" else "both"


def ratio_cap(treated: float, others: float, ratio: float) -> float:
    """Return the maximum of ``psi_1 - ratio psi_0``, with outcomes and lines from 0 to 1.

    A record has psi_a = m_a + [in arm a] (y - m_a) / p_a. For treated records psi_1 is from 1 - 1 / p_1 to 1 / p_1 and
    psi_0 from 0 to 1; for the others the reverse.

    Args:
        treated, others: the smallest probability of each arm.
        ratio: the guess that is subtracted.
    """
    return max(1 / treated, 1 / treated - 1 + ratio, ratio / others, 1 + ratio * (1 / others - 1))
