"""Is the noise in an existing release what its plan promises? Release minus exact sums, for inputs that are known.

One release is one draw, so the report states the power of the test. The only secrets needed are the parties' records or
moments, which the person who runs it has. ``known_inputs`` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privstats.dp import noise_copies
from privstats.errors import DataError, PlanError
from privstats.moments import Moments
from privstats.randomness import SEED_BYTES, Generator
from privstats.release import Release
from threat_models.audits.noise import SEES, groups_of, level_of
from threat_models.audits.residuals import COLUMNS, Group, Z, checks, dithered, tables
from threat_models.audits.searches import broken_promise
from threat_models.audits.target import Target, target_of
from threat_models.audits.verdict import Report

_STRONG = 40.0


def audit_release(
    release: Release, parties: Mapping[int, Moments], rng: Generator, *, confidence: float = 0.999
) -> Report:
    """Test the residuals of one release against the noise that its plan declares for its survivors.

    A segment is violated when its spread, shape, largest residual or likeness to another segment has a p beyond
    ``confidence``, corrected for the number of tests; or when the residuals are those of the all-zero seed, which
    anybody can draw again. The declared noise itself is held against epsilon and delta by a search.

    Args:
        release: the release.
        parties: the moments of every survivor, by client.
        rng: spreads integers over their cells, and starts the search.

    Raises:
        DataError: a survivor's moments are missing, or were measured under another schema.
        PlanError: the plan promises nothing.
    """
    target = target_of(release.plan)
    if target.privacy.pure:
        raise PlanError("one release of Laplace noise (delta = 0) is not tested: `audit noise` tests that of its plan")
    z = _residuals(target, release, parties, rng)
    level = level_of(target, confidence)
    groups = groups_of(target, z)
    result = checks(groups, level)
    rows, violated = tables(result, level, SEES)
    objections = _objections(target, groups, rng)
    weak = [c.name for c in result if c.sees < SEES]
    notes = [
        f"one release, {len(release.survivors)} survivors, {len(release.suppressed)} suppressed classes; the claim "
        "counts the noise of every survivor",
        "p: chance of so odd a spread, shape, largest residual, and likeness to another segment",
    ]
    if weak:
        notes.append(f"underpowered, as one release has few entries: {', '.join(weak)} (see column sees)")
    return Report(
        "release",
        (*COLUMNS, "verdict"),
        tuple(rows),
        (*notes, *objections),
        violated or bool(objections),
        json_only=("at least", "verdict"),
    )


def _residuals(target: Target, release: Release, parties: Mapping[int, Moments], rng: Generator) -> Z:
    """Standardised residuals ``(1, size)``; NaN where a class was suppressed."""
    exact = known_sum(target, release, parties)
    return np.asarray(dithered((release.vector - exact)[None], rng) / scale_of(target, release))


def known_sum(target: Target, release: Release, parties: Mapping[int, Moments]) -> NDArray[np.int64]:
    """Return the sum of known parties as a release without noise would show it, int64 ``(size,)``.

    Raises:
        DataError: a survivor's moments are missing, or were measured under another schema.
    """
    missing = sorted(set(release.survivors) - set(parties))
    if missing:
        raise DataError(f"the known inputs lack the survivors {missing}: give the records or moments of each")
    wrong = [client for client in release.survivors if parties[client].schema != release.plan.schema]
    if wrong:
        raise DataError(f"the inputs of clients {wrong} were measured under another schema than the release's plan")
    exact = np.sum([target.exact(parties[client]) for client in release.survivors], axis=0)
    return merged(target, release, exact)


def scale_of(target: Target, release: Release) -> Z:
    """Return the declared standard deviation of each entry's noise, ``(size,)``; NaN where a class was suppressed."""
    scale = target.levels(target.noises(len(release.survivors)))
    if release.left_for:  # each client's noise as it left it, in shares for the fewest
        shares = sum(target.honest_shares / (left - target.colluders) for left in release.left_for)
        scale = target.levels(1) * math.sqrt(shares)
    if not target.schema.suppressible:
        return scale
    classes = release.plan.layout.segments[0].size
    copies = noise_copies(classes, release.suppressed, release.plan.merge)
    for segment, entries in zip(target.layout.segments, target.layout.slices, strict=True):
        if not segment.pooled:
            factors = np.sqrt(np.where(copies > 0, copies, np.nan))
            scale[entries] *= np.repeat(factors, segment.size // classes)
    return scale


def merged(target: Target, release: Release, exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return exact sums ``(size,)`` with each suppressed class added to the class that the plan merges it with."""
    if not target.schema.suppressible:
        return exact
    classes, exact = release.plan.layout.segments[0].size, exact.copy()
    for segment, entries in zip(target.layout.segments, target.layout.slices, strict=True):
        if segment.pooled:
            continue
        table = exact[entries].reshape(classes, -1)
        for child in release.suppressed:
            parent = release.plan.merge.get(child)
            if parent is not None and parent not in release.suppressed:
                table[parent] += table[child]
    return exact


def _objections(target: Target, groups: list[Group], rng: Generator) -> list[str]:
    result = broken_promise(target, rng)
    if _is_guessed(target, groups):
        result.append("the residuals are those of the all-zero seed: anybody can draw this noise again and remove it")
    return result


def _is_guessed(target: Target, groups: list[Group]) -> bool:
    """Whether the noise of the all-zero seed lies along the residuals of any segment."""
    if target.at_release:
        drawn = target.draw(1, Generator(bytes(SEED_BYTES)))
    else:
        drawn = target.sum_of([target.empty], Generator(bytes(SEED_BYTES))).lift()[None]
    guesses = groups_of(target, drawn / target.levels(1))
    by_name = {group.name: group.z for group in guesses}
    for group in groups:
        guess = by_name[group.name]
        if group.z.shape == guess.shape and _alike(group.z, guess):
            return True
    return False


def _alike(left: Z, right: Z) -> bool:
    """Beyond chance: the squared correlation times the entries is about chi-square with one degree of freedom."""
    norms = float(np.linalg.norm(left) * np.linalg.norm(right))
    return (float(np.vdot(left, right)) / norms) ** 2 * left.size > _STRONG
