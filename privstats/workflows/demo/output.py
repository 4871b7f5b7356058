"""The demo's numbers for people: tables and a picture on the terminal, in plain ASCII.

Only presentation; the numbers come from ``experiment``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from privstats.workflows.demo.experiment import DESCENT, SHOWN_EPSILON, Demo
from privstats.workflows.demo.tasks import DELTA
from privstats.workflows.score import WITHOUT_NOISE, Point, heading, shown

__all__ = ["drawn", "findings", "header", "scores", "show"]

_MARKS = "oRx*"
_LINES = 10
_WIDTH = 13  # characters of an epsilon's column
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_OF_DESCENT = (
    "DP-GD: full-batch private gradient descent of a linear softmax. One trusted holder sees all records, those of the "
    "vanished too; its recipe is what a search on held-out digits found best, at no charge to its epsilon"
)


def show(demo: Demo, console: Console) -> None:
    """Print budget, scores, their picture, exactness, bytes and seconds."""
    console.print(demo.plan.budget())
    console.print()
    console.print(f"[bold]task:[/] {demo.task.title}", highlight=False)
    console.print(_score_table(demo))
    for line in drawn(demo.curves):
        console.print(line, highlight=False, no_wrap=True, crop=True)
    console.print()
    for finding in findings(demo):
        console.print(f"- {finding}", highlight=False)
    console.print(_stage_table(demo))


def header(demo: Demo) -> list[str]:
    """Of the score table: what is scored, and how a model came about."""
    return [demo.task.metric, *demo.curves]


def scores(demo: Demo) -> list[list[str]]:
    """Rows of the score table: an epsilon, and how well each model does at it."""
    rows = [[heading(WITHOUT_NOISE), _score(demo, demo.without_dp), *["-"] * (len(demo.curves) - 1)]]
    for points in zip(*demo.curves.values(), strict=True):
        rows.append([heading(points[0].epsilon), *(_with_spread(demo, point) for point in points)])
    return rows


def _with_spread(demo: Demo, point: Point) -> str:
    return f"{_score(demo, point.mean)} ± {_score(demo, point.spread)}"


def findings(demo: Demo) -> list[str]:
    """What the run proved, one sentence each."""
    settings, sent = demo.settings, demo.bytes_sent
    dropouts = settings.dropouts(demo.plan)
    gone = ", ".join(
        f"client {client} before '{step}'" for step, clients in dropouts.items() for client in sorted(clients)
    )
    verdict = "==" if demo.exact else "!= (this is a bug: please report it)"
    finished = [count for client, count in enumerate(sent) if not any(client in g for g in dropouts.values())]
    fewest, most = demo.rounds
    lost = demo.records[0] - demo.records[1]
    return [
        f"unmasked sum {verdict} the survivors' sum, on every integer, in {demo.runs} of {demo.runs} masked sessions"
        if demo.exact
        else f"unmasked sum {verdict} the survivors' sum",
        f"{settings.clients} clients, Dirichlet({settings.alpha:g}) skew; vanished: {gone or 'nobody'}; "
        f"{len(demo.survivors)} clients' records are in the sum",
        f"scikit-learn {demo.task.peer} without noise: {_score(demo, demo.peer)} on all records in one place, "
        f"{_score(demo, demo.peer_survivors)} without the {lost} records of the vanished",
        *_of_classes(demo),
        f"refinement rounds: {fewest if fewest == most else f'{fewest} to {most}'} more sums of the same clients after "
        "a release, all of it together at the epsilon shown",
        *([_OF_DESCENT] if DESCENT in demo.curves else []),
        f"each client sent {_range(finished)} bytes in all {len(demo.plan.masking.steps)} steps of the one release, "
        f"{demo.plan.ring.wire_bytes:,} of them masked sums with noise",
        f"scores: mean ± standard deviation over {settings.repeats} draws of the noise, of sums added without masks, "
        f"which cancel to the last bit; delta {DELTA:g}, one record, add-remove; demo noise comes from --seed, a real "
        "client draws it from the operating system",
    ]


def _of_classes(demo: Demo) -> list[str]:
    """What accuracy alone does not say of the release; nothing of a regression."""
    found = demo.shown
    if found.balanced is None:
        return []
    area = "" if found.auc is None else f", AUC {found.auc:.3f}"
    one = "; this head predicts one class for all test records" if found.one_class else ""
    at = heading(SHOWN_EPSILON)
    return [f"the release at {at}: balanced accuracy {_score(demo, found.balanced)}{area}{one}"]


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _score_table(demo: Demo) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(header(demo)):
        table.add_column(name, justify="right" if place else "left")
    for row in scores(demo):
        table.add_row(*row)
    return table


def _stage_table(demo: Demo) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("stage, all clients together")
    table.add_column("seconds", justify="right")
    for stage, seconds in demo.seconds.items():
        table.add_row(stage, f"{seconds:.3f}")
    return table


def _score(demo: Demo, value: float) -> str:
    return shown(demo.task.schema, value)


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
