"""Test whether each column's hazard ratio changes with time, by sums over early and late bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.declared_levels import declared_levels
from privstats.inference.hidden_levels import DeclaredLevels, HiddenLevels, Level
from privstats.inference.inversion import folded
from privstats.inference.last_step import LastStep
from privstats.inference.releases import reckoned_sigma
from privstats.kinds import HazardSchema
from privstats.release import Release
from privstats.schema import narrowed

_SURE = 3.0  # standard deviations of noise that an information must exceed

_NO_ROUND = "the check of proportionality reads two rounds of hazards: the last one, and the one over the early bins"


@dataclass(frozen=True, eq=False)
class ColumnProportionality:
    """Tests of "the hazard ratio is the same before and after ``split``", one per column (R's ``cox.zph``).

    Not rejecting is no evidence of proportionality; after a rejection the ratio averages over time. Each test assumes
    that the other columns' ratios stay. One ratio that changes makes the test of a correlated column reject, whose own
    ratio is constant. The cap on the cumulative hazard makes columns dependent among the persons at risk, so this can
    happen to columns that are not correlated, too.

    Attributes:
        split: time between early and late.
        change: log of the late ratio over the early one, per original unit; NaN where not reported.
        std_err: of ``change`` under no change, noise included.
        test_statistic: squared score over its variance; NaN where not reported.
        p_value: chi-squared with one degree; 1 where not reported.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.HazardSchema(
        ...     2,
        ...     clip_norm=2.0,
        ...     bins=ps.Bins("months", (0, 6, 12, 18)),
        ...     event="died",
        ...     feature_names=("arm",),
        ...     transform=(ps.transforms.ConstantFeature(1.0),),
        ...     times="continuous",
        ... )
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Hazard.start(schema, ps.Cohort(2, 2, 8_000), privacy, early_bins=2)
        >>> rng, arm = np.random.default_rng(0), np.arange(8_000) % 2
        >>> early, late = rng.exponential(30.0, 8_000), 12 + rng.exponential(np.where(arm, 10.0, 30.0))
        >>> died = np.where(early < 12, early, late)  # the arm triples the rate after month 12 alone
        >>> part = lambda k: {"arm": arm[k::2], "months": np.minimum(died, 20.0)[k::2], "died": (died <= 20)[k::2] * 1}
        >>> releases = ps.simulate(course, [(part(0), None), (part(1), None)], rng=randomness.seeded(0))
        >>> found = ps.inference.hazards(releases).proportionality_by_column()
        >>> found.split, bool(found.p_value[0] < 0.001), found.change.round(1).tolist()
        (12.0, True, [1.1])
    """

    names: tuple[str, ...]
    split: float
    change: Array
    std_err: Array
    test_statistic: Array
    p_value: Array

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Whether the rounds converged and noise permits a test, ``(m,)``."""
        return ~np.isnan(self.test_statistic)

    def __str__(self) -> str:
        lines = [
            f"{name}: P = {chance:.3f}, change of the log ratio after {self.split:g}: {change:.3f} ({error:.3f})"
            if known
            else f"{name}: not reported"
            for name, chance, change, error, known in zip(
                self.names, self.p_value, self.change, self.std_err, self.reported, strict=True
            )
        ]
        return "\n".join(lines)


class _Sums(NamedTuple):
    """Sums of both parts at common weights, in real units.

    They are of r x and v x x' by column, and of r, v and v x by stratum and bin.
    """

    early_score: Array
    late_score: Array
    early_xx: Array
    late_xx: Array
    r: Array
    v: Array
    vx: Array
    early: NDArray[np.bool_]

    def shown(self, basis: Array, bins: NDArray[np.bool_]) -> _Sums:
        """Return the sums along directions of the columns, ``(m, p)``, and over some bins."""
        scores = (basis.T @ self.early_score, basis.T @ self.late_score)
        squares = (basis.T @ self.early_xx @ basis, basis.T @ self.late_xx @ basis)
        return _Sums(*scores, *squares, self.r[bins], self.v[bins], basis.T @ self.vx[:, bins], self.early[bins])


class _Noise(NamedTuple):
    g: float
    H: float
    early_g: float
    early_H: float
    r: Array
    v: Array
    vx: Array

    def shown(self, bins: NDArray[np.bool_]) -> _Noise:
        """Return the noise over some bins; along orthonormal directions of the columns it is the same."""
        return self._replace(r=self.r[bins], v=self.v[bins], vx=self.vx[bins])


def column_proportionality(
    last: Release, check: Release, errors: LastStep, names: Sequence[str], scale: Array
) -> ColumnProportionality:
    """Return the tests of all columns.

    u is the columns' score minus the bins' column means times the bins' scores, I its information (E early, L late, I
    their sum). The score of a change is ``s = I_E I^-1 u_L - I_L I^-1 u_E``. Its variance is ``I_L I^-1 I_E`` plus the
    noise's, by the delta method at the Newton step b = I^-1 (u_E + u_L). Noise in the weights adds ``2 tr(I^-1 cov)``,
    with ``cov`` the noise along them. The p-value includes a next step's possible change as the score's largest bias
    (:func:`~privstats.inference.last_step`).
    """
    schema, own = (narrowed(each.plan.schema, HazardSchema, ReleaseError(_NO_ROUND)) for each in (last, check))
    sums, noise = _sums_of(last, check, schema, own.periods)
    hidden = _hidden(declared_levels(schema), sums, noise, schema.constant)
    basis, bins = hidden.remaining_basis(len(names)), ~hidden.constants
    scored = None
    if errors.arrived[errors.identified].all():
        scored = _scored(sums.shown(basis, bins), noise.shown(bins), basis)
    if scored is None:
        nothing = np.full(len(names), math.nan)
        return ColumnProportionality(tuple(names), own.bins.edges[-1], nothing, nothing, nothing, np.ones(len(names)))
    moved, unknown = _of_hidden(hidden, sums, noise, scored, schema.constant)
    identified = ~hidden.compared(np.eye(len(names), len(names) + len(bins)))
    reported = identified & errors.identified & (scored.information > _SURE * scored.spread)
    value = np.maximum(scored.information, 0.0)
    error = np.sqrt(scored.variance + unknown)
    statistic = np.abs(scored.changed) / error
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.where(reported, scored.changed / value, math.nan) * scale
        std_err = np.where(reported, error / value, math.nan) * np.abs(scale)
    bias = (errors.inversion.bias * np.sqrt(value) + moved) / error
    return ColumnProportionality(
        names=tuple(names),
        split=own.bins.edges[-1],
        change=change,
        std_err=std_err,
        test_statistic=np.where(reported, np.square(statistic), math.nan),
        p_value=np.where(reported, folded(statistic, bias), 1.0),
    )


def _hidden(declared: DeclaredLevels, sums: _Sums, noise: _Noise, constant: float) -> HiddenLevels:
    """Return the levels that noise hides before or after the split, and the bins that it hides."""
    found = dict[bytes, Level]()
    parts = ((sums.early_xx, sums.early, noise.early_H), (sums.late_xx, ~sums.early, noise.H + noise.early_H))
    for xx, of, square in parts:
        across = constant * sums.vx * of
        G = np.block([[xx, across], [across.T, np.diag(constant**2 * sums.v * of)]])
        held: Sequence[Level] = declared.hidden(declared.possible(G), math.sqrt(square), _SURE).levels
        held = [level for level in held if level.part or of[level.members].all()]
        found |= {level.direction.tobytes(): level for level in held}
    return HiddenLevels(declared, tuple(found.values()))


def _of_hidden(
    hidden: HiddenLevels, sums: _Sums, noise: _Noise, scored: _Scored, constant: float
) -> tuple[Array, Array]:
    """Return the largest bias from hidden levels in each score, and the variance of its noise.

    Early and late records of a level move the score by different amounts, which that level's early and late scores
    bound (:mod:`privstats.inference.hidden_levels`).
    """
    moved, variance = np.zeros(len(scored.changed)), np.zeros(len(scored.changed))
    parts = (
        (scored.early, sums.early_score, sums.early, noise.early_g),
        (scored.late, sums.late_score, ~sums.early, noise.g + noise.early_g),
    )
    for weights, score, of, square in parts:
        lines = np.zeros((len(moved), len(score) + len(of)))
        lines[:, : len(score)] = weights @ scored.basis.T
        lines[:, len(score) :][:, ~hidden.constants] = -weights @ scored.means / constant
        part = hidden.directions * np.concatenate([np.ones(len(score)), of])
        largest = hidden.largest(lines)
        moved += largest @ np.abs(part @ np.concatenate([score, constant * sums.r]))
        variance += square * hidden.noise(largest)
    return moved, variance


class _Scored(NamedTuple):
    """The score of a change of every column.

    ``variance`` is chance, noise and the weights' noise; ``spread`` is the noise of ``information``. ``early`` and
    ``late`` weigh the parts' scores along ``basis``, from which ``means`` by bin are subtracted.
    """

    changed: Array
    information: Array
    noise: Array
    variance: Array
    spread: Array
    early: Array
    late: Array
    basis: Array
    means: Array


def _scored(sums: _Sums, noise: _Noise, basis: Array) -> _Scored | None:
    """Return the scores of all columns, from sums along the ``basis`` of those that noise does not hide, ``(p, m)``."""
    if (sums.v <= _SURE * np.sqrt(noise.v)).any():
        return None
    means = sums.vx / sums.v
    scores, information = [], []
    parts = ((sums.early_score, sums.early_xx, sums.early), (sums.late_score, sums.late_xx, ~sums.early))
    for score, xx, of in parts:
        scores.append(score - means[:, of] @ sums.r[of])
        added = float((noise.vx / sums.v)[of].sum())  # noise in a mean makes its square too large
        information.append(xx - sums.vx[:, of] @ means[:, of].T + added * np.eye(len(xx)))
    if min(np.linalg.eigvalsh(each)[0] for each in information) <= 0:
        return None
    inverse = np.linalg.inv(information[0] + information[1])
    early, late = basis @ information[1] @ inverse, basis @ information[0] @ inverse  # the weights of both scores
    step = inverse @ (scores[0] + scores[1])
    chance = early @ information[0] @ early.T + late @ information[1] @ late.T
    own, value = np.diag(_noise_of_score(sums, noise, means, early, late, step)), np.diag(chance)
    along = [_noise_along(sums, noise, means, *weights) for weights in zip(early, late, strict=True)]
    lost = np.array([2 * float(np.trace(inverse @ covariance)) for covariance, _ in along])
    return _Scored(
        changed=late @ scores[1] - early @ scores[0],
        information=value,
        noise=own,
        variance=value + own + lost,
        spread=np.array([deviation for _, deviation in along]),
        early=early,
        late=late,
        basis=basis,
        means=means,
    )


def _sums_of(last: Release, check: Release, schema: HazardSchema, early_bins: int) -> tuple[_Sums, _Noise]:
    """Average early bins over both releases."""
    columns, constant = schema.features - 1, schema.constant
    early = np.tile(np.arange(schema.periods) < early_bins, schema.baselines)
    (g, H), (early_g, early_H) = ((np.asarray(each.moments.g), _symmetric(each)) for each in (last, check))
    levels, early_levels = reckoned_sigma(last), reckoned_sigma(check)
    own = {letter: (levels[letter] ** 2, early_levels[letter] ** 2) for letter in "gH"}
    r, v, vx = g[columns:].copy(), np.diag(H)[columns:].copy(), H[:columns, columns:].copy()
    part = {letter: both[0] / sum(both) if sum(both) else 0.5 for letter, both in own.items()}  # of the check
    r[early] += part["g"] * (early_g[columns:] - r[early])
    v[early] += part["H"] * (np.diag(early_H)[columns:] - v[early])
    vx[:, early] += part["H"] * (early_H[:columns, columns:] - vx[:, early])
    remaining = {letter: np.where(early, 1 - part[letter], 1.0) * own[letter][0] for letter in "gH"}
    score, xx = early_g[:columns], early_H[:columns, :columns]
    sums = _Sums(
        score, g[:columns] - score, xx, H[:columns, :columns] - xx, r / constant, v / constant**2, vx / constant, early
    )
    by_bin = (remaining["g"] / constant**2, remaining["H"] / constant**4, remaining["H"] / 2 / constant**2)
    return sums, _Noise(own["g"][0], own["H"][0], own["g"][1], own["H"][1], *by_bin)


def _symmetric(release: Release) -> Array:
    H = np.asarray(release.moments.H)
    return np.asarray((H + H.T) / 2)


def _noise_of_score(sums: _Sums, noise: _Noise, means: Array, early: Array, late: Array, step: Array) -> Array:
    one, both = np.eye(len(step)), early + late
    squares = (float(step @ step) * one + np.outer(step, step)) / 2
    result = late @ (noise.g * one + noise.H * squares) @ late.T
    result = result + both @ (noise.early_g * one + noise.early_H * squares) @ both.T
    for place, mean in enumerate(means.T):
        alone = sums.r[place] / sums.v[place] - mean @ step  # the step of the bin's own weight
        moved, square = np.outer(mean, step) - alone * one, np.outer(mean, mean)
        own = noise.vx[place] * moved @ moved.T + (noise.r[place] + noise.v[place] * alone**2) * square
        weights = early if sums.early[place] else late
        result = result + weights @ own @ weights.T
    return np.asarray(result)


def _noise_along(sums: _Sums, noise: _Noise, means: Array, early: Array, late: Array) -> tuple[Array, float]:
    """Return the noise covariance of ``I_L late - I_E early``, and the information's noise."""
    one, both = np.eye(len(early)), early + late
    result = noise.H * (float(late @ late) * one + np.outer(late, late)) / 2
    result = result + noise.early_H * (float(both @ both) * one + np.outer(both, both)) / 2
    apart = np.outer(early, early) - np.outer(late, late)
    square = noise.H * float(late @ late) ** 2 + noise.early_H * float(np.square(apart).sum())
    for place, mean in enumerate(means.T):
        weights = early if sums.early[place] else late
        along = float(mean @ weights)
        moved = along * one + np.outer(mean, weights)
        result = result + noise.vx[place] * moved @ moved.T + noise.v[place] * along**2 * np.outer(mean, mean)
        square += 4 * along**2 * float(weights @ weights) * noise.vx[place] + along**4 * noise.v[place]
    return np.asarray(result), math.sqrt(square)
