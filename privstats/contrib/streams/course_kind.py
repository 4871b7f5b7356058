"""The row of streams as a kind of course, which loads them on use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privstats.extend.courses import Changing, CourseKind
from privstats.extend.doors import Option
from privstats.extend.support import command_line

if TYPE_CHECKING:
    from privstats.contrib.streams.party import Changes
    from privstats.contrib.streams.stream import Stream
    from privstats.contrib.streams.totals import Totals
    from privstats.course import Releases
    from privstats.engines.carriers import Folder
    from privstats.extend.support import Generator
    from privstats.release import Release


@dataclass(frozen=True)
class Terms:
    """Options of ``course init`` for a stream."""

    epochs: Annotated[int | None, Option("Make a stream of this number of epochs.")] = None
    mechanism: Annotated[str | None, Option("For a stream: increments (default), tree or square-root.")] = None
    deletions: Annotated[bool, Option("For a stream: records may be deleted again.", flag="--deletions")] = False
    repeats: Annotated[
        int | None, Option("For a stream: how often records may be sent again without proof. Default: never.")
    ] = None
    allow_disclosing_leavers: Annotated[
        bool, Option("Allow deletions without noise, which disclose who left.", flag="--allow-disclosing-leavers")
    ] = False


def _begins(stream: Stream, place: int) -> bool:
    """Return whether the round begins an epoch: a run carries one."""
    return stream.nodes[place].epoch != stream.nodes[place - 1].epoch


def _ended(stream: Stream, releases: Releases, home: Path) -> str:
    last = stream.nodes[len(releases) - 1].epoch
    nodes = [place for place, each in enumerate(stream.nodes[: len(releases)]) if each.epoch == last]
    without = sum(releases[place] is None for place in nodes)
    note = "" if not without else f", {without} of its {len(nodes)} rounds without a sum"
    ended = ", and with it the stream" if len(releases) == stream.most else ""
    shown = command_line("stream", "show", f"{home.parent.name}/{home.name}")
    return f"epoch {last} of {stream.epochs} ended{note}{ended}: {shown}"


def _why(stream: Stream) -> str:
    happens, changed = ("come and go", "changed") if stream.deletions else ("are added", "been added")
    who, rows = "Records", ""
    if stream.plan.person_clip is not None:
        who, rows = "Patients", " A patient comes once, with all rows of that day; rows that come later are left out."
    return (
        f"{who} {happens}.{rows} After every period the parties send what has {changed} since they last sent, and the "
        "total is brought up to date."
    )


def _contribution() -> Changes:
    from privstats.contrib.streams.party import Changes as Contribution

    return Contribution()


def _simulated(stream: Stream, epochs: Any, dropouts: Any, rng: Generator) -> list[Release | None]:
    from privstats.contrib.streams.simulation import simulated

    return simulated(stream, epochs, dropouts, rng)


def _facts(folder: Folder) -> dict[str, Any]:
    from privstats.contrib.streams.party import facts_of

    return facts_of(folder)


def _totals(home: Path, stream: Stream, key: Callable[[str], bytes]) -> Totals | None:
    if not stream.row.correlated:
        return None
    from privstats.contrib.streams.totals import totals_of

    return totals_of(home, stream, key)


def _persons(stream: Stream) -> str:
    leaves = "; a patient who leaves is removed with all rows that entered" if stream.deletions else ""
    return (
        "All rows of a patient enter in one epoch, which a party enforces by a keyed hash. Later rows are "
        f"excluded{leaves}."
    )


KIND = CourseKind(
    "stream",
    "a stream",
    "privstats.contrib.streams.stream:Stream",
    why=_why,
    charge="registry",
    changing=Changing(
        _contribution,
        _simulated,
        _facts,
        _totals,
        bring="bring what enters and leaves with `privstats stream bring`",
        alone="pass each epoch's arrivals with `privstats stream new` and `epoch`, or through a RecordRegistry",
        persons=_persons,
        leaves=lambda stream: stream.deletions,
        stays=("records",),
    ),
    gives_back=True,
    promise="plan",
    asked="epochs",
    follows=False,
    pauses=_begins,
    ended=_ended,
    terms=Terms,
)
