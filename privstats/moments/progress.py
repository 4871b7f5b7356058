"""A progress bar around the blocks of a measurement, on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from privstats.moments.door import Block

__all__ = ["show_progress"]


def show_progress(blocks: Iterable[Block], X: Any) -> Iterator[Block]:
    """Pass blocks on and draw a bar of the records that went by; the total is shown where ``X`` is an array."""
    total = X.shape[0] if len(getattr(X, "shape", ())) == 2 else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("records", total=total)
        for block in blocks:
            yield block
            bar.advance(task, len(block[0]))
