"""Is this noise the noise that was declared? Tests of standardised residuals, and the power of each test.

Arrays only: residuals divided by their declared deviation, one row per release, one group per segment. ``noise`` and
``release_file`` supply them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import chi2, kstest

from privstats.randomness import Generator

POWER = 0.9
"""Probability with which a row finds noise of the size that it is said to see."""

COLUMNS = ("segment", "entries", "claimed", "at least", "found", "sees", "p spread", "p shape", "p tail", "p twin")

Z: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Group:
    """The residuals of one segment over their declared deviation.

    Attributes:
        name: of the segment.
        claimed: declared deviation, in real units.
        z: ``(releases, entries)``.
    """

    name: str
    claimed: float
    z: Z


@dataclass(frozen=True)
class Checks:
    """Test results for one group; every p is the chance of a value as extreme under the declaration.

    Attributes:
        name, claimed: of the group.
        entries: residuals in all.
        measured, least: deviation found and its lower confidence end, relative to the declared one.
        sees: noise below this part of the declared one is found with probability ``POWER``.
        spread: p of so narrow or wide a spread (chi-square, two-sided).
        shape: p of the distribution (Kolmogorov-Smirnov against the normal law).
        tail: p of a largest residual this small: noise whose tails were cut.
        twin: p of the correlation with another segment or with the next release, corrected for their number.
    """

    name: str
    claimed: float
    entries: int
    measured: float
    least: float
    sees: float
    spread: float
    shape: float
    tail: float
    twin: float

    @property
    def worst(self) -> float:
        """The smallest p."""
        return min(self.spread, self.shape, self.tail, self.twin)

    @property
    def row(self) -> tuple[str | int | float, ...]:
        """The values of the columns ``COLUMNS``."""
        scale = self.claimed
        measured = (scale, self.least * scale, self.measured * scale, self.sees)
        return (self.name, self.entries, *measured, self.spread, self.shape, self.tail, self.twin)


def checks(groups: Sequence[Group], level: float) -> tuple[Checks, ...]:
    """All tests of all groups and, where there are several, of all residuals together.

    Args:
        level: the p below which one test counts as a contradiction; sets ``least`` and ``sees``.
    """
    twins = _twins({group.name: group.z for group in groups})
    results = [_check(group, twins[group.name], level) for group in groups]
    if len(groups) > 1:
        together = np.concatenate([group.z.ravel() for group in groups])[None]
        results.append(_check(Group("all", 1.0, together), 1.0, level))
    return tuple(results)


def sees(entries: int, level: float) -> float:
    """The largest part of the declared deviation that a row of so many entries finds with probability ``POWER``."""
    return math.sqrt(float(chi2.ppf(level / 2, entries)) / float(chi2.ppf(POWER, entries)))


def entries_for(part: float, level: float) -> int:
    """The fewest entries whose row sees noise of this part of the declared one, to within an eighth."""
    entries = 8
    while sees(entries, level) < part:
        entries += max(1, entries // 8)
    return entries


def dithered(residual: NDArray[np.int64], rng: Generator) -> Z:
    """Integers spread over their cells, so that the grid itself is not taken for a wrong shape."""
    uniform = (rng.uint64(residual.size).astype(np.float64) + 0.5) * 2.0**-64 - 0.5
    return residual + uniform.reshape(residual.shape)


def tables(results: Sequence[Checks], level: float, goal: float) -> tuple[list[tuple[str | int | float, ...]], bool]:
    """The rows with a verdict each, and whether any is a contradiction."""
    verdicts = ["violates" if c.worst < level else "underpowered" if c.sees < goal else "no evidence" for c in results]
    rows = [(*c.row, verdict) for c, verdict in zip(results, verdicts, strict=True)]
    return rows, "violates" in verdicts


def _check(group: Group, twin: float, level: float) -> Checks:
    z = group.z.ravel()
    n, square = len(z), float(z @ z)
    narrow = float(chi2.cdf(square, n))
    return Checks(
        name=group.name,
        claimed=group.claimed,
        entries=n,
        measured=math.sqrt(square / n),
        least=math.sqrt(square / float(chi2.ppf(1 - level / 2, n))),
        sees=sees(n, level),
        spread=2 * min(narrow, float(chi2.sf(square, n)), 0.5),
        shape=float(kstest(z, "norm").pvalue),
        tail=_cut(float(np.abs(z).max()), n),
        twin=twin,
    )


def _cut(largest: float, n: int) -> float:
    """P(max |Z| <= largest) over n standard normals."""
    return math.exp(n * math.log1p(-2 * float(ndtr(-largest))) if largest > 0 else -math.inf)


def _twins(groups: Mapping[str, Z]) -> dict[str, float]:
    """Per group, the p of its strongest link with another group at the same place, or with the next release."""
    strongest: dict[str, list[float]] = {name: [] for name in groups}
    names = list(groups)
    for i, name in enumerate(names):
        z = groups[name]
        if len(z) > 1:
            strongest[name].append(linked(z[:-1], z[1:]))
        for other in names[i + 1 :]:
            width = min(z.shape[1], groups[other].shape[1])
            p = linked(z[:, :width], groups[other][:, :width])
            strongest[name].append(p)
            strongest[other].append(p)
    return {name: min(1.0, min(ps, default=1.0) * max(1, len(ps))) for name, ps in strongest.items()}


def linked(left: Z, right: Z) -> float:
    """p of the sum of products under independence: normal with variance one per pair, given the left residuals."""
    a, b = left.ravel(), right.ravel()
    length = math.sqrt(float(a @ a))
    return 2 * float(ndtr(-abs(float(a @ b)) / length)) if length else 1.0
