"""Compute a scorecard's numbers: a head's linear scores, points per cell, and bands."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone

from privstats.course.pair_codes import codes_in
from privstats.errors import HeadError, ReleaseError
from privstats.estimates import denoise, softmax
from privstats.estimates.denoise import Array, denoise_spectrum
from privstats.heads.diagnostics import FewRecordsWarning
from privstats.heads.evidence import ClassEvidence, Released, class_evidence
from privstats.heads.provenance import Provenance, behind_counts
from privstats.heads.rules import LinearRule, PairedRule, Rule, WhitenedRule
from privstats.inference.cell_design import Intervals, has_ramp
from privstats.inference.row_lengths import Lengths
from privstats.kinds import ClassSchema, GradientSchema
from privstats.progress import progress_bar
from privstats.randomness import Generator, seeded, uniform
from privstats.release import Release
from privstats.transforms import Cells, Centre, Transform, UnitNorm

if TYPE_CHECKING:
    from privstats.course.recipes import RoundSums, SoftmaxRounds


_NOT_LINEAR = "points need a head with linear scores: LDA, or RefinedSoftmax without a module"
_SURE = 3.0
"""Standard deviations of its noise that an interval's share must exceed to hold records."""


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores ``x @ coef.T + intercept`` of mapped rows; coef ``(C, d)``, intercept ``(C,)``."""

    coef: Array
    intercept: Array


def releases_behind(head: Any, releases: Released | Sequence[Release | None]) -> list[Release]:
    """Return the head's releases, without counts; refuse others."""
    several = releases if isinstance(releases, list | tuple) else [releases]
    have = [each for each in several if isinstance(each, Release)]
    provenance = getattr(head, "provenance_", None)
    if not have or not isinstance(provenance, Provenance) or provenance.releases != Provenance.of(have).releases:
        raise ReleaseError(f"the head was not fitted on these releases; pass all of its releases, {_named(head)}")
    if provenance.public is not None:
        raise ReleaseError("the head was fitted with public records, which no release holds; fit it without public")
    _, behind = behind_counts(have)
    return [each for each in behind if each is not None]


def _named(head: Any) -> str:
    attribute = next((name for name in ("releases_", "release_") if hasattr(head, name)), None)
    if attribute is None:
        return "in the order in which the head was fitted on them (`privstats head show` prints their digests)"
    return f"head.{attribute}"


def linear_scores(rule: Rule, releases: Sequence[Release]) -> LinearScores:
    """Return a rule's scores.

    Behind a whitening M the scores are ``W M x / |M x| + b``. The common length is the root mean of ``|M x|^2``, ``sum
    l P^2`` from the second moments B.
    """
    if isinstance(rule, LinearRule):
        return LinearScores(rule.coef, rule.intercept)
    return _at_one_length(_whitened(rule), _whitening(releases))


def lengths(rule: Rule, releases: Sequence[Release], rows: Rows) -> Lengths | None:
    """Return the length by which a head divides each row of cells; None where rows have one length."""
    if not isinstance(rule, LinearRule):
        matrix, spread = _whitened(rule).matrix, _whitening(releases).spread
        return Lengths(rows.shift, matrix @ matrix.T, rows.length * math.sqrt(spread))
    if rows.shift.any():
        return Lengths(rows.shift, np.eye(len(rows.shift)), rows.length)
    return None


def _whitened(rule: Rule) -> WhitenedRule:
    linear = rule.linear if isinstance(rule, PairedRule) else rule
    if not isinstance(linear, WhitenedRule):
        raise HeadError(_NOT_LINEAR)
    return linear


def _whitening(releases: Sequence[Release]) -> softmax.SoftmaxWhitening:
    recipe = _softmax_recipe(releases)
    return softmax.SoftmaxWhitening.of(recipe.sums(releases[0]), recipe.constants.floor)


