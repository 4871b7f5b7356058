"""What a party's folder and the server's hold of a course: the course, its run, and a folder for every node.

Files and names: ``nodes/2`` is the folder of node 2's session, with its plan and what came of it. Nobody is asked or
answered here. Over ``folder``, under ``course_host`` and ``course_party``.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import msgspec

from privstats.course import Course, Releases, Stream, document, node_run, spend
from privstats.course.kinds import CourseKind, kind_of
from privstats.dp import Ledger, Spend
from privstats.engines.network.folder import COURSE, Folder, account_of, check_fits, check_modes, private_files
from privstats.engines.network.streams import Totals
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.files.atomic import atomic_write, read_whole
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema.public_values import Published, beside
from privstats.secagg import Identity, Roster
from privstats.session.accounting import Charging, NodeCharge

__all__ = ["COURSE", "RELEASE", "CourseFolder", "NodeFolder", "check_course"]

RELEASE = "release.safetensors"

_NODES, _PLAN, _NO_SUM, _AGREED = "nodes", "plan.toml", "without-a-sum", "agreed"


@dataclass(frozen=True)
class CourseFolder:
    """An opened folder of a course.

    Attributes:
        home: where it is.
        course: what its file holds.
        roster: who takes part, and the name of the course's run.
        identity: of the party or the server.
        key: what journals and kept moments are sealed under.
        ledger: what has been spent on whose data.
    """

    home: Path
    course: Course
    roster: Roster
    identity: Identity
    key: bytes
    ledger: Ledger

    @classmethod
    def open(cls, home: str | os.PathLike[str]) -> CourseFolder:
        """Read a folder, and make its journal key and its ledger where there are none.

        Raises:
            LocalProtocolError: there is no such folder, or others can read it or change what is in it.
            PrivstatsError: one of its files is missing or is something else.
        """
        place = Path(home).absolute()
        check_modes(place)
        course, roster = document.read(place / COURSE), Roster.load(place / "roster.toml")
        check_course(course, roster)
        return cls(place, course, roster, *private_files(place))

    @property
    def publics(self) -> tuple[bytes, ...]:
        """Everybody's public key by place: the roster's clients, then the helpers that the plans name."""
        return (*self.roster.publics, *(bytes.fromhex(key) for key in self.course.first.panel[1:]))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The places of the nodes that are known here, in order."""
        return tuple(place for place in range(self.course.most) if (self.path(place) / _PLAN).exists())

    def path(self, place: int) -> Path:
        """The folder of a node."""
        return self.home / _NODES / str(place)

    def node(self, place: int) -> NodeFolder:
        """The folder of a node that is known here, for its session.

        Raises:
            PlanError: its plan cannot be read.
        """
        home = self.path(place)
        plan = Plan.read(home / _PLAN)
        return NodeFolder(home, plan, self.session(place), self.identity, self.key, self.ledger, self, place)

    def session(self, place: int) -> Roster:
        """The roster of a node's session: the same parties, under a run name that follows from course and place."""
        run = node_run(self.roster.run, place)
        return Roster(self.roster.publics, server=self.roster.server, run=run, names=self.roster.names)

    def keep(self, place: int, plan: Plan) -> NodeFolder:
        """Make a node's folder, its plan and published values in it; what is there already stays as it is."""
        home = self._made(place)
        if not (home / _PLAN).exists():
            if plan.published is not None:
                plan.published.save(beside(home / _PLAN))
            atomic_write(home / _PLAN, plan.to_toml().encode())  # last: a node is known by its plan
        return self.node(place)

    def told(self, place: int) -> bool:
        """Whether it is known here what came of a node."""
        return any((self.path(place) / name).exists() for name in (_NO_SUM, RELEASE))

    def shown(self, place: int) -> bytes | None:
        """The release file of a node of which it is known what came of it; None where there was no sum."""
        if (self.path(place) / _NO_SUM).exists():
            return None
        return read_whole(self.path(place) / RELEASE, LocalProtocolError, "privstats flower")

    def keep_shown(self, place: int, release: bytes | None) -> None:
        """Keep what came of a node, after it was looked at; on disk when this returns."""
        atomic_write(self._made(place) / (_NO_SUM if release is None else RELEASE), release or b"")

    def read_shown(self, place: int, release: bytes) -> Release:
        """A release file that somebody sent, if the server on the roster has signed it.

        Raises:
            ReleaseError: it has not, or the file is damaged.
        """
        with _laid_down(self._made(place) / "shown", release) as path:
            return Release.load(path, signed_by=self.roster.server)

    def read_values(self, place: int, values: bytes) -> Published:
        """A file of published values that somebody sent.

        Raises:
            PlanError: it is none.
        """
        with _laid_down(self._made(place) / "values", values) as path:
            return Published.load(path)

    def release(self, place: int) -> Release | None:
        """What came of a node, as its file says; None where there was no sum.

        Raises:
            ReleaseError: the file is damaged, or the server on the roster has not signed it.
        """
        if (self.path(place) / _NO_SUM).exists():
            return None
        return Release.load(self.path(place) / RELEASE, signed_by=self.roster.server)

    def told_so_far(self) -> list[Release | None]:
        """What the nodes came to, in order, as far as it is known here.

        Raises:
            ReleaseError: a file is damaged, or the server on the roster has not signed it.
        """
        known = takewhile(self.told, range(self.course.most))
        return [self.release(place) for place in known]

    def entry(self, dataset: str) -> Spend:
        """What the whole course is spent under in this ledger; it is spent now, unless it was before.

        Raises:
            LedgerError: the cap would be passed, or the run's name was used for something else, or is not the next.
        """
        roster = self.roster
        known = any(account.of_run(roster.run) is not None for account in self.ledger.accounts())
        if roster.counter is not None and not known:
            self.ledger.accept_counter(roster.members, roster.counter, roster.run)
        return spend(self.course, self.ledger, dataset, roster.run)

    def _made(self, place: int) -> Path:
        """The folder of a node, made if need be."""
        home = self.path(place)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            home.parent.chmod(0o700)
        except OSError as error:
            raise PrivstatsError(f"cannot make {home}: {error.strerror}; nothing was sent") from error
        return home


