"""A draft entry for the Differential Privacy Deployments Registry: what follows from a plan, and nothing else.

Fields and their words are those of the registry's schema of 2026-07-15 (opendp/deployments-registry-data); it takes
YAML, of which JSON is a part. What only people know is marked, and the status says that it is a draft.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from privstats.course import DisjointRounds
from privstats.course.whole import whole_of
from privstats.dp import Noise, Privacy
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.version import __version__
from privstats.workflows.report.privacy_report import Statement

__all__ = ["TO_WRITE", "registry_entry"]

TO_WRITE = "TO BE WRITTEN: "
"""Begins every field that does not follow from the plan."""

_ADJACENT = {"add-remove": "added or taken away", "replace-one": "exchanged for another"}


def registry_entry(statement: Statement) -> dict[str, Any]:
    """The draft of an entry of tier 3, as values for JSON.

    Args:
        statement: the plan, and the course and the release where there are some.

    Raises:
        PlanError: the plan is without differential privacy, so it is no deployment of it.

    Example:
        >>> from privstats.workflows.report import Statement, registry_entry
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> entry = registry_entry(Statement(plan))
        >>> entry["deployment"]["privacy_loss"]["privacy_parameters"]
        {'epsilon': 1.0, 'delta': 1e-05}
    """
    plan, privacy, noise = statement.plan, statement.plan.privacy, statement.plan.noise
    if noise is None or not isinstance(privacy, Privacy):
        raise PlanError(
            "privacy must be a Privacy: a plan without differential privacy is no deployment of it, and the registry "
            "has no entry for one"
        )
    at = statement.at or datetime.now(UTC)
    return {
        "url_slug": f"privstats-{plan.digest[:16]}",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(plan, at),
            "dp_variant": _variant(plan),
            "privacy_loss": _loss(statement, privacy),
            "deployment_model": _model(statement, noise),
            "accounting": _accounting(statement),
            "implementation": _implementation(plan, noise),
            "administrative": _administrative(statement),
        },
    }


def _basic(plan: Plan, at: datetime) -> dict[str, Any]:
    letters = ", ".join(f"{row.letter} ({row.meaning})" for row in plan.schema.sent)
    over = "one direction of each" if plan.schema.whole_parties else f"at most {plan.cohort.max_records:,} records"
    return {
        "name": f"{TO_WRITE}the name of the data product",
        "data_curators": [f"{TO_WRITE}who publishes it"],
        "intended_use": f"{TO_WRITE}what it is for",
        "data_product_type": "Summary statistics",
        "data_product_region": f"{TO_WRITE}which region the data describe",
        "description": f"Noisy sums over {over} of {plan.cohort.clients} parties: "
        f"{letters}. Models and tables are made from these sums alone.",
        "publication_date": f"{at:%Y-%m-%d}",
    }


def _variant(plan: Plan) -> dict[str, Any]:
    return {
        "variant_name": "Pure DP" if plan.noise is not None and plan.noise.pure else "Approximate DP",
        "data_domain": f"Every set of records; a record is {plan.schema.record}. {plan.schema.clipping}",
        "unprotected_quantities": "The plan with its classes, columns and bounds, and which parties took part; no "
        "statistic is released without noise.",
    }


def _loss(statement: Statement, privacy: Privacy) -> dict[str, Any]:
    promise = whole_of(statement.course or statement.plan)
    whole = "one release" if statement.course is None else "all releases of the course together"
    return {
        "privacy_unit": f"{privacy.unit}-level",
        "privacy_unit_details": f"Adjacent data sets differ in {privacy.held}, {_ADJACENT[privacy.adjacency]}.",
        "privacy_parameters": {"epsilon": promise.epsilon, "delta": promise.delta},
        "privacy_parameters_details": f"Of {whole}: {_accounted(privacy, promise.guarantee.mu)}.",
    }


def _accounted(privacy: Privacy, mu: float) -> str:
    if privacy.pure:
        return "pure epsilon by discrete Laplace noise"
    return f"mu-GDP with mu = {mu:.6g}, converted on the exact curve"


def _deployment(noise: Noise) -> str:
    """The registry's word for who is trusted: a server with all sums, nobody beside the client, or several together."""
    if noise.trust.drawn_by == "server":
        return "Central"
    return "Local" if noise.trust.drawn_by == "client" and not noise.trust.divided else "Federated"


