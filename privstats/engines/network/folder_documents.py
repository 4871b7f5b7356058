"""Open a folder: its documents, access rights, keys and ledger.

A round's run name follows from the course's, so no party chooses it and no new roster is needed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shlex import quote

from privstats.course import Course, Single, document
from privstats.course.kinds import CourseKind, course_kind
from privstats.course.promise import every_plan
from privstats.dp import Ledger
from privstats.dp.ledger.anchor import head_path
from privstats.errors import DataError, LedgerError, LocalProtocolError, PrivstatsError
from privstats.files.atomic import read_bounded, write_new
from privstats.plan import Plan
from privstats.secagg import Identity, Roster
from privstats.system import others_can_read, others_can_write

NODES, PLAN, ROSTER, LARGE_ROSTER = "nodes", "plan.toml", "roster.toml", "roster.bin"
SIMULATION = "simulation"
"""The label of the roster of a study whose keys one process made; no node of a network answers for its folders."""
UPLOAD_LIMIT = 512 << 20
"""The largest upload that this engine carries, in bytes: a server holds about four times as much of each message."""
COURSE = "course.toml"
"""The file that makes a folder that of a course."""
COURSES = (COURSE, *(f"course.{origin}.toml" for origin in ("first", "plan", "then", "then.first", "then.plan")))
"""All files that a course may have."""
_KEY_BYTES = 32
_OWNER_ONLY = 0o600
_SECRET = ("identity.pem", "journal.key", "moments", "checked-file")
_BELIEVED = (PLAN, "plan.values", *COURSES, ROSTER, LARGE_ROSTER, "records.py")


@dataclass(frozen=True)
class FolderDocuments:
    """The documents of a folder.

    Attributes:
        course: the course in its files, or a plan alone.
        identity: its owner's: party, helper or server.
    """

    home: Path
    course: Course
    roster: Roster
    identity: Identity

    @classmethod
    def read(cls, home: str | os.PathLike[str]) -> FolderDocuments:
        """Read a folder's documents, and write nothing; raises as :func:`check_modes` and :func:`read_documents`."""
        place = Path(home).absolute()
        check_modes(place)
        return FolderDocuments(place, *read_documents(place), Identity.load(place / "identity.pem"))

    @property
    def kind(self) -> CourseKind:
        """The row of the course."""
        return course_kind(self.course)

    @property
    def noun(self) -> str:
        """The document that people compare by digest: ``course`` or ``plan``."""
        return "plan" if self.kind.single else "course"

    @property
    def digest(self) -> str:
        """Digest that ``privstats plan show`` or ``course show`` prints."""
        return self.course.first.digest if self.kind.single else self.course.digest

    @property
    def publics(self) -> tuple[bytes, ...]:
        """Public keys by index: clients, then helpers."""
        return (*self.roster.publics, *(bytes.fromhex(key) for key in self.course.first.panel[1:]))

    @property
    def rounds(self) -> tuple[int, ...]:
        """Numbers of the rounds that this folder holds, in order."""
        return tuple(place for place in range(self.course.most) if (self.path(place) / PLAN).exists())

    def path(self, place: int) -> Path:
        """Return the folder of a round."""
        return self.home if self.kind.single else self.home / NODES / str(place)

    def plan(self, place: int) -> Plan:
        """Return a stored round's plan."""
        return self.course.first if self.kind.single else Plan.read(self.path(place) / PLAN)

    def session(self, place: int) -> Roster:
        """Return the roster of a round's session, with a run name derived from course and round."""
        return self.roster if self.kind.single else self.roster.of_round(place)


def read_documents(home: Path) -> tuple[Course, Roster]:
    """Return a folder's course and roster, even without an identity.

    Raises:
        PrivstatsError: a file is missing or invalid, or they do not fit each other.
    """
    held = (home / COURSE).exists()
    course: Course = document.read(home / COURSE) if held else Single(Plan.read(home / PLAN))
    roster = Roster.load(_roster_in(home))
    check_course(course, roster)
    return course, roster


def check_not_simulated(roster: Roster) -> None:
    """Refuse a simulated study's roster: its maker has all keys, so masks hide nothing."""
    if roster.label == SIMULATION:
        raise LocalProtocolError(
            f"the roster's label is {SIMULATION!r}: one process made the keys of all parties, so they are for "
            "simulated nodes alone; make the folders with `privstats flower new`, every party its own key, and the "
            "roster under another label"
        )


