"""Courses: plans that follow one another under one budget, each chosen from what was released before."""

from privstats.course.alignment import Alignment, Reference
from privstats.course.base import (
    Apart,
    Course,
    Node,
    Releases,
    Single,
    admit,
    enter,
    history,
    node_run,
    nodes,
    run,
    spend,
)
from privstats.course.document import read, write
from privstats.course.holding import Due, Holding, HoldingCharge
from privstats.course.newton import Newton
from privstats.course.rounds import Rounds
from privstats.course.stream import Stream, StreamTotal

__all__ = [
    "Alignment",
    "Apart",
    "Course",
    "Due",
    "Holding",
    "HoldingCharge",
    "Newton",
    "Node",
    "Reference",
    "Releases",
    "Rounds",
    "Single",
    "Stream",
    "StreamTotal",
    "admit",
    "enter",
    "history",
    "node_run",
    "nodes",
    "read",
    "run",
    "spend",
    "write",
]
