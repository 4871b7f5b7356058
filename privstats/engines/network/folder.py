"""What a party's folder and the server's hold: a course, its run, and what is kept of the session of every node.

Files and names. A plan alone is a course of one node, whose session lies in the folder itself; of every other course
``nodes/2`` is the folder of node 2. Nobody is asked or answered here. Over ``folder_checks``, under hosts and parties.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

import msgspec

from privstats.course import Course, Releases, Single, Stream, document, node_run, spend
from privstats.course.kinds import CourseKind, kind_of
from privstats.dp import Ledger, NoPrivacy, Spend
from privstats.engines.network import survivor_lists as lists
from privstats.engines.network.folder_checks import COURSE, check_course, check_modes, private_files
from privstats.engines.network.statements import Header
from privstats.engines.network.streams import Totals
from privstats.errors import LedgerError, LocalProtocolError, PlanError, PrivstatsError
from privstats.files.atomic import atomic_write, read_whole
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema.public_values import Published, beside
from privstats.secagg import Identity, Roster
from privstats.session.accounting import CHARGED_BEFORE, Charge, Charging, NodeCharge

__all__ = ["RELEASE", "Folder", "NodeFolder", "account_of"]

RELEASE = "release.safetensors"

UNNAMED = "records"
"""What the data set is called in the ledger where the plan has no DP and nobody has given it a name."""

_REMEDY = 'say in records.py which is meant, dataset = "..."'
_NODES, _PLAN, _NO_SUM, _AGREED = "nodes", "plan.toml", "without-a-sum", "agreed"


@dataclass(frozen=True)
class Folder:
    """An opened folder.

    Attributes:
        home: where it is.
        course: what its files hold: a course, or a plan alone.
        roster: who takes part, and the name of the run.
        identity: of the party or the server.
        key: what journals and kept moments are sealed under.
        ledger: what has been spent on whose data; it may have no account yet.
    """

    home: Path
    course: Course
    roster: Roster
    identity: Identity
    key: bytes
    ledger: Ledger

    @classmethod
    def open(cls, home: str | os.PathLike[str]) -> Folder:
        """Read a folder, and make its journal key and its ledger where there are none.

        Raises:
            LocalProtocolError: there is no such folder, or others can read it or change what is in it.
            PrivstatsError: one of its files is missing or is something else.
        """
        place = Path(home).absolute()
        check_modes(place)
        held = (place / COURSE).exists()
        course: Course = document.read(place / COURSE) if held else Single(Plan.read(place / _PLAN))
        roster = Roster.load(place / "roster.toml")
        check_course(course, roster)
        return cls(place, course, roster, *private_files(place))

    @property
    def kind(self) -> CourseKind:
        """The row of the course."""
        return kind_of(self.course)

    @property
    def noun(self) -> str:
        """What people compare, by its digest: the ``course``, or the ``plan`` that is alone."""
        return "plan" if self.kind.single else "course"

    @property
    def digest(self) -> str:
        """Of that, as ``privstats plan show`` or ``course show`` prints it."""
        return self.course.first.digest if self.kind.single else self.course.digest

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
        return self.home if self.kind.single else self.home / _NODES / str(place)

    def node(self, place: int) -> NodeFolder:
        """The folder of a node that is known here, for its session.

        Raises:
            PlanError: its plan cannot be read.
        """
        plan = self.course.first if self.kind.single else Plan.read(self.path(place) / _PLAN)
        return NodeFolder(self, place, plan, self.session(place))

    def session(self, place: int) -> Roster:
        """The roster of a node's session: the same parties, under a run name that follows from course and place."""
        if self.kind.single:
            return self.roster
        run = node_run(self.roster.run, place)
        return Roster(self.roster.publics, server=self.roster.server, run=run, names=self.roster.names)

    def keep(self, place: int, plan: Plan) -> NodeFolder:
        """Make a node's folder, its plan and published values in it; what is there already stays as it is."""
        if place not in self.nodes:
            home = self._made(place)
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
        """The folder of a node of several, made if need be."""
        home = self.path(place)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            home.parent.chmod(0o700)
        except OSError as error:
            raise PrivstatsError(f"cannot make {home}: {error.strerror}; nothing was sent") from error
        return home


