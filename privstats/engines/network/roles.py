"""A party's side of the session: the journaled machine of a client, or of a helper, one message at a time.

Every call opens the journal, lets the machine act, and closes it, because the next message finds another process. What
a party declines it declines with a code; all else is raised as the machines raise it. Between party and journal.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from privstats import session
from privstats.dp import Spend
from privstats.dp.ledger_rules import check_waiting
from privstats.engines.journal import JournaledClient, JournaledHelper
from privstats.engines.journal.client_file import left_by, never
from privstats.engines.network.folder import Folder
from privstats.engines.network.measuring import charge_of, records_of
from privstats.engines.network.statements import EndStatements
from privstats.errors import (
    LocalProtocolError,
    NothingToResumeError,
    PrivstatsError,
    RemoteProtocolError,
    RestoredError,
    SessionEndedError,
)
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.secagg import Offer, Panel
from privstats.secagg.machines import ENDS, OnUpload, Peer
from privstats.session import Charge, NodeCharge
from privstats.session.validation import check_opening, required_survivors

__all__ = ["SESSION_ENDED", "ClientRole", "Declined", "HelperRole", "Role", "answered", "panel_of", "role_of"]

SESSION_ENDED = "this session has ended here, nothing is answered any more"
"""What a party's operator reads where a server asks after the end."""


OTHERS = (
    "this round is over other clients than the sum before it, as this party signed them: a server that names others "
    "could take single clients from the difference; nothing was sent"
)
"""What a party's operator reads where a round names another list than the one that it remembers."""


class Declined(PrivstatsError):  # noqa: N818 - an answer, not a mistake
    """What a party does not do, with the code that the server is told and the reason that stays here."""

    def __init__(self, code: str, why: str) -> None:
        self.code = code
        super().__init__(why)


class Role(Protocol):
    """A party's side of one session."""

    @property
    def place(self) -> int:
        """Its place among the peers: clients first, then helpers."""
        ...

    def greeting(self) -> bytes:
        """What it says of itself before the session begins."""
        ...

    def opened(self, opening: bytes) -> bytes:
        """Its answer to the opening."""
        ...

    def stepped(self, message: bytes) -> bytes:
        """Its answer to a message for a client; empty where there is none."""
        ...

    def helped(self, opening: bytes, message: bytes) -> bytes:
        """Its answer to a message for a helper."""
        ...

    def session_ended(self, beside: bytes = b"") -> bytes:
        """Keep nothing but that there was such a session; where it ended without a sum, say so or hear of it.

        Args:
            beside: what the server said beside its last word, see :func:`words.session_ended`.

        Returns:
            A helper's word that it abandoned the run; empty where there is none.
        """
        ...


