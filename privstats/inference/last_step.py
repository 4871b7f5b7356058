"""Solve a course's last round without damping.

Near the likelihood's maximum one step has a bounded error; intervals hold for every bias up to the bound. A coefficient
is hidden where the bound is large or its information was still changing: in a logistic's tail each Newton step divides
the information by e, and noise may make that step look small. The bias depends on earlier rounds' noise, independent of
this step's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.denoise import Array
from privstats.inference.cell_design import CellDesign
from privstats.inference.hidden_levels import HIDES, DeclaredLevels, HiddenLevels
from privstats.inference.inversion import Inversion, NormalEquations
from privstats.inference.releases import reckoned_sigma
from privstats.inference.reporting import listed
from privstats.release import Release

LOOK_BACK = 2
"""Rounds before the last one that are looked at: over two the noise in a change per round is half as large."""

_ARRIVED = 2.0  # standard errors that the next step may move a coefficient by, at the most
_SETTLED = 0.5  # log of the information along a coefficient that a round may have changed, at the most
_SURE = 2.0  # standard deviations of noise that a measured change must allow for
_NOTED = 0.5  # a note reports possible next steps from this many standard errors on
_FLAT = 1e-4  # r below which rounding spoils (e^r - 1 - r) / r^2, which is at most (1 + r) / 2 there
_LONG = 0.5  # change of the linear predictor from which a level's own step is long
_OF_NOISE = 2.0  # lengths of a score of noise alone, up to which noise explains a score

EARLY = "the rounds ended before they converged: plan more rounds, or a public rate= near the mean of the outcome"
"""Note on rounds that further rounds would complete."""

HIDDEN_STEP = (
    "noise hides the last step, and more rounds would not mend that: plan more records, fewer columns, or a larger "
    "epsilon"
)
"""Note on rounds that noise keeps from converging."""

_ONE_OUTCOME = ". Where all records of such a row have one outcome, its coefficient is infinite, and no plan reports it"
_LATE = (
    "rounds have not converged for {}: few records or events are there, all have one outcome, or their outcomes are "
    "far from the others', for which more rounds help. What compares with it is not reported. Every other row holds "
    "whatever is there"
)
_ALIKE = (
    "hold the same records, as far as noise shows. What compares with either is not reported, because nothing "
    "distinguishes the two: declare one of them. Every other row holds whatever is there"
)


@dataclass(frozen=True)
class Earlier:
    """A round before the last one, ``rounds`` ago, with its information H.

    ``moved`` is R |w - w'|, a bound on any record's change in log v since then.
    """

    information: Array
    sigma: float
    moved: float
    rounds: int


@dataclass(frozen=True)
class LastStep:
    """Parameters theta = C (w + b): test inversion of the step b, shifted by C w.

    The inversion has variance 1 or a stated multiple of the model's, or the score's measured covariance where it is
    larger, normal quantiles, and :func:`remainder` as bias.

    Attributes:
        sums: the equations with hidden levels; None: those of the inversion.
    """

    inversion: Inversion
    offset: Array
    earlier: tuple[Earlier, ...] = ()
    sums: NormalEquations | None = None

    @property
    def estimate(self) -> Array:
        """Parameters, ``(m,)``."""
        return self.offset + self.inversion.estimate

    @property
    def error(self) -> Array:
        """Standard errors."""
        return self.inversion.error

    @property
    def noise_error(self) -> Array:
        """Noise's standard errors."""
        return self.inversion.noise_error

    @property
    def df(self) -> Array:
        """Infinite: quantiles are normal, ``(m,)``."""
        return self.inversion.df

    @property
    def remaining_step(self) -> Array:
        """Next step's maximum change in standard errors, ``(m,)``."""
        return self.inversion.step_bias

    @property
    def hidden(self) -> HiddenLevels | None:
        """Levels that the step leaves out."""
        return self.inversion.hidden

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Mask of the parameters that compare no hidden level, ``(m,)``."""
        if self.hidden is None:
            return np.ones(len(self.offset), np.bool_)
        return ~self.hidden.compared(self.inversion.contrasts)

    @cached_property
    def change(self) -> Array:
        """Maximum change per round in the log of the information along each parameter, ``(m,)``.

        Along a parameter's line a the information is D = a'Ha. Between rounds log D changes by at most R |w - w'|, and
        by at most the measured change plus two standard deviations of noise. The smaller bound counts, over the last
        round and the last two; 0 with one round.
        """
        return self._change(_SURE)

    def _change(self, sure: float) -> Array:
        """Return :attr:`change`, allowing for ``sure`` standard deviations of noise."""
        lines, last = self.inversion.directions, self.inversion.precision
        size, sigma = np.square(np.linalg.norm(lines, axis=1)), self.inversion.equations.sigma_G
        bounds = []
        for each in self.earlier:
            then = np.einsum("ij,jk,ik->i", lines, each.information, lines)
            known = (then > 0) & (last > 0)
            before, after = np.where(known, then, 1.0), np.where(known, last, 1.0)
            noise = size * np.hypot(each.sigma / before, sigma / after)
            measured = np.abs(np.log(before / after)) + sure * noise
            bounds.append(np.where(known, np.minimum(measured, each.moved), each.moved) / each.rounds)
        return np.min(bounds, axis=0) if bounds else np.zeros(len(self.offset))

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Whether the rounds have converged per parameter, ``(m,)``."""
        return np.asarray((self.remaining_step <= _ARRIVED) & (self.change <= _SETTLED))

    @property
    def noise_alone(self) -> bool:
        """Whether noise alone keeps the rounds from converging, so that further rounds would not help.

        The score of d entries is 0 at the likelihood's maximum, and noise of standard deviation sigma gives it a length
        of sigma sqrt d. The length of the step is no measure: along a direction of little information, noise makes any
        step long, and a score that is clear of noise elsewhere does not change that.
        """
        equations = self.inversion.equations
        noise = equations.sigma_h * math.sqrt(len(equations.determined))
        if float(np.linalg.norm(equations.h)) > _OF_NOISE * noise:
            return False
        still = (self.remaining_step <= _ARRIVED) & (self._change(0.0) > _SETTLED) & self.identified
        return not still.any()

    def reported(self, alpha: float) -> NDArray[np.bool_]:
        """Return whether intervals are bounded."""
        return self.inversion.reported(alpha) & self.arrived

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Return scores over standard deviations."""
        return self.inversion.statistics(null - self.offset)

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Return two-sided p-values; 1 without convergence."""
        return np.where(self.arrived, self.inversion.pvalues(null - self.offset), 1.0)

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return the intervals' ends, as :meth:`Inversion.interval`."""
        low, high = self.inversion.interval(alpha, sampling=sampling)
        reported = self.reported(alpha)
        return np.where(reported, self.offset + low, -np.inf), np.where(reported, self.offset + high, np.inf)

    def combined(self, rows: Array) -> LastStep:
        """Return linear combinations, ``(r, m)``."""
        return replace(self, inversion=self.inversion.combined(rows), offset=rows @ self.offset)

    @property
    def equations(self) -> NormalEquations:
        """The last round's equations, with hidden levels."""
        return self.inversion.equations if self.sums is None else self.sums

    def joint_pvalue(self) -> float:
        """Return the joint p-value; 1 without convergence."""
        return self.inversion.joint_pvalue(-self.offset) if self.arrived.all() else 1.0


