"""Estimate a head's ROC curve, area and calibration from binned, noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logit, ndtr, ndtri

from privstats.estimates.denoise import Array
from privstats.heads.scoring import planned_scores
from privstats.inference.counts.table import Interval, ratio, z_of
from privstats.kinds import ScoringSchema
from privstats.plan import Plan

_MEAN = math.sqrt(2 / math.pi)
"""Mean of the absolute value of a standard normal; its variance is 1 - 2 / pi."""
_ASSUMED = (0.65, 0.8)
"""AUCs for which widths are printed."""
_SHARES = (0.05, 0.2, 0.5)
STEADY = 1_000
"""Records from which on a session's width is nearly always within a quarter of the printed one."""


@dataclass(frozen=True, eq=False)
class RocCurve:
    """Shares of both groups at and above each inner edge, from the highest edge.

    ``auc``'s interval covers what binning hides; ``auc_bounds`` has all ties lost, and won, ignoring noise.

    Example:
        >>> y = np.arange(900) % 2
        >>> X = np.random.default_rng(0).normal(size=(900, 2)) + y[:, None]
        >>> scoring = ps.Scoring(ps.heads.LDA().fit(X[:300], y[:300]))
        >>> moments = ps.measure(scoring.schema, X[300:], y[300:], published=scoring.published)
        >>> plan = scoring.plan(cohort=ps.Cohort(2, 2, 600), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [(X[300:600], y[300:600]), (X[600:], y[600:])])
        >>> curve = ps.inference.head_score(release).roc["1"]
        >>> curve.auc_bounds[0] < curve.auc.value < curve.auc_bounds[1]
        True
    """

    thresholds: Array
    true_positive: tuple[Interval, ...]
    false_positive: tuple[Interval, ...]
    auc: Interval
    auc_bounds: tuple[float, float]

    def band(self) -> tuple[Array, Array, Array]:
        """Return rising false positive rates and ranges of true positive rates from each to the next, ``(k,)`` each.

        Guarantee:
            Wherever the intervals of all thresholds hold, so does the band, between thresholds too. A curve rises:
            between two rates it is at most the high end of a threshold with a false positive rate surely at least the
            second, and at least the low end of one with a rate surely at most the first. At a rate itself a curve may
            jump. Intervals and band hold pointwise, not all at once.
        """
        false, true = (np.array(each).reshape(-1, 4) for each in (self.false_positive, self.true_positive))
        rates = np.unique(np.concatenate([[0.0, 1.0], false[:, 1], false[:, 2]]))
        sure, most = false[:, 1] >= rates[:, None], false[:, 2] <= rates[:, None]
        low = np.where(most, true[:, 1], 0.0).max(axis=1, initial=0.0)
        high = np.where(sure, true[:, 2], 1.0).min(axis=1, initial=1.0)
        return rates, low, np.append(high[1:], 1.0)


def roc_curve(edges: tuple[float, ...], others: Array, members: Array, sigma: float, z: float) -> RocCurve:
    """Return the curve of noisy counts by rising bin, ``(k,)``."""
    places = range(len(members) - 1, 0, -1)
    true, false = (tuple(_above(counts, place, sigma, z) for place in places) for counts in (members, others))
    low, high = (_areas(others, members, tied) for tied in (0.0, 1.0))
    return RocCurve(np.array(edges)[list(places)], true, false, area(others, members, sigma, z), (low, high))


def area(others: Array, members: Array, sigma: float, z: float) -> Interval:
    """Return the chance that a member scores above one of the others, with its interval.

    Ties are split evenly. Test inversion: theta is accepted where ``|x' K y - theta P Q| <= z s``. x and y are the
    counts of members and others, P and Q their sums, ``K_ba`` 1 for a < b, t for a = b. By the delta method ``s^2 = sum
    vx (K y - theta Q)^2 + sum vy (K' x - theta P)^2``, ``v = max(count, 0) + sigma^2``. The low end has t = 0, the high
    end t = 1. Not reported where no theta is refused.
    """
    value = float(np.clip(_areas(others, members, 0.5), 0.0, 1.0))
    ends = [_accepted(others, members, tied, sigma, z) for tied in (0.0, 1.0)]
    if any(end is None for end in ends) or min(members.sum(), others.sum()) <= 0:
        return Interval(value if math.isfinite(value) else 0.5, 0.0, 1.0, False)
    (low, _), (_, high) = ends  # type: ignore[misc]
    return Interval(value, float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0)), True)


