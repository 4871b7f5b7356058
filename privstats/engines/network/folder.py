"""A party's or the server's folder: a course, its run, and the files of every round's session.

A plan alone is a course of one round, with its session in the folder itself, its own run name and charge. In other
courses ``nodes/2`` is the folder of round 2.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from privstats.course import Releases, spend
from privstats.course.base import position_of
from privstats.course.kinds import CourseKind
from privstats.dp import Ledger, NoPrivacy, Spend
from privstats.encoding import RingVector
from privstats.engines.journal.client_file import receipt_and_agreement
from privstats.engines.network import statements
from privstats.engines.network.folder_documents import PLAN, FolderDocuments, private_files, session_name
from privstats.engines.network.statements import Header
from privstats.engines.network.status_file import PartyStatus, noted
from privstats.engines.network.transport import Declined
from privstats.errors import LedgerError, LocalProtocolError, PlanError, PrivstatsError, ReleaseError
from privstats.files.atomic import MOST_SIGNED, atomic_write, read_bounded
from privstats.files.decoding import from_json, from_msgpack
from privstats.plan import Plan
from privstats.plan.position import Position
from privstats.printable.command_line import command_line
from privstats.release import Release
from privstats.schema.public_values import Published, Values, values_path
from privstats.secagg import Identity, Roster
from privstats.session.charges import Charge, ReleaseCharge, RoundCharge

RELEASE = "release.safetensors"

UNNAMED = "records"
"""Name of the data set in the ledger, where the plan has no DP and no name was given."""

_ONE_ACCOUNT = "keep only the one that is meant in it"
_REMEDY = 'say in records.py which one to charge, dataset = "..."'
_NO_SUM, _AGREED = "without-a-sum", "agreed"
_Lists: TypeAlias = dict[str, tuple[int, ...]]  # by the digests of the first plan, and of the clients on its roster
T = TypeVar("T")


class Totals(Protocol):
    """Sums of one run of a course with a weighing server, on the server's disk."""

    def seed(self) -> None:
        """Create, once, the noise seed of all rounds."""

    def weighed(self, summed: tuple[RingVector, tuple[int, ...]], before: Releases) -> Release:
        """Return the release of the round after ``before``, from its exact sum and its survivors."""


