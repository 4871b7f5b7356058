"""A party: one folder, and an answer to every message.

A party computes each round's plan, and joins only rounds that follow from the releases it was shown. The privacy
guarantee does not rest on that check: a server that invents releases can choose plans that follow. Only codes and the
machines' answers are sent; error texts go to the party's own operator.
"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from privstats.course import Single, verify_next
from privstats.engines.journal.client_file import forget_answer
from privstats.engines.journal.expiry import UnconfirmedEndError, look
from privstats.engines.journal.helper import forget_ended
from privstats.engines.network import statements
from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.folder_documents import check_course, check_not_simulated
from privstats.engines.network.measuring import MeasuredRecords
from privstats.engines.network.operator_log import PARTY, reason_of
from privstats.engines.network.parts import contribution_of
from privstats.engines.network.roles import ClientRole, Role, require_role, role_of
from privstats.engines.network.round_transport import BEHIND
from privstats.engines.network.statements import ANNOUNCED, Envelope, RoundAnnouncement, SignedAnnouncement, digest_of
from privstats.engines.network.transport import FAILED, OK, VERSION, Answer, Declined, short
from privstats.errors import (
    DataError,
    InUseError,
    LedgerError,
    LocalProtocolError,
    PlanError,
    PrivstatsError,
    ReleaseError,
    RestoredError,
    SessionEndedError,
)
from privstats.plan import Plan
from privstats.schema.public_values import Values
from privstats.secagg import Roster

_LOOK = "compare the course and the releases with the other parties"

ANOTHER_VERSION = "the server speaks another version of this engine: install the same privstats"
"""A party's operator reads this for a message that cannot be parsed."""

RETAIN_SECONDS = 30 * 24 * 3600.0
"""Seconds for which a last answer is kept for a server that never sends the end of the session."""
_PASSING = {
    sqlite3.SQLITE_BUSY: "busy",
    **dict.fromkeys(
        (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN), "disk"
    ),
}
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Make room"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Let this account read and write there"),
}


