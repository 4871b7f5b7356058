"""What a folder says of itself without its secrets: the course, the roster, and whose folder it is; it writes nothing.

``folder`` adds the keys and the ledger, ``folder_status`` reads no more than this.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from privstats.course import Course, Single, document, run_of_round
from privstats.course.kinds import CourseKind, course_kind
from privstats.engines.network.folder_checks import COURSE, check_course, check_modes
from privstats.plan import Plan
from privstats.secagg import Identity, Roster

__all__ = ["NODES", "PLAN", "FolderDocuments", "read_documents", "session_name"]

NODES, PLAN = "nodes", "plan.toml"


@dataclass(frozen=True)
class FolderDocuments:
    """The documents of a folder.

    Attributes:
        home: its path.
        course: the course in its files, or a plan alone.
        roster: the parties, and the name of the run.
        identity: of its owner: a party, a helper or the server.
    """

    home: Path
    course: Course
    roster: Roster
    identity: Identity

    @classmethod
    def read(cls, home: str | os.PathLike[str]) -> FolderDocuments:
        """Read them.

        Raises:
            LocalProtocolError: there is no such folder, or other accounts can read or change its files.
            PrivstatsError: one of its files is missing or invalid.
        """
        place = Path(home).absolute()
        check_modes(place)
        return FolderDocuments(place, *read_documents(place), Identity.load(place / "identity.pem"))

    @property
    def kind(self) -> CourseKind:
        """The row of the course."""
        return course_kind(self.course)

    @property
    def noun(self) -> str:
        """The thing whose digest people compare: ``course``, or ``plan`` for a plan alone."""
        return "plan" if self.kind.single else "course"

    @property
    def digest(self) -> str:
        """Its digest, as ``privstats plan show`` or ``course show`` prints it."""
        return self.course.first.digest if self.kind.single else self.course.digest

    @property
    def publics(self) -> tuple[bytes, ...]:
        """Public keys by place: the roster's clients, then the helpers that the plans name."""
        return (*self.roster.publics, *(bytes.fromhex(key) for key in self.course.first.panel[1:]))

    @property
    def rounds(self) -> tuple[int, ...]:
        """The places of the rounds that this folder holds, in order."""
        return tuple(place for place in range(self.course.most) if (self.path(place) / PLAN).exists())

    def path(self, place: int) -> Path:
        """The folder of a round."""
        return self.home if self.kind.single else self.home / NODES / str(place)

    def plan(self, place: int) -> Plan:
        """The plan of a round that this folder holds.

        Raises:
            PlanError: it cannot be read.
        """
        return self.course.first if self.kind.single else Plan.read(self.path(place) / PLAN)

    def session(self, place: int) -> Roster:
        """The roster of a round's session: the same parties, under a run name that follows from course and place."""
        if self.kind.single:
            return self.roster
        run = run_of_round(self.roster.run, place)
        return Roster(self.roster.publics, server=self.roster.server, run=run, names=self.roster.names)


def read_documents(home: Path) -> tuple[Course, Roster]:
    """The course and the roster in a folder, also in one that its owner has not put an identity into.

    Raises:
        PrivstatsError: one of the files is missing or invalid, or they do not fit each other.
    """
    held = (home / COURSE).exists()
    course: Course = document.read(home / COURSE) if held else Single(Plan.read(home / PLAN))
    roster = Roster.load(home / "roster.toml")
    check_course(course, roster)
    return course, roster


def session_name(plan: Plan, roster: Roster) -> str:
    """32 hexadecimal digits that name a session: parameters and roster, so a roster is used once."""
    return sha256(plan.masking.digest + roster.digest).hexdigest()[:32]