@dataclass(frozen=True)
class Folder(FolderDocuments):
    """An opened folder.

    Attributes:
        key: seals journals and stored moments.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import Folder, simulated_study
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> folder = Folder.open("study/parties/1")
        >>> folder.publics.index(folder.identity.public), folder.rounds
        (1, (0,))
    """

    key: bytes
    ledger: Ledger

    @classmethod
    def open(cls, home: str | os.PathLike[str]) -> Folder:
        """Read a folder; create its journal key and ledger where missing.

        Raises:
            LocalProtocolError: no such folder, or other accounts can read or change its files.
        """
        known = FolderDocuments.read(home)
        return cls(known.home, known.course, known.roster, known.identity, *private_files(known.home))

    def round(self, place: int) -> RoundFolder:
        """Return the folder of a round that this folder holds."""
        return RoundFolder(self, place, self.plan(place), self.session(place))

    def store(self, place: int, plan: Plan) -> RoundFolder:
        """Create a round's folder with plan and published values; an existing one stays.

        The plan names the session of this folder's own course, whatever the one that came names.
        """
        if place not in self.rounds:
            home, plan = self._ensured(place), plan.at(self.position(place))
            if plan.published is not None:
                plan.published.save(values_path(home / PLAN))
            atomic_write(home / PLAN, plan.to_toml().encode())  # last: a round exists once its plan does
        return self.round(place)

    def has_outcome(self, place: int) -> bool:
        """Return whether a round's outcome is stored."""
        return any((self.path(place) / name).exists() for name in (_NO_SUM, RELEASE))

    def outcome_bytes(self, place: int) -> bytes | None:
        """Return a round's stored release file; None without a sum."""
        if (self.path(place) / _NO_SUM).exists():
            return None
        return read_bounded(self.path(place) / RELEASE, LocalProtocolError, "privstats flower", MOST_SIGNED)

    def store_outcome(self, place: int, release: bytes | None) -> None:
        """Store a round's verified outcome; on disk when this returns."""
        atomic_write(self._ensured(place) / (_NO_SUM if release is None else RELEASE), release or b"")

    def position(self, place: int) -> Position | None:
        """Return what a round's release names, after the stored outcomes; None for a plan alone and a stream."""
        return position_of(self.course, [not (self.path(each) / _NO_SUM).exists() for each in range(place)])

    def read_release(self, place: int, release: bytes) -> Release:
        """Read a received release file.

        Raises:
            ReleaseError: the roster's server did not sign it, or it names another session.
        """
        with _laid_down(self._ensured(place) / "shown", release) as path:
            return self._loaded(place, path)

    def read_values(self, place: int, values: bytes) -> Published:
        """Read a received file of published values."""
        with _laid_down(self._ensured(place) / "values", values) as path:
            return Published.load(path)

    def values(self, place: int) -> Mapping[str, Values]:
        """Return a stored round's published values; empty for a missing or damaged file."""
        with suppress(PlanError):
            return Published.load(values_path(self.path(place) / PLAN)).read()
        return {}

    def release(self, place: int) -> Release | None:
        """Return a round's stored outcome; None without a sum.

        Raises:
            ReleaseError: the file is damaged, not signed by the roster's server, or names another session.
        """
        if (self.path(place) / _NO_SUM).exists():
            return None
        return self._loaded(place, self.path(place) / RELEASE)

    def releases_so_far(self) -> list[Release | None]:
        """Return the stored outcomes in order; raises as :meth:`release`."""
        known = takewhile(self.has_outcome, range(self.course.most))
        return [self.release(place) for place in known]

    def note(self, place: int, kind: str, code: str, *, step: str = "", received: int = 0, sent: int = 0) -> None:
        """Add one answered message to the folder's ``status.json``, for the operator.

        Args:
            place: the message's round; -1 where unknown.
            kind, code: of the message, and of the answer.
            step: the machine's step after the answer; empty where unknown.
            received, sent: bytes of the message, and of the answer.
        """
        run = self.roster.run.hex()
        noted(self.home, PartyStatus(run, time.time(), place, step, kind, code, sent=sent, received=received))

    def entry(self, dataset: str) -> Spend:
        """Return the complete course's spend in this ledger, spending it now if necessary.

        Raises:
            LedgerError: the cap would be exceeded, or the run's name does not fit.
        """
        return spend(self.course, self.ledger, dataset, self.roster)

    def _loaded(self, place: int, path: Path) -> Release:
        release, position = Release.load(path, signed_by=self.roster.server), self.position(place)
        if release.position != position:
            named = "no course" if release.position is None else release.position
            raise ReleaseError(
                f"the release of round {place} names {named}, and not {position or 'a plan alone'}; give that "
                "session's own"
            )
        return release

    def _ensured(self, place: int) -> Path:
        home = self.path(place)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            home.parent.chmod(0o700)
        except OSError as error:
            raise PrivstatsError(f"cannot make {home}: {error.strerror}; nothing was sent") from error
        return home