def under_other_noise(head: Any, releases: Sequence[Release], draws: int) -> Iterator[LinearScores]:
    """Yield the head's scores under fresh noise in the releases: a parametric bootstrap.

    The exact sums are assumed to be the released N and A, and B with its spectrum denoised. Each replicate adds noise
    of the released levels and fits the head again. Earlier noise moved the point of a gradient round, so its sum is
    first moved to the replicate's own point, by the part of the Hessian that exceeds its noise.

    Noise is seeded by the releases' digests: one release has one table. That noise hides nothing: any reader can sample
    more.
    """
    rng = generator(releases)
    rounds = isinstance(head.rule_, WhitenedRule | PairedRule)
    remade = _refined(head, releases) if rounds else _closed_form(head, releases)
    for _ in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewRecordsWarning)
            yield remade(rng)


def class_sums(releases: Sequence[Release]) -> tuple[Release, int]:
    """Return the class sums, and the number of classes."""
    for release in releases:
        if isinstance(schema := release.plan.schema, ClassSchema):
            return release, schema.classes
    raise ReleaseError("a scorecard reads class sums, and none of the releases has them: pass the head's own releases")


def _softmax_recipe(releases: Sequence[Release]) -> SoftmaxRounds:
    """Refuse modules of other packages."""
    from privstats.course.read_recipe import recipe_of
    from privstats.course.recipes import SoftmaxRounds

    recipe = recipe_of(releases)
    if not isinstance(recipe, SoftmaxRounds):
        raise HeadError(_NOT_LINEAR)
    return recipe


def _closed_form(head: Any, releases: Sequence[Release]) -> Callable[[Generator], LinearScores]:
    first, _ = class_sums(releases)
    evidence = _without_noise(class_evidence(first)[0])
    heat = getattr(head, "temperature_", 1.0)

    def remade(rng: Generator) -> LinearScores:
        rule = clone(head)._build(_redrawn(evidence, rng)).rule_
        return LinearScores(rule.coef / heat, rule.intercept / heat)

    return remade


def _refined(head: Any, releases: Sequence[Release]) -> Callable[[Generator], LinearScores]:
    from privstats.heads import LDA

    recipe = _softmax_recipe(releases)
    constants, sums = recipe.constants, recipe.sums(releases[0])
    evidence = _without_noise(class_evidence(releases[0])[0])
    whitening, states = recipe.states(releases)
    counts = denoise.counts(sums.N, sums.sigma["N"])
    measured = [
        _Round.of(sums_of, whitening, whitening.published(state.weights))
        for sums_of, state in zip(recipe.rounds_behind(releases), states[:-1], strict=True)
    ]
    second = _sure_second_moment(class_evidence(releases[0])[0])

    def remade(rng: Generator) -> LinearScores:
        other = _redrawn(evidence, rng)
        drawn = replace(sums, N=other.N, A=other.A, B=np.asarray(other.B))
        there = softmax.SoftmaxWhitening.of(drawn, constants.floor)
        state = softmax.started(constants, drawn, there)
        for each in measured:
            scale = softmax.hessian_scale(constants, sums, each.kappa)
            g = each.moved(there, there.published(state.weights), scale * second)
            g = g + each.sigma * _normal(g.shape, rng)
            state = softmax.refined(constants, drawn, there, state, g, each.kappa, each.sigma)
        fresh = clone(head)
        fresh.temperature_, fresh.link_ = head.temperature_, head.link_
        fresh._settle(there, state.weights, LDA()._build(other), counts, len(measured))
        return _at_one_length(fresh.rule_, there)

    return remade


@dataclass(frozen=True, eq=False)
class _Round:
    weights: Array
    gradient: Array
    kappa: float
    sigma: float

    @classmethod
    def of(cls, sums: RoundSums, whitening: softmax.SoftmaxWhitening, weights: Array) -> _Round:
        lengths = _to_rows(whitening)
        return cls(weights @ lengths, np.linalg.solve(lengths, sums.gradient.T).T, sums.kappa, sums.sigma)

    def moved(self, whitening: softmax.SoftmaxWhitening, weights: Array, hessian: Array) -> Array:
        lengths = _to_rows(whitening)
        return np.asarray((self.gradient + (weights @ lengths - self.weights) @ hessian) @ lengths)