class ClientRole:
    """A client: one file under ``sessions/``, from the opening to the tombstone."""

    def __init__(self, folder: Folder, place: int) -> None:
        self._folder, self.place = folder, place
        self._path = folder.home / "sessions" / folder.session

    @property
    def path(self) -> Path:
        """Its file."""
        return self._path

    @property
    def there(self) -> bool:
        """Whether the client was made, whatever became of it."""
        return self._path.exists()

    def greeting(self) -> bytes:
        """Nothing: a client has its name and no more."""
        return b""

    def opened(self, opening: bytes) -> bytes:
        """Make the client, once, and give what it answers.

        Where the protocol begins with its clients, the opening is the panel's offers, and else the server's message.
        """
        with self._journal(lambda: self._made(opening)) as client:
            return answered(client, opening, begins=True)

    def stepped(self, message: bytes) -> bytes:
        """What the client answers."""
        with self._journal(self._lost) as client:
            answer = answered(client, message)
            if client.agreed:
                self._folder.remember(client.agreed)
            return answer

    def helped(self, opening: bytes, message: bytes) -> bytes:
        """Decline: this is no helper."""
        raise Declined("refused", f"the server takes this party for a helper ({len(opening) + len(message)} bytes)")

    def session_ended(self, beside: bytes = b"") -> bytes:
        """Remove state and last answer; the file stays, and says that the client has ended.

        The ledger has back what was spent where nothing has left, or where others have signed that it is in no sum.
        No client begins here any more, also where none had: an opening that comes late finds the end.
        """
        self._end()
        if self._folder.gives_back:
            for spend in self._spends().values():
                if spend.waiting:
                    self._folder.ledger.withdraw(spend)
            if beside:
                self._free(beside)
        return b""

    def withdraw(self) -> tuple[str, ...]:
        """End the session here, whatever the server does, and have back what was spent for it, if anything was.

        Returns:
            The accounts that have it back.

        Raises:
            LedgerError: the upload has left, and the session goes on; where it left during this call, it has ended.
            InUseError: the party answers a message of it right now.
        """
        for spend in self._spends().values():
            check_waiting(spend)
        self._end()
        spends = self._spends()  # an opening that was answered meanwhile has spent
        for spend in spends.values():
            self._folder.ledger.withdraw(spend)
        return tuple(spends)

    def _end(self) -> None:
        """What must not come back is gone from the disk, and where there was no client, none begins.

        A journal that was put back from a backup is only ended, which is as well with every copy of it.
        """
        with suppress(Declined, SessionEndedError), self._journal(self._lost, told=False, restored=True) as client:
            client.discard()
        never(self._path, self._folder.key)

    def _spends(self) -> dict[str, Spend]:
        """What this session was charged to, by account."""
        folder, run = self._folder, self._folder.roster.run
        spends = {account.dataset: account.of_run(run) for account in folder.ledger.accounts()}
        return {name: each for name, each in spends.items() if each is not None and each.plan == folder.plan.digest}

    def _free(self, beside: bytes) -> None:
        folder = self._folder
        receipt, _ = left_by(self._path, folder.key)
        if not receipt:  # nothing has left, so there is nothing to prove
            return
        try:
            words = msgspec.msgpack.decode(beside, type=EndStatements)
        except (msgspec.DecodeError, RecursionError):
            raise Declined("damaged", "what helpers are said to have signed is nothing that they sign") from None
        panel, charge = panel_of(folder.plan, b"".join(words.offers)), charge_of(folder)
        given: dict[str, Any] = {"roster": folder.roster, "panel": panel, "charge": charge}
        session.free(folder.plan, receipt, words.statements, **given)

    def _journal(self, make: Callable[[], Peer], *, told: bool = True, restored: bool = False) -> JournaledClient:
        folder = self._folder
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        return JournaledClient.resume_or_create(
            self._path,
            folder.key,
            make,
            parameters=folder.plan.masking,
            index=self.place,
            identity=folder.identity,
            roster=folder.roster,
            on_upload=self._left() if told else lambda _: None,
            restored=restored,
        )

    def _left(self) -> OnUpload:
        """What is told that the upload leaves."""
        folder = self._folder
        return session.on_upload(folder.plan, folder.roster, charge_of(folder))

    def _part(self) -> tuple[Moments, Charge | NodeCharge]:
        """What this party brings, and where that is written down."""
        records = records_of(self._folder)
        return records.moments, records.charge

    def _made(self, opening: bytes) -> Peer:
        folder = self._folder
        if required_survivors(folder.plan) not in (None, folder.agreed):
            raise Declined("not_next", OTHERS)
        self._verify(opening)
        panel, (moments, charge) = panel_of(folder.plan, opening), self._part()
        return session.client(
            folder.plan,
            moments,
            index=self.place,
            identity=folder.identity,
            roster=folder.roster,
            panel=panel,
            charge=charge,
            agreed=folder.agreed,
        )

    def _verify(self, opening: bytes) -> None:
        """Nothing is measured, spent or drawn for an opening that anybody could have sent."""
        try:
            check_opening(self._folder.plan, self._folder.roster, opening)
        except RemoteProtocolError as error:
            raise Declined("damaged", str(error)) from None

    def _lost(self) -> Peer:
        raise Declined("lost", f"sessions/{self._path.name} is gone, and with it this party's part of the session")


