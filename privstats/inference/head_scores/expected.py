"""How wide the interval of an AUC will be, from a plan alone: told before anything is spent.

A model of scores, no record: log-odds of both classes normal, of one spread, and calibrated, as of a head whose area is
0.8. The interval follows from the counts that are expected then, the plan's noise and its bins.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logit, ndtr, ndtri

from privstats.estimates.spectrum import Array
from privstats.inference.counts.table import Interval, z_of
from privstats.inference.head_scores.roc import area
from privstats.plan import Plan
from privstats.schema import ScoringSchema

__all__ = ["expected_area", "expected_sentences"]

_AREA = 0.8
_APART = math.sqrt(2) * float(ndtri(_AREA))
"""Standard deviation of the log-odds of one class, and the distance of the means of both."""
_SHARES = (0.05, 0.2, 0.5)


def expected_area(plan: Plan, share: float, *, records: int | None = None, alpha: float = 0.05) -> Interval:
    """The interval of the AUC of a class that has this share of the records, at an area of 0.8.

    Args:
        plan: of a score; of more than two classes with a table for each.
        share: above 0 and below 1.
        records: how many are scored; ``cohort.max_records`` if omitted.
        alpha: level of the interval.

    Raises:
        ValueError: the plan counts no score of a class.

    Example:
        >>> from privstats.inference.head_scores.expected import expected_area
        >>> y = np.arange(900) % 2
        >>> head = ps.heads.LDA().fit(np.random.default_rng(0).normal(size=(900, 2)) + y[:, None], y)
        >>> terms = {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5}
        >>> plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, 4_000), privacy=ps.Privacy(**terms))
        >>> even, rare = (expected_area(plan, share) for share in (0.5, 0.05))
        >>> rare.high - rare.low > 3 * (even.high - even.low)
        True
    """
    schema = plan.schema
    if not isinstance(schema, ScoringSchema) or (schema.classes > 2 and not schema.by_class):
        raise ValueError("the plan counts no score of a class")
    total = plan.cohort.max_records if records is None else records
    others, members = _shares_of_bins(schema, share)
    sigma = 0.0 if plan.noise is None else plan.noise.released_sigma(plan.cohort.clients)["T"]
    return area((1 - share) * total * others, share * total * members, sigma, z_of(alpha))


def expected_sentences(plan: Plan) -> list[str]:
    """What a plan of a score will tell of the AUC; nothing of another plan, or of one without a curve."""
    schema = plan.schema
    if not isinstance(schema, ScoringSchema) or (schema.classes > 2 and not schema.by_class):
        return []
    told = [_told(share, expected_area(plan, share)) for share in _SHARES]
    out = [
        f"if all {plan.cohort.max_records:,} records are scored and the AUC is {_AREA:g}, its interval will be about "
        f"{'; '.join(told)}"
    ]
    if schema.classes == 2 and schema.cuts is None and schema.score == "probability":
        out.append(
            "its bins are of equal width, and of a rare outcome nearly all scores lie in a few of them: privstats "
            "score --release (Scoring(releases=)) cuts them where the head's own releases say that scores lie, at no "
            "price"
        )
    return out


def _told(share: float, found: Interval) -> str:
    where = f"where {100 * share:g} in 100 are of the class"
    return f"{found.low:.2f} to {found.high:.2f} {where}" if found.told else f"hidden by noise {where}"


def _shares_of_bins(schema: ScoringSchema, share: float) -> tuple[Array, Array]:
    """Of the others and of the class, the part in each bin, rising, ``(k,)`` each."""
    centre, spread = _APART**2 / 2, _APART
    if schema.cuts is not None:  # as many of both classes together in each, whatever their shares
        grid = np.linspace(-centre - 8 * spread, centre + 8 * spread, 4_001)
        mixture = (ndtr((grid - centre) / spread) + ndtr((grid + centre) / spread)) / 2
        inner = np.interp(np.arange(1, schema.score_bins) / schema.score_bins, mixture, grid)
    else:
        edges = np.array(schema.edges[1:-1])
        inner = (edges if schema.score == "margin" else logit(edges)) - logit(share)
    at = [ndtr((np.r_[-np.inf, inner, np.inf] - middle) / spread) for middle in (-centre, centre)]
    return np.diff(at[0]), np.diff(at[1])