class Remainder(NamedTuple):
    """Bounds on what a linear step leaves out.

    Attributes:
        bias: of the error, in the norm of H.
        residual: of the sum of |residuals|.
    """

    bias: float
    residual: float


def remainder(equations: NormalEquations, moved: float) -> Remainder:
    """Bound what the step leaves out; infinite where noise makes H indefinite, or hides all of it.

    Log v moves by at most r between two weights (self-concordance; Bach 2010), the largest |x'b|. So a record whose
    linear predictor moves by t leaves out a residual of at most ``k v t^2``, k = (e^r - 1 - r) / r^2. Cauchy and
    Schwarz bound the error by ``k r sqrt(b'Hb)``; and the residuals' sum is at most ``k b'Hb``, as sum v t^2 = b'Hb.

    Args:
        moved: r.
    """
    step = equations.solution
    if not equations.determined.size or equations.determined[0] <= 0:
        return Remainder(math.inf, math.inf)
    r = min(moved, 50.0)
    curve = (math.expm1(r) - r) / r**2 if r > _FLAT else (1 + r) / 2
    square = float(step @ equations.G @ step)
    return Remainder(curve * r * math.sqrt(square), curve * square)


def last_step(
    present: Sequence[Release],
    weights: Sequence[Array],
    radius: float,
    rows: Array,
    design: CellDesign | None = None,
    *,
    variance: float | None = None,
    levels: DeclaredLevels | None = None,
) -> LastStep:
    """Return the last round of a course of scores, solved without damping.

    Args:
        present: rounds with a sum, in order.
        weights: per round, ``(d,)``.
        radius: R, the largest norm of a row.
        rows: from weights to parameters, ``(m, d)``.
        variance: the outcome's variance over the model's, in place of the score's second moment.
        levels: declared levels, which are left out where noise hides them.
    """
    if levels is None or not levels.levels:
        return _solved(present, weights, rows, _Rows(radius, design, None), variance, None)
    held, last = _Rows(radius, design, levels), present[-1]
    G, sigma = held.information(last), reckoned_sigma(last)["H"]
    hidden, few = levels.hidden(G, sigma, HIDES[0]), levels.hidden(G, sigma, HIDES[-1]).levels
    # A bin has a step of its own only where it has few records.
    others = [*few, *(each for each in levels.levels if each.part and each not in few)]
    first = solved = _solved(present, weights, rows, held, variance, hidden if hidden.levels else None)
    while not solved.arrived[solved.identified].all():
        # A level whose own step is still long hides itself alone, where that lets all others converge.
        step = solved.inversion.equations.solution
        far = {levels.apart(step, each): each for each in others if not hidden.holds(each)}
        if not far or max(far) < _LONG:
            return first
        hidden = hidden.joined(far[max(far)])
        solved = _solved(present, weights, rows, held, variance, hidden)
        if not solved.identified.any():
            return first
    return solved


