"""How ``privstats http demo`` prints what came of it: a histogram, its intervals, and the truth beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.cli.parts.terminal import new_table, say, terminal

if TYPE_CHECKING:
    from privstats.workflows.demo.devices import DevicesDemo

__all__ = ["show_demo"]

_WIDTH = 30


def show_demo(found: DevicesDemo) -> None:
    """Print the counts that leader and helper released, and what they were."""
    counts, most = found.counts, max(float(found.counts.shown.max()), 1.0)
    table = new_table("How old are you?")
    for heading in ("age", "", "released", "95 % interval", "truth"):
        table.add_column(heading, justify="left" if heading in ("age", "") else "right")
    for row, cell in enumerate(counts.cells[0]):
        bar = "\u2588" * round(_WIDTH * float(counts.shown[row]) / most)
        interval = f"{counts.low[row]:.0f} to {counts.high[row]:.0f}"
        truth = str(int(found.truth[row])) if row < len(found.truth) else "0"
        table.add_row(cell, bar, f"{counts.counts[row]:.0f}", interval, truth)
    terminal().print(table)
    people = len(found.release.survivors)
    say(
        f"{people} people answered{', the last one in a browser: it is in no truth' if found.by_browser else ''}; "
        f"leader and helper each added noise of epsilon {found.plan.budget().epsilon:.2g}"
    )
    say(f"what people compare: {found.study}")
    say(f"{found.seconds:.1f} seconds from the first folder to the signed release")
