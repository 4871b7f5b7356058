"""Audits of a pure promise (delta = 0): the worst record in L1, the law of the noise, a lower bound on epsilon.

Records go through the library's own measuring, because what is searched is the L1 norm of integers behind it. The
scales come from the declared deviations by the auditor's own rule, and the ceiling is epsilon as the plan states it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from scipy.stats import beta

from privstats.dp import Guarantee, compose, joint_epsilon, l1_sensitivity
from privstats.dp.privacy import Adjacency
from privstats.dp.pure import laplace_mu
from privstats.encoding import flatten
from privstats.kinds import ClassSchema, CountSchema, ScoringSchema
from privstats.randomness import Generator
from threat_models.audits.counts import counted_vectors, odd_vectors, tables_in
from threat_models.audits.edges import edge_cases
from threat_models.audits.kinds import row_part
from threat_models.audits.residuals import Z
from threat_models.audits.target import Target, moments_of
from threat_models.audits.verdict import Report, Value

Shifts = NDArray[np.int64]
_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
_TOLERANCE = 1e-9
_GROUP_EPSILON = 2.0
_PILOT = 0.1
_FLATTER = (2.0, 1.0, 0.5, 0.0)
_THRESHOLDS = 40


def audit_pure_sensitivity(target: Target, rng: Generator, *, starts: int = 12) -> Report:
    """Search records and pairs of records that move a statistic further in L1 than is claimed, and more than epsilon.

    Args:
        starts: each draws directions, which are flattened in steps and stretched beyond the clip.
    """
    vectors = _records(target, np.random.default_rng(int.from_bytes(rng.bytes(8), "little")), starts)
    result = _largest(target, vectors)
    rows = [
        (s, adjacency, *_compared(l1_sensitivity(target.schema, s, adjacency), result[adjacency][s]))
        for s in target.sigma
        for adjacency in _ADJACENCIES
    ]
    claimed, most = target.privacy.epsilon, _measured_epsilon(target, result)
    rows.append(("promise", target.privacy.adjacency, *_compared(claimed, most)))
    rows.append(("mu", target.privacy.adjacency, *_compared(target.noise.mu, _measured_mu(target, vectors))))
    notes = (
        f"L1 norms in wire steps of records that the library measured, {starts} random starts",
        f"promise: epsilon {claimed:g} at delta 0 per {target.privacy.unit}, {target.privacy.adjacency}",
        "mu: the entries that one unit moves, composed by their own epsilons; the claim has statistics at their worst",
    )
    columns = ("statistic", "adjacency", "claimed", "found", "ratio", "violated")
    return Report("sensitivity", columns, tuple(rows), notes, any(row[-1] for row in rows))


def _compared(claimed: float, measured: float) -> tuple[float, float, float, bool]:
    return claimed, measured, measured / claimed, measured > claimed * (1 + _TOLERANCE)


def broken_pure_promise(target: Target, rng: Generator) -> list[str]:
    """One sentence if the worst unit of the search costs more than epsilon under the declared noise, else nothing."""
    vectors = _records(target, np.random.default_rng(int.from_bytes(rng.bytes(8), "little")), 4)
    result, promised = _measured_epsilon(target, _largest(target, vectors)), target.privacy.epsilon
    if result <= promised * (1 + _TOLERANCE):
        return []
    return [f"the declared noise leaves epsilon {result:.6g} to a unit that was found, and the promise is {promised:g}"]


def _measured_epsilon(target: Target, measured: Mapping[Adjacency, Mapping[str, float]]) -> float:
    """epsilon of the worst records found, each statistic at its own worst; a client counts as its maximum number of
    records."""
    worst = measured[target.privacy.adjacency]
    scales = {s: float(scale) for s, scale in _scales(target).items()}
    return target.promise.records * math.fsum(worst[s] / scales[s] for s in scales)


def _measured_mu(target: Target, vectors: Shifts) -> float:
    """mu of the entries of the record, or of the pair, that is longest in deviations: an entry that moves by x is
    |x| / b-DP, and mu of independent entries adds up in squares."""
    b = np.concatenate([np.full(s.size, _scales(target)[s.statistic]) for s in target.layout.segments])
    units = target.promise.records * vectors / b
    others = units if target.privacy.adjacency == "replace-one" else np.zeros((1, len(b)))
    far = [moved[np.argmax((moved * moved).sum(axis=1))] for moved in (np.abs(units - other) for other in others)]
    return max(float(np.linalg.norm(2 * ndtri(expit(-each)))) for each in far)


def _largest(target: Target, vectors: Shifts) -> dict[Adjacency, dict[str, float]]:
    """The largest L1 norm found, by adjacency and statistic, in wire steps."""
    out: dict[Adjacency, dict[str, float]] = {"add-remove": {}, "replace-one": {}}
    for segment, place in zip(target.layout.segments, target.layout.slices, strict=True):
        mine = vectors[:, place]
        out["add-remove"][segment.statistic] = float(np.abs(mine).sum(axis=1).max())
        out["replace-one"][segment.statistic] = max(float(np.abs(mine - row).sum(axis=1).max()) for row in mine)
    return out


def _records(target: Target, chance: np.random.Generator, starts: int) -> Shifts:
    """Flat vectors of single records, ``(m, size)``, in wire steps."""
    return _single(target, "search in L1").drawn(target.schema, chance, starts)


def _counted(tables: CountSchema | ScoringSchema, chance: np.random.Generator, starts: int) -> Shifts:
    schema = tables_in(tables)
    return np.vstack([counted_vectors(schema, chance, starts), odd_vectors(schema, chance)])


def _labelled(schema: ClassSchema, chance: np.random.Generator, starts: int) -> Shifts:
    drawn = chance.standard_normal((starts, schema.features))
    shapes = [np.sign(drawn) * np.abs(drawn) ** power for power in _FLATTER]
    shapes += [-shape for shape in shapes]
    rows = np.vstack([*shapes, np.eye(schema.features)[:1]])
    rows *= schema.clip_norm / np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.vstack([rows, 4 * rows])
    rows = np.abs(rows) if schema.nonnegative else rows
    return np.stack([flatten(moments_of(schema, row[None], np.array([i % 2]))) for i, row in enumerate(rows)])


def _two_cells(schema: CountSchema | ScoringSchema) -> Shifts:
    return counted_vectors(tables_in(schema), np.random.default_rng(0), 0)


def _two_classes(schema: ClassSchema) -> Shifts:
    row = np.eye(schema.features)[:1] * schema.clip_norm
    return np.stack([flatten(moments_of(schema, row, np.array([label]))) for label in (0, 1)])


class _Single(NamedTuple):
    """Single records of a kind.

    Attributes:
        drawn: flat vectors of many, from the schema, chance and how many starts.
        opposed: of two that differ in every class or cell, along one feature where there are vectors.
    """

    drawn: Callable[[Any, np.random.Generator, int], Shifts]
    opposed: Callable[[Any], Shifts]


CLASSES = _Single(_labelled, _two_classes)
TABLES = _Single(_counted, _two_cells)


def _single(target: Target, what: str) -> _Single:
    result: _Single = row_part("single", target.schema, what)
    return result


def _scales(target: Target) -> dict[str, float]:
    """Laplace scales in wire steps that have the declared deviations: 1 / (sqrt 2 sinh(1 / (2 b))) solved for b."""
    deviations = {segment.statistic: target.declared_std(segment, 0) for segment in target.layout.segments}
    return {s: 0.5 / math.asinh(math.sqrt(0.5) / deviation) for s, deviation in deviations.items()}


def laplace_scores(target: Target, residuals: Shifts, rng: Generator) -> Z:
    """Whole residuals ``(releases, size)`` as standard normals, exactly where they follow the declared Laplace law.

    A uniform number between P(X > |k|) and P(X >= |k|) is uniform over all k, and its normal quantile, with the sign of
    k, is normal; so every test of Gaussian residuals is one of these.
    """
    scales = _scales(target)
    b = np.concatenate([np.full(segment.size, scales[segment.statistic]) for segment in target.layout.segments])
    size, sign = np.abs(residuals), np.where(residuals < 0, -1.0, 1.0)
    uniform = ((rng.uint64(residuals.size).astype(np.float64) + 0.5) * 2.0**-64).reshape(residuals.shape)
    p = np.exp(-1 / b)
    above = np.exp(-(size + 1) / b) / (1 + p)
    within = np.exp(-size / b) * -np.expm1(-1 / b) / (1 + p)
    return np.asarray(-sign * ndtri(above + uniform * within))


def audit_epsilon(target: Target, rng: Generator, *, trials: int = 5000, confidence: float = 0.95) -> Report:
    """Lower bounds on epsilon from releases with and without copies of one record, per statistic and jointly.

    The unit's records lie along one feature, so that each statistic but A shows all of its epsilon in an entry or two;
    of A that is 1 / sqrt(d) of it, and a flat record, which costs all of it, spreads it over d entries and is no easier
    to see. With k copies log(TPR / FPR) at the ends of the Clopper-Pearson intervals, over k, is a bound for any
    mechanism. The confidence is that of the whole table.

    Args:
        trials: releases, each of which is looked at with and without the copies.
    """
    one = _unit(target)
    scales = np.concatenate([np.full(s.size, _scales(target)[s.statistic]) for s in target.layout.segments])
    noise = target.draw(trials, rng)
    edges = edge_cases(target, one, rng, trials)
    alpha = (1 - confidence) / (len(target.sigma) + 1 + len(edges))
    rows: list[tuple[Value, ...]] = []
    for name in (*target.sigma, "joint"):
        named = np.concatenate([np.full(s.size, name in (s.statistic, "joint")) for s in target.layout.segments])
        claimed = target.promise.records * _epsilon(target, name, target.privacy.adjacency)
        claimed = target.privacy.epsilon if name == "joint" else claimed
        moved = one * named
        copies = max(1, round(_GROUP_EPSILON / float(np.sum(np.abs(moved) / scales))))
        out, present = (_losses(noise + k * copies * moved, copies * moved, scales) for k in (0, 1))
        rows.append(_row(name, copies, claimed, epsilon_bound(out, present, alpha) / copies))
    for edge in edges:
        rows.append(_row(edge.name, 1, target.privacy.epsilon, epsilon_bound(edge.out, edge.present, alpha)))
    notes = (
        f"{trials} releases of the worst session the plan admits, each with and without the copies; {confidence:.0%} "
        "confidence for the table",
        f"joint is held against epsilon {target.privacy.epsilon:g} at delta 0 as the plan states it",
    )
    columns = ("statistic", "copies", "eps claimed", "eps at least", "ratio", "verdict")
    return Report("canary", columns, tuple(rows), notes, any(row[-1] == "violates" for row in rows))


def _unit(target: Target) -> Shifts:
    """Return the shifts of one unit of the promise, added or exchanged for one of another class or other cells.

    Records of vectors lie along one feature.
    """
    one, other = _single(target, "unit in L1").opposed(target.schema)
    return np.asarray((one - other if target.privacy.adjacency == "replace-one" else one) * int(target.promise.records))


def _epsilon(target: Target, name: str, adjacency: Adjacency) -> float:
    """Return one record's cost in a statistic, or in all, by the library's own arithmetic."""
    scales = {s: scale for s, scale in _scales(target).items() if name in (s, "joint")}
    return joint_epsilon(target.schema, scales, adjacency)


def _row(name: str, copies: int, claimed: float, measured: float) -> tuple[Value, ...]:
    verdict = "violates" if measured > claimed * (1 + 1e-6) else "no evidence"
    return name, copies, claimed, measured, measured / claimed, verdict


def _losses(seen: Shifts, moved: Shifts, scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log ratio of the densities with and without the shift, per release: what no attacker improves on."""
    return np.asarray(((np.abs(seen) - np.abs(seen - moved)) / scales).sum(axis=1))


