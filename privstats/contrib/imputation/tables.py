"""Read tables of columns with gaps, and refuse plans whose releases hold none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privstats.contrib.imputation.gap_tables import MAX_CELLS, known_values, plain_tables
from privstats.contrib.imputation.gaps import layout_of
from privstats.contrib.imputation.linear import ols
from privstats.contrib.imputation.measured import require_single_rows
from privstats.contrib.imputation.odds_table import logit
from privstats.contrib.imputation.risk_table import risks
from privstats.contrib.imputation.table_reader import OfImputed
from privstats.errors import ReleaseError
from privstats.extend.readers import regression
from privstats.kinds import CountSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.workflows.tables import TableResult


def imputed(releases: Sequence[Release], options: OfImputed) -> TableResult:
    """Read a regression, odds ratios or risks, by imputation on sums."""
    if options.outcome is None:
        raise ReleaseError("--reader imputed needs --outcome NAME: name the outcome's column")
    release = releases[0]
    if isinstance(release.plan.schema, CountSchema):
        return _of_counts(release, options)
    given = {"by": options.by, "reference": options.reference, "exponentiate": options.exponentiate}
    for name, value in {**given, "interaction": options.interactions}.items():
        if value:
            raise ReleaseError(f"--{name} is for imputed counts, and these are sums by gap pattern; omit it")
    return regression(ols(release, target=options.outcome, columns=options.columns), options.alpha, {})


def _of_counts(release: Release, options: OfImputed) -> TableResult:
    how: Any = {"outcome": options.outcome, "columns": options.columns}
    how |= {"reference": options.references, "interactions": options.pairs}
    if options.by is None:
        return regression(logit(release, **how), options.alpha, {}, exponentiate=options.exponentiate)
    if options.exponentiate:
        raise ReleaseError("--exponentiate is for odds ratios, and --by prints risks, which are none; omit one")
    table = risks(release, **how, by=options.by, alpha=options.alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)


def check(plan: Plan) -> None:
    """Refuse averages of persons, other class sums, and counts without a table that is imputed."""
    require_single_rows(plan)
    schema = plan.schema
    if not isinstance(schema, CountSchema):
        layout_of(schema)
        return
    for table in plain_tables(schema):
        values = [len(known_values(schema.variable(name))) for name in table]
        if len(table) > 1 and 2 in values and math.prod(values) <= MAX_CELLS:
            return
    raise ReleaseError(
        "imputed reads a table of counts that crosses an outcome of two values with other variables, in at most "
        f"{MAX_CELLS:,} cells without gaps; cross them"
    )
