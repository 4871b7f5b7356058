"""A progress bar around the tiles of a measurement, on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from privstats.moments.door import Tile

__all__ = ["show_progress"]


def show_progress(tiles: Iterable[Tile], total: int | None) -> Iterator[Tile]:
    """Pass tiles on and draw a bar of the records that went by, out of ``total`` where that is known."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("records", total=total)
        for tile in tiles:
            yield tile
            bar.advance(task, len(tile[0]))
