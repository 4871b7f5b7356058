"""Plan and read site levels for the commands, which name regressors alone: every other column is a site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privstats.contrib.site_levels.logit_table import random_intercept_logit, require_round, site_round
from privstats.contrib.site_levels.table import (
    LevelsRegression,
    random_intercept,
    require_one_target,
    require_site_columns,
)
from privstats.contrib.site_levels.table_reader import OfSiteLevels
from privstats.errors import ReleaseError
from privstats.extend.readers import regression
from privstats.inference.releases import all_sessions
from privstats.kinds import RidgeSchema, ScoreSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import Schema, narrowed
from privstats.workflows.tables import TableResult


def planned(terms: Mapping[str, Any], rounds: Sequence[Release]) -> Plan:
    """Return the plan of a :func:`site_round` whose sites are the columns that the pooled rounds do not have.

    Args:
        terms: the plan's settings, such as its schema and promise; what it publishes is replaced.
        rounds: the pooled rounds with a sum, in order.
    """
    settings = {name: value for name, value in terms.items() if name not in ("schema", "published")}
    schema = narrowed(terms["schema"], ScoreSchema, ReleaseError("a round by site is of scores: plan a ScoreSchema"))
    sites = _besides(schema, _regressors(rounds))
    if not sites:
        raise ReleaseError(
            "the plan has no column besides those of the rounds, and a site is such a column: add one for each site"
        )
    return site_round(all_sessions(rounds), schema=schema, sites=sites, **settings)


def table(releases: Sequence[Release], options: OfSiteLevels) -> TableResult:
    """Read a regression with a random intercept by site."""
    found = read(releases, options.columns, unclipped=options.unclipped)
    return regression(found, options.alpha, {}, exponentiate=options.exponentiate)


def check(plan: Plan) -> None:
    """Refuse plans without a column per site, and rounds of scores that follow no pooled rounds."""
    schema: Any = plan.schema
    if not schema.feature_names:
        raise ReleaseError("site-levels reads columns by name, and the plan names none: set feature_names")
    if isinstance(schema, RidgeSchema):
        require_one_target(schema)
    else:
        require_round(plan)
    require_site_columns(schema)


def read(releases: Sequence[Release], columns: Sequence[str] | None, *, unclipped: bool = False) -> LevelsRegression:
    """Return the table of sums by site, or of rounds and the round by site after them.

    Args:
        releases: one of a ``RidgeSchema``; or pooled rounds with a sum, in order, and the round by site.
        columns: the regressors of a linear regression. A logistic one's are the rounds'.
    """
    *rounds, last = releases
    schema = last.plan.schema
    if isinstance(schema, RidgeSchema) and not rounds:
        if not columns:
            raise ReleaseError("--reader site-levels needs --column for each regressor: all other columns are sites")
        return random_intercept(last, sites=_besides(schema, columns), columns=columns, unclipped=unclipped)
    if columns or unclipped:
        raise ReleaseError("--column and --unclipped are for a linear regression by site, of one release; omit them")
    if not rounds:
        raise ReleaseError(
            "--reader site-levels reads the releases of a logistic regression's rounds, in order, then that of the "
            f"round by site; got one, of a {type(schema).__name__}"
        )
    sites = _besides(schema, _regressors(rounds))
    return random_intercept_logit(last, sites=sites, rounds=all_sessions(rounds))


def _regressors(rounds: Sequence[Release]) -> Sequence[str]:
    if not rounds or not (names := rounds[-1].plan.schema.feature_names):
        raise ReleaseError("the rounds must name their columns by feature_names: the others are the sites")
    return names


def _besides(schema: Schema, columns: Sequence[str]) -> list[str]:
    return [name for name in schema.feature_names or () if name not in columns]
