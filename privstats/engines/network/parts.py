"""A client's contribution to one session: its records or changes, their charge, and refunds after the session.

A row per ``part`` of a course kind: all the records of ``records.py``, or the pending changes in a stream's registry.
Roles use it with a party's folder.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from privstats import session
from privstats.course import Pending, PersonRegistry, RecordRegistry, Stream
from privstats.dp import Spend
from privstats.engines.journal.client_file import left_by
from privstats.engines.network.folder import Folder, RoundFolder, account_of
from privstats.engines.network.measuring import Records, charge_of, records_of
from privstats.engines.network.statements import EndStatements
from privstats.engines.network.status_codes import Declined
from privstats.engines.network.stream_inbox import RecordInbox
from privstats.errors import DataError, LedgerError, LocalProtocolError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.secagg import Offer, Panel
from privstats.secagg.machines import OnUpload
from privstats.session import Charge, RoundCharge

__all__ = [
    "PARTS",
    "REMEDY",
    "ChangesPart",
    "Part",
    "RecordsPart",
    "client_file",
    "inbox",
    "inbox_of",
    "offered_panel",
    "panel_of",
    "part_of",
    "registry_of",
    "spends_of",
    "stream_of",
    "take_back",
]

REMEDY = "keep only the one that is meant in it"
"""The remedy where a ledger has more than one account and a stream does not name one."""


class Part(Protocol):
    """A client's part of one session."""

    def prepare(self, *, anew: bool) -> Records | None:
        """Prepare before anything is sent; returns the records, where they are measured then."""
        ...

    def contribution(self) -> tuple[Moments, Charge | RoundCharge]:
        """The moments to send, and their charge."""
        ...

    def on_upload(self) -> OnUpload:
        """The function to call before the upload is sent."""
        ...

    def settle(self, beside: bytes) -> None:
        """Take refunds, once this client can send nothing more in the session.

        Args:
            beside: signed statements about the session's end, see :func:`statements.session_ended`; may be empty.
        """
        ...


class RecordsPart:
    """All records of the party, loaded by ``records.py``."""

    def __init__(self, folder: RoundFolder) -> None:
        self._folder = folder

    def prepare(self, *, anew: bool) -> Records | None:
        """Measure them."""
        return records_of(self._folder, anew=anew)

    def contribution(self) -> tuple[Moments, Charge | RoundCharge]:
        """Their sums, measured once."""
        records = records_of(self._folder)
        return records.moments, records.charge

    def on_upload(self) -> OnUpload:
        """The ledger's, without measuring."""
        return session.on_upload(self._folder.plan, self._folder.roster, charge_of(self._folder))

    def settle(self, beside: bytes) -> None:
        """Refund the spend where nothing was sent, or where signed statements prove that the upload is in no sum."""
        if not self._folder.kind.gives_back:
            return
        for spend in spends_of(self._folder).values():
            if spend.waiting:
                self._folder.ledger.withdraw(spend)
        if beside:
            self._free(beside)

    def _free(self, beside: bytes) -> None:
        folder = self._folder
        receipt, _ = left_by(client_file(folder), folder.key)
        if not receipt:  # nothing was sent, so there is nothing to prove
            return
        try:
            ended = msgspec.msgpack.decode(beside, type=EndStatements)
        except (msgspec.DecodeError, RecursionError):
            raise Declined("damaged", "what helpers are said to have signed is nothing that they sign") from None
        panel, charge = panel_of(folder.plan, b"".join(ended.offers)), charge_of(folder)
        given: dict[str, Any] = {"roster": folder.roster, "panel": panel, "charge": charge}
        session.free(folder.plan, receipt, ended.statements, **given)


class ChangesPart:
    """Records that entered or left a stream since this client last sent any, by its registry."""

    def __init__(self, folder: RoundFolder) -> None:
        self._folder, self._above, self._at = folder, folder.above, folder.place

    def prepare(self, *, anew: bool) -> None:  # noqa: ARG002  measured as brought
        """Read the batches in the inbox."""
        inbox_of(self._above).batches()

    def contribution(self) -> tuple[Moments, RoundCharge]:
        """The changes pending at this round, measured.

        Raises:
            DataError: a pending record is in no file.
        """
        registry, inbox = registry_of(self._above), inbox_of(self._above)
        inbox.register(registry)
        pending = inbox.pending(registry, self._at)
        if pending.missing:
            raise DataError(
                f"{pending.missing} records that are due are in no file of {self._above.home.name}/records: bring back "
                "the files that were moved away"
            )
        return inbox.change(registry, pending), self._charged(registry, pending)

    def on_upload(self) -> OnUpload:
        """The registry's function; the registry is read only when the upload is sent, because most messages need
        none."""
        plan, roster, pending = self._folder.plan, self._folder.roster, Pending(self._at, (), ())
        return lambda upload: session.on_upload(plan, roster, self._charged(registry_of(self._above), pending))(upload)

    def settle(self, beside: bytes) -> None:
        """Take back records that statements prove to be in no sum; records never sent may go with the next round."""
        if beside:
            with suppress(LedgerError):  # nothing was sent, or it was taken back already
                take_back(self._folder, beside)
        if self._folder.begun:
            with suppress(LedgerError):  # it was sent, so it stays sent
                registry_of(self._above).withdraw(self._at)

    def _charged(self, registry: RecordRegistry, pending: Pending) -> RoundCharge:
        return registry.charge(self._folder.plan, [None] * self._at, pending)