@dataclass(frozen=True)
class NodeFolder(Folder):
    """The folder of one node's session: its own plan, run and files, its owner's identity, key and ledger.

    Attributes:
        above: the folder of the course.
        place: which node it is.
    """

    above: CourseFolder
    place: int

    @property
    def base(self) -> Path:
        """The folder of the course: ``records.py`` and the ledger are there."""
        return self.above.home

    @property
    def name(self) -> str:
        """For example ``host/nodes/2``."""
        return f"{self.above.home.name}/{_NODES}/{self.place}"

    @property
    def begun(self) -> bool:
        """Whether some account of this ledger has a mark of this node."""
        entries = (account.of_run(self.above.roster.run) for account in self.ledger.accounts())
        return any(entry is not None and self.place in entry.begun for entry in entries)

    @property
    def kind(self) -> CourseKind:
        """The course's."""
        return kind_of(self.above.course)

    @property
    def totals(self) -> Totals | None:
        """The exact sums of a correlated stream's nodes, under seal."""
        course, key = self.above.course, self.above.key
        if not self.kind.weighs(course) or not isinstance(course, Stream):
            return None
        return Totals(self.above.home, course, lambda purpose: hmac.digest(key, purpose.encode(), "sha256"))

    @property
    def before(self) -> Releases:
        """As their files say; raises as :meth:`CourseFolder.release` does."""
        return [self.above.release(place) for place in range(self.place)]

    def charge(self, dataset: str | None, again: bool) -> NodeCharge:  # noqa: ARG002  a course is spent once
        """Where the node is marked; the course is spent before its first.

        Raises:
            LedgerError: nothing says which account is charged, or as for :meth:`CourseFolder.entry`.
        """
        return NodeCharge(self.ledger, self.above.entry(account_of(self, dataset)), self.place, self.plan.digest)

    @property
    def agreed(self) -> tuple[int, ...] | None:
        """The list that this party signed in the first sum; None where it was not in it."""
        path = self.above.path(0) / _AGREED
        if not self.place or not path.exists():
            return None
        try:
            return msgspec.json.decode(read_whole(path, LocalProtocolError, "privstats flower"), type=tuple[int, ...])
        except msgspec.DecodeError:
            raise LocalProtocolError(f"{path} is damaged: this party's rounds cannot begin") from None

    def remember(self, agreed: tuple[int, ...]) -> None:
        """Keep the list of the first sum, which a course without noise holds its rounds to."""
        if not self.place:
            atomic_write(self.home / _AGREED, msgspec.json.encode(agreed))

    def release_charge(self) -> Charging:
        """Mark the server's node, once: its journal, which holds the seed, draws once and gives the same release again.

        Raises:
            LedgerError: nothing says which account is charged, or the cap would be passed.
        """
        if not self.begun:
            account = account_of(self, remedy="keep only the one that is meant in it")
            run = self.above.roster.run
            entry = spend(self.above.course, self.ledger, account, run, sums_only=True)
            self.ledger.mark_started(entry, self.place, sums_only=True)
        return "uncharged"


@contextmanager
def _laid_down(path: Path, data: bytes) -> Iterator[Path]:
    """A file for as long as it is looked at."""
    place = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    atomic_write(place, data)
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)


def check_course(course: Course, roster: Roster) -> None:
    """Refuse a course that cannot be carried between machines, or not by these parties.

    Raises:
        LocalProtocolError: the roster has no run name; or as for ``check_fits``.
        DataError: as for ``check_fits``.
    """
    for plan in course.priced:
        check_fits(plan, roster)
    if not roster.run:
        raise LocalProtocolError("a course needs a roster with a run name: make one with `privstats roster make`")
