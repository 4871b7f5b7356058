"""Courses: plans that follow one another under one budget, each chosen from what was released before."""

from privstats.course.alignment import Alignment, Reference
from privstats.course.base import (
    Course,
    DisjointRounds,
    Releases,
    Round,
    history,
    iter_rounds,
    run,
    run_of_round,
    verify_next,
)
from privstats.course.centred import Centred
from privstats.course.document import read, write
from privstats.course.newton import Newton
from privstats.course.party_rounds import PartyRounds
from privstats.course.planned import Single
from privstats.course.record_registry import Pending, RecordRegistry, RegistryCharge
from privstats.course.rounds import Rounds
from privstats.course.spending import authorize, spend
from privstats.course.stream import Stream, StreamTotal

__all__ = [
    "Alignment",
    "Centred",
    "Course",
    "DisjointRounds",
    "Newton",
    "PartyRounds",
    "Pending",
    "RecordRegistry",
    "Reference",
    "RegistryCharge",
    "Releases",
    "Round",
    "Rounds",
    "Single",
    "Stream",
    "StreamTotal",
    "authorize",
    "history",
    "iter_rounds",
    "read",
    "run",
    "run_of_round",
    "spend",
    "verify_next",
    "write",
]
