"""The demo's numbers for people: tables on the terminal.

Only presentation; the numbers come from ``experiment``.
"""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from privstats.workflows.demo.experiment import Demo
from privstats.workflows.demo.tasks import DELTA
from privstats.workflows.score import WITHOUT_NOISE, heading, shown

__all__ = ["findings", "scores", "show"]


def show(demo: Demo, console: Console) -> None:
    """Print budget, scores, exactness, bytes and seconds."""
    console.print(demo.plan.budget())
    console.print()
    console.print(f"[bold]task:[/] {demo.task.title}", highlight=False)
    console.print(_score_table(demo))
    for finding in findings(demo):
        console.print(f"- {finding}", highlight=False)
    console.print(_stage_table(demo))


def scores(demo: Demo) -> list[tuple[str, str]]:
    """Rows of the score table: who, and how well."""
    task = demo.task
    lost = demo.records[0] - demo.records[1]
    return [
        (f"scikit-learn {task.peer}, all records in one place", _score(demo, demo.peer)),
        (
            f"scikit-learn {task.peer}, without the {lost} records of the vanished",
            _score(demo, demo.peer_survivors),
        ),
        (f"privstats, {heading(WITHOUT_NOISE)}", _score(demo, demo.without_dp)),
        *(
            (
                f"privstats, {heading(point.epsilon)}",
                f"{_score(demo, point.mean)} ± {_score(demo, point.spread)}",
            )
            for point in demo.points
        ),
    ]


def findings(demo: Demo) -> list[str]:
    """What the run proved, one sentence each."""
    settings, sent = demo.settings, demo.bytes_sent
    dropouts = settings.dropouts(demo.plan)
    gone = ", ".join(
        f"client {client} before '{step}'" for step, clients in dropouts.items() for client in sorted(clients)
    )
    verdict = "==" if demo.exact else "!= (this is a bug: please report it)"
    finished = [count for client, count in enumerate(sent) if not any(client in g for g in dropouts.values())]
    return [
        f"unmasked sum {verdict} the survivors' sum, on every integer, in {demo.runs} of {demo.runs} runs"
        if demo.exact
        else f"unmasked sum {verdict} the survivors' sum",
        f"{settings.clients} clients, Dirichlet({settings.alpha:g}) skew; vanished: {gone or 'nobody'}; "
        f"{len(demo.survivors)} clients' records are in the sum",
        f"each client sent {_range(finished)} bytes in all {len(demo.plan.masking.steps)} steps together, "
        f"{demo.plan.ring.wire_bytes:,} of them masked sums with noise",
        f"scores: mean ± standard deviation over {settings.repeats} draws of the noise; delta {DELTA:g}, "
        "one record, add-remove; demo noise comes from --seed, a real client draws it from the operating system",
    ]


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _score_table(demo: Demo) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model")
    table.add_column(demo.task.metric, justify="right")
    for name, value in scores(demo):
        table.add_row(name, value)
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
