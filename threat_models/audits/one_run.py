"""Bound mu from one real run: canaries entered it by coin flips, and an attacker guesses the coins from its release.

The other audits bound mu from thousands of releases of their own making. This one needs a single release of the real
path: real parties, machines, masks and files.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privstats.dp import gaussian_epsilon
from privstats.errors import PlanError
from privstats.moments import Moments, exact_moments
from privstats.release import Release
from threat_models.audits.guesses import lower_bound, normal_bound, number_of_guesses
from threat_models.audits.planted import Canaries, Rows
from threat_models.audits.release_file import known_sum, merged, scale_of
from threat_models.audits.target import Target, target_of
from threat_models.audits.verdict import Report

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
    "verdict",
)
Scores = NDArray[np.float64]


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
    each = 1 - (1 - confidence) / 2
    guesses, provable = number_of_guesses(claim.mu, count, each)
    moves, scores = _scores(target, release, parties, canaries)
    chosen = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    right = int(((scores[chosen] > 0) == canaries.coins[chosen]).sum())
    mu, normal = lower_bound(right, guesses, count, each), normal_bound(scores, canaries.coins, each)
    largest = max(mu, normal)
    violated = largest > claim.mu
    epsilon = gaussian_epsilon(largest, claim.delta) if largest > 0 else 0.0
    row = (
        count,
        guesses,
        right,
        claim.mu,
        mu,
        normal,
        gaussian_epsilon(claim.mu, claim.delta),
        epsilon,
        "violates" if violated else "no evidence",
    )
    reach = float(np.median(np.linalg.norm(moves, axis=1)))
    notes = (
        f"one release, {len(release.survivors)} survivors; both bounds hold together at {confidence:.0%} confidence: "
        "`mu at least` for any noise, `if normal` where scores are normal",
        f"each canary moves the release by {reach:.3g} standard deviations (median); where that is all of mu and none "
        f"hides another, guesses prove about {provable:.3g}",
    )
    return Report("run", _COLUMNS, (row,), notes, violated, json_only=("eps claimed", "verdict"))


def _scores(
    target: Target, release: Release, parties: Mapping[int, Moments], canaries: Canaries
) -> tuple[Scores, Scores]:
    """Return how each canary moves the release ``(n, size)``, in standard deviations, and each coin's score ``(n,)``.

    The residual is z = V' b + noise, with the moves as rows of V, coins b of mean 1/2 and variance 1/4, and noise of
    variance 1. The best linear estimate of b - 1/2 is (V V' + 4 I)^-1 V (z - V' 1/2).
    """
    scale = scale_of(target, release)
    seen = np.isfinite(scale)
    moves = _contributions(target, release, canaries.rows)
    residual = (release.vector - known_sum(target, release, parties)).astype(np.float64)
    if len(canaries.others[0]):
        others = _contributions(target, release, canaries.others)
        residual -= others.sum(axis=0)
        moves -= others
    moves = moves[:, seen] / scale[seen]
    centred = residual[seen] / scale[seen] - moves.sum(axis=0) / 2
    gram = moves @ moves.T + 4 * np.eye(len(moves))
    return moves, np.linalg.solve(gram, moves @ centred)


def _contributions(target: Target, release: Release, rows: Rows) -> Scores:
    """Return what each canary adds to the release, in grid steps, ``(n, size)``."""
    X, y = rows
    result = np.empty((len(X), release.vector.size))
    for place in range(len(X)):
        one = slice(place, place + 1)
        moments = exact_moments(target.schema, X[one], y[one], published=release.plan.published)
        result[place] = merged(target, release, target.exact(moments))
    return result