def epsilon_bound(out: NDArray[np.float64], present: NDArray[np.float64], alpha: float) -> float:
    """log(TPR / FPR) at the ends of intervals that hold together with probability 1 - ``alpha``; at least 0.

    The threshold is chosen on the first tenth of the trials and the rates are those of the rest, so the bound holds for
    any mechanism with independent trials.
    """
    pilot = max(1, int(_PILOT * len(out)))
    places = np.unique(np.quantile(present[:pilot], np.linspace(0, 0.98, _THRESHOLDS)))
    best = max(places, key=lambda place: _log_ratio(out[:pilot], present[:pilot], float(place) - 1e-9, alpha))
    return max(0.0, _log_ratio(out[pilot:], present[pilot:], float(best) - 1e-9, alpha))


def _log_ratio(out: NDArray[np.float64], present: NDArray[np.float64], threshold: float, alpha: float) -> float:
    hits, alarms, n = int((present > threshold).sum()), int((out > threshold).sum()), len(out)
    low = float(beta.ppf(alpha / 2, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - alpha / 2, alarms + 1, n - alarms)) if alarms < n else 1.0
    return math.log(low / high) if low else -math.inf


def audit_pure_budget(target: Target, rng: Generator, client_records: int | None = None) -> Report:
    """mu and epsilon per statistic and of all, by unit and adjacency, and the most any attacker gains.

    Args:
        client_records: records of the client whose exposure is shown; the plan's own limit where it has one.
    """
    scales, rows = _scales(target), list[tuple[Value, ...]]()
    most = client_records or target.privacy.max_records_per_client
    units = [("record", 1), *([] if most is None else [("client", most)])]
    for (unit, records), adjacency in product(units, _ADJACENCIES):
        mus = laplace_mu(target.schema, scales, adjacency, records)
        for name in (*scales, "joint"):
            mu = compose(mus.values()) if name == "joint" else mus[name]
            guarantee = Guarantee(mu, records * _epsilon(target, name, adjacency))
            rows.append((name, unit, adjacency, guarantee.mu, guarantee.pure, *guarantee.operating_point()))
    objections = broken_pure_promise(target, rng)
    notes = (
        f"the plan promises epsilon {target.privacy.epsilon:g} at delta 0 per {target.privacy.unit} under "
        f"{target.privacy.adjacency}; the other rows show what its noise gives against other changes",
        "TPR@1% (at 1 % false alarms), AUC and advantage are the most that any attacker can reach, whatever it knows",
    )
    bounds = ("mu", "epsilon", "TPR@1%", "AUC", "advantage")
    columns = ("statistic", "unit", "adjacency", *bounds)
    return Report("budget", columns, tuple(rows), (*notes, *objections), bool(objections), bounds=bounds)
