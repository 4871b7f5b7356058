"""Refuse a cohort that contradicts itself, or that does not fit the plan's schema and promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.dp import NoPrivacy, Privacy
from privstats.errors import PlanError
from privstats.secagg.protocols import PROTOCOLS

if TYPE_CHECKING:
    from privstats.plan.cohort import Cohort
    from privstats.plan.plan import Plan


def check_survivors(cohort: Cohort) -> None:
    """Refuse more survivors than clients."""
    if cohort.min_survivors > cohort.clients:
        raise PlanError(
            f"cohort.min_survivors={cohort.min_survivors} exceeds cohort.clients={cohort.clients}; lower min_survivors"
        )


def check_colluders(cohort: Cohort) -> None:
    """Refuse colluders that could be all survivors."""
    if cohort.colluders >= cohort.min_survivors:
        raise PlanError(
            f"cohort.colluders={cohort.colluders} must stay below cohort.min_survivors={cohort.min_survivors}, "
            "or no honest survivor remains to hide among; lower colluders or raise min_survivors"
        )


def check_kind(plan: Plan) -> None:
    """Refuse a cohort that does not fit the kind of schema (:meth:`~privstats.schema.Schema.refuses_cohort`)."""
    cohort, privacy = plan.cohort, plan.privacy
    promised = isinstance(privacy, Privacy)
    clipped = isinstance(privacy, Privacy) and privacy.client_clip is not None
    honest, agrees = cohort.min_survivors - cohort.colluders, PROTOCOLS[plan.protocol].agrees
    refusal = plan.schema.refuses_cohort(cohort.clients, honest, promised=promised, clipped=clipped, agrees=agrees)
    if refusal:
        raise PlanError(refusal)


def check_parties(plan: Plan) -> None:
    """Refuse record limits that do not fit a ``PartySchema``, and replace-one per client under another schema.

    A party is one record of a ``PartySchema``, so ``max_records_per_client`` is 1. A ``client_clip`` would clip it
    twice.
    """
    schema, cohort, privacy = plan.schema, plan.cohort, plan.privacy
    if schema.party_is_record and cohort.max_records < cohort.clients:
        raise PlanError(
            f"a party is one record of a PartySchema, so max_records must be at least clients, {cohort.clients}, "
            f"not {cohort.max_records}"
        )
    if isinstance(privacy, NoPrivacy) or privacy.unit != "client":
        return
    if not schema.party_is_record:
        if privacy.adjacency == "replace-one":
            raise PlanError(
                "adjacency 'replace-one' with unit='client' is for a PartySchema: use 'add-remove', and twice its mu "
                "bounds the exchange of one client for another"
            )
        return
    if privacy.max_records_per_client != 1 or privacy.client_clip is not None:
        raise PlanError(
            "a party is one record of a PartySchema, however many it holds: set max_records_per_client=1, and omit "
            "client_clip, because the schema bounds every party"
        )
