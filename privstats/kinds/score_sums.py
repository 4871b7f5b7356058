"""Sum the score and information of a logistic or Poisson regression over records: what each record adds.

The bits are equal in any batch, order and BLAS. A record counts fully or as zero: no error depends on a record and the
published weights together. The bound on what a record adds is ``move`` of the schema (:mod:`privstats.kinds.score`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import RecordError
from privstats.intake.arrays import is_tensor
from privstats.moments.base import Moments
from privstats.records.containers import dense
from privstats.records.reasons import EXPOSURE
from privstats.schema.public_values import Values
from privstats.transforms.exact import arrays_of

if TYPE_CHECKING:
    from privstats.kinds.score import ScoreSchema
    from privstats.moments.clip_report import ClipTally
    from privstats.moments.device_rounds import DeviceRound
    from privstats.moments.gradient_map import RoundValues
    from privstats.moments.grid import Ints
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Excluded, Opened
    from privstats.records.readable import Noted
    from privstats.records.row_cache import MappedRows

_MEAN_BITS = 20
_ONE = float(1 << _MEAN_BITS)
_LOG_BITS = 40  # log Y is rounded to them, so that all platforms agree


def measured_scores(schema: ScoreSchema, records: Opened, values: Mapping[str, Values]) -> Moments:
    """Return the exact sums of a round, as :meth:`ScoreSchema.moments_of` guarantees."""
    exact, _ = schema.containers()
    sums = moments.grid.sums_of(schema, "gHJQV")
    count, tally = 0, _no_clips(schema)
    there: DeviceRound | None = None
    # Arms, gaps and exposures are read in host memory.
    plain = not (schema.is_propensity or schema.exposure)
    pieces = records.placed_pieces() if plain else _exposed(schema, records).pieces()
    for rows, targets in pieces:
        if is_tensor(rows):
            there = there or _on_device(schema, records, values)
            there.add(rows, targets)
            continue
        added, finite = _mapped(schema, rows, np.asarray(targets), values["w"], tally)
        for total in sums.values():
            total.admit(len(rows))
        for letter, product in _products(schema, *added).items():
            sums[letter].partial += product
        count += int(np.count_nonzero(finite))
    totals = {letter: total.result() for letter, total in sums.items()}
    if there is None:
        report = None if schema.is_propensity else tally.report()
        return exact(schema, records=count, clip_report=report, **totals)
    result = exact(schema, records=count, **totals)
    totals, count = there.result()
    return result + exact(schema, records=count, **totals)


def score_terms(schema: ScoreSchema, records: Opened, values: Mapping[str, Values]) -> RecordTerms:
    """Return each record's contribution."""
    inside: list[NDArray[np.bool_]] = []
    several = _exposed(schema, records, lambda fine, *_: inside.append(fine)).pieces()
    terms = moments.record_sums.RecordTerms.joined(_added(schema, rows, y, values["w"]) for rows, y in several)
    return terms.among(np.concatenate(inside)) if inside else terms


def _no_clips(schema: ScoreSchema) -> ClipTally:
    return moments.clip_report.ClipTally(schema.features, schema.grid_steps, counts=schema.family == "poisson")


def own_scores(unit: Ints, residuals: Ints, grid_steps: int) -> Ints:
    """Return c ``(n, d)``, each record's r u in grid steps; its length is at most |r| where |u| <= ``grid_steps``."""
    return within_length(unit * (residuals / grid_steps)[:, None], residuals * residuals)


def within_length(exact: NDArray[np.float64], squares: Any) -> Ints:
    """Return rows rounded to integers, and truncated where rounding would pass these squared lengths.

    Guarantee:
        In integers, no row is longer than allowed if no exact row is. Truncation moves every entry toward zero, so it
        keeps that length, and a rounded row is used only where it has it, too.
    """
    xp = arrays_of(exact)
    rounded: Ints = xp.rint(exact)
    longer = xp.vecdot(rounded, rounded) > squares
    return xp.trunc_where(longer, exact, rounded) if xp.some(longer) else rounded


def _added(schema: ScoreSchema, rows: NDArray[Any], targets: NDArray[Any], w: Values) -> RecordTerms:
    tally = _no_clips(schema)
    (unit, residuals, roots, fits), finite = _mapped(schema, rows, targets, w, tally)
    a = roots[finite]
    products: dict[str, Any] = {"g": ((unit * residuals[:, None])[finite], None), "H": (a, a)}
    if schema.errors == "robust":
        c = own_scores(unit, residuals, schema.grid_steps)[finite]
        products["J"] = (c, c)
    if schema.overdispersion is not None:
        products |= {letter: (np.square(each)[finite], None) for letter, each in zip("QV", fits.T, strict=True)}
    clips = {} if schema.is_propensity else {"clip_report": tally.report()}
    return moments.record_sums.RecordTerms(finite, (moments.record_sums.Term(products),), clips)


