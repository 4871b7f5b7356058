"""The readers of a release, heads and tables of ``inference``: the letters that each reads, and shares that suit it.

Rows by name, for ``plan check`` and ``plan suggest``; the readers themselves are in ``heads`` and ``inference``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from privstats.dp import Privacy, suggested_shares
from privstats.dp.allocation import pure_shares
from privstats.errors import PlanError
from privstats.heads.registry import HEADS, able, named
from privstats.plan import Plan
from privstats.schema import (
    ClassSchema,
    CountSchema,
    RidgeSchema,
    Schema,
    ScoreSchema,
    SitesSchema,
    predicted,
)

__all__ = ["TABLES", "TableReader", "possible", "reads", "sent", "suggested", "with_letters"]


@dataclass(frozen=True)
class TableReader:
    """A reader of ``privstats table``, and what it reads.

    Attributes:
        schema: the kind of schema whose releases it takes.
        letters: statistics that it reads; empty: all that the schema sends.
        shares: of the budget for these letters; empty: the schema's defaults.
        family: of the schema's model; None: any.
    """

    schema: type[Schema]
    letters: str = ""
    shares: Mapping[str, float] = field(default_factory=dict)
    family: str | None = None

    def takes(self, plan: Plan) -> bool:
        """Whether a release under this plan holds what it reads, with noise that its intervals are proved for."""
        schema = plan.schema
        alike = self.family in (None, getattr(schema, "family", None))
        fits = isinstance(schema, self.schema) and alike and set(self.letters) <= set(sent(schema))
        return fits and not _laplace(plan)


TABLES: Mapping[str, TableReader] = {
    "ols": TableReader(RidgeSchema),
    "fixed-effects": TableReader(SitesSchema),
    "mixed": TableReader(SitesSchema),
    "km": TableReader(CountSchema),
    "proportions": TableReader(CountSchema),
    "table-one": TableReader(ClassSchema, "NAD", {"N": 0.05, "A": 0.60, "D": 0.35}),
    "logit": TableReader(ScoreSchema, family="logistic"),
    "poisson": TableReader(ScoreSchema, family="poisson"),
}
"""The readers of ``privstats table`` by the names that it takes."""


def sent(schema: Schema) -> str:
    """Letters of the statistics that a schema sends."""
    return "".join(row.letter for row in schema.sent)


def possible(plan: Plan) -> tuple[str, ...]:
    """Heads and then tables that a release under this plan can give, in the order of their registries."""
    heads, schema = tuple[str, ...](), plan.schema
    if schema.optional:
        heads = able(sent(schema))
    elif schema.predicts in ("ridge", "parties"):
        heads = named(predicted(schema))
    return (*heads, *(name for name, table in TABLES.items() if table.takes(plan)))


def reads(name: str, plan: Plan) -> str:
    """Letters that a head, with its default parameters, or a table reads of a release under this plan.

    Raises:
        KeyError: neither has that name.
        PlanError: a table that cannot be read from such a release.
    """
    schema = plan.schema
    if name not in TABLES:
        return HEADS[name].reads(sent(schema))
    table = TABLES[name]
    if _laplace(plan):
        raise PlanError(
            f"{name} has intervals, which are proved for Gaussian noise, and delta = 0 has Laplace noise: give a delta "
            "above 0, or name a head"
        )
    if not table.takes(plan):
        letters = f" with statistics {', '.join(table.letters)}" if table.letters else ""
        raise PlanError(
            f"{name} reads a {table.schema.__name__}{letters}, and the plan measures {', '.join(sent(schema))} of a "
            f"{type(schema).__name__}; change [schema], or name another reader"
        )
    return table.letters or sent(schema)


def suggested(plan: Plan, reader: str | None = None) -> dict[str, float]:
    """Shares of the budget that suit a plan, or one reader of it: letters that it does not read get none.

    Raises:
        KeyError: no head and no table has that name.
        PlanError: the plan makes no promise, so there is nothing to share; or a table that it cannot give.
    """
    letters = None if reader is None else reads(reader, plan)
    if plan.noise is None or not isinstance(plan.privacy, Privacy):
        raise PlanError("shares divide a budget, and this plan adds no noise; give its [privacy] an epsilon")
    table = None if reader is None else TABLES.get(reader)
    if table is not None and table.shares:
        return dict(table.shares)
    schema = plan.schema if letters is None else with_letters(plan.schema, letters)
    if plan.privacy.pure:
        return pure_shares(schema, None)
    return suggested_shares(schema, plan.noise.mu / plan.privacy.group, plan.cohort.max_records)


def _laplace(plan: Plan) -> bool:
    return isinstance(plan.privacy, Privacy) and plan.privacy.pure


def with_letters(schema: Schema, letters: str) -> Schema:
    """The schema without the other statistics, where its kind can leave one out."""
    known: Any = schema  # every kind is a dataclass
    found: Schema = replace(known, statistics=letters) if schema.optional else schema
    return found