def _solved(
    present: Sequence[Release],
    weights: Sequence[Array],
    rows: Array,
    held: _Rows,
    variance: float | None,
    hidden: HiddenLevels | None,
) -> LastStep:
    """Return the last step without hidden levels."""
    earlier = _earlier(present, weights, held, hidden)
    equations = _equations(settled(present, earlier), held)
    if variance is not None:
        equations = replace(equations, known_variance=variance, score_variance=None, sigma_J=0.0)
    sums = equations
    if hidden is not None:
        equations = sums.mapped(hidden.without)
        hidden = hidden.scored(sums.G, sums.h, equations.solution)
    contrasts = rows if held.design is None else held.design.contrasts
    left_out = remainder(equations, float(held.largest(equations.solution[None])[0]))
    inversion = Inversion(equations, contrasts, math.inf, *left_out, held.largest, hidden)
    return LastStep(inversion, rows @ weights[-1], earlier, sums)


@dataclass(frozen=True)
class _Rows:
    """Public values of the rows."""

    radius: float
    design: CellDesign | None
    levels: DeclaredLevels | None

    def information(self, release: Release) -> Array:
        """Return a round's H, in the design's directions or without impossible entries."""
        H = _symmetric(release)
        if self.levels is not None:
            return self.levels.possible(H)
        return H if self.design is None else self.design.gram(H)

    def largest(self, lines: Array) -> Array:
        """Return the largest |a'x| of a row, ``(m,)``, for lines a."""
        if self.levels is not None:
            return self.levels.largest(lines)
        return np.asarray(self.radius * np.linalg.norm(lines, axis=1))


def settled(present: Sequence[Release], earlier: Sequence[Earlier]) -> list[Release]:
    """Return the last round, and those before it whose weights are near its own."""
    return [present[-1], *(present[-1 - each.rounds] for each in earlier if each.moved <= _SETTLED)]


def is_robust(release: Release) -> bool:
    """Return whether a round summed the score's second moment, from which errors follow without a model."""
    return "J" in release.plan.schema.statistics


def ended_early(errors: LastStep, read: NDArray[np.bool_] | bool = True) -> bool:
    """Return whether further rounds would let the rounds converge, for these parameters."""
    return not errors.arrived[errors.identified & read].all() and not errors.noise_alone