def _mapped(
    schema: ScoreSchema,
    rows: NDArray[Any],
    targets: NDArray[Any],
    w: Values,
    tally: ClipTally | None = None,
) -> tuple[tuple[Ints, Ints, Ints, Ints], NDArray[np.bool_]]:
    """Return the contributions of :func:`_contributed`, and which records are finite ``(n,)``; others are zero.

    Args:
        tally: counts the clip's effect; none for a propensity.
    """
    shares, targets = _exposures(schema, targets)
    unit, outcomes, fine = _on_grid(schema, rows, targets, tally)
    return _contributed(schema, unit, outcomes, fine, w, shares), fine


def _contributed(
    schema: ScoreSchema, unit: Ints, outcomes: Ints, fine: Any, w: RoundValues, shares: Any = None
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return u ``(n, d)``, r ``(n,)``, a ``(n, d)``, and y - m and m rounded ``(n, 2)``.

    The last is ``(n, 0)`` where the schema does not sum it. All are zero for other than ``fine``.

    Args:
        unit: grid rows.
        outcomes: in steps of 2**-20 of the largest outcome.
    """
    xp = arrays_of(unit)
    outcomes, mean = _weighed(schema, outcomes, _means(schema, unit, w, shares))
    variance = mean * (_ONE - mean) / _ONE if schema.family == "logistic" else mean
    residuals: Ints = xp.trunc((outcomes - mean) * math.ldexp(1.0, schema.grid_bits - _MEAN_BITS))
    roots = unit * (xp.sqrt(variance / _ONE) * moments.gradient_map.SHY)[:, None]
    xp.trunc(roots, out=roots)
    maximum = float(schema.grid_steps) ** 2
    fine = (
        fine & (xp.vecdot(unit, unit) <= maximum) & (abs(residuals) * _ONE <= schema.grid_steps * abs(outcomes - mean))
    )
    fine &= xp.vecdot(roots, roots) * _ONE <= maximum * variance
    fits = _fits(schema, outcomes, mean) if schema.overdispersion else unit[:, :0]
    return unit * fine[:, None], residuals * fine, roots * fine[:, None], fits * fine[:, None]


def _fits(schema: ScoreSchema, outcomes: Ints, mean: Ints) -> Ints:
    xp = arrays_of(mean)
    both = xp.hstack((outcomes - mean)[:, None], mean[:, None])
    fits: Ints = xp.rint(both * math.ldexp(1.0, schema.grid_bits - _MEAN_BITS))
    return fits


def _products(schema: ScoreSchema, unit: Ints, residuals: Ints, roots: Ints, fits: Ints) -> dict[str, Ints]:
    """Return the sums over some records, by letter."""
    products = {"g": unit.T @ residuals, "H": roots.T @ roots}
    if schema.errors == "robust":
        scores = own_scores(unit, residuals, schema.grid_steps)
        products["J"] = scores.T @ scores
    if schema.overdispersion is not None:
        products |= {letter: each @ each for letter, each in zip("QV", fits.T, strict=True)}
    return products


def _on_device(schema: ScoreSchema, records: Opened, values: Mapping[str, Values]) -> DeviceRound:
    def sums(rows: MappedRows, targets: Any, fine: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        goals = _in_steps(schema, targets.reshape(-1).to(rows.unit.dtype))
        return _products(schema, *_contributed(schema, rows.unit, goals, fine, values["w"]))

    exclude = None if records.excluded is None else records.excluded.exclude
    form = moments.device_rounds.Form(sums)
    return moments.device_rounds.DeviceRound(schema, schema.rows, values, form, exclude, rounds_targets=False)


def _on_grid(
    schema: ScoreSchema, rows: NDArray[Any], targets: NDArray[Any], tally: ClipTally | None
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return grid rows, outcomes in steps of 2**-20 of the largest, and which records are finite."""
    if schema.missing:
        return _seen_on_grid(schema, rows, targets)
    if schema.by_arm:
        moments.rounds.real_outcomes(
            targets, schema.outcomes or 1
        )  # so that all sessions of an effect count the same records
        treated, unit = moments.rounds.arm_rows(schema.rows, rows)
        return unit, treated.astype(np.float64) * _ONE, np.ones(len(rows), np.bool_)
    clips: list[moments.grid.Quantized] = []
    unit, fine = moments.rounds.grid_rows(schema, rows, clips=clips)
    goals = targets.astype(np.float64).reshape(len(targets))
    fine &= np.isfinite(goals)
    if tally is not None:
        above = int((goals[fine] > schema.outcome).sum())
        moments.rounds.add_clips(tally, schema, unit, fine, clips, above=above)
    return unit, _in_steps(schema, np.where(fine, goals, 0.0)), fine


def _in_steps(schema: ScoreSchema, goals: NDArray[np.float64]) -> Ints:
    """Return outcomes in steps of 2**-20 of the largest."""
    xp = arrays_of(goals)
    outcomes: Ints = xp.trunc((goals / xp.full_like(goals[:1], schema.outcome)).clip(0.0, 1.0) * _ONE)
    return outcomes


def _seen_on_grid(
    schema: ScoreSchema, rows: NDArray[Any], targets: NDArray[Any]
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return grid rows and presence of outcomes; all are finite, as in later sessions."""
    unit, fine = moments.rounds.grid_rows(schema.rows, rows)
    if not fine.all():
        raise RecordError(
            "X holds NaN, infinite or overflowing entries, or an arm that is neither 0 nor 1; correct them"
        )
    seen = np.isfinite(moments.rounds.real_outcomes(targets, 1, missing=True)[:, 0])
    return unit, seen.astype(np.float64) * _ONE, fine


def _exposed(schema: ScoreSchema, records: Opened, noted: Noted = lambda *_: None) -> Opened:
    """Return the records whose exposure is in range; where none may be excluded, ``_exposures`` refuses others."""
    if schema.exposure is None or records.excluded is None:
        return records
    return records.over(_inside(schema, records.pairs(), records.excluded, noted))


def _inside(schema: ScoreSchema, batches: Iterable[Any], excluded: Excluded, noted: Noted) -> Iterator[tuple[Any, Any]]:
    for rows, targets in batches:
        fine = _in_range(schema, np.asarray(dense(targets), np.float64)[:, 1])
        noted(fine, rows, np.ones(len(fine), np.bool_))
        excluded.add(fine, {(repr(schema.exposure), EXPOSURE): ~fine}, seen=True)
        yield (rows, targets) if fine.all() else (rows[fine], targets[fine])


def _in_range(schema: ScoreSchema, exposures: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((exposures > 0) & (exposures <= (schema.exposure_bound or 0.0)))


def _exposures(schema: ScoreSchema, targets: NDArray[Any]) -> tuple[NDArray[np.float64] | None, NDArray[Any]]:
    """Return exposures in units of the largest, ``(n,)``, and counts; a record with a gap counts as zero later."""
    if schema.exposure is None or schema.exposure_bound is None:
        return None, targets
    exposures, counts = targets[:, 1].astype(np.float64), targets[:, 0].astype(np.float64)
    unread = ~np.isfinite(exposures)
    if not (_in_range(schema, exposures) | unread).all():
        raise RecordError(
            f"exposures in {schema.exposure!r} must be above 0 and at most exposure_bound, {schema.exposure_bound:g}; "
            "correct them, or have the plan state a larger bound"
        )
    shares = np.where(unread, 0.0, exposures / schema.exposure_bound)
    return shares, np.where(unread, np.nan, counts)


def _means(schema: ScoreSchema, unit: Ints, w: RoundValues, shares: NDArray[np.float64] | None = None) -> Ints:
    """Return m in steps of 2**-20 of the largest outcome; ``shares`` are exposures in units of the largest."""
    xp, spacing = arrays_of(unit), schema.clip_norm / float(schema.grid_steps)
    fitted = (unit @ w.floats) * math.ldexp(spacing, -w.exponent)
    if schema.family == "poisson":
        fitted = fitted - round(math.log(schema.outcome) * (1 << _LOG_BITS)) / (1 << _LOG_BITS)
    pairs = xp.hstack(xp.full_like(fitted, 0.0)[:, None], fitted[:, None])
    if schema.family == "poisson":
        means = moments.gradient_map.exponentials(pairs, 0)[:, 1]
        counts: Ints = xp.floor((means if shares is None else means * shares) / _ONE)
        return counts
    return moments.gradient_map.probabilities(pairs, 0)[:, 1]


def _weighed(schema: ScoreSchema, outcomes: Ints, mean: Ints) -> tuple[Ints, Ints]:
    """Return y and m times 1 / (1 + alpha m), in steps of 2**-20 of the largest outcome.

    Guarantee:
        Both stay integers from 0 to 2**20, where y and m are. A factor is at most 1, and rounding keeps that end.
    """
    if schema.negative_binomial is None:
        return outcomes, mean
    xp, divisors = arrays_of(mean), 1.0 + schema.negative_binomial * schema.outcome * (mean / _ONE)
    return xp.rint(outcomes / divisors), xp.rint(mean / divisors)