def _above(counts: Array, place: int, sigma: float, z: float) -> Interval:
    cells = len(counts) - place, place
    return ratio(float(counts[place:].sum()), float(counts.sum()), cells, sigma, z)


def _beaten(others: Array, tied: float) -> Array:
    """Return K y: the number of others that each bin beats."""
    return np.asarray(np.cumsum(others) - (1 - tied) * others)


def _areas(others: Array, members: Array, tied: float) -> float:
    pairs = float(members.sum() * others.sum())
    return float(members @ _beaten(others, tied)) / pairs if pairs else math.nan


def _accepted(others: Array, members: Array, tied: float, sigma: float, z: float) -> tuple[float, float] | None:
    P, Q = float(members.sum()), float(others.sum())
    beats, beaten = _beaten(others, tied), P - np.cumsum(members) + tied * members
    weight_x, weight_y = (np.maximum(counts, 0.0) + sigma**2 for counts in (members, others))
    won = float(members @ beats)
    square = (P * Q) ** 2 - z**2 * float(weight_x.sum() * Q**2 + weight_y.sum() * P**2)
    middle = won * P * Q - z**2 * float(weight_x @ beats * Q + weight_y @ beaten * P)
    last = won**2 - z**2 * float(weight_x @ beats**2 + weight_y @ beaten**2)
    root = middle**2 - square * last
    if square <= 0 or root < 0:
        return None
    return (middle - math.sqrt(root)) / square, (middle + math.sqrt(root)) / square


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram, and the expected calibration error (Guo, Pleiss, Sun and Weinberger 2017).

    Attributes:
        edges: bins of the probability, ``(k + 1,)``.
        records: noisy, ``(k,)``.
        right: share of right predictions per bin, or of ``label``.
        error: mean gap between probability and share of right ones, weighted by records, 0..1. The value uses ``means``
            or bins' middles, and noise inflates it; the interval covers any probabilities inside the bins.
        label: class of the probability; empty: the predicted class.
        means: exact mean probabilities for one's own records; else None.

    Example:
        >>> from privstats.inference.head_curves import reliability
        >>> wrong, right = np.array([40.0, 10.0]), np.array([60.0, 90.0])  # of bins from .5 to .75 and from there to 1
        >>> found = reliability(np.array([0.5, 0.75, 1.0]), wrong, right, sigma=0.0, cells=1, z=1.96)
        >>> [round(each.value, 2) for each in found.right], round(found.error.value, 3)
        ([0.6, 0.9], 0.025)
    """

    edges: Array
    records: Array
    right: tuple[Interval, ...]
    error: Interval
    label: str = ""
    means: Array | None = None


def reliability(
    edges: Array, wrong: Array, right: Array, sigma: float, cells: int, z: float, label: str = ""
) -> Reliability:
    """Return the diagram and the calibration error of counts by rising bin.

    Args:
        wrong, right: noisy counts, ``(k,)``.
        sigma: noise of one released cell.
        cells: number of cells summed per count.

    Guarantee:
        With e_b the errors of the gaps, ``|sum |g_b + e_b| - sum |g_b|| <= sum |e_b|``, which has the quantile of a sum
        of absolute normals: the error's interval covers at least as often as stated.
    """
    records = wrong + right
    shares = tuple(
        ratio(float(hits), float(n), (cells, cells), sigma, z) for hits, n in zip(right, records, strict=True)
    )
    error = calibration_error((edges[:-1], edges[1:]), (wrong, right), sigma * math.sqrt(cells), z)
    return Reliability(edges, records, shares, error, label)


def calibration_error(
    ends: tuple[Array, Array], counts: tuple[Array, Array], sigma: float, z: float, inflation: float = 1.0
) -> Interval:
    """Return the calibration error of counts by bin, with the interval of :func:`reliability`.

    ``ends`` are the range of each bin's mean probability; ``inflation`` is the variance over persons relative to
    independent records.
    """
    (low, high), (wrong, right) = ends, counts
    records, middle = wrong + right, (low + high) / 2
    total, spread = float(records.sum()), sigma * math.sqrt(2 * len(right))
    value = float(np.abs(right - middle * records).sum()) / total if total > 0 else 0.0
    room = z * math.sqrt(inflation * max(total, 0.0) + spread**2)
    if total <= room:
        return Interval(min(value, 1.0), 0.0, 1.0, False)
    weights = (inflation * np.maximum(each, 0.0) + sigma**2 for each in (right, wrong))
    deviations = np.sqrt(sum(weight * most**2 for weight, most in zip(weights, (1 - low, high), strict=True)))
    slack = _MEAN * float(deviations.sum()) + z * math.sqrt((1 - _MEAN**2) * float((deviations**2).sum()))
    gaps = np.stack([right - low * records, right - high * records])
    most = float(np.abs(gaps).max(axis=0).sum())
    least = float(np.where(gaps[0] * gaps[1] > 0, np.abs(gaps).min(axis=0), 0.0).sum())
    edge = np.clip([(least - slack) / (total + z * spread), (most + slack) / (total - room)], 0.0, 1.0)
    return Interval(min(value, 1.0), float(edge[0]), float(edge[1]), bool(edge[1] < 1))


def expected_area(
    plan: Plan, share: float, *, auc: float = 0.8, records: int | None = None, alpha: float = 0.05
) -> Interval:
    """Return the interval that an AUC would have, before any record is scored.

    Log odds are assumed normal in both classes. The width follows from the number of records, the class's share, the
    noise, the bins and the assumed AUC; no release forecasts that AUC.

    Args:
        plan: of a score; for more than two classes with a table for each.
        share: of the class among the records, above 0 and below 1.
        auc: assumed AUC, above 0.5 and below 1.
        records: default ``cohort.max_records``.

    Raises:
        ValueError: the plan counts no score of a class.
    """
    schema = plan.schema
    if not isinstance(schema, ScoringSchema) or (schema.classes > 2 and not schema.by_class):
        raise ValueError("the plan counts no score of a class")
    total = plan.cohort.max_records if records is None else records
    others, members = _shares_of_bins(schema, share, math.sqrt(2) * float(ndtri(auc)))
    sigma = 0.0 if plan.noise is None else plan.noise.released_sigma(plan.cohort.clients)["T"]
    return area((1 - share) * total * others, share * total * members, sigma, z_of(alpha))


def expected_sentences(plan: Plan) -> list[str]:
    """Return sentences on the width of a plan's AUC interval."""
    schema = plan.schema
    if not isinstance(schema, ScoringSchema) or (schema.classes > 2 and not schema.by_class):
        return []
    scores = planned_scores(plan)
    known = scores if schema.score == "probability" else None
    shares = _SHARES if known is None else tuple(sorted({*_SHARES, round(float(known.prevalence[1]), 2) or 0.01}))
    widths = "; ".join(_widths(plan, share) for share in shares)
    even = "" if schema.cuts is None else ", for bins that fill evenly"
    rough = (
        f"; with fewer than {STEADY:,} records they are rough: about one measured session in three differed by more "
        "than a quarter"
    )
    out = [
        f"if all {plan.cohort.max_records:,} records are scored, the AUC's interval will be about {widths}; these "
        f"widths follow from the number of records, the class's share and the noise{even}, and are no forecast of the "
        f"AUC{rough if plan.cohort.max_records < STEADY else ''}"
    ]
    if schema.classes == 2 and schema.cuts is None and schema.score == "probability":
        out.append(_why_equal(known is not None))
    return out


