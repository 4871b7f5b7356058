"""Refuse plans of which a table reader would refuse every release."""

from __future__ import annotations

from typing import Any

from privstats.errors import ReleaseError
from privstats.inference.cell_design import declared_cells
from privstats.inference.groups.shares import crossed_names
from privstats.inference.regression.sites import require_no_pull, require_pulls
from privstats.inference.releases import map_columns, raw_slopes
from privstats.inference.scorecard_points import require_cells, require_linear
from privstats.kinds import CountSchema, GradientSchema
from privstats.plan import Plan
from privstats.schema import Bins, Categories
from privstats.transforms import ConstantFeature


def of_columns(plan: Plan) -> None:
    """Refuse maps after which a coefficient belongs to no column."""
    schema: Any = plan.schema
    constants = sum(isinstance(step, ConstantFeature) for step in schema.transform)
    if declared_cells(schema) is None:
        raw_slopes(schema.transform, schema.features - constants)


def of_dummies(plan: Plan) -> None:
    """Refuse sums of sites that are pulled together."""
    schema: Any = plan.schema
    require_no_pull(schema)
    raw_slopes(schema.transform, schema.features - 1)


def of_levels(plan: Plan) -> None:
    """Refuse sums of sites without several pulls."""
    schema: Any = plan.schema
    require_pulls(schema)
    raw_slopes(schema.transform, schema.features - 2)


def of_times(plan: Plan) -> None:
    """Refuse counts without a table of times and events."""
    schema: Any = plan.schema
    for table in schema.tables:
        crossed = [schema.variable(name) for name in table]
        clocks = any(isinstance(each, Bins) and each.edges[0] >= 0 for each in crossed)
        events = any(isinstance(each, Categories) and len(each.values) > 1 and not each.other for each in crossed)
        if clocks and events:
            return
    raise ReleaseError("km reads a table that crosses Bins of times from 0 on with an event of two values or more")


def of_gaps(plan: Plan) -> None:
    """Refuse counts without a cell for missing values."""
    schema: Any = plan.schema
    if not any(each.missing for each in schema.variables):
        raise ReleaseError("missing reads tables of a variable with a cell for missing values: declare missing=True")


def of_groups(plan: Plan) -> None:
    """Refuse class sums whose columns are mixed, and counts without a crossed table."""
    schema: Any = plan.schema
    if not isinstance(schema, CountSchema):
        map_columns(schema.transform, schema.features)
    elif not any(crossed_names(schema, by) for table in schema.tables for by in table):
        raise ReleaseError("table-one reads a table that crosses the variable of groups with another; cross two")


def of_cells(plan: Plan) -> None:
    """Refuse rows that are not of declared columns, and rounds whose scores are not linear."""
    if isinstance(plan.schema, GradientSchema):
        require_linear(plan.schema)
    require_cells(plan.schema.transform)