@dataclass(frozen=True)
class NodeFolder:
    """The folder of one node's session.

    Attributes:
        above: the folder of the course.
        place: which node it is.
        plan: the node's.
        roster: the course's, under the name of the node's run.
    """

    above: Folder
    place: int
    plan: Plan
    roster: Roster

    @property
    def home(self) -> Path:
        """Where the session's files are."""
        return self.above.path(self.place)

    @property
    def base(self) -> Path:
        """Where the owner's own files are: ``records.py``, and the ledger."""
        return self.above.home

    @property
    def name(self) -> str:
        """What the folder is called in a sentence: ``host``, or ``host/nodes/2``."""
        return self.home.relative_to(self.base.parent).as_posix()

    @property
    def identity(self) -> Identity:
        """The owner's."""
        return self.above.identity

    @property
    def key(self) -> bytes:
        """What journals and kept moments are sealed under."""
        return self.above.key

    @property
    def ledger(self) -> Ledger:
        """The owner's."""
        return self.above.ledger

    @property
    def publics(self) -> tuple[bytes, ...]:
        """Everybody's public key by place."""
        return self.above.publics

    @property
    def kind(self) -> CourseKind:
        """The row of the course."""
        return self.above.kind

    @property
    def header(self) -> Header:
        """What openings of the session begin with."""
        return Header.of(self.plan, self.roster)

    @property
    def session(self) -> str:
        """32 hexadecimal digits that name the session: parameters and roster, so a roster is used once."""
        return sha256(self.plan.masking.digest + self.roster.digest).hexdigest()[:32]

    @property
    def begun(self) -> bool:
        """Whether some account of this ledger has a mark of this node; a plan alone is spent, and never marked."""
        entries = (account.of_run(self.above.roster.run) for account in self.ledger.accounts())
        return any(entry is not None and self.place in entry.begun for entry in entries)

    @property
    def totals(self) -> Totals | None:
        """What the server weighs exact sums with, under seal; None where it releases the sum as it is.

        Raises:
            PlanError: a course that weighs and is no stream, of whose nodes nothing says the weights.
        """
        course, key = self.above.course, self.key
        if not self.kind.weighs(course):
            return None
        if not isinstance(course, Stream):
            raise PlanError(f"a server weighs the sums of a stream only; {type(course).__name__} says that it weighs")
        return Totals(self.base, course, lambda purpose: hmac.digest(key, purpose.encode(), "sha256"))

    @property
    def before(self) -> Releases:
        """What the nodes before this one released; raises as :meth:`Folder.release` does."""
        return [self.above.release(place) for place in range(self.place)]

    def charge(self, dataset: str | None, again: bool) -> Charge | NodeCharge:
        """Where a party's part of the session is written down; a course is spent before its first node.

        Args:
            dataset: the account, where ``records.py`` names one.
            again: whether it allows exact sums to be released a second time; asked of a plan alone.

        Raises:
            LedgerError: nothing says which account is charged, or as for :meth:`Folder.entry`.
        """
        account = account_of(self, dataset)
        if self.kind.single:
            return Charge(self.ledger, account, allow_second_exact_release=again)
        return NodeCharge(self.ledger, self.above.entry(account), self.place, self.plan.digest)

    def release_charge(self) -> Charging:
        """Where the server's release is written down; of a course its node is marked by now, which happens once.

        A marked node needs no other charge: its journal, which holds the seed, draws once and gives the same release
        again.

        Raises:
            LedgerError: nothing says which account is charged, or the cap would be passed.
        """
        remedy = "keep only the one that is meant in it"
        if self.kind.single:
            return Charge(self.ledger, account_of(self, remedy=remedy))
        if not self.begun:
            account, run = account_of(self, remedy=remedy), self.above.roster.run
            entry = spend(self.above.course, self.ledger, account, run, sums_only=True)
            self.ledger.mark_started(entry, self.place, sums_only=True)
        return CHARGED_BEFORE

    @property
    def agreed(self) -> tuple[int, ...] | None:
        """The clients of an earlier sum, as this party signed them then; None where it was in none.

        Raises:
            LocalProtocolError: what was kept of it is damaged.
        """
        if self.kind.single:
            return lists.kept(self.home, self.plan, self.roster)
        path = self.above.path(0) / _AGREED
        if not self.place or not path.exists():
            return None
        try:
            return msgspec.json.decode(read_whole(path, LocalProtocolError, "privstats flower"), type=tuple[int, ...])
        except msgspec.DecodeError:
            raise LocalProtocolError(f"{path} is damaged: this party's rounds cannot begin") from None

    def remember(self, agreed: tuple[int, ...]) -> None:
        """Keep the list of clients that this party has signed, where something may come after."""
        if self.kind.single:
            lists.keep(self.home, self.plan, self.roster, agreed)
        elif not self.place:
            atomic_write(self.home / _AGREED, msgspec.json.encode(agreed))


def account_of(folder: NodeFolder, dataset: str | None = None, *, remedy: str = _REMEDY) -> str:
    """The account of a folder's ledger that is meant: the one that is named, or the only one there is.

    Raises:
        LedgerError: there is none, or more than one.
    """
    if dataset is not None:
        return dataset
    names = [account.dataset for account in folder.ledger.accounts()]
    if len(names) == 1:
        return names[0]
    if names:
        raise LedgerError(f"the ledger has {len(names)} accounts: {remedy}")
    if isinstance(folder.plan.privacy, NoPrivacy):
        return UNNAMED
    raise LedgerError(
        "this plan spends privacy and the ledger has no account: open one with "
        f"`privstats ledger cap {folder.base.name}/ledger DATASET --unit ... --epsilon ...`"
    )


@contextmanager
def _laid_down(path: Path, data: bytes) -> Iterator[Path]:
    """A file for as long as it is looked at."""
    place = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    atomic_write(place, data)
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)
