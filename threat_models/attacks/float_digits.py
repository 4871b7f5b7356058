"""Attack 13 as a game: the last digits of a release, which noise drawn in floating point would reveal.

The test is of digits, not of the Gaussian's shape: a double holds 53 bits, so ``f + noise`` rounds, and some sums are
reachable from one f but not from another (Mironov 2012, "On significance of the least significant bits for differential
privacy"). A naive double mechanism fails it; our noise is whole grid steps, so every output is possible. The attacker
knows all records but one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.informed import record_sums

Array: TypeAlias = NDArray[np.float64]

_RULED_OUT = 1e6  # log units that one impossible entry weighs: more than any log likelihood ratio


def unreachable(outputs: Array, value: Array) -> NDArray[np.int64]:
    """Entries of each output ``(t, d)`` that no double added to ``value`` ``(d,)`` gives, counted: ``(t,)``.

    ``o = fl(f + n)`` for some double n exactly when it is so for the double nearest to ``o - f``, because no other
    comes closer. Where noise nearly cancels f it has coarser last digits than what is left, and most o are missed.
    """
    outputs = np.asarray(outputs, dtype=np.float64)
    return np.asarray((value + (outputs - value) != outputs).sum(axis=-1), dtype=np.int64)


def digit_scores(outputs: Array, without: Array, with_target: Array, sigma: float) -> Array:
    """Scores ``(t,)`` that rise with "the target is in": impossible entries first, the likelihood ratio where none is.

    Against noise that is exact on a grid nothing is impossible and the score is the likelihood ratio, the best test
    that the guarantee leaves.

    Args:
        outputs: noisy vectors, ``(t, d)``.
        without, with_target: the exact vectors of the two worlds, ``(d,)``.
        sigma: standard deviation of the noise in every entry, above 0.

    Raises:
        DataError: sigma is not above 0.
    """
    if not sigma > 0:
        raise DataError(f"sigma must be above 0, got {sigma}")
    outputs = np.asarray(outputs, dtype=np.float64)
    difference = np.asarray(with_target, dtype=np.float64) - without
    middle = (np.asarray(with_target, dtype=np.float64) + without) / 2
    ratio = (outputs - middle) @ difference / sigma**2
    return np.asarray(ratio + _RULED_OUT * (unreachable(outputs, without) - unreachable(outputs, with_target)))


def baseline(trials: int) -> Array:
    """Scores without the outputs: the same for every trial, so that they separate nothing."""
    return np.zeros(trials)


class FloatDigits(Attack):
    """Entries of A that one of the two worlds could not have produced, then the likelihood ratio."""

    name = "float-digits"
    number = 13
    goal = "membership"
    title = "an attacker looks for digits of the noise that cannot be"
    needs = Adversary(knows="all-but-one")
    reads = "A"

    def refusal(self, plan: Plan) -> str | None:
        """Needs noise."""
        return super().refusal(plan) or ("needs noise, and the plan adds none" if plan.noise is None else None)

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """One score."""
        del rng
        if view.background is None:
            return np.zeros(len(view.candidates))
        without = view.background["A"].ravel()
        target = record_sums(view, view.candidates[0], view.labels[0])["A"].ravel()
        return digit_scores(view.sums[0]["A"].reshape(1, -1), without, without + target, view.sigma["A"])