def _why_equal(known: bool) -> str:
    why = "as was asked for" if known else "because the head's file does not store their distribution"
    remedy = "omit --equal-bins (equal_bins)" if known else "pass --release (Scoring(releases=))"
    return (
        f"its bins are of equal width, {why}, and nearly all scores of a rare outcome are in a few of them: "
        f"{remedy}, and the bins follow the scores in the head's own releases, at no cost"
    )


def _widths(plan: Plan, share: float) -> str:
    found = [(auc, expected_area(plan, share, auc=auc)) for auc in _ASSUMED]
    where = f"where {100 * share:g} in 100 are of the class"
    widths = [f"{each.high - each.low:.2f} wide if the AUC is {auc:g}" for auc, each in found if each.reported]
    return f"{' and '.join(widths)}, {where}" if widths else f"hidden by noise {where}"


def _shares_of_bins(schema: ScoringSchema, share: float, spread: float) -> tuple[Array, Array]:
    centre = spread**2 / 2
    if schema.cuts is not None:  # each bin has equally many of both classes, weighted alike
        grid = np.linspace(-centre - 8 * spread, centre + 8 * spread, 4_001)
        mixture = (ndtr((grid - centre) / spread) + ndtr((grid + centre) / spread)) / 2
        inner = np.interp(np.arange(1, schema.score_bins) / schema.score_bins, mixture, grid)
    else:
        edges = np.array(schema.edges[1:-1])
        inner = (edges if schema.score == "margin" else logit(edges)) - logit(share)
    at = [ndtr((np.r_[-np.inf, inner, np.inf] - middle) / spread) for middle in (-centre, centre)]
    return np.diff(at[0]), np.diff(at[1])
