"""What a client brings to one session, where that is written down, and what it has back when the session has ended.

A row per word of a course kind's ``part``: all the records of ``records.py``, or the changes that a stream's registry
says are due. Between a party's folder and its role.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from privstats import session
from privstats.course import Pending, RecordRegistry, Stream
from privstats.dp import Spend
from privstats.engines.journal.client_file import left_by
from privstats.engines.network.folder import Folder, NodeFolder, account_of
from privstats.engines.network.measuring import Records, charge_of, records_of
from privstats.engines.network.statements import EndStatements
from privstats.engines.network.status_codes import Declined
from privstats.engines.network.streams import RecordInbox
from privstats.errors import DataError, LedgerError, LocalProtocolError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.secagg import Offer, Panel
from privstats.secagg.machines import OnUpload
from privstats.session import Charge, NodeCharge

__all__ = [
    "PARTS",
    "REMEDY",
    "ChangesPart",
    "Part",
    "RecordsPart",
    "client_file",
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
"""What is said where a ledger has more than one account and a stream asks which."""


class Part(Protocol):
    """A client's part of one session."""

    def prepare(self, *, anew: bool) -> Records | None:
        """Do what is done before anything is sent; the records, where they are measured then."""
        ...

    def brought(self) -> tuple[Moments, Charge | NodeCharge]:
        """What is sent, and where it is written down."""
        ...

    def on_upload(self) -> OnUpload:
        """What is called before the upload is sent."""
        ...

    def settle(self, beside: bytes) -> None:
        """Take back what is given back, once nothing of this client can be sent in the session any more.

        Args:
            beside: what others signed of the session's end, see :func:`statements.session_ended`; may be empty.
        """
        ...


class RecordsPart:
    """All records of the party, as ``records.py`` loads them."""

    def __init__(self, folder: NodeFolder) -> None:
        self._folder = folder

    def prepare(self, *, anew: bool) -> Records | None:
        """Measure them."""
        return records_of(self._folder, anew=anew)

    def brought(self) -> tuple[Moments, Charge | NodeCharge]:
        """Their sums, measured once."""
        records = records_of(self._folder)
        return records.moments, records.charge

    def on_upload(self) -> OnUpload:
        """The ledger's, without measuring."""
        return session.on_upload(self._folder.plan, self._folder.roster, charge_of(self._folder))

    def settle(self, beside: bytes) -> None:
        """Have back what was spent where nothing was sent, or where others signed that it is in no sum."""
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
        if not receipt:  # nothing has left, so there is nothing to prove
            return
        try:
            words = msgspec.msgpack.decode(beside, type=EndStatements)
        except (msgspec.DecodeError, RecursionError):
            raise Declined("damaged", "what helpers are said to have signed is nothing that they sign") from None
        panel, charge = panel_of(folder.plan, b"".join(words.offers)), charge_of(folder)
        given: dict[str, Any] = {"roster": folder.roster, "panel": panel, "charge": charge}
        session.free(folder.plan, receipt, words.statements, **given)


