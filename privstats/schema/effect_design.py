"""By what chance a treatment was assigned, what an effect is measured as, and how much one record can say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from privstats.errors import SchemaError

if TYPE_CHECKING:
    from privstats.schema.effect import EffectSchema

__all__ = [
    "MOST_RATIO",
    "Measure",
    "checked_balance",
    "checked_measure",
    "checked_probability",
    "checked_trim",
    "ratio_cap",
]

Measure: TypeAlias = Literal["ratio"]

MOST_RATIO = 4.0
"""The largest guess of a ratio, and one over the smallest: a wild one would cost noise."""

_PROBABILITIES = (0.05, 0.95)
_TRIMS = (0.02, 0.4)
_BALANCES = (0.05, 0.5)


def checked_probability(value: Any) -> float | tuple[float, ...]:
    """The probability of treatment in a trial, or that of each place of the roster; one for all where they agree.

    Raises:
        SchemaError: one out of range.
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


def checked_trim(trim: Any) -> float:
    """Beyond which propensity records are left out, where nobody assigned the treatment.

    Raises:
        SchemaError: one out of range.
    """
    low, high = _TRIMS
    if not isinstance(trim, float | int) or isinstance(trim, bool) or not low <= trim <= high:
        raise SchemaError(
            f"trim must be a number from {low} to {high} where nobody assigned the treatment, got {trim!r}: .1 is "
            "usual; for a randomised trial give the probability of treatment instead"
        )
    return float(trim)


def checked_balance(balance: Any) -> float | None:
    """The part of the last session that balance takes; None for none.

    Raises:
        SchemaError: one out of range.
    """
    if balance is None or (type(balance) in (int, float) and balance == 0):
        return None
    low, high = _BALANCES
    if type(balance) not in (int, float) or not low <= balance <= high:
        raise SchemaError(f"balance must be 0, or a number from {low} to {high}, got {balance!r}: .2 is usual")
    return float(balance)


def checked_measure(schema: EffectSchema) -> Measure | None:
    """What the effect is measured as: ``"ratio"``, or None for a difference.

    Raises:
        SchemaError: another word, or a ratio of what has none.
    """
    measure: Any = schema.measure
    if measure in (None, "difference"):
        return None
    if measure != "ratio":
        raise SchemaError(f"measure must be 'difference' or 'ratio', got {measure!r}")
    if schema.probability is None:
        raise SchemaError(
            "measure='ratio' is for trials: its sums have no place for the share of records that a propensity keeps; "
            "take the difference"
        )
    if schema.outcome[0] != 0:
        raise SchemaError(f"measure='ratio' needs outcomes from 0, got a range from {schema.outcome[0]:g}")
    if schema.outcome_names is not None and len(schema.outcome_names) > 1:
        raise SchemaError("measure='ratio' takes one outcome: each ratio has a sum of its own below the line")
    if schema.groups is not None:
        raise SchemaError("measure='ratio' and groups do not go together: the spread between sites is of differences")
    return "ratio"


def ratio_cap(treated: float, others: float, ratio: float) -> float:
    """The most that ``psi_1 - ratio psi_0`` can be, outcomes and lines from 0 to 1.

    With a record's psi_a = m_a + [in arm a] (y - m_a) / p_a: of the treated psi_1 lies from 1 - 1 / p_1 to 1 / p_1 and
    psi_0 from 0 to 1, of the others the other way round.

    Args:
        treated, others: the smallest chances of either arm.
        ratio: the guess that is taken out.
    """
    return max(1 / treated, 1 / treated - 1 + ratio, ratio / others, 1 + ratio * (1 / others - 1))