@dataclass(frozen=True)
class Party:
    """A party's or a helper's folder; ``report`` is called with each error's sentence or code locations."""

    folder: Folder
    report: Callable[[str], None]

    @classmethod
    def open(cls, home: str | Path, report: Callable[[str], None] | None = None) -> Party:
        """Open a folder, and remove old answers and keys in it."""
        party = cls(Folder.open(home), report or PARTY.warning)
        for place in party.folder.rounds[-1:]:  # those before it were given up with it
            RoundParty(party.folder.round(place), party.report).forget_old()
        return party

    @property
    def first(self) -> RoundParty:
        """The party's side of the first round."""
        return self.at(self.folder.store(0, self.folder.course.first))

    def prepare(self, *, anew: bool = False) -> MeasuredRecords | None:
        """Prepare the first round; see :meth:`RoundParty.prepare`."""
        return self.first.prepare(anew=anew)

    def of(self, plan: str | Path | None, roster: str | Path | None) -> RoundParty:
        """Return the party's side of a session by its files; by default of the current one.

        Raises:
            PrivstatsError: the files do not fit, or the folder holds a course.
        """
        folder = self.folder
        if not folder.kind.single:
            raise PrivstatsError(
                "a course is spent as a whole before its first session, so no session of it is withdrawn"
            )
        course = folder.course if plan is None else Single(Plan.read(plan))
        roster_then = folder.roster if roster is None else Roster.load(roster)
        check_course(course, roster_then)
        return self.at(replace(folder, course=course, roster=roster_then).round(0))

    def answer(self, kind: str, data: bytes) -> Answer:
        """Answer one message; never raises."""
        message, named, place, began = b"" if kind == "round" else data, "message", -1, time.monotonic()
        try:
            if kind != "round":
                raise Declined(VERSION, ANOTHER_VERSION)
            envelope = _opened(data)
            message, named, place = envelope.data, envelope.kind, envelope.place
            party = self.at(self._round(envelope))
        except Exception as error:  # only a code leaves, for every error
            code = code_of_error(error)
            self.report(_sentence(error))
            answer, reached = Answer(code, self._signed(code, message)), ""
        else:
            answer, reached = party.answer(named, message), party.reached
        then, sent = f", then at step {reached}" if reached else "", len(answer.data)
        PARTY.info(
            f"round {place}: {named} answered with {answer.code} in {time.monotonic() - began:.1f} s, {len(data):,} "
            f"bytes in, {sent:,} out{then}"
        )
        self.folder.note(place, named, answer.code, step=reached, received=len(data), sent=sent)
        return answer

    def at(self, folder: RoundFolder) -> RoundParty:
        """Return the party's side of one round."""
        return RoundParty(folder, self.report)

    def _signed(self, code: str, question: bytes) -> bytes:
        public, publics = self.folder.identity.public, self.folder.publics
        if public not in publics or code == BEHIND:
            return b""
        return statements.sign_reply(self.folder.identity, publics.index(public), question, code)

    def _round(self, envelope: Envelope) -> RoundFolder:
        if envelope.signed is not None:
            return self._admitted(envelope, envelope.signed)
        if envelope.kind in ANNOUNCED:
            raise Declined("damaged", "a message that may be the first of its session came without its announcement")
        if envelope.place not in self.folder.rounds:
            raise Declined("lost", f"{self.folder.home.name}/nodes/{envelope.place} is gone, or never announced here")
        return self.folder.round(envelope.place)

    def _admitted(self, envelope: Envelope, signed: SignedAnnouncement) -> RoundFolder:
        try:
            announcement = signed.opened(self.folder.roster.server)
        except LocalProtocolError as error:
            raise Declined("damaged", str(error)) from None
        self._require_same(announcement, envelope.place)
        folder, place = self.folder, announcement.place
        known = folder.round(place) if place in folder.rounds else None
        same = known is not None and (folder.kind.single or known.plan.at(None).to_toml() == announcement.plan)
        admitted = known if known is not None and same else self._followed(announcement, signed)
        _require_fresh(admitted, envelope.kind)
        return admitted

    def _require_same(self, announcement: RoundAnnouncement, place: int) -> None:
        folder = self.folder
        for code, theirs, ours in (
            (f"wrong_{folder.noun}", announcement.course, bytes.fromhex(folder.digest)),
            ("wrong_roster", announcement.roster, folder.roster.digest),
        ):
            if theirs != ours:
                noun, a, b = code.removeprefix("wrong_"), theirs.hex()[:8], ours.hex()[:8]
                raise Declined(code, f"the server runs another {noun} ({a}...), ours is {b}...: nothing was sent")
        if place != announcement.place or place != len(announcement.outcomes) or place >= folder.course.most:
            raise Declined("damaged", f"the course has no round {place} with this announcement")

    def _followed(self, announcement: RoundAnnouncement, signed: SignedAnnouncement) -> RoundFolder:
        folder = self.folder
        for place, outcome in enumerate(announcement.outcomes):
            self._check_outcome(place, outcome, signed.releases.get(place))
        kind = folder.kind
        between = contribution_of(kind)
        between.settle(folder, signed.ended, self.report)
        try:
            plan = self._plan(announcement, signed)
            before = [folder.release(place) if kind.follows else None for place in range(announcement.place)]
            verify_next(folder.course, plan, before)
        except PlanError as error:
            raise Declined("not_next", str(error)) from None
        if announcement.place in folder.rounds:
            raise Declined("not_next", f"the server sent another plan for round {announcement.place} before; {_LOOK}")
        round_folder = folder.store(announcement.place, plan)
        for place in between.obsolete_rounds(folder, round_folder.place):
            with suppress(PrivstatsError):  # one that another process answers now is given up with the next round
                self.at(folder.round(place)).role.session_ended()
        return round_folder

    def _check_outcome(self, place: int, outcome: bytes, file: bytes | None) -> None:
        folder = self.folder
        if folder.has_outcome(place):
            if digest_of(folder.outcome_bytes(place)) != outcome:
                raise Declined("not_next", f"the server showed another release of round {place} before; {_LOOK}")
            return
        if not outcome:
            folder.store_outcome(place, None)
            return
        if file is None or digest_of(file) != outcome:
            raise Declined(BEHIND, f"the release of round {place} was not shown here yet; the server sends it again")
        try:
            release = folder.read_release(place, file)
        except ReleaseError as error:
            raise Declined("not_next", str(error)) from None
        if place in folder.rounds and folder.round(place).plan != release.plan:
            raise Declined("not_next", f"the release shown for round {place} is of another plan; {_LOOK}")
        folder.store_outcome(place, file)

    def _plan(self, announcement: RoundAnnouncement, signed: SignedAnnouncement) -> Plan:
        plan = Plan.from_toml(announcement.plan)
        return plan if plan.published is None else plan.with_values(self._values(announcement, signed))

    def _values(self, announcement: RoundAnnouncement, signed: SignedAnnouncement) -> dict[str, Values]:
        folder, place = self.folder, announcement.place
        received = dict(folder.read_values(place, signed.values).read()) if signed.values else {}
        if any(announcement.values.get(name) != value.digest for name, value in received.items()):
            raise Declined("damaged", "the published values are not those that the server signed")
        for before in reversed(range(place)):
            if received.keys() == announcement.values.keys():
                break
            held = {value.digest: value for value in folder.values(before).values()}
            received = {name: held[digest] for name, digest in announcement.values.items() if digest in held} | received
        lacking = min(announcement.values.keys() - received.keys(), default=None)
        if lacking is not None:
            raise Declined(BEHIND, f"the published {lacking} of round {place} is not here; the server sends it again")
        return received


