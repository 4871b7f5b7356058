"""Refuse a reader for a plan, in one sentence: before a session for the plan, and after it for a release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privstats.errors import PrivstatsError, ReleaseError
from privstats.plan import Plan
from privstats.workflows.tables.reader import TableReader, sent
from privstats.workflows.tables.rows import READERS, reader_of


def refused(name: str, plan: Plan) -> str:
    """Return why a reader refuses every release under a plan, or an empty text.

    Raises:
        PrivstatsError: no such reader, or its package states it wrongly.

    Example:
        >>> from privstats.workflows.tables.refusals import refused
        >>> schema = ps.MeanSchema(2, clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> refused("ols", plan)
        'ols reads a RidgeSchema, and the plan measures x of a MeanSchema, which no table reader reads: fit a head'
    """
    reader, schema = reader_of(name), plan.schema
    origin = READERS.origin(name)
    if origin:
        try:
            reader.require_place()
            _require_letters(reader, plan)
        except PrivstatsError as error:
            return str(error)
    whose = f"{name} of {origin}" if origin else name
    if not reader.fits(schema):
        family: str = getattr(schema, "family", "") if reader.family else ""
        alike = [each.name for each in READERS.rows().values() if each.fits(schema)]
        return (
            f"{whose} reads {reader.wanted}{_of_family(reader.family)}, and the plan measures "
            f"{', '.join(sent(schema))} of a {type(schema).__name__}{_of_family(family)}, "
            + (f"which is read by {', '.join(alike)}: name one" if alike else "which no table reader reads: fit a head")
        )
    why = reader.refusal(plan)
    return f"{whose} refuses a release under this plan: {why}" if why else ""


def _require_letters(reader: TableReader, plan: Plan) -> None:
    """Refuse letters that no plan of this kind sends alone, because shares for the reader could not be suggested."""
    schema: Any = plan.schema
    for letters in reader.alternatives(schema) if schema.optional else ():
        try:
            replace(schema, statistics=letters)
        except PrivstatsError as error:
            raise ReleaseError(
                f"{READERS.titled(reader.name)} cannot be used: its letters {letters!r} for the task {schema.task!r} "
                f"are in no plan alone: {error}"
            ) from error


def _of_family(family: str) -> str:
    return f" of the family {family}" if family else ""