class HelperRole:
    """A helper: one folder under ``sessions/``, from the offer to the marker without a key."""

    def __init__(self, folder: Folder, place: int) -> None:
        self._folder, self.place = folder, place

    def greeting(self) -> bytes:
        """The offer of this run's box key, which is made now if there is none."""
        folder = self._folder
        try:
            helper = self._resumed()
        except NothingToResumeError:
            (folder.home / "sessions").mkdir(mode=0o700, exist_ok=True)
            number = self.place - folder.plan.masking.clients + 1
            helper = JournaledHelper.offer(**self._home(), place=number)
        with helper:
            _require_running(helper)
            return helper.offered.encode()

    def opened(self, opening: bytes) -> bytes:  # noqa: ARG002
        """Nothing: a helper is asked by name."""
        return b""

    def stepped(self, message: bytes) -> bytes:
        """Decline: this is no client."""
        raise Declined("refused", f"the server takes this helper for a client ({len(message)} bytes)")

    def helped(self, opening: bytes, message: bytes) -> bytes:
        """What the helper answers, bound to the panel of the opening for good."""
        try:
            helper = self._resumed()
        except NothingToResumeError:
            raise Declined("lost", "the box key of this run is gone, and with it this helper's part") from None
        with helper:
            if helper.step not in ENDS:
                helper.bind(_panel(self._folder.plan, opening))
            return answered(helper, message)

    def session_ended(self, beside: bytes = b"") -> bytes:
        """Destroy the box key, if it is still there, and sign that it was, where the panel's offers came with the word.

        That the run was known stays. Who has answered signs nothing: the run counts as a release then. Neither does one
        that was put back from a backup, because its twin may have.
        """
        try:
            found = self._resumed()
        except NothingToResumeError:
            return b""
        except RestoredError:
            with self._resumed(restored=True) as twin:
                twin.discard()
            return b""
        with found as helper:
            if beside and helper.step != "done":
                if helper.step not in ENDS:
                    helper.bind(_panel(self._folder.plan, beside))
                return helper.abandon()[0][1]
            helper.discard()
        return b""

    def _resumed(self, *, restored: bool = False) -> JournaledHelper:
        return JournaledHelper.resume(**self._home(), restored=restored)

    def _home(self) -> dict[str, Any]:
        folder = self._folder
        place = {"identity": folder.identity, "parameters": folder.plan.masking, "roster": folder.roster}
        return {"home": folder.home / "sessions", "key": folder.key, **place}


def role_of(folder: Folder) -> Role | None:
    """The seat of a folder's identity; None where plan and roster have none for it."""
    public = folder.identity.public
    if public not in folder.publics:
        return None
    place = folder.publics.index(public)
    return ClientRole(folder, place) if place < len(folder.roster) else HelperRole(folder, place)


def panel_of(plan: Plan, offers: bytes) -> Panel | None:
    """The panel of a session, from the offers in its opening and the identities in the plan; None where it has none.

    Raises:
        Declined: they are no offers of the plan's panel.
    """
    return _panel(plan, offers) if plan.panel else None


def _panel(plan: Plan, offers: bytes) -> Panel:
    size = len(offers) // len(plan.panel)
    cut = [offers[size * place : size * (place + 1)] for place in range(len(plan.panel))]
    try:
        return Panel(tuple(bytes.fromhex(key) for key in plan.panel), tuple(map(Offer.decode, cut)))
    except LocalProtocolError as error:
        raise Declined("refused", f"the server's opening holds no panel of this plan: {error}") from None


def _require_running(machine: Peer) -> None:
    if machine.step in ENDS:
        raise Declined("over", SESSION_ENDED)


def answered(machine: Peer, message: bytes, *, begins: bool = False) -> bytes:
    """What the machine sends: unasked, where its protocol begins with it, or in answer; empty where that is nothing."""
    before = machine.step
    try:
        sent = (machine.start() if begins else []) or machine.receive(message)
    except RemoteProtocolError as error:
        if before in ENDS:
            raise Declined("over", SESSION_ENDED) from None
        raise Declined("refused" if machine.step in ENDS else "damaged", str(error)) from None
    return sent[0][1] if sent else b""