def _to_rows(whitening: softmax.SoftmaxWhitening) -> Array:
    """Return U with u(x) = U (x, 1) at mean length, ``(d + 1, d + 1)``."""
    d = len(whitening.values)
    out = np.zeros((d + 1, d + 1))
    out[:d, :d], out[d, d] = whitening.matrix * whitening.stretch, softmax.INTERCEPT
    return out


def _sure_second_moment(evidence: ClassEvidence) -> Array:
    """Return the second moment of (x, 1) beyond the noise, ``(d + 1, d + 1)``.

    Eigenvalues below the noise's edge, ``sigma sqrt(2 d)``, count as 0: bands err on the large side.
    """
    B, total = np.asarray(evidence.B), evidence.A.sum(axis=0)
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    sure = np.where(values > evidence.noise("B") * math.sqrt(2 * len(B)), values, 0.0)
    return np.block([[(vectors * sure) @ vectors.T, total[:, None]], [total[None], evidence.N.sum()]])


def _at_one_length(rule: WhitenedRule, whitening: softmax.SoftmaxWhitening) -> LinearScores:
    return LinearScores(rule.coef @ rule.matrix / math.sqrt(whitening.spread), rule.intercept)


def _without_noise(evidence: ClassEvidence) -> ClassEvidence:
    """Denoise B: fresh noise on top would double what heads allow for."""
    if evidence.B is None:
        return evidence
    spectrum = denoise_spectrum(evidence.B, evidence.noise("B"), pull=False)
    return replace(evidence, B=(spectrum.vectors * spectrum.values) @ spectrum.vectors.T)


def _redrawn(evidence: ClassEvidence, rng: Generator) -> ClassEvidence:
    def noisy(letter: str, values: Array) -> Array:
        noise = _normal(values.shape, rng)
        if letter in "BS":
            noise = (noise + noise.swapaxes(-1, -2)) / 2
        return np.asarray(values + evidence.noise(letter) * noise)

    B, S, D = (None if (of := getattr(evidence, letter)) is None else noisy(letter, of) for letter in "BSD")
    return replace(evidence, N=noisy("N", evidence.N), A=noisy("A", evidence.A), B=B, S=S, D=D)


def _normal(shape: tuple[int, ...], rng: Generator) -> Array:
    return np.asarray(ndtri(uniform(int(np.prod(shape)), rng))).reshape(shape)


def generator(releases: Sequence[Release]) -> Generator:
    """Return a generator seeded by the releases' digests."""
    digests = "".join(each.digest for each in releases).encode()
    return seeded(int.from_bytes(hashlib.sha256(digests).digest(), "big"))


@dataclass(frozen=True, eq=False)
class Rows:
    """A head's public map: rows of cells, perhaps minus a mean m and scaled.

    A centred row has mean square 1 - |m|^2, the common length, as rows of cells have norm 1.
    """

    cells: Cells
    shift: Array
    length: float

    @classmethod
    def of(cls, head: Any) -> Rows:
        """Return the rows of a fitted head; raise ``ReleaseError`` without declared columns."""
        cells, centre = require_cells(head.preprocessing_.transform)
        if centre is None:
            return cls(cells, np.zeros(cells.width), 1.0)
        shift = np.array(centre)
        return cls(cells, shift, math.sqrt(max(1 - float(shift @ shift), 0.01)))

    def before(self, scores: LinearScores) -> LinearScores:
        """Return the scores of cells' rows."""
        coef = scores.coef / self.length
        return LinearScores(coef, scores.intercept - coef @ self.shift)

    def mean(self, release: Release, classes: int) -> Array:
        """Return the mean row of cells; the shift without records."""
        released = [place for place in range(classes) if place not in release.suppressed]
        n = float(release.moments.N[released].sum())
        return self.shift + (self.length * release.moments.A[released].sum(axis=0) / n if n >= 1 else 0.0)


def require_cells(transform: Sequence[Transform]) -> tuple[Cells, tuple[float, ...] | None]:
    """Return the declared columns, and the mean that is subtracted from their rows, if any; refuse other maps."""
    match tuple(transform):
        case (Cells() as cells,):
            return cells, None
        case (Cells() as cells, Centre(centre), UnitNorm()):
            return cells, centre
    raise ReleaseError("a scorecard reads a head of declared columns: its transform must be Cells, or Cells and a mean")