def answer(home: str | Path, kind: str, data: bytes, *, simulated: bool) -> Answer:
    """Answer one message from a party's folder; never raises. Only codes and the machines' bytes leave the folder.

    Args:
        kind, data: as the server's host pushed them.
        simulated: whether one machine runs all nodes; otherwise a simulated study's folder is refused.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import answer, simulated_study
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> answer("study/parties/0", "round", b"half a message", simulated=True).code
        'damaged'
    """
    try:
        party = Party.open(home)
        if not simulated:
            check_not_simulated(party.folder.roster)
    except Exception as error:  # the server gets a code in every case
        PARTY.warning("%s", _sentence(error))
        return Answer(passing_code(error) or FAILED)
    return party.answer(kind, data)


def _opened(data: bytes) -> Envelope:
    try:
        return Envelope.decode(data)
    except LocalProtocolError as error:
        raise Declined("damaged", str(error)) from None


def _require_fresh(folder: RoundFolder, kind: str) -> None:
    """Refuse to open a round that began here and has lost its journal."""
    if kind != "open" or not folder.begun:
        return
    role = RoundParty(folder, PARTY.warning).role
    if isinstance(role, ClientRole) and not role.there:
        raise Declined("begun", f"round {folder.place} was begun here and cut short before it was on disk: it is lost")


