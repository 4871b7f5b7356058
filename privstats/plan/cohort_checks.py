"""Checks of a cohort against kinds of schema whose sums are no sums over records: how few parties would be revealed.

Called while a plan is built, beside those of ``feasibility``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privstats.dp import NoPrivacy, Privacy
from privstats.errors import PlanError
from privstats.plan.cohort import Cohort
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.schema import EffectSchema, GaussianSchema, SitesSchema

__all__ = ["check_cohort", "check_parties"]


def check_cohort(schema: Schema, cohort: Cohort, privacy: Privacy | NoPrivacy, agrees: bool) -> None:
    """Refuse a cohort too small for sums that are functions of a whole client; other kinds take any.

    Args:
        schema: what is measured.
        cohort: the parties.
        privacy: the promise.
        agrees: the protocol's clients see the list of survivors before the sum is unmasked.

    Raises:
        PlanError: naming the field, its bound and the remedy.
    """
    check = _COHORTS.get(schema.task)
    if check is not None:
        check(schema, cohort, privacy, agrees)


def _check_alignment(schema: GaussianSchema, cohort: Cohort, privacy: Privacy | NoPrivacy, agrees: bool) -> None:
    """Refuse sums of client covariances that would reveal single clients.

    Args:
        schema: of a sum of Gaussians.
        cohort: the parties.
        privacy: the promise.
        agrees: the protocol's clients see the list of survivors before the sum is unmasked.

    Raises:
        PlanError: without noise: too few clients for the rounds (a counting rule, not a proof: T + 1 sums of d (d + 1)
            / 2 numbers must stay far below what the clients' covariances hold), or a protocol in which a client cannot
            see that all sums are over the same clients. Under a promise: no ``client_clip``.
    """
    if isinstance(privacy, Privacy):
        if privacy.client_clip is None:
            raise PlanError(
                "an alignment under a promise needs client_clip: the rounds' matrices are bounded per client, and only "
                "the clipped vector has a norm that every reference keeps; set privacy.client_clip"
            )
        return
    honest, least = cohort.min_survivors - cohort.colluders, 4 * (schema.rounds + 1)
    if honest < least:
        raise PlanError(
            f"min_survivors - colluders is {honest} and must be at least 4 (rounds + 1) = {least} for an alignment "
            "without noise: the sums of many rounds over few clients reveal single clients; take fewer rounds, or more "
            "clients"
        )
    if not agrees:
        raise PlanError(
            "an alignment without noise needs a protocol in which clients see the survivors: two sums whose lists "
            "differ by one client give that client's covariance; leave protocol and panel out, or promise a client"
        )
    if schema.reference and (schema.among is None or schema.among[-1] >= cohort.clients):
        raise PlanError("a round without noise must name its clients in schema.among: those of the first sum, in order")


def check_parties(schema: Schema, cohort: Cohort, privacy: Privacy | NoPrivacy) -> None:
    """Refuse whole parties in terms of records, and the exchange of a client under any other schema.

    Raises:
        PlanError: a ``PartySchema`` and not ``max_records_per_client=1``, or a ``client_clip``, which would clip twice;
            fewer ``max_records`` than clients; another schema and the exchange of a client, for which no audit
            searches.
    """
    if schema.whole_parties and cohort.max_records < cohort.clients:
        raise PlanError(
            f"a party is one record of a PartySchema, so max_records must be at least clients, {cohort.clients}, "
            f"not {cohort.max_records}"
        )
    if isinstance(privacy, NoPrivacy) or privacy.unit != "client":
        return
    if not schema.whole_parties:
        if privacy.adjacency == "replace-one":
            raise PlanError(
                "adjacency 'replace-one' with unit='client' is for a PartySchema: use 'add-remove', and twice its mu "
                "bounds the exchange of one client for another"
            )
        return
    if privacy.max_records_per_client != 1 or privacy.client_clip is not None:
        raise PlanError(
            "a party is one record of a PartySchema, however many it holds: set max_records_per_client=1, and leave "
            "client_clip out, because the schema bounds every party"
        )


def _check_sites(schema: SitesSchema, cohort: Cohort, privacy: Privacy | NoPrivacy, _: bool) -> None:
    """Refuse sums within sites over too few sites.

    Args:
        schema: of sums within sites.
        cohort: the parties.
        privacy: the promise.

    Raises:
        PlanError: without noise: fewer honest sites in the smallest group than M (p + 1) + 3, for M pulls beside the
            first and p features. A counting rule, not a proof: M p (p + 1) / 2 numbers of differences between pulls,
            the constant's row and the number of records are as many as K p unknown site sums for K = M (p + 1) / 2 + 1
            + 1 / p, and the rule asks for twice that. With groups under a promise: fewer than three honest sites a
            group on the average.
    """
    honest = cohort.min_survivors - cohort.colluders
    if isinstance(privacy, Privacy):
        if schema.groups > 1 and honest < 3 * schema.groups:
            raise PlanError(
                f"min_survivors - colluders is {honest} and must be at least 3 groups = {3 * schema.groups}: errors by "
                "groups need several sites in each; lower schema.groups, or take more sites"
            )
        return
    least = (len(schema.pulls) - 1) * (schema.features + 1) + 3
    crowd = cohort.clients // schema.groups - (cohort.clients - honest)
    if crowd < least:
        where = "min_survivors - colluders" if schema.groups == 1 else "honest sites in the smallest group at worst"
        raise PlanError(
            f"{where} is {crowd} and must be at least {least} for exact sums within sites: over fewer, sums reveal "
            "single sites; take more sites, fewer pulls, columns or groups, or give a Privacy"
        )


def _check_places(schema: EffectSchema, cohort: Cohort, _: Privacy | NoPrivacy, __: bool) -> None:
    """Refuse groups of sites in which a site is nearly alone, and probabilities of other places than the roster has."""
    pi = schema.probability
    if isinstance(pi, tuple) and len(pi) != cohort.clients:
        raise PlanError(
            f"schema.probability has {len(pi)} numbers, and cohort.clients is {cohort.clients}: give one for each "
            "place of the roster, or one for all"
        )
    honest = cohort.min_survivors - cohort.colluders
    if schema.groups is not None and honest < 3 * schema.groups:
        raise PlanError(
            f"min_survivors - colluders is {honest} and must be at least 3 groups = {3 * schema.groups}: a spread "
            "between groups needs several sites in each; lower schema.groups, or take more sites"
        )


_COHORTS: Mapping[str, Callable[[Any, Cohort, Privacy | NoPrivacy, bool], None]] = {
    "gaussians": _check_alignment,
    "sites": _check_sites,
    "effect": _check_places,
}
"""By the schema's task: the kinds whose sums are no sums over records."""
