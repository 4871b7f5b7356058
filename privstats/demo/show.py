"""The demo's numbers for people: tables on the terminal.

Only presentation; the numbers come from ``experiment``.
"""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from privstats.demo.experiment import Outcome
from privstats.demo.tasks import DELTA

__all__ = ["facts", "scores", "show"]


def show(outcome: Outcome, console: Console) -> None:
    """Print budget, scores, exactness, bytes and seconds."""
    console.print(outcome.plan.budget())
    console.print()
    console.print(f"[bold]task:[/] {outcome.task.title}", highlight=False)
    console.print(_score_table(outcome))
    for fact in facts(outcome):
        console.print(f"- {fact}", highlight=False)
    console.print(_stage_table(outcome))


def scores(outcome: Outcome) -> list[tuple[str, str]]:
    """Rows of the score table: who, and how well."""
    task = outcome.task
    lost = outcome.records[0] - outcome.records[1]
    return [
        (f"scikit-learn {task.peer}, all records in one place", _score(outcome, outcome.peer)),
        (
            f"scikit-learn {task.peer}, without the {lost} records of the vanished",
            _score(outcome, outcome.peer_survivors),
        ),
        ("privstats, no DP", _score(outcome, outcome.without_dp)),
        *(
            (
                f"privstats, epsilon {point.epsilon:g}",
                f"{_score(outcome, point.mean)} ± {_score(outcome, point.spread)}",
            )
            for point in outcome.points
        ),
    ]


def facts(outcome: Outcome) -> list[str]:
    """What the run proved, one sentence each."""
    settings, sent = outcome.settings, outcome.bytes_sent
    dropouts = outcome.settings.dropouts(outcome.plan)
    gone = ", ".join(
        f"client {client} before '{step}'" for step, clients in dropouts.items() for client in sorted(clients)
    )
    verdict = "==" if outcome.exact else "!= (this is a bug: please report it)"
    finished = [count for client, count in enumerate(sent) if not any(client in g for g in dropouts.values())]
    return [
        f"unmasked sum {verdict} the survivors' sum, on every integer, in {outcome.runs} of {outcome.runs} runs"
        if outcome.exact
        else f"unmasked sum {verdict} the survivors' sum",
        f"{settings.clients} clients, Dirichlet({settings.alpha:g}) skew; vanished: {gone or 'nobody'}; "
        f"{len(outcome.survivors)} clients' records are in the sum",
        f"each client sent {_range(finished)} bytes in all {len(outcome.plan.masking.steps)} steps together, "
        f"{outcome.plan.ring.wire_bytes:,} of them masked sums with noise",
        f"scores: mean ± standard deviation over {settings.repeats} draws of the noise; delta {DELTA:g}, "
        "one record, add-remove; demo noise comes from --seed, a real client draws it from the operating system",
    ]


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _score_table(outcome: Outcome) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model")
    table.add_column(outcome.task.metric, justify="right")
    for name, value in scores(outcome):
        table.add_row(name, value)
    return table


def _stage_table(outcome: Outcome) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("stage, all clients together")
    table.add_column("seconds", justify="right")
    for stage, seconds in outcome.seconds.items():
        table.add_row(stage, f"{seconds:.3f}")
    return table


def _score(outcome: Outcome, value: float) -> str:
    return f"{value:.1%}" if outcome.task.metric == "accuracy" else f"{value:.3f}"