def notes_on(
    errors: LastStep,
    read: NDArray[np.bool_] | bool = True,
    names: Sequence[str] = (),
    words: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return warnings about hidden levels, rounds that ended too early, and a last step that is noise.

    Args:
        read: parameters that a table reads.
        names: of all parameters. A warning about some of them alone names these.
        words: other sentences for :data:`EARLY` and :data:`HIDDEN_STEP`.
    """
    read = errors.identified & read
    arrived, notes = errors.arrived[read], list[str]()
    if errors.hidden is not None and errors.hidden.names:
        notes.append(_note_on_hidden(errors.hidden))
    if errors.hidden is not None and errors.hidden.late_names:
        notes.append(_LATE.format(listed(errors.hidden.late_names)))
    if errors.hidden is not None:
        notes += [f"{both} {_ALIKE}" for both in errors.hidden.alike]
    if not arrived.all():
        note = EARLY if ended_early(errors, read) else HIDDEN_STEP
        late = [name for name, is_late in zip(names, read & ~errors.arrived, strict=False) if is_late]
        notes.append(_late(late, words.get(note, note)) if arrived.any() and late else words.get(note, note))
    most = float(errors.remaining_step[read][arrived].max(initial=0.0))
    if most >= _NOTED:
        notes.append(
            f"a next round could move a coefficient by up to {most:.1f} standard errors, which intervals include"
        )
    return notes


def _late(names: Sequence[str], note: str) -> str:
    return f"{listed(names)} alone {'is' if len(names) == 1 else 'are'} not reported: {note}{_ONE_OUTCOME}"


def _note_on_hidden(hidden: HiddenLevels) -> str:
    first = [level.name for level in hidden.levels if level.first]
    remedy = f" ({listed(first)} is its column's first text: declare another one first)" if first else ""
    return (
        f"noise hides {listed(hidden.names)}: no record or event is there, or too few to show. What compares with it "
        f"is not reported{remedy}. Every other row holds whatever is there"
    )


def _earlier(
    present: Sequence[Release], weights: Sequence[Array], held: _Rows, hidden: HiddenLevels | None
) -> tuple[Earlier, ...]:
    rounds = []
    for back in range(1, min(LOOK_BACK, len(present) - 1) + 1):
        before = present[-1 - back]
        step = weights[-1] - weights[-1 - back]
        # Weights of hidden levels wander, but no more of the information depends on them than noise explains.
        (moved,) = held.largest((step if hidden is None else hidden.without(step))[None])
        rounds.append(Earlier(held.information(before), before.sigma["H"], float(moved), back))
    return tuple(rounds)


def _equations(rounds: Sequence[Release], held: _Rows) -> NormalEquations:
    last, design = rounds[0], held.design
    H, g = held.information(last), np.asarray(last.moments.g)
    J, sigma_J = _second_moment(rounds) if is_robust(last) else (None, 0.0)
    if design is not None:
        g, J = design.vector(g), None if J is None else design.gram(J)
    sigma = reckoned_sigma(last)
    noise = {"sigma_G": sigma["H"], "sigma_h": sigma["g"], "sigma_q": 0.0, "sigma_J": sigma_J}
    return NormalEquations(H, g, 0.0, **noise, degrees=math.inf, known_variance=1.0, score_variance=J)


def _second_moment(rounds: Sequence[Release]) -> tuple[Array, float]:
    """Return the mean of J over rounds, the last one first, and its standard deviation.

    Rounds have independent noise, which the mean divides by the root of their number. The expectation of a squared
    residual is the outcome's variance plus the squared error of the model's mean: no weights make it smaller than the
    variance. Truncation of persons' averages is the same in all rounds, so the mean keeps it.
    """
    return np.mean([_symmetric(each, "J") for each in rounds], axis=0), averaged_sigma(rounds, "J")


def averaged_sigma(rounds: Sequence[Release], letter: str) -> float:
    """Return the standard deviation of a statistic's mean over rounds, the last one first."""
    last = rounds[0]
    noise = math.sqrt(sum(each.sigma[letter] ** 2 for each in rounds)) / len(rounds)
    truncated = math.sqrt(max(reckoned_sigma(last)[letter] ** 2 - last.sigma[letter] ** 2, 0.0))
    return math.hypot(noise, truncated)


def _symmetric(release: Release, letter: str = "H") -> Array:
    matrix = np.asarray(getattr(release.moments, letter))
    return np.asarray((matrix + matrix.T) / 2)