def require_linear(schema: GradientSchema) -> None:
    """Refuse rounds of a regression, and of a module whose scores are not linear."""
    if schema.classes is None:
        raise ReleaseError("a scorecard reads rounds of classes, and these are of a regression; fit RefinedRidge")
    if schema.module is not None and codes_in(schema) is None:
        raise ReleaseError(_NOT_LINEAR)


def noisy(releases: Sequence[Release]) -> bool:
    """Return whether any release is noisy."""
    return any(level > 0 for release in releases for level in release.sigma.values())


def shares(releases: Sequence[Release], rows: Rows, mean: Array) -> list[tuple[Intervals, Array, NDArray[np.bool_]]]:
    """Return each column's intervals, their shares of the records, and whether they exceed the noise.

    A block's mean is its cells' mean weighted by shares; ramps are excluded.
    """
    first, classes = class_sums(releases)
    total = max(float(first.moments.N.sum()), 1.0)
    noise = rows.length * float(first.sigma["A"]) * math.sqrt(classes) / total
    results = []
    cells = rows.cells
    for column, marks, block, table in zip(cells.columns, cells.marks, cells.blocks, cells.tables, strict=True):
        intervals = Intervals.of(column, marks)
        firsts = np.unique(intervals.of_codes, return_index=True)[1]
        read = [j for j in range(table.shape[1]) if not (has_ramp(column, cells) and j == table.shape[1] - 2)]
        system = np.vstack([table[firsts][:, read].T * 2.0**-cells.bits, np.ones(len(firsts))])
        solve = np.linalg.pinv(system)
        part = solve @ np.append(mean[block][read], 1.0)
        sure = _SURE * noise * np.linalg.norm(solve[:, :-1], axis=1)
        results.append((intervals, part, part > np.maximum(sure, 0.5 / total)))
    return results


def by_outcome(scores: LinearScores) -> tuple[Array, Array]:
    """Return weights and intercepts of the outcomes: one difference for two classes, else scores minus their mean."""
    coef, intercept = scores.coef, scores.intercept
    if len(coef) == 2:
        return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return coef - coef.mean(axis=0), intercept - intercept.mean()


def cell_points(scores: LinearScores, cells: Cells, mean: Array) -> tuple[Array, list[Array]]:
    """Return bases and each column's points, ``(outcomes, cells)``."""
    coef, intercept = by_outcome(scores)
    tables = [table * 2.0**-cells.bits for table in cells.tables]
    points = [coef[:, block] @ (table - mean[block]).T for block, table in zip(cells.blocks, tables, strict=True)]
    return intercept + coef @ mean, points


def half_widths(
    head: Any, releases: Sequence[Release], rows: Rows, mean: Array, points: Sequence[Array], draws: int, reach: float
) -> list[Array]:
    """Return the bands' half widths by column, ``(outcomes, cells)``.

    A half width is ``reach`` standard deviations over the replicates, plus the column's bias: a noise-aware head
    shrinks and turns its points, and replicates, which start from the points as the truth, show how far. The bias is
    the root mean square, over a column's cells, of the replicates' mean minus the points. So widened, a band holds the
    noise-free points as often as an unbiased one (Armstrong and Kolesar 2018).
    """
    drawn: list[list[Array]] = []
    with progress_bar("bands", draws) as advance:
        for scores in under_other_noise(head, releases, draws):
            drawn.append(cell_points(rows.before(scores), rows.cells, mean)[1])
            advance(1)
    results = []
    for there, each in zip(points, zip(*drawn, strict=True), strict=True):
        cards = np.stack(each)
        results.append(reach * cards.std(axis=0, ddof=1) + _bias(cards, there))
    return results


def _bias(cards: Array, points: Array) -> Array:
    return np.asarray(np.sqrt(np.square(cards.mean(axis=0) - points).mean(axis=1, keepdims=True)))