@dataclass(frozen=True)
class RoundFolder:
    """The folder of one round's session.

    Attributes:
        place: the round's number.
        roster: the course's, under the round's run name.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import Folder, simulated_study
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> host, party = Folder.open("study/host").round(0), Folder.open("study/parties/1").round(0)
        >>> party.read_end(host.signed_end()), party.read_end(party.signed_end())
        (b'', None)
    """

    above: Folder
    place: int
    plan: Plan
    roster: Roster

    @property
    def home(self) -> Path:
        """Folder of the session's files."""
        return self.above.path(self.place)

    @property
    def base(self) -> Path:
        """Folder of ``records.py`` and the ledger."""
        return self.above.home

    @property
    def name(self) -> str:
        """The folder's name in sentences: ``host/nodes/2``."""
        return self.home.relative_to(self.base.parent).as_posix()

    @property
    def identity(self) -> Identity:
        """The owner's identity."""
        return self.above.identity

    @property
    def key(self) -> bytes:
        """The folder's key."""
        return self.above.key

    @property
    def ledger(self) -> Ledger:
        """The owner's ledger."""
        return self.above.ledger

    @property
    def publics(self) -> tuple[bytes, ...]:
        """Public keys by index."""
        return self.above.publics

    @property
    def kind(self) -> CourseKind:
        """The row of the course."""
        return self.above.kind

    @property
    def header(self) -> Header:
        """The header of the session's openings."""
        return Header.of(self.plan, self.roster)

    @property
    def session(self) -> str:
        """The session's name."""
        return session_name(self.plan, self.roster)

    @property
    def release_path(self) -> Path:
        """The path of the session's release."""
        return self.home / RELEASE

    def release_bytes(self, writer: str) -> bytes:
        """Return the session's release file; LocalProtocolError names its ``writer`` where it cannot be read."""
        return read_bounded(self.release_path, LocalProtocolError, writer, MOST_SIGNED)

    @property
    def max_reply_bytes(self) -> int:
        """Maximum bytes of a party's signed answer."""
        return statements.most_bytes(self.plan)

    def sign_reply(self, place: int, question: bytes, code: str, payload: bytes = b"") -> bytes:
        """Return the owner's signed answer to ``question``; ``place`` is the owner's index, clients first.

        Guarantee: the signature covers question, code, place and payload, so a reply answers one message and cannot be
        replayed for another.
        """
        return statements.sign_reply(self.identity, place, question, code, payload)

    def reply_signer(self, head: bytes, payload: bytes, question: bytes, code: str) -> int | None:
        """Return the index of an answer's signer, before the payload has arrived; None where no listed key signed.

        Args:
            head: the first :data:`REPLY_HEAD_BYTES` of the answer.
            payload, question: SHA-256 of the payload, and of the answered message.
            code: the answer's code.
        """
        return statements.reply_signer(head, payload, question, code, self.publics)

    def signed_end(self, release: str = "", beside: bytes = b"") -> bytes:
        """Return the server's signed statement that this session has ended.

        Args:
            release: SHA-256 of the release's file, in hex; empty without one.
            beside: without a sum, the panel's offers for a helper; encoded statements for a client in no sum.
        """
        return statements.session_ended(self.identity, self.header, bytes.fromhex(release), beside)

    def read_end(self, data: bytes) -> bytes | None:
        """Return the attachment of a signed end; None where the roster's server did not sign it for this session."""
        return statements.read_session_ended(data, self.header, self.roster.server)

    @property
    def client_file(self) -> Path:
        """The path of the client's machine."""
        return self.home / "sessions" / self.session

    @property
    def receipt(self) -> bytes:
        """The ended client's receipt of its upload; empty where nothing was sent."""
        return receipt_and_agreement(self.client_file, self.key)[0]

    def exclusion(self, beside: bytes) -> dict[str, Any]:
        """Return the proof that the upload is in no sum, as ``session.free`` takes it; nothing is verified here.

        Args:
            beside: encoded ``statements.EndStatements``, from any party.

        Returns:
            ``report``, ``statements``, ``roster`` and ``panel``.

        Raises:
            Declined: the bytes are no statements.
        """
        try:
            ended = from_msgpack(beside, statements.EndStatements)
        except msgspec.DecodeError:
            raise Declined("damaged", "the signed statements about an upload were damaged on their way") from None
        panel = statements.panel_of(self.plan, b"".join(ended.offers))
        return {"report": self.receipt, "statements": ended.statements, "roster": self.roster, "panel": panel}

    @property
    def begun(self) -> bool:
        """Whether this ledger marks this round as begun; a plan alone never is."""
        entries = (account.of_run(self.above.roster.run) for account in self.ledger.accounts())
        return any(entry is not None and self.place in entry.begun for entry in entries)

    @property
    def totals(self) -> Totals | None:
        """The sealed sums of a server that weighs sums, if it does."""
        key, changing = self.key, self.kind.changing
        if changing is None:
            return None
        totals: Totals | None = changing.totals(
            self.base, self.above.course, lambda purpose: hmac.digest(key, purpose.encode(), "sha256")
        )
        return totals

    @property
    def before(self) -> Releases:
        """Earlier rounds' releases; raises as :meth:`Folder.release`."""
        return [self.above.release(place) for place in range(self.place)]

    def account(self, dataset: str | None = None, *, remedy: str = _REMEDY) -> str:
        """Return the named account of the owner's ledger, or the only one.

        Args:
            remedy: what to do where the ledger has several, for the error.

        Raises:
            LedgerError: the ledger has several accounts, or none for a plan with a promise.
        """
        if dataset is not None:
            return dataset
        names = [account.dataset for account in self.ledger.accounts()]
        if len(names) == 1:
            return names[0]
        if names:
            raise LedgerError(f"the ledger has {len(names)} accounts: {remedy}")
        privacy = self.plan.privacy
        if isinstance(privacy, NoPrivacy):
            return UNNAMED
        terms = {"--unit": privacy.unit, "--adjacency": privacy.adjacency, "--delta": privacy.delta, "--epsilon": "CAP"}
        raise LedgerError(
            "this plan spends privacy and the ledger has no account: open one, with a cap that its owner decides, by "
            f"`{command_line('ledger', 'cap', self.base / 'ledger', 'DATASET', options=terms)}`"
        )

    def charge(self, dataset: str | None, again: bool) -> Charge | RoundCharge:
        """Return the charge of a party's session; a course is spent before its first round.

        Args:
            dataset: the account, where ``records.py`` names one.
            again: whether exact sums may be released twice; for a plan alone.
        """
        account = self.account(dataset)
        if self.kind.single:
            return Charge(self.ledger, account, allow_second_exact_release=again)
        return RoundCharge(self.ledger, self.above.entry(account), self.place, self.plan.digest)

    def server_account(self) -> str:
        """Return the ledger's only account, which pays for a server's release or a stream, or raise ``LedgerError``."""
        return self.account(remedy=_ONE_ACCOUNT)

    def release_charge(self) -> Charge | ReleaseCharge:
        """Return the charge of the server's release; a course's round is marked once.

        A marked round needs no other charge: its journal holds the seed and repeats one release, whose digest the
        ledger stores.

        Raises:
            LedgerError: no account is determined, or the cap would be exceeded.
        """
        if self.kind.single:
            return Charge(self.ledger, self.server_account())
        account, run = self.server_account(), self.above.roster.run
        entry = spend(self.above.course, self.ledger, account, run, sums_only=True)
        charge = ReleaseCharge(self.ledger, entry, self.place, self.plan.digest)
        charge.spend(self.plan, run)
        return charge

    def ask_charge(self) -> None:
        """Refuse early what :meth:`release_charge` would refuse; nothing is spent."""
        accounts, noise, run = self.ledger.accounts(), self.plan.noise, self.above.roster.run
        pays = self.totals is not None or (noise is not None and (noise.trust.at_release or len(accounts) == 1))
        if not pays or any(account.of_run(run) is not None for account in accounts):
            return
        account, ledger = self.server_account(), self.ledger.asking()
        if self.kind.single:
            Charge(ledger, account).spend(self.plan, run)
        else:
            spend(self.above.course, ledger, account, run, sums_only=True)

    @property
    def agreed(self) -> tuple[int, ...] | None:
        """The clients of an earlier sum, as this party signed them; None without such a sum."""
        if self.kind.single:
            return signed_list(self.home, self.plan, self.roster)
        return _lists(self.above.path(0) / _AGREED, tuple[int, ...]) if self.place else None

    def remember(self, agreed: tuple[int, ...]) -> None:
        """Store the signed client list where a later round may need it."""
        if self.kind.single:
            keep_signed_list(self.home, self.plan, self.roster, agreed)
        elif not self.place:
            atomic_write(self.home / _AGREED, msgspec.json.encode(agreed))


