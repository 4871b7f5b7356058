"""A raw table of one party in a private fit: its declared columns in place of maps and a clip norm.

``private`` reads the records themselves; the ``fit_private`` of every head calls both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privstats.errors import HeadError
from privstats.transforms import Cells, Column, Transform, of_unit_norm, steps_of

if TYPE_CHECKING:
    from privstats.plan import Plan

__all__ = ["course_over", "opened_by", "require_declared", "rows_behind"]


def rows_behind(
    columns: Sequence[Column] | None,
    transform: Sequence[Transform],
    clip_norm: Any,
    expected_records: int | None,
    *,
    unit: bool,
) -> tuple[tuple[Transform, ...], float]:
    """The maps in front of the sums and the norm of rows behind them; of declared columns these follow from them.

    Args:
        columns: of a raw table; None: rows of numbers.
        transform, clip_norm, expected_records: as the caller gave them.
        unit: whether rows of numbers are scaled to norm 1.

    Raises:
        HeadError: maps or another norm beside declared columns, or no stated number of records.
    """
    if columns is None:
        return of_unit_norm(transform) if unit else steps_of(transform), clip_norm
    if clip_norm not in (None, 1.0) or len(transform):
        raise HeadError("rows of declared columns have norm 1 and take no other map: leave clip_norm and transform out")
    if expected_records is None:
        raise HeadError(
            "declared columns need expected_records=..., the number of records as their owner states it: it is never "
            "counted"
        )
    return (Cells(tuple(columns)),), 1.0


def require_declared(columns: Sequence[Column] | None, expected_records: int | None) -> None:
    """Refuse a number of records where nothing reads it: in a fit of one release without declared columns.

    Raises:
        HeadError: it is there.
    """
    if columns is None and expected_records is not None:
        raise HeadError("expected_records serves declared columns alone; leave it out, or give columns=...")


def opened_by(transform: Sequence[Transform]) -> bool:
    """Whether cut points of declared columns are still to be found."""
    return any(getattr(step, "open", ()) for step in transform)


def course_over(whole: Plan, kind: str | None, records: int, **options: Any) -> Any:
    """The course of this kind that keeps a plan's promise as a whole; cut points come first where columns are open.

    Without a kind the plan itself follows on cut points, so there must be some to find.
    """
    from privstats.course import Binned
    from privstats.course.kinds import KINDS

    if kind is None or opened_by(whole.schema.transform):
        return Binned.within(whole, kind, expected_records=records, **options)
    return KINDS[kind].within(whole, expected_records=records, **options)
