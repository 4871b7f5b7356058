"""Linear scores of a head, and those that it would have had under other noise of the same levels.

What a table of points per cell is read from (``inference``). Only the noise is drawn anew: the records, the cut points
and the map in front of the rule stay as they are.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from privstats.errors import HeadError, ReleaseError
from privstats.estimates import denoise, softmax
from privstats.estimates.spectrum import denoise_spectrum
from privstats.heads.diagnostics import FewRecordsWarning
from privstats.heads.evidence import Array, ClassEvidence, Released, class_evidence
from privstats.heads.provenance import Provenance
from privstats.heads.release_list import behind_counts
from privstats.heads.rules import LinearRule, Rule, WhitenedRule
from privstats.randomness import Generator, seeded, uniform
from privstats.release import Release
from privstats.schema import ClassSchema

if TYPE_CHECKING:
    from privstats.course.recipes import SoftmaxRounds

__all__ = ["LinearScores", "class_sums", "linear_scores", "made_from", "under_other_noise"]

_NOT_LINEAR = "points need a head with linear scores: LDA, or RefinedSoftmax without a module"


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores ``x @ coef.T + intercept`` of rows behind the public map; coef ``(C, d)``, intercept ``(C,)``."""

    coef: Array
    intercept: Array


def made_from(head: Any, releases: Released | Sequence[Release | None]) -> list[Release]:
    """The releases without those that are None, and without counts of cut points, if the head was made from them alone.

    Raises:
        ReleaseError: other releases, or public records beside them.
    """
    given = releases if isinstance(releases, list | tuple) else [releases]
    have = [each for each in given if isinstance(each, Release)]
    found = getattr(head, "provenance_", None)
    if not have or not isinstance(found, Provenance) or found.releases != Provenance.of(have).releases:
        raise ReleaseError("these are not the releases that the head was made from; give all of them, in order")
    if found.public is not None:
        raise ReleaseError("the head was made with public records, whose part no release tells; fit it without public")
    _, behind = behind_counts(have)
    return [each for each in behind if each is not None]


def linear_scores(rule: Rule, releases: Sequence[Release]) -> LinearScores:
    """The scores of a rule, with all rows at one length where the rule divides by a row's own.

    Behind a whitening M the scores are ``W M x / |M x| + b``. A table of points needs one length for all: the root of
    the mean of ``|M x|^2``, which follows from the second moments B as ``sum l P^2``.

    Raises:
        HeadError: a rule of another form.
    """
    if isinstance(rule, LinearRule):
        return LinearScores(rule.coef, rule.intercept)
    if not isinstance(rule, WhitenedRule):
        raise HeadError(_NOT_LINEAR)
    recipe = _softmax_recipe(releases)
    return _at_one_length(rule, softmax.SoftmaxWhitening.of(recipe.sums(releases[0]), recipe.constants.floor))


def under_other_noise(head: Any, releases: Sequence[Release], draws: int) -> Iterator[LinearScores]:
    """The scores that the head would have had, had the noise of the releases been drawn anew: a parametric bootstrap.

    The sums behind the noise are taken to be the released N and A, and B with its spectrum denoised; every draw adds
    noise of the released levels to them and makes the head again. A gradient round was measured where earlier noise led
    it, so its sum is first moved to where the draw leads, by the Hessian that is sure of its noise.

    The draws follow from the digests of the releases, so that one release has one table. They hide nothing: whoever
    holds the releases may draw as many as they like.

    Args:
        head: made from the releases (:func:`made_from`).
        releases: all of them, in order.
        draws: how many.
    """
    rng = _generator(releases)
    remade = _refined(head, releases) if isinstance(head.rule_, WhitenedRule) else _closed_form(head, releases)
    for _ in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewRecordsWarning)
            yield remade(rng)


def class_sums(releases: Sequence[Release]) -> tuple[Release, int]:
    """The release of class sums, and how many classes it has."""
    for release in releases:
        if isinstance(schema := release.plan.schema, ClassSchema):
            return release, schema.classes
    raise ReleaseError("a scorecard reads class sums, and none of the releases has them")


