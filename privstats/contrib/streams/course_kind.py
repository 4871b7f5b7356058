"""Announce streams as a kind of course."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from privstats.course.kinds import CourseKind

if TYPE_CHECKING:
    from privstats.contrib.streams.stream import Stream
    from privstats.course.base import Releases


def _begins(stream: Stream, place: int) -> bool:
    """Return whether the round begins an epoch: a run carries one."""
    return stream.nodes[place].epoch != stream.nodes[place - 1].epoch


def _ended(stream: Stream, releases: Releases, home: Path) -> str:
    last = stream.nodes[len(releases) - 1].epoch
    nodes = [place for place, each in enumerate(stream.nodes[: len(releases)]) if each.epoch == last]
    without = sum(releases[place] is None for place in nodes)
    note = "" if not without else f", {without} of its {len(nodes)} rounds without a sum"
    ended = ", and with it the stream" if len(releases) == stream.most else ""
    folder = quote(f"{home.parent.name}/{home.name}")
    return f"epoch {last} of {stream.epochs} ended{note}{ended}: privstats stream show {folder}"


def _why(stream: Stream) -> str:
    happens, changed = ("come and go", "changed") if stream.deletions else ("are added", "been added")
    who, rows = "Records", ""
    if stream.plan.person_clip is not None:
        who, rows = "Patients", " A patient comes once, with all rows of that day; rows that come later are left out."
    return (
        f"{who} {happens}.{rows} After every period the parties send what has {changed} since they last sent, and the "
        "total is brought up to date."
    )


KIND = CourseKind(
    "stream",
    "a stream",
    "privstats.contrib.streams.stream:Stream",
    why=_why,
    charge="registry",
    part="changes",
    gives_back=True,
    promise="plan",
    asked="epochs",
    follows=False,
    pauses=_begins,
    weighs=lambda stream: stream.row.correlated,
    ended=_ended,
)
