"""Courses: plans that follow one another under one budget, each chosen from what was released before."""

from privstats.course.alignment import Alignment, Reference
from privstats.course.base import Course, Node, Releases, Single, admit, enter, history, node_run, nodes, run, spend
from privstats.course.document import read, write
from privstats.course.rounds import Rounds

__all__ = [
    "Alignment",
    "Course",
    "Node",
    "Reference",
    "Releases",
    "Rounds",
    "Single",
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