def _softmax_recipe(releases: Sequence[Release]) -> SoftmaxRounds:
    """The recipe of rounds of a linear softmax; a module that another package brings may have any rule and state."""
    from privstats.course.recipe_reading import recipe_of
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
        _Round.of(release, whitening, whitening.published(state.weights))
        for release, state in zip(releases[1:], states[:-1], strict=False)  # behind the rounds may be a calibration
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
        fresh.temperature_ = head.temperature_
        fresh._settle(there, state.weights, LDA()._build(other), counts, len(measured))
        return _at_one_length(fresh.rule_, there)

    return remade


@dataclass(frozen=True, eq=False)
class _Round:
    """A gradient round in the coordinates of the rows: where it was measured, and its sum of ``r (x, 1)'``."""

    weights: Array
    gradient: Array
    kappa: float
    sigma: float

    @classmethod
    def of(cls, release: Release, whitening: softmax.SoftmaxWhitening, weights: Array) -> _Round:
        """Of a release that was measured at these published weights."""
        lengths = _to_rows(whitening)
        gradient = np.linalg.solve(lengths, release.moments.g.T).T
        return cls(weights @ lengths, gradient, release.moments.k, float(release.sigma["g"]))

    def moved(self, whitening: softmax.SoftmaxWhitening, weights: Array, hessian: Array) -> Array:
        """The sum as it would have been at other published weights behind another whitening."""
        lengths = _to_rows(whitening)
        return np.asarray((self.gradient + (weights @ lengths - self.weights) @ hessian) @ lengths)


def _to_rows(whitening: softmax.SoftmaxWhitening) -> Array:
    """U with u(x) = U (x, 1) for a row of the mean length, ``(d + 1, d + 1)``, symmetric."""
    d = len(whitening.values)
    out = np.zeros((d + 1, d + 1))
    out[:d, :d], out[d, d] = whitening.matrix * whitening.stretch, softmax.INTERCEPT
    return out


def _sure_second_moment(evidence: ClassEvidence) -> Array:
    """Of (x, 1) over all records, ``(d + 1, d + 1)``, without what noise alone could show.

    Eigenvalues below the edge of the noise's own, ``sigma sqrt(2 d)``, count as 0: where no curvature is sure nothing
    draws weights back, and bands err to the wide side.
    """
    B, total = np.asarray(evidence.B), evidence.A.sum(axis=0)
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    sure = np.where(values > evidence.noise("B") * math.sqrt(2 * len(B)), values, 0.0)
    return np.block([[(vectors * sure) @ vectors.T, total[:, None]], [total[None], evidence.N.sum()]])


def _at_one_length(rule: WhitenedRule, whitening: softmax.SoftmaxWhitening) -> LinearScores:
    return LinearScores(rule.coef @ rule.matrix / math.sqrt(whitening.spread), rule.intercept)


def _without_noise(evidence: ClassEvidence) -> ClassEvidence:
    """B denoised: a further draw on top of the released one would be twice the noise that heads allow for."""
    if evidence.B is None:
        return evidence
    spectrum = denoise_spectrum(evidence.B, evidence.noise("B"), pull=False)
    return replace(evidence, B=(spectrum.vectors * spectrum.values) @ spectrum.vectors.T)


def _redrawn(evidence: ClassEvidence, rng: Generator) -> ClassEvidence:
    """The same with a draw of noise in every sum; symmetric blocks stay symmetric."""

    def noisy(letter: str, values: Array) -> Array:
        noise = _normal(values.shape, rng)
        if letter in "BS":
            noise = (noise + noise.swapaxes(-1, -2)) / 2
        return np.asarray(values + evidence.noise(letter) * noise)

    B, S, D = (None if (of := getattr(evidence, letter)) is None else noisy(letter, of) for letter in "BSD")
    return replace(evidence, N=noisy("N", evidence.N), A=noisy("A", evidence.A), B=B, S=S, D=D)


def _normal(shape: tuple[int, ...], rng: Generator) -> Array:
    return np.asarray(ndtri(uniform(int(np.prod(shape)), rng))).reshape(shape)


def _generator(releases: Sequence[Release]) -> Generator:
    said = "".join(each.digest for each in releases).encode()
    return seeded(int.from_bytes(hashlib.sha256(said).digest(), "big"))