def _roster_in(home: Path) -> Path:
    large = home / LARGE_ROSTER
    if large.exists() and (home / ROSTER).exists():
        raise LocalProtocolError(f"{home} holds {ROSTER} and {LARGE_ROSTER}: keep the one that its owner sent")
    return large if large.exists() else home / ROSTER


def session_name(plan: Plan, roster: Roster) -> str:
    """Return 32 hex digits that name a session: parameters and roster, so a roster is used once."""
    return sha256(plan.masking.digest + roster.digest).hexdigest()[:32]


def check_modes(home: Path) -> None:
    """Refuse a folder that other accounts can list, or with files that they can read or change.

    Documents are checked first: changing access rights of a wrong folder, such as ``/``, does harm.
    """
    try:
        _require_documents(home)
        if others_can_read(home):
            raise LocalProtocolError(f"others can look into {home.name}: let only its owner, chmod 700 {_named(home)}")
        for name in (*_SECRET, *_BELIEVED):
            path, secret = home / name, name in _SECRET
            if path.exists() and (others_can_read(path) if secret else others_can_write(path)):
                what = "read" if secret else "change"
                raise LocalProtocolError(f"others can {what} {name}: let only its owner, chmod 600 {_named(path)}")
    except OSError as error:
        raise LocalProtocolError(
            f"{home} is no folder of a party or a server ({error.strerror}): name the one that `privstats flower new` "
            "wrote"
        ) from None


def _require_documents(home: Path) -> None:
    names = {path.name for path in home.iterdir()}
    lacking = "" if names & {PLAN, COURSE} else f"{PLAN} or {COURSE}"
    lacking = lacking if names & {ROSTER, LARGE_ROSTER} else ROSTER
    if lacking:
        raise LocalProtocolError(
            f"{home} is no folder of a party or a server (it has no {lacking}): name the one that `privstats flower "
            "new` wrote"
        )


def _named(path: Path) -> str:
    return quote(str(path))


def private_files(home: Path) -> tuple[bytes, Ledger]:
    """Return a folder's journal key and ledger, created where missing."""
    return _key_of(home / "journal.key"), _ledger_of(home / "ledger")


def _key_of(path: Path) -> bytes:
    if not path.exists():
        try:
            write_new(path, os.urandom(_KEY_BYTES))
        except PrivstatsError:
            if not path.exists():  # else another process was quicker, and its key counts
                raise
    key = read_bounded(path, LocalProtocolError, "privstats flower check")
    if len(key) != _KEY_BYTES:
        raise LocalProtocolError(f"{path.name} must hold {_KEY_BYTES} bytes, and has {len(key)}: it was damaged")
    return key


def _ledger_of(path: Path) -> Ledger:
    """A process killed while creating the ledger leaves files that count as none."""
    try:
        ledger = Ledger.open(path)
    except LedgerError as refusal:
        try:
            ledger = Ledger.create(path)
        except LedgerError as lost:
            passes = isinstance(lost.__cause__, OSError)  # as where the disk filled up while it was created
            cause = refusal if path.exists() and not passes else lost
            raise cause from cause.__cause__  # the cause shows whether it passes
    for each in (path, head_path(path)):
        each.chmod(_OWNER_ONLY)
    return ledger


def check_course(course: Course, roster: Roster) -> None:
    """Refuse a course that this engine cannot carry for these parties."""
    for plan in every_plan(course):
        _check_fits(plan, roster)
    if not roster.run and not course_kind(course).single:
        raise LocalProtocolError("a course needs a roster with a run name: make one with `privstats roster make`")


def _check_fits(plan: Plan, roster: Roster) -> None:
    if len(roster) != plan.cohort.clients:
        raise LocalProtocolError(
            f"the roster has {len(roster)} clients and the plan cohort.clients={plan.cohort.clients}: make one fit "
            "the other"
        )
    if plan.panel and roster.server.hex() != plan.panel[0]:
        raise LocalProtocolError("the roster's server is not the leader that the plan's panel names: make one fit")
    plan.masking.check_roster(roster)
    size = plan.masking.upload_bytes
    if size > UPLOAD_LIMIT:
        raise DataError(
            f"an upload has {-(-size >> 20)} MiB, this engine carries {UPLOAD_LIMIT >> 20}: fewer features, or "
            "statistics without S or B"
        )
