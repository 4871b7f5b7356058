"""The search for a worst pair of records, by kind of schema; rows only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from privstats.schema import (
    CalibrationSchema,
    CountSchema,
    GradientSchema,
    MeanSchema,
    PartySchema,
    Schema,
    ScoreSchema,
    SitesSchema,
    WithinSchema,
    of_records,
)
from threat_models.audits.counts import audit_counts
from threat_models.audits.gradients import audit_gradients
from threat_models.audits.sensitivity import audit_sensitivity
from threat_models.audits.sites import audit_sites
from threat_models.audits.verdict import Report
from threat_models.audits.within import audit_within

__all__ = ["search_of"]

_SEARCHES: Mapping[type[Schema], Callable[..., Report]] = {
    GradientSchema: audit_gradients,
    CalibrationSchema: audit_gradients,
    MeanSchema: audit_sensitivity,
    PartySchema: audit_gradients,
    WithinSchema: audit_within,
    CountSchema: audit_counts,
    SitesSchema: audit_sites,
    ScoreSchema: audit_gradients,
}


def search_of(schema: Schema) -> Callable[..., Report]:
    """The audit of the sensitivity of such a schema, a function of target, generator and ``starts``.

    Raises:
        SchemaError: no search is written for schemas of this kind.
    """
    search = _SEARCHES.get(type(schema))
    if search is None:
        of_records(schema)
        search = audit_sensitivity
    return search
