"""Refuse releases for which the intervals of imputation were not measured."""

from __future__ import annotations

from privstats.dp import Privacy
from privstats.errors import ReleaseError
from privstats.extend.readers import require_gaussian, require_records, residual_degrees
from privstats.plan import Plan
from privstats.release import Release

_MIN_DEGREES = 100


def require_measured(release: Release, cells: str) -> None:
    """Refuse clipped or averaged persons, clipped clients, Laplace noise, and suppressed cells.

    Args:
        cells: what the message calls the cells of this release.
    """
    require_gaussian(require_records(release))
    require_single_rows(release.plan)
    if release.suppressed:
        raise ReleaseError(f"{cells} were suppressed, so records are missing from the sums; set min_count = 0")


def require_single_rows(plan: Plan) -> None:
    """Refuse averages of persons."""
    if isinstance(plan.privacy, Privacy) and plan.privacy.averaged:
        raise ReleaseError(
            "the plan averages persons, for which imputation was not measured; measure one row per person, and "
            "promise records"
        )


def degrees_of(records: float, sigma: float, parameters: int, remedy: str) -> float:
    """Return the residual degrees of freedom; refuse fewer than a hundred.

    Args:
        records: number of records, with noise of deviation ``sigma``.
        parameters: number of parameters.
        remedy: what else than more records helps.
    """
    degrees = residual_degrees(records, sigma, parameters, f"{parameters} parameters")
    if degrees < _MIN_DEGREES:
        raise ReleaseError(
            f"the release holds about {records:.0f} records for {parameters} parameters; imputation needs at least "
            f"{_MIN_DEGREES} records more than parameters: release more records, or {remedy}"
        )
    return degrees
