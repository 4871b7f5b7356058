"""Bound mu from one real run: canaries entered it by coin flips, and an attacker guesses the coins from its release.

The other audits bound mu from thousands of releases of their own making. This one needs a single release of the real
path: real parties, machines, masks and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.dp import gaussian_epsilon
from privstats.errors import PlanError
from privstats.moments import Moments
from privstats.release import Release
from threat_models.audits.guesses import lower_bound, normal_bound, number_of_guesses
from threat_models.audits.planted import Canaries, Rows
from threat_models.audits.release_file import known_sum, merged, scale_of
from threat_models.audits.target import Target, target_of
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

MAX_ENTRIES = 1 << 28
"""Largest number of canaries times entries of a release: their contributions, at 2 GiB."""

_COLUMNS = (
    "canaries",
    "guesses",
    "right",
    "mu claimed",
    "mu at least",
    "if normal",
    "eps claimed",
    "eps at least",
    "eps if normal",
    "verdict",
)
Scores = NDArray[np.float64]

_SURE = 2.326
"""Standard deviations that a normal value is below its mean with probability 1 %."""


def audit_one_run(
    release: Release, parties: Mapping[int, Moments], canaries: Canaries, *, confidence: float = 0.95
) -> Report:
    """Bound mu of one canary by the coins that are guessed from one release.

    The attacker knows all records except the coins, and no noise. Its score is the best linear estimate of each coin.
    Two bounds hold together at ``confidence``. One counts right guesses and holds for any release
    (:func:`~threat_models.audits.guesses.lower_bound`); the number of guesses follows from the claim. The other
    compares scores and holds where they are normal (:func:`~threat_models.audits.guesses.normal_bound`). Assumes that
    the coins are fair, independent, and unknown to whoever made the release.

    Args:
        release: one session's release. Some party's records include ``canaries.entering``, and the release lost none
            of that party's records.
        parties: each survivor's moments without any canary.
        canaries: as they were planted, with their coins.
        confidence: probability that the bound does not exceed the true mu.

    Raises:
        PlanError: the plan promises nothing, has Laplace noise, or the release is too large for the canaries.
        DataError: a survivor's moments are missing, or were measured under another schema.
        SchemaError: canaries that do not fit the plan.
    """
    target = target_of(release.plan)
    if target.privacy.pure:
        raise PlanError("one run of Laplace noise (delta = 0) is not bounded: run privstats audit canary on its plan")
    count, claim = len(canaries.coins), target.promise
    if count * release.vector.size > MAX_ENTRIES:
        most = MAX_ENTRIES // release.vector.size
        raise PlanError(f"{count:,} canaries x {release.vector.size:,} entries are too many: plant at most {most:,}")
    level = 1 - (1 - confidence) / 2
    guesses, provable = number_of_guesses(claim.mu, count, level)
    seen = _seen(target, release, parties, canaries)
    entry = seen.entry(canaries.coins)
    scores = seen.scores()
    chosen = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    right = int(((scores[chosen] > 0) == canaries.coins[chosen]).sum())
    mu, normal = (
        lower_bound(right, guesses, count, level),
        normal_bound(scores, canaries.coins, level),
    )
    if entry.absent:
        mu = normal = 0.0
    violated = max(mu, normal) > claim.mu
    row = (
        count,
        guesses,
        right,
        claim.mu,
        mu,
        normal,
        gaussian_epsilon(claim.mu, claim.delta),
        *(gaussian_epsilon(bound, claim.delta) if bound > 0 else 0.0 for bound in (mu, normal)),
        "no canary" if entry.absent else "violates" if violated else "no evidence",
    )
    reach = float(np.median(np.linalg.norm(seen.moves, axis=1)))
    notes = (
        str(entry),
        f"one release, {len(release.survivors)} survivors; both bounds hold together at {confidence:.0%} confidence: "
        "`mu at least` for any noise, `if normal` where scores are normal",
        f"each canary moves the release by {reach:.3g} standard deviations (median), and the claim admits "
        f"{claim.mu:.3g}; if each of {count:,} moved it by that, guesses would prove about {provable:.3g}",
    )
    return Report("run", _COLUMNS, (row,), notes, violated, json_only=("eps claimed", "eps if normal", "verdict"))


@dataclass(frozen=True)
class _Entry:
    """How far the entering canaries should move a release, and how far it was moved, in standard deviations."""

    expected: float
    measured: float

    @property
    def absent(self) -> bool:
        """Whether the release contradicts, at 1 %, that the canaries entered it as their coins fell."""
        return self.measured < self.expected - _SURE

    def __str__(self) -> str:
        moved = f"the entering canaries should move the release by {self.expected:.1f} standard deviations"
        if self.absent:
            return (
                f"NO BOUND FOLLOWS, because these canaries did not enter this release: {moved}, and it is moved by "
                f"{self.measured:.1f}. Add the entering file of `audit plant` to one party's records, run again, and "
                "name the records without canaries here"
            )
        if self.expected < _SURE:
            return f"whether the canaries entered cannot be told: {moved}, too few. Plant more canaries"
        return f"the canaries entered: {moved}, and it is moved by {self.measured:.1f}"


@dataclass(frozen=True, eq=False)
class _Seen:
    """A release without the known records, and what canaries add to it, in standard deviations.

    Attributes:
        residual: the released sums less those of all known records, ``(size,)``.
        rows, others: what each canary adds where its coin is True, and where it is False, ``(n, size)``.
    """

    residual: Scores
    rows: Scores
    others: Scores

    @property
    def moves(self) -> Scores:
        """How each coin moves the release, ``(n, size)``."""
        return self.rows - self.others

    def entry(self, coins: NDArray[np.bool_]) -> _Entry:
        """Return how far the release is moved in the direction of all that entered."""
        entered = np.where(coins[:, None], self.rows, self.others).sum(axis=0)
        length = float(np.linalg.norm(entered))
        return _Entry(length, float(self.residual @ entered) / length if length else 0.0)

    def scores(self) -> Scores:
        """Return each coin's score ``(n,)``, without the coins.

        The residual less ``others`` is z = V' b + noise, with the moves as rows of V, coins b of mean 1/2 and variance
        1/4, and noise of variance 1. The best linear estimate of b - 1/2 is (V V' + 4 I)^-1 V (z - V' 1/2).
        """
        moves = self.moves
        centred = self.residual - self.others.sum(axis=0) - moves.sum(axis=0) / 2
        gram = moves @ moves.T + 4 * np.eye(len(moves))
        return np.asarray(np.linalg.solve(gram, moves @ centred))


def _seen(target: Target, release: Release, parties: Mapping[int, Moments], canaries: Canaries) -> _Seen:
    scale = scale_of(target, release)
    seen = np.isfinite(scale)
    rows = _contributions(target, release, canaries.rows)[:, seen] / scale[seen]
    others = np.zeros_like(rows)
    if len(canaries.others[0]):
        others = _contributions(target, release, canaries.others)[:, seen] / scale[seen]
    residual = (release.vector - known_sum(target, release, parties)).astype(np.float64)
    return _Seen(residual[seen] / scale[seen], rows, others)


def _contributions(target: Target, release: Release, rows: Rows) -> Scores:
    """Return what each canary adds to the release, in grid steps, ``(n, size)``."""
    X, y = rows
    result = np.empty((len(X), release.vector.size))
    for place in range(len(X)):
        one = slice(place, place + 1)
        moments = sums_of(target.schema, X[one], y[one], published=release.plan.published)
        result[place] = merged(target, release, target.exact(moments))
    return result