@dataclass(frozen=True)
class RoundParty:
    """A party's folder of one session; ``report`` as for :class:`Party`."""

    folder: RoundFolder
    report: Callable[[str], None]

    @cached_property
    def role(self) -> Role:
        """The party's role in the session; raises ``Declined`` for a stranger."""
        return require_role(self.folder)

    @property
    def reached(self) -> str:
        """The machine's step after this object's answer; empty before."""
        return self.role.reached if "role" in self.__dict__ else ""

    def prepare(self, *, anew: bool = False) -> MeasuredRecords | None:
        """Determine the role and measure the records, before anything is sent.

        Args:
            anew: measure even if sums are stored.

        Returns:
            A client's records; None for a helper or a stream, which measures when it sends.
        """
        role = self.role
        return role.part.prepare(anew=anew) if isinstance(role, ClientRole) else None

    def withdraw(self) -> tuple[str, ...]:
        """End this folder's session here; return the refunded accounts, if nothing was sent.

        Raises:
            LedgerError: the upload was sent; or this is a helper, which spends nothing.
        """
        role = self.role
        if not isinstance(role, ClientRole):
            raise LedgerError("this folder is a helper's, which spends nothing: there is nothing to give back")
        return role.withdraw()

    def answer(self, kind: str, data: bytes) -> Answer:
        """Answer one message; never raises."""
        try:
            act = self._acts.get(kind)
            if act is None:
                raise Declined(VERSION, ANOTHER_VERSION)
            return Answer(OK, act(self, data))
        except Exception as error:  # only a code leaves, for every error
            code = code_of_error(error)
            self._report(code, error)
            return Answer(code, self._signed(code, data))

    def _hello(self, data: bytes) -> bytes:
        self._checked(data)
        role = self.role
        return self._reply(role.place, data, OK, role.greeting())

    def _open(self, data: bytes) -> bytes:
        role, opening = self.role, self._checked(data)
        return self._reply(role.place, data, OK, role.opened(opening))

    def _step(self, data: bytes) -> bytes:
        return self.role.stepped(data)

    def _helper(self, data: bytes) -> bytes:
        opening, message = statements.split_helped(data)
        return self.role.helped(self._checked(opening), message)

    def _session_ended(self, data: bytes) -> bytes:
        attachment = self.folder.read_end(data)
        if attachment is None:
            raise Declined("damaged", "the server on the roster did not declare this session over")
        return self.role.session_ended(attachment)

    _acts: ClassVar[Mapping[str, Callable[[RoundParty, bytes], bytes]]] = {
        "hello": _hello,
        "open": _open,
        "step": _step,
        "helper": _helper,
        "over": _session_ended,
    }

    def _checked(self, data: bytes) -> bytes:
        try:
            theirs, rest = statements.Header.read(data)
        except LocalProtocolError as error:
            raise Declined("damaged", str(error)) from None
        ours = self.folder.header
        for code, noun in (("plan", "plan"), ("roster", "roster")):
            one, other = getattr(theirs, code).hex(), getattr(ours, code).hex()
            if one != other:
                raise Declined(
                    f"wrong_{code}",
                    f"the server runs another {noun} ({short(one)}), ours is {short(other)}: nothing was sent",
                )
        return rest

    def _reply(self, place: int, question: bytes, code: str, payload: bytes = b"") -> bytes:
        return self.folder.sign_reply(place, question, code, payload)

    def _signed(self, code: str, question: bytes) -> bytes:
        role = role_of(self.folder)
        return b"" if role is None else self._reply(role.place, question, code)

    def _report(self, code: str, error: Exception) -> None:
        session = f"sessions/{self.folder.session}"
        sentences = {
            "busy": f"{session} is in use by another process: let it end first",
            "disk": _sentence(error, f"write {session}"),
            "restored": f"{session} was put back from a backup or copied: it may have answered more than it knows, so "
            "nothing was sent, and nothing will be in this session",
        }
        self.report(_sentence(error) if isinstance(error, LedgerError) else sentences.get(code) or reason_of(error))

    def forget_old(self) -> None:
        """Remove answers not requested for a month, and expired box keys, a day after that was first reported.

        Box keys of earlier versions are removed and reported at once.
        """
        for path in (self.folder.home / "sessions").glob("*"):
            try:
                with suppress(InUseError):
                    if path.is_dir() and path.name != self.folder.roster.digest.hex():
                        if destroyed := forget_ended(path, self.folder.key):
                            self.report(f"sessions/{path.name}: {destroyed}")
                    elif path.is_file() and path.suffix == "":
                        self._forget_unused(path)
            except UnconfirmedEndError as error:
                if error.first:
                    self.report(f"sessions/{path.name}: {error}")
            except (PrivstatsError, OSError) as error:
                self.report(f"sessions/{path.name} is old and stays as it is: {reason_of(error)}")

    def _forget_unused(self, path: Path) -> None:
        found = look(path.stat().st_mtime + RETAIN_SECONDS, path)
        if found == "passed":
            forget_answer(path, self.folder.key)
        if found == "seen":
            self.report(
                f"by this machine's clock sessions/{path.name} was not needed for 30 days: its last answer is removed "
                "after another day. Set the clock if it is wrong"
            )


def code_of_error(error: Exception) -> str:
    """Return an error's code."""
    if isinstance(error, Declined):
        return error.code
    if passing := passing_code(error):
        return passing
    codes: tuple[tuple[type[Exception], str], ...] = (
        (LedgerError, "ledger"),
        (SessionEndedError, "over"),
        (InUseError, "busy"),
        (RestoredError, "restored"),
        (UnconfirmedEndError, "clock"),
        (DataError, "no_data"),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), FAILED)


def passing_code(error: Exception) -> str:
    """Return the code of an error that may pass, after which the server asks again; empty for other errors.

    Such are a ledger that is locked, and every file that cannot be read or written, except the records.
    """
    cause = error.__cause__
    if isinstance(error, LedgerError) and isinstance(cause, sqlite3.Error):
        return _PASSING.get(cause.sqlite_errorcode & 0xFF, "")
    failed = _os_error(error)
    if isinstance(failed, BlockingIOError):  # another copy of the ledger is being written
        return "busy"
    return "" if failed is None else "disk"


def _os_error(error: Exception) -> OSError | None:
    if isinstance(error, DataError):
        return None
    cause = error.__cause__ if isinstance(error, PrivstatsError) else error
    return cause if isinstance(cause, OSError) else None


def _sentence(error: Exception, what: str = "") -> str:
    """Return an error's sentence, which for a system error states what failed and the remedy."""
    cause = _os_error(error)
    if cause is None or isinstance(cause, BlockingIOError):
        return reason_of(error)
    failed = str(error)
    if isinstance(error, OSError) or (what and isinstance(error, LocalProtocolError)):  # the latter name no file
        why = (cause.strerror or "it failed").lower()
        failed = f"cannot {what or f'read or write {cause.filename}'}: {why}; nothing was sent"
    return f"{failed}. {_REMEDIES.get(cause.errno or 0, 'Check the disk')}: the server asks again"