class ChangesPart:
    """Records that entered or left a stream since this client last sent any, as its registry says."""

    def __init__(self, node: NodeFolder) -> None:
        self._node, self._above, self._at = node, node.above, node.place

    def prepare(self, *, anew: bool) -> None:  # noqa: ARG002  measured as brought
        """Read what was brought."""
        inbox_of(self._above).batches()

    def brought(self) -> tuple[Moments, NodeCharge]:
        """What is due at this node, measured.

        Raises:
            DataError: a record that is due is in no file.
        """
        registry, inbox = registry_of(self._above), inbox_of(self._above)
        inbox.register(registry)
        pending = inbox.pending(registry, self._at)
        if pending.missing:
            raise DataError(
                f"{pending.missing} records that are due are in no file of {self._above.home.name}/records: bring back "
                "what was moved away"
            )
        return inbox.change(registry, pending), self._charged(registry, pending)

    def on_upload(self) -> OnUpload:
        """The registry's; it is read only when the upload is sent, because most messages are not about one."""
        plan, roster, pending = self._node.plan, self._node.roster, Pending(self._at, (), ())
        return lambda upload: session.on_upload(plan, roster, self._charged(registry_of(self._above), pending))(upload)

    def settle(self, beside: bytes) -> None:
        """Take records back that others signed are in no sum; what was never sent may be sent with the next node."""
        if beside:
            with suppress(LedgerError):  # nothing was sent, or it was taken back before
                take_back(self._node, beside)
        if self._node.begun:
            with suppress(LedgerError):  # it was sent, and that stays so
                registry_of(self._above).withdraw(self._at)

    def _charged(self, registry: RecordRegistry, pending: Pending) -> NodeCharge:
        return registry.charge(self._node.plan, [None] * self._at, pending)


PARTS: Mapping[str, Callable[[Any], Part]] = {"records": RecordsPart, "changes": ChangesPart}
"""What a client brings, by the ``part`` of the course's kind."""


def part_of(folder: NodeFolder) -> Part:
    """The part of a client in a folder's session."""
    return PARTS[folder.kind.part](folder)


def client_file(folder: NodeFolder) -> Path:
    """Where the client's machine of a folder's session is kept."""
    return folder.home / "sessions" / folder.session


def spends_of(folder: NodeFolder) -> dict[str, Spend]:
    """What a folder's session was charged to, by account."""
    run, digest = folder.roster.run, folder.plan.digest
    spends = {account.dataset: account.of_run(run) for account in folder.ledger.accounts()}
    return {name: each for name, each in spends.items() if each is not None and each.plan == digest}


def stream_of(folder: Folder) -> Stream:
    """The stream that a folder holds."""
    assert isinstance(folder.course, Stream)  # noqa: S101  whoever opens the folder asks its kind
    return folder.course


def inbox_of(folder: Folder) -> RecordInbox:
    """What a party has brought."""
    return RecordInbox(folder.home, stream_of(folder))


def registry_of(folder: Folder) -> RecordRegistry:
    """A party's registry; with it the whole stream is spent, unless it was before.

    Raises:
        LedgerError: nothing says which account is charged, the cap would be passed, or the journal's key is another.
    """
    run, digest = folder.roster.run, folder.course.digest
    known = (account.of_run(run) for account in folder.ledger.accounts())
    entry = next((each for each in known if each is not None and each.plan == digest), None)
    if entry is None:
        entry = folder.entry(account_of(folder.keep(0, folder.course.first), remedy=REMEDY))
    secret = hmac.digest(folder.key, b"privstats/flower/holding", "sha256")
    return RecordRegistry.open(stream_of(folder), folder.ledger, entry, secret)


def take_back(node: NodeFolder, said: bytes) -> None:
    """Hold what others signed of a node against what this party sent, and note that its records may be sent again.

    Args:
        node: the node's folder.
        said: :class:`EndStatements`, encoded.

    Raises:
        Declined: the bytes are no statements.
        LocalProtocolError, LedgerError: as for ``RecordRegistry.excluded``.
    """
    try:
        words = msgspec.msgpack.decode(said, type=EndStatements)
    except (msgspec.DecodeError, RecursionError):
        raise Declined("damaged", "it was damaged on its way") from None
    panel = panel_of(node.plan, b"".join(words.offers))
    receipt, _ = left_by(client_file(node), node.key)
    named: dict[str, Any] = {"report": receipt, "statements": words.statements, "roster": node.roster, "panel": panel}
    registry_of(node.above).excluded(node.place, **named)


def panel_of(plan: Plan, offers: bytes) -> Panel | None:
    """The panel of a session, from the offers in its opening and the identities in the plan; None where it has none.

    Raises:
        Declined: they are no offers of the plan's panel.
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
