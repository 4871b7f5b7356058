"""Read normal equations and contrasts for linear inference from a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.heads.evidence import FoldSums, GramEvidence, release_gram
from privstats.inference.cell_design import CellDesign, declared_cells, design_of
from privstats.inference.inversion import NormalEquations
from privstats.inference.releases import (
    chosen_columns,
    column_names,
    raw_slopes,
    require_both_columns,
    require_records,
)
from privstats.kinds import RidgeSchema
from privstats.release import Release
from privstats.schema import Schema, narrowed

CONSTANT = "const"
"""Name of the intercept in a table."""

_NOISE_ROOM = 4
"""Standard deviations by which the number of records must exceed the number of columns."""


@dataclass(frozen=True)
class Parts:
    """Sums of disjoint parts of the records: G ``(F, p, p)``, h ``(F, p)``; records are NaN where not released."""

    G: Array
    h: Array
    records: Array
    records_sigma: float


@dataclass(frozen=True)
class LinearSums:
    """The sums of one regression, in transformed units.

    Attributes:
        names: any intercept first.
        contrasts: ``(m, p)``: raw parameters from the solution.
        mean: of the target; 0 without an intercept.
        columns: number released, without the constant.
        records_sigma: standard error of the noise in ``records``.
    """

    equations: NormalEquations
    names: tuple[str, ...]
    contrasts: Array
    records: float
    mean: float
    columns: int
    parts: Parts | None
    cells: CellDesign | None = None
    records_sigma: float = 0.0

    @property
    def intercept(self) -> bool:
        """Whether the model has an intercept."""
        return self.names[0] == CONSTANT


def linear_sums(
    release: Release, columns: Sequence[str | int] | None, target: int | None, records: int | None
) -> LinearSums:
    """Read a ``RidgeSchema``'s sums; arguments as for ``ols``."""
    schema = ridge_schema(release)
    evidence = release_gram(release, records)
    target = _target(schema, target)
    if declared_cells(schema) is not None:
        return _cell_sums(schema, evidence, columns, target)
    raw = schema.features - (evidence.constant is not None)
    names = column_names(schema, raw)
    chosen = chosen_columns(names, columns)
    places = [*chosen, raw] if evidence.constant is not None else chosen
    count, count_sigma = _records(evidence, raw, records)
    degrees = residual_degrees(count, count_sigma, len(places), f"{len(places)} columns")
    require_both_columns(schema.transform, names, chosen)
    slopes, level = raw_slopes(schema.transform, raw)
    return LinearSums(
        equations=_equations(evidence, evidence.G[np.ix_(places, places)], evidence.h[places], target, degrees),
        names=((CONSTANT,) if evidence.constant is not None else ()) + tuple(names[j] for j in chosen),
        contrasts=contrasts_of(slopes[np.ix_(chosen, chosen)], level[chosen], evidence.constant),
        records=count,
        mean=_mean(evidence, target, count),
        columns=raw,
        parts=_parts(
            evidence, lambda G: G[..., places, :][..., places], lambda h: h[..., places, :], target, raw, count_sigma
        ),
        records_sigma=count_sigma,
    )


def _cell_sums(
    schema: RidgeSchema, evidence: GramEvidence, columns: Sequence[str | int] | None, target: int
) -> LinearSums:
    design = cell_design(schema, evidence.G, evidence.sigma_G, columns)
    count, count_sigma = _records(evidence, schema.features - 1, None)
    degrees = residual_degrees(count, count_sigma, design.estimated, f"{design.estimated} parameters")
    return LinearSums(
        equations=_equations(evidence, design.gram(evidence.G), design.vector(evidence.h), target, degrees),
        names=design.names,
        contrasts=design.contrasts,
        records=count,
        mean=_mean(evidence, target, count),
        columns=design.cells,
        parts=_parts(evidence, design.gram, design.vector, target, schema.features - 1, count_sigma),
        cells=design,
        records_sigma=count_sigma,
    )


