"""Scores against epsilon as lines of text: a picture for every terminal, in plain ASCII.

Presentation only, of any curves over the same epsilons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privstats.workflows.score import Point

__all__ = ["drawn"]

_MARKS = "oRx*"
_LINES = 10
_WIDTH = 13  # characters of an epsilon's column
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def drawn(curves: Mapping[str, Sequence[Point]]) -> list[str]:
    """One line of text per row of the picture, epsilon growing to the right, and a legend.

    Args:
        curves: by name, points over the same epsilons, at least one; at most four curves. Points that share a row
            stand beside each other and hide none.
    """
    by_epsilon = {point.epsilon: place for place, point in enumerate(_by_epsilon(next(iter(curves.values()))))}
    means = [point.mean for points in curves.values() for point in points]
    step = next((step for step in _STEPS if (max(means) - min(means)) / step <= _LINES), _STEPS[-1])
    top, bottom = round(max(means) / step), round(min(means) / step)
    rows = {level: [" "] * (_WIDTH * len(by_epsilon)) for level in range(top, bottom - 1, -1)}
    for place, points in enumerate(curves.values()):
        for point in points:
            column = _WIDTH * by_epsilon[point.epsilon] + _WIDTH // 2 - len(curves) + 2 * place
            rows[round(point.mean / step)][column] = _MARKS[place]
    ticks = "".join(f"{epsilon:g}".center(_WIDTH) for epsilon in by_epsilon)
    legend = "   ".join(f"{mark} {name}" for mark, name in zip(_MARKS, curves, strict=False))
    return [
        *(f"{level * step:6.2f} |{''.join(cells)}".rstrip() for level, cells in rows.items()),
        f"       +{'-' * (_WIDTH * len(by_epsilon))}",
        f"epsilon {ticks}".rstrip(),
        f"        {legend}",
    ]


def _by_epsilon(points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda point: point.epsilon)
