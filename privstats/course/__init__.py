"""Courses: plans that follow one another under one budget, each chosen from what was released before."""

from privstats.course.alignment import Alignment, Reference
from privstats.course.base import (
    Apart,
    Course,
    Node,
    Releases,
    Single,
    history,
    node_run,
    nodes,
    run,
    verify_next,
)
from privstats.course.centred import Centred
from privstats.course.document import read, write
from privstats.course.newton import Newton
from privstats.course.party_rounds import PartyRounds
from privstats.course.record_registry import Pending, RecordRegistry, RegistryCharge
from privstats.course.rounds import Rounds
from privstats.course.spending import authorize, spend
from privstats.course.stream import Stream, StreamTotal

__all__ = [
    "Alignment",
    "Apart",
    "Centred",
    "Course",
    "Newton",
    "Node",
    "PartyRounds",
    "Pending",
    "RecordRegistry",
    "Reference",
    "RegistryCharge",
    "Releases",
    "Rounds",
    "Single",
    "Stream",
    "StreamTotal",
    "authorize",
    "history",
    "node_run",
    "nodes",
    "read",
    "run",
    "spend",
    "verify_next",
    "write",
]
