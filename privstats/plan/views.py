"""Show a plan and its budget table on a terminal, in a notebook or on the officer's page."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privstats.printable import at_most, delta_text, html_facts, html_lines, html_table

if TYPE_CHECKING:
    from rich.table import Table

    from privstats.plan.budget import Budget, BudgetRow

_RESTS = "epsilon bounds what the released sums reveal, on these conditions:"


@dataclass(frozen=True)
class Column:
    """One column of the budget table.

    Attributes:
        meaning: its meaning, for readers who are not statisticians.
    """

    heading: str
    meaning: str
    shown: Callable[[BudgetRow], str]


_ON_THE_WIRE = (
    Column("bits", "length of one number as it is sent", lambda row: str(row.bits)),
    Column(
        "headroom", "how many times the largest sum fits before numbers overflow", lambda row: f"{row.headroom:.2f}x"
    ),
)
_PRIVATE = (
    Column("sensitivity", "how far one record, client or person can move it", lambda row: f"{row.sensitivity:.4g}"),
    Column(
        "sigma", "guaranteed standard deviation of the noise on each of its numbers", lambda row: f"{row.sigma:.4g}"
    ),
    Column(
        "mu",
        "what can be learned about one record, client or person: 0 nothing, 1 much, 4 nearly all",
        lambda row: at_most(row.mu, ".4f"),
    ),
    Column(
        "epsilon alone",
        "the promise if only this statistic were released; all of a clipped client or person may be in it",
        lambda row: at_most(row.epsilon, ".4f"),
    ),
    Column(
        "share",
        "its part of the budget: parts add up in mu^2, or in epsilon at delta 0",
        lambda row: f"{row.share:.1%}",
    ),
    *_ON_THE_WIRE,
)
_OVERLAP = (
    "its part of the budget; no record is in all of these statistics in full, so the rows' mu^2 add up to more than "
    "mu^2 of all together"
)
_NEARLY = 1 + 1e-6
_OPEN = (
    Column(
        "membership advantage",
        "how much better than guessing an attacker can tell who is in the data: 0 nothing, 1 all",
        lambda row: f"{row.advantage:.3f}",
    ),
    *_ON_THE_WIRE,
)


def columns(budget: Budget) -> tuple[Column, ...]:
    """Return the columns other than a statistic's letter.

    Where no record is in all statistics in full, the squares of the rows' mu add up to more than that of all together,
    and the meaning of a share states it.
    """
    if not math.isfinite(budget.epsilon):
        return _OPEN
    squares = math.fsum(row.mu**2 for row in budget.rows)
    if not budget.delta or squares <= budget.mu**2 * _NEARLY:
        return _PRIVATE
    return tuple(replace(each, meaning=_OVERLAP) if each.heading == "share" else each for each in _PRIVATE)


def text(budget: Budget) -> str:
    """Return the table in plain text, 100 characters wide."""
    from rich.console import Console  # only to view a budget; a client's process need not load it

    console = Console(file=io.StringIO(), width=100, color_system=None)
    with console.capture() as capture:
        console.print(budget)
    return capture.get().rstrip()


def lines(budget: Budget) -> Iterator[str | Table]:
    """Yield heading, table and caption, for rich."""
    from rich import box
    from rich.table import Table

    shown = columns(budget)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in shown:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for row in budget.rows:
        table.add_row(row.statistic, *(column.shown(row) for column in shown))
    yield f"[bold]budget:[/] {budget.promise}"
    yield table
    yield _caption(budget)


def html(budget: Budget) -> str:
    """Return the table for a notebook."""
    shown = columns(budget)
    header = ("", *(column.heading for column in shown))
    rows = [(row.statistic, *(column.shown(row) for column in shown)) for row in budget.rows]
    promise = html_facts("budget", [("promise", budget.promise)])
    return promise + html_table(header, rows) + html_lines(_caption(budget))


def _caption(budget: Budget) -> str:
    private = math.isfinite(budget.epsilon)
    legend = [f"{column.heading}: {column.meaning}" for column in columns(budget)]
    upload = f"each client uploads {budget.upload_bytes:,} bytes of masked sums"
    if not private:
        return "\n".join([*legend, upload])
    total = f"all together: mu {at_most(budget.mu)}, epsilon {at_most(budget.epsilon)}"
    total += f" at delta {delta_text(budget.delta)}"
    if budget.masking_failure:
        total += f" ({at_most(budget.masking_failure, '.2g')} of it for the masking)"
    rests = [_RESTS, *(f"- {condition}" for condition in budget.conditions)]
    return "\n".join([*legend, total, upload, *rests])


def plan_html(plan: Any) -> str:
    """Return a ``Plan`` for a notebook: its facts, then its budget."""
    cohort = plan.cohort
    parties = f"{cohort.clients}, at least {cohort.min_survivors}, at most {cohort.colluders} colluders"
    facts = [
        ("digest", plan.digest),
        ("a record", plan.schema.record),
        ("parties", parties),
        ("records, at most", f"{cohort.max_records:,}"),
        ("protocol", plan.protocol),
    ]
    return html_facts("plan", facts) + html(plan.budget())