PARTS: Mapping[str, Callable[[Any], Part]] = {"records": RecordsPart, "changes": ChangesPart}
"""A client's contribution, by the ``part`` of the course's kind."""


def part_of(folder: RoundFolder) -> Part:
    """The part of a client in a folder's session."""
    return PARTS[folder.kind.part](folder)


def client_file(folder: RoundFolder) -> Path:
    """The file with the client's machine of a folder's session."""
    return folder.home / "sessions" / folder.session


def spends_of(folder: RoundFolder) -> dict[str, Spend]:
    """The spends of a folder's session, by account."""
    run, digest = folder.roster.run, folder.plan.digest
    spends = {account.dataset: account.of_run(run) for account in folder.ledger.accounts()}
    return {name: each for name, each in spends.items() if each is not None and each.plan == digest}


def stream_of(folder: Folder) -> Stream:
    """The stream in a folder."""
    assert isinstance(folder.course, Stream)  # noqa: S101  callers check the kind first
    return folder.course


def inbox_of(folder: Folder) -> RecordInbox:
    """A party's inbox of records, or of persons."""
    return inbox(folder.home, stream_of(folder))


def inbox(home: Path, stream: Stream) -> RecordInbox:
    """The inbox of a party's folder for a stream: that of the plan's unit."""
    if stream.plan.person_clip is None:
        return RecordInbox(home, stream)
    from privstats.engines.network.person_inbox import PersonInbox  # of plans of persons alone

    return PersonInbox(home, stream)


def registry_of(folder: Folder) -> RecordRegistry:
    """A party's registry; opening it spends the whole stream, unless that was done before.

    Raises:
        LedgerError: the account to charge is not determined, the cap would be exceeded, or the journal's key has
            changed.
    """
    run, digest = folder.roster.run, folder.course.digest
    known = (account.of_run(run) for account in folder.ledger.accounts())
    entry = next((each for each in known if each is not None and each.plan == digest), None)
    if entry is None:
        entry = folder.entry(account_of(folder.keep(0, folder.course.first), remedy=REMEDY))
    secret = hmac.digest(folder.key, b"privstats/flower/holding", "sha256")
    stream = stream_of(folder)
    kind: type[RecordRegistry] = RecordRegistry if stream.plan.person_clip is None else PersonRegistry
    return kind.open(stream, folder.ledger, entry, secret)


def take_back(folder: RoundFolder, said: bytes) -> None:
    """Verify statements about a round against this party's receipt, and mark its records as free to be sent again.

    Args:
        folder: the round's.
        said: :class:`EndStatements`, encoded.

    Raises:
        Declined: the bytes are no statements.
        LocalProtocolError, LedgerError: as for ``RecordRegistry.excluded``.
    """
    try:
        ended = msgspec.msgpack.decode(said, type=EndStatements)
    except (msgspec.DecodeError, RecursionError):
        raise Declined("damaged", "it was damaged on its way") from None
    panel = panel_of(folder.plan, b"".join(ended.offers))
    receipt, _ = left_by(client_file(folder), folder.key)
    named: dict[str, Any] = {"report": receipt, "statements": ended.statements, "roster": folder.roster, "panel": panel}
    registry_of(folder.above).excluded(folder.place, **named)


def panel_of(plan: Plan, offers: bytes) -> Panel | None:
    """The panel of a session, from the offers in its opening and the identities in the plan; None without a panel.

    Raises:
        Declined: the bytes are no offers of the plan's panel.
    """
    return offered_panel(plan, offers) if plan.panel else None


def offered_panel(plan: Plan, offers: bytes) -> Panel:
    """The panel of a plan that has one; raises as :func:`panel_of` does."""
    size = len(offers) // len(plan.panel)
    cut = [offers[size * place : size * (place + 1)] for place in range(len(plan.panel))]
    try:
        return Panel(tuple(bytes.fromhex(key) for key in plan.panel), tuple(map(Offer.decode, cut)))
    except LocalProtocolError as error:
        raise Declined("refused", f"the server's opening holds no panel of this plan: {error}") from None