def cell_design(schema: Schema, G: Array, sigma: float, columns: Sequence[str | int] | None = None) -> CellDesign:
    """Return the chosen columns' design."""
    cells = declared_cells(schema)
    assert cells is not None  # noqa: S101  the callers have asked
    return design_of(cells, schema, G, sigma, chosen_columns([each.name for each in cells.columns], columns))


def _mean(evidence: GramEvidence, target: int, records: float) -> float:
    return 0.0 if evidence.constant is None else float(evidence.h[-1, target]) / (evidence.constant * records)


def residual_degrees(records: float, sigma: float, taken: int, what: str) -> float:
    """Return degrees of freedom; raise ``ReleaseError`` where noise could explain them."""
    if records - taken <= _NOISE_ROOM * sigma:
        raise ReleaseError(
            f"the release holds about {records:.0f} records, with noise of {sigma:.0f}, for {what}, too few to "
            "estimate errors from; read fewer columns=[...], or release more records or less noise"
        )
    return records - taken


def _equations(evidence: GramEvidence, G: Array, h: Array, target: int, degrees: float) -> NormalEquations:
    return NormalEquations(
        G=G,
        h=h[:, target],
        q=evidence.q - _other_targets(G, h, target),
        sigma_G=evidence.sigma_G,
        sigma_h=evidence.sigma_h,
        sigma_q=evidence.sigma_q,
        degrees=degrees,
    )


def ridge_schema(release: Release) -> RidgeSchema:
    """Return the schema; refuse other sums than least squares over full records."""
    schema = require_records(release).plan.schema
    refusal = ReleaseError(
        f"this reader reads the sums of a RidgeSchema, and the release measures {schema.statistics!r} of a "
        f"{type(schema).__name__}; measure a RidgeSchema"
    )
    return narrowed(schema, RidgeSchema, refusal)


def _target(schema: RidgeSchema, target: int | None) -> int:
    if target is None and schema.targets > 1:
        raise ReleaseError(f"the release has {schema.targets} targets; name one with target=0, 1, ...")
    chosen = 0 if target is None else target
    if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen < schema.targets:
        raise ReleaseError(f"target must be a number from 0 to {schema.targets - 1}, got {target!r}")
    return chosen


def _records(evidence: GramEvidence, constant: int, records: int | None) -> tuple[float, float]:
    if evidence.constant is not None:
        square = evidence.constant**2
        return float(evidence.G[constant, constant]) / square, evidence.sigma_G / square
    if records is None:
        raise ReleaseError(
            "the release does not hold its number of records: end the schema's transform with ConstantFeature, or "
            "pass records=, if the number is public"
        )
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise ReleaseError(f"records must be an integer of at least 1, got {records!r}")
    return float(records), 0.0


def _other_targets(G: Array, h: Array, target: int) -> float:
    """Return the other targets' explained energy, which q includes."""
    others = np.delete(h, target, axis=1)
    if not others.size:
        return 0.0
    return float((others * np.linalg.lstsq(G, others, rcond=None)[0]).sum())


def contrasts_of(slopes: Array, level: Array, constant: float | None) -> Array:
    """Return the contrasts from weights to raw intercept and slopes; arguments as ``raw_slopes`` returns them."""
    if constant is None:
        return slopes
    rows = np.zeros((len(slopes) + 1, len(slopes) + 1))
    rows[0, :-1], rows[0, -1] = level, constant
    rows[1:, :-1] = slopes
    return rows


def _parts(
    evidence: GramEvidence,
    gram: Callable[[Array], Array],
    vector: Callable[[Array], Array],
    target: int,
    constant: int,
    count_sigma: float,
) -> Parts | None:
    """Return the sums of folds in the directions of ``gram`` and ``vector``; None without folds or a constant."""
    folds: FoldSums | None = evidence.folds
    if folds is None or evidence.constant is None:
        return None
    return Parts(
        G=gram(folds.G),
        h=vector(folds.h)[..., target],
        records=folds.G[:, constant, constant] / evidence.constant**2,
        records_sigma=count_sigma / math.sqrt(len(folds.G)),
    )
