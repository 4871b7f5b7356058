"""A party in one session: an answer to every message; only codes and the machines' answers leave it.

The role acts, and an error becomes a code for the server and a sentence for the party's own operator. ``party`` passes
the messages in, once it has found that the session is one of its folder's.

Which node is which party is proved by the answer itself. A party signs its place with every answer to an opening,
over question and answer. Asking the machine for the sender of an answer would need a method of every protocol, and
would leave refusals without a name; a round of its own for it would cost a step. The sum never rests on that map.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from privstats.engines.journal.client_file import forget_answer
from privstats.engines.journal.helper import forget_ended
from privstats.engines.network import statements
from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.measuring import Records
from privstats.engines.network.operator_log import reason_of
from privstats.engines.network.roles import SESSION_ENDED, ClientRole, Role, require_role, role_of
from privstats.engines.network.status_codes import FAILED, VERSION, Declined, short
from privstats.engines.network.transport import OK, Answer
from privstats.errors import (
    DataError,
    InUseError,
    LedgerError,
    LocalProtocolError,
    PrivstatsError,
    RestoredError,
    SessionEndedError,
)

__all__ = ["ANOTHER_VERSION", "KEPT_SECONDS", "RoundParty", "code_of_error", "passing_code"]

ANOTHER_VERSION = "the server speaks another version of this engine: install the same privstats"
"""A party's operator reads this for a message that cannot be parsed."""

KEPT_SECONDS = 30 * 24 * 3600.0
"""Seconds for which a last answer is kept for a server that never sends the end of the session."""
_PASSING = {sqlite3.SQLITE_BUSY: "busy", sqlite3.SQLITE_FULL: "disk", sqlite3.SQLITE_IOERR: "disk"}


@dataclass(frozen=True)
class RoundParty:
    """A party's folder of one session.

    Args:
        folder: the folder.
        say: called with each error: one sentence, or the places in the code of an unforeseen one.
    """

    folder: RoundFolder
    say: Callable[[str], None]

    @cached_property
    def role(self) -> Role:
        """Its role in the session.

        Raises:
            Declined: its identity is not on the roster.
        """
        return require_role(self.folder)

    @property
    def reached(self) -> str:
        """The machine's step after the answer that this object has given; empty where it has given none."""
        return self.role.reached if "role" in self.__dict__ else ""

    def prepare(self, *, anew: bool = False) -> Records | None:
        """Find the role and measure, as ``check`` and ``join`` do before anything is sent.

        Args:
            anew: measure even if the sums of an earlier call are kept.

        Returns:
            The records of a client; None for a helper, which has none, and in a stream, whose records are measured when
            they are sent.

        Raises:
            PrivstatsError: the identity is not on the roster, or the records cannot be measured or charged.
        """
        role = self.role
        return role.part.prepare(anew=anew) if isinstance(role, ClientRole) else None

    def withdraw(self) -> tuple[str, ...]:
        """End this folder's session here, and refund its spend if nothing was sent.

        Returns:
            The accounts that were refunded; none where nothing was spent.

        Raises:
            LedgerError: the upload was sent; or this is a helper, which spends nothing.
            PrivstatsError: the folder's process answers a message now, or a file cannot be read or written.
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
            self._tell(code, error)
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
        beside = statements.read_session_ended(data, self.folder.header, self.folder.roster.server)
        if beside is None:
            raise Declined("damaged", "the server on the roster did not say that this session is over")
        return self.role.session_ended(beside)

    _acts: ClassVar[Mapping[str, Callable[[RoundParty, bytes], bytes]]] = {
        "hello": _hello,
        "open": _open,
        "step": _step,
        "helper": _helper,
        "over": _session_ended,
    }

    def _checked(self, data: bytes) -> bytes:
        """The opening without its header, which must be that of this folder's session."""
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
        return statements.sign_reply(self.folder.identity, place, question, code, payload)

    def _signed(self, code: str, question: bytes) -> bytes:
        """The party's signature over a code, where it is on this roster."""
        role = role_of(self.folder)
        return b"" if role is None else self._reply(role.place, question, code)

    def _tell(self, code: str, error: Exception) -> None:
        session = f"sessions/{self.folder.session}"
        sentences = {
            "busy": f"{session} is in use by another process: let it end first",
            "disk": f"cannot write {session}: {_why(error)}; nothing was sent. Make room: the server asks again",
            "over": SESSION_ENDED,
            "restored": f"{session} was put back from a backup or copied: it may have answered more than it knows, so "
            "nothing was sent, and nothing will be in this session",
        }
        self.say(reason_of(error) if isinstance(error, LedgerError) else sentences.get(code) or reason_of(error))

    def forget_old(self) -> None:
        """Remove last answers that were not requested for a month, and expired box keys.

        A failure to remove them does not affect other sessions; the journals remove this session's files themselves.
        """
        limit = time.time() - KEPT_SECONDS
        for path in (self.folder.home / "sessions").glob("*"):
            try:
                with suppress(InUseError):
                    if path.is_dir() and path.name != self.folder.roster.digest.hex():
                        forget_ended(path, self.folder.key)
                    elif path.is_file() and path.suffix == "" and path.stat().st_mtime < limit:
                        forget_answer(path, self.folder.key)
            except (PrivstatsError, OSError) as error:
                self.say(f"sessions/{path.name} is old and stays as it is: {reason_of(error)}")


def code_of_error(error: Exception) -> str:
    """The code of an error; only the code is sent."""
    if isinstance(error, Declined):
        return error.code
    if passing := passing_code(error):
        return passing
    if _os_error(error) is not None:
        return "disk"
    codes: tuple[tuple[type[Exception], str], ...] = (
        (LedgerError, "ledger"),
        (SessionEndedError, "over"),
        (InUseError, "busy"),
        (RestoredError, "restored"),
        (DataError, "no_data"),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), FAILED)


def passing_code(error: Exception) -> str:
    """The code for a ledger that is locked or cannot grow, after which the server asks again; empty for other
    errors."""
    cause = error.__cause__ if isinstance(error, LedgerError) else None
    return _PASSING.get(cause.sqlite_errorcode & 0xFF, "") if isinstance(cause, sqlite3.Error) else ""


def _os_error(error: BaseException) -> OSError | None:
    """The system's error behind a journal that could not be written."""
    cause = error.__cause__ if isinstance(error, LocalProtocolError) else error
    return cause if isinstance(cause, OSError) else None


def _why(error: Exception) -> str:
    found = _os_error(error)
    return (found.strerror or "it failed").lower() if found is not None else "it failed"
