"""Is the noise of a stream's epochs the noise that its plan promises, and is it new in every epoch?

Residuals of whole streams of known sums, by the real path: their spread per segment, and the correlation of every two
nodes. Noise that two epochs share cancels in their difference. Built on ``residuals``.
"""

from __future__ import annotations

import math

import numpy as np

from privstats.contrib.streams import Stream
from privstats.progress import track
from privstats.randomness import Generator
from threat_models.audits.noise import SEES
from threat_models.audits.residuals import Group, Z, checks, dithered, entries_for, linked
from threat_models.audits.stream_target import StreamTarget, stream_target
from threat_models.audits.verdict import Report, Value

_MOST_ENTRIES = 40_000_000
_COLUMNS = ("segment", "entries", "claimed", "at least", "found", "sees", "p spread", "p epochs", "verdict")
_TESTS = 2


def audit_epochs(stream: Stream, rng: Generator, *, trials: int = 1000, confidence: float = 0.999) -> Report:
    """Test the residuals of as many plays of a stream as it takes to see noise of ``SEES`` of the declared one.

    A row is violated when its spread, or the correlation of the noise of two nodes, has a p beyond ``confidence``,
    corrected for the number of tests. All mechanisms draw their nodes' noise independently: the square root's totals
    are correlated by their weights, its releases are not.

    Args:
        trials: most plays; rows that would need more are reported as underpowered.

    Raises:
        PlanError: a stream without DP.
    """
    target = stream_target(stream)
    segments = target.node.layout.segments
    level = (1 - confidence) / (_TESTS * len(segments))
    z = _residuals(target, level, trials, rng)
    rows = []
    for segment, place in zip(segments, target.node.layout.slices, strict=True):
        claimed = target.node.sigma[segment.statistic] * (math.sqrt(0.5) if segment.name.endswith(".off") else 1.0)
        rows.append(_row(segment.name, claimed, z[:, :, place], level))
    notes = [
        f"{len(z)} plays of {stream.epochs} epochs, {stream.most} nodes each ({stream.mechanism})",
        f"sees: below this part of the claimed noise a row speaks up 9 times in 10; asked for {SEES:g}",
        "p epochs: chance of the strongest correlation between the noise of two nodes, corrected for their number",
    ]
    notes += [f"underpowered in {len(z)} plays: {row[0]}; raise --trials" for row in rows if row[-1] == "underpowered"]
    violated = any(row[-1] == "violates" for row in rows)
    return Report("epochs", _COLUMNS, tuple(rows), tuple(notes), violated, json_only=("at least", "verdict"))


def _residuals(target: StreamTarget, level: float, trials: int, rng: Generator) -> Z:
    """Releases less their known sums, in declared deviations, ``(plays, nodes, size)``."""
    layout, nodes = target.node.layout, target.stream.most
    wanted = math.ceil(entries_for(SEES, level) / (nodes * min(segment.size for segment in layout.segments)))
    affordable = _MOST_ENTRIES // (layout.size * nodes * max(1, target.node.worst_noise))
    plays = max(1, min(wanted, trials, affordable))
    known = range(1, nodes + 1)  # as many grid steps in every entry, others in each node
    sums = [np.full(layout.size, steps, np.int64) for steps in known]
    drawn = np.stack([dithered(target.seen(sums, rng), rng) for _ in track("playing", range(plays))])
    return np.asarray((drawn - target.moved(known)[:, None]) / target.levels())


def _row(name: str, claimed: float, z: Z, level: float) -> tuple[Value, ...]:
    result = checks([Group(name, claimed, z.reshape(-1, z.shape[-1]))], level)[0]
    between = _between(z)
    wrong = min(result.spread, between) < level
    verdict = "violates" if wrong else "underpowered" if result.sees < SEES else "no evidence"
    sizes = (claimed, result.least * claimed, result.measured * claimed, result.sees)
    return (name, result.entries, *sizes, result.spread, between, verdict)


def _between(z: Z) -> float:
    """p of the strongest link between two nodes of one play, corrected for how many pairs there are."""
    nodes = z.shape[1]
    pairs = [(s, t) for s in range(nodes) for t in range(s)]
    return min(1.0, len(pairs) * min((linked(z[:, s], z[:, t]) for s, t in pairs), default=1.0))