@contextmanager
def _laid_down(path: Path, data: bytes) -> Iterator[Path]:
    place = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    atomic_write(place, data)
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)


def signed_list(home: Path, plan: Plan, roster: Roster) -> tuple[int, ...] | None:
    """Return the clients that this party signed before a round of an alignment, if any.

    A list holds roster indices, so it is valid for these clients in this order only.
    """
    earlier = plan.schema.follows
    if earlier is None:
        return None
    first = replace(plan, schema=earlier, published=None)
    return (_lists(home / _AGREED, _Lists) or {}).get(_list_name(first, roster))


def keep_signed_list(home: Path, plan: Plan, roster: Roster, agreed: tuple[int, ...]) -> None:
    """Store the list of an alignment's first sum without noise.

    The first list stays, so that no server can replace it later.
    """
    if plan.schema.followed and isinstance(plan.privacy, NoPrivacy):
        lists, name = _lists(home / _AGREED, _Lists) or {}, _list_name(plan, roster)
        if name not in lists:
            atomic_write(home / _AGREED, msgspec.json.encode({**lists, name: agreed}))


def _list_name(first: Plan, roster: Roster) -> str:
    return f"{first.digest} {roster.members.hex()}"


def _lists(path: Path, kind: type[T]) -> T | None:
    if not path.exists():
        return None
    try:
        return from_json(read_bounded(path, LocalProtocolError, "privstats flower"), kind)
    except msgspec.DecodeError:
        raise LocalProtocolError(f"{path} is damaged: bring it back, or this party's rounds cannot begin") from None
