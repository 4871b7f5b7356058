"""Is the noise that a plan's sessions draw the noise that the plan promises? Residuals of sessions with known records.

Three links: the declared levels keep the promise (searched, not computed), the real path draws at least the declared
level in the session that is worst for privacy, and there is no release below ``min_survivors``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privstats.errors import PrivstatsError
from privstats.randomness import Generator
from privstats.release import Release
from privstats.workflows.simulate import run
from threat_models.audits.pure import broken_pure_promise, laplace_scores
from threat_models.audits.records import known_parties
from threat_models.audits.residuals import COLUMNS, Checks, Group, Z, checks, dithered, entries_for, tables
from threat_models.audits.searches import broken_promise
from threat_models.audits.target import Target, publish
from threat_models.audits.verdict import Report
from threat_models.made_up import made_up_records

SEES = 0.93
"""Noise of less than this part of the declared one shall be found: one share in seven that is missing is .926."""

_MOST_ENTRIES = 40_000_000
_TESTS = 4
_HARDLY = 1e-9


def audit_noise(target: Target, rng: Generator, *, trials: int = 4000, confidence: float = 0.999) -> Report:
    """Test the residuals of as many sessions as it takes to see noise of ``SEES`` of the declared one.

    One session runs over the masking protocol with exactly ``min_survivors`` survivors, all others join the
    contributions of the honest shares directly; where clients take excess noise back, so again for every number of
    survivors that they can leave their noise sized for. A row is violated when its spread, its shape, its largest
    residual or its correlation with another segment or session has a p beyond ``confidence``, corrected for the number
    of tests.

    Args:
        trials: most sessions to draw; rows that would need more are reported as underpowered.
    """
    level = level_of(target, confidence)
    sessions = _sessions(target, level, trials)
    parts = [_over_the_protocol(target, rng)]
    if sessions > 1:
        parts.append(_standardised(target, target.draw(sessions - 1, rng), rng))
    result = checks(groups_of(target, np.vstack(parts)), level)
    for survivors in target.sized_for[1:]:
        result += _left_by(target, survivors, sessions, level, rng)
    rows, violated = tables(result, level, SEES)
    notes = [
        f"{sessions} sessions: one over the masking protocol, the others with the noise of the worst session",
        f"sees: below this part of the claimed noise a row speaks up 9 times in 10; asked for {SEES:g}",
        "p: chance of so odd a spread, shape, largest residual, and likeness to another segment or session",
    ]
    notes += [f"underpowered in {sessions} sessions: {c.name}; raise --trials" for c in result if c.sees < SEES]
    objections = _objections(target, rng)
    verdict_notes = (*notes, *objections)
    return Report(
        "noise",
        (*COLUMNS, "verdict"),
        tuple(rows),
        verdict_notes,
        violated or bool(objections),
        json_only=("at least", "verdict"),
    )


def groups_of(target: Target, z: Z) -> list[Group]:
    """Standardised residuals ``(releases, size)`` by segment, without the entries that are not there (NaN)."""
    groups = []
    for segment, entries in zip(target.layout.segments, target.layout.slices, strict=True):
        mine = z[:, entries]
        mine = mine[:, ~np.isnan(mine).any(axis=0)]
        claimed = target.sigma[segment.statistic] * (math.sqrt(0.5) if segment.name.endswith(".off") else 1.0)
        if mine.size:
            groups.append(Group(segment.name, claimed, mine))
    return groups


def _left_by(target: Target, survivors: int, sessions: int, level: float, rng: Generator) -> tuple[Checks, ...]:
    """Return the tests of sessions with this number of survivors: one over the protocol, the others joined directly."""
    parts = [_over_the_protocol(target, rng, survivors)]
    if sessions > 1:
        honest = survivors - target.colluders
        parts.append(_standardised(target, target.draw_left(sessions - 1, survivors, rng), rng, honest, survivors))
    result = checks(groups_of(target, np.vstack(parts)), level)
    return tuple(replace(each, name=f"{each.name} of {survivors}") for each in result)


def level_of(target: Target, confidence: float) -> float:
    """The p below which a single test contradicts, when all of them together shall err with 1 - confidence."""
    return (1 - confidence) / (_TESTS * (len(target.layout.segments) + 1) * len(target.sized_for))


def _sessions(target: Target, level: float, trials: int) -> int:
    """Enough for the shortest segment, within what was asked for and what a machine draws in seconds."""
    wanted = math.ceil(entries_for(SEES, level) / min(segment.size for segment in target.layout.segments))
    drawn = max(1, target.worst_noise) * len(target.sized_for) ** 2  # of every level a share and its layers
    affordable = _MOST_ENTRIES // (target.layout.size * drawn)
    return max(1, min(wanted, trials, affordable))


def _over_the_protocol(target: Target, rng: Generator, survivors: int | None = None) -> Z:
    """Residuals of one session with known records, over real bytes, at exactly ``min_survivors`` unless more are
    given."""
    parties = known_parties(target, rng)
    gone = range(survivors or target.min_survivors, target.clients)
    with made_up_records():
        release = run(target.lenient, parties, dropouts={target.plan.masking.upload_step: set(gone)}, rng=rng).release
    exact = sum(target.exact(parties[client]) for client in release.survivors)
    present = len(release.survivors)
    return _standardised(target, (release.vector - exact)[None], rng, target.noises(present), present)


def _standardised(
    target: Target,
    residuals: NDArray[np.int64],
    rng: Generator,
    noises: int | None = None,
    survivors: int | None = None,
) -> Z:
    """Residuals as standard normals under the declaration."""
    if target.privacy.pure:
        return laplace_scores(target, residuals, rng)
    return dithered(residuals, rng) / target.levels(noises, survivors)


def _objections(target: Target, rng: Generator) -> list[str]:
    """Contradictions of the promise that need no statistics, one sentence each."""
    result = broken_pure_promise(target, rng) if target.privacy.pure else broken_promise(target, rng)
    if _repeats(target):
        result.append("two sessions with the system's own randomness drew the same noise: whoever knows one removes it")
    if target.takes_known_noise:
        result.append("a session took its noise from a reproducible generator unasked: who knows the seed removes it")
    if target.reuses_noise:
        result.append("one contribution served two sessions: in the difference of their sums its noise is gone")
    if _admits_fewer(target, rng):
        least = target.min_survivors
        result.append(f"a release of {least - 1} survivors was made; the plan asks for {least}")
    return result


def _repeats(target: Target) -> bool:
    """Whether sessions whose noise comes from the operating system are alike."""
    drawn = target.draw(4, None)
    if np.unique(drawn, axis=0).shape != drawn.shape:
        return True
    z = _standardised(target, drawn, Generator(bytes(32)))
    (row,) = checks([Group("system", 1.0, z)], _HARDLY)
    return row.twin < _HARDLY


def _admits_fewer(target: Target, rng: Generator) -> bool:
    """Whether the masking or the release would go on without one of the survivors that the plan asks for."""
    if target.plan.masking.min_survivors < target.min_survivors:
        return True
    try:
        seen = publish(target.lenient, target.sum_of([], rng), range(target.min_survivors - 1), rng)
    except PrivstatsError:
        return False
    return isinstance(seen, Release)