def _model(statement: Statement, noise: Noise) -> dict[str, Any]:
    plan, course = statement.plan, statement.course
    cohort, dynamic = plan.cohort, isinstance(course, DisjointRounds)
    many = course is not None and course.most > 1
    return {
        "model_name": _deployment(noise),
        "model_name_details": f"{plan.budget().promise}; trust for the noise: {noise.trust.trusted}.",
        "actors": f"{cohort.clients} parties that hold records, of which at most {cohort.colluders} may work with the "
        f"server, and a server that sees masked sums and opens the total of at least {cohort.min_survivors} parties. "
        "Anybody may see the release.",
        "release_type": "Many releases" if many else "One release",
        "release_type_details": f"At most {course.most} sessions, priced together before the first one."
        if course is not None
        else "A ledger of the owners adds every further release of the same records.",
        "data_source_type": "Dynamic" if dynamic else "Static",
        "access_type": "Non-interactive",
        "access_type_details": "Nobody queries the records; who has the release computes from it.",
    }


def _accounting(statement: Statement) -> dict[str, Any]:
    least = statement.plan.min_count
    kept = f"Classes of a noisy count below {least} are left out. " if least else ""
    noise = statement.plan.noise
    return {
        "post_processing": f"{kept}Models and tables are functions of the release.",
        "composition": _ADDED_UP if noise is not None and noise.pure else _ROOT_OF_SQUARES,
    }


_ADDED_UP = (
    "Pure epsilon: those of statistics and of releases add up, and beside releases of Gaussian noise each counts with "
    "the mu of Gaussian differential privacy that it implies."
)
_ROOT_OF_SQUARES = (
    "Gaussian differential privacy: statistics and releases compose as the root of the sum of their mu^2 (Dong, Roth, "
    "Su 2019); a worst-case record is bounded over all statistics together."
)


def _implementation(plan: Plan, noise: Noise) -> dict[str, Any]:
    sigmas = ", ".join(f"{row.statistic} {row.sigma:.4g}" for row in noise.rows)
    maps = ", ".join(step.kind for step in plan.schema.transform) or "none"
    law = "Discrete Laplace" if noise.pure else "Gaussian"
    return {
        "preprocessing_and_hyperparameter_tuning": f"Public maps before the clip: {maps}; clip norm "
        f"{getattr(plan.schema, 'clip_norm', 'none')}. {TO_WRITE}how these were chosen, and whether on public data.",
        "mechanisms": f"{law} noise in whole numbers, by exact samplers, on sums of whole numbers; standard "
        f"deviations in real units: {sigmas}. Masked sums, protocol {plan.protocol}. privstats {__version__}.",
        "justification": f"{TO_WRITE}why this epsilon and these bounds",
    }


def _administrative(statement: Statement) -> dict[str, Any]:
    digests = [f"plan {statement.plan.digest}"]
    if statement.course is not None:
        digests.append(f"course {statement.course.digest}")
    if statement.release is not None:
        digests.append(f"release {statement.release.digest}")
    plans = (statement.plan,) if statement.course is None else statement.course.priced
    conditions = "; ".join(dict.fromkeys(each for plan in plans for each in plan.budget().conditions))
    return {
        "sources": f"{TO_WRITE}links to what describes it",
        "notes": f"SHA-256: {', '.join(digests)}. The promise rests on: {conditions}.",
        "registry_authors": [f"{TO_WRITE}who wrote this entry"],
    }
