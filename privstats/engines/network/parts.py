"""A client's contribution to one session: its records or changes, their charge, and refunds after the session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from privstats import session
from privstats.course.kinds import CourseKind
from privstats.dp import Spend
from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.measuring import MeasuredRecords, charge_of, records_of
from privstats.moments import Moments
from privstats.secagg.machines import OnUpload
from privstats.session import Charge, RoundCharge


class RecordsPart:
    """All records of the party, loaded by ``records.py``."""

    def __init__(self, folder: RoundFolder) -> None:
        self._folder = folder

    def prepare(self, *, anew: bool) -> MeasuredRecords | None:
        """Measure the records, or return stored sums."""
        return records_of(self._folder, anew=anew)

    def contribution(self) -> tuple[Moments, Charge | RoundCharge]:
        """Return the records' sums, measured once, and their charge."""
        records = records_of(self._folder)
        return records.moments, records.charge

    def on_upload(self) -> OnUpload:
        """Return the ledger's callback, without measuring."""
        return session.on_upload(self._folder.plan, self._folder.roster, charge_of(self._folder))

    def settle(self, beside: bytes) -> None:
        """Refund the spend where nothing was sent, or the upload is proved to be in no sum."""
        if not self._folder.kind.gives_back:
            return
        for spend in spends_of(self._folder).values():
            if spend.waiting:
                self._folder.ledger.withdraw(spend)
        if beside:
            self._free(beside)

    def _free(self, beside: bytes) -> None:
        folder = self._folder
        if folder.receipt:  # else nothing was sent, so there is nothing to prove
            arguments: dict[str, Any] = {**folder.exclusion(beside), "charge": charge_of(folder)}
            session.free(folder.plan, **arguments)


class Part(Protocol):
    """A client's part of one session."""

    def prepare(self, *, anew: bool) -> MeasuredRecords | None:
        """Measure what is measured before the session."""

    def contribution(self) -> tuple[Moments, Charge | RoundCharge]:
        """Return the sums to send, and their charge."""

    def on_upload(self) -> OnUpload:
        """Return the function to call with the upload before it is sent."""

    def settle(self, beside: bytes) -> None:
        """Refund the spend for an upload proved to be in no sum."""


class Contribution(Protocol):
    """Clients' contributions to a course's rounds, and their work between rounds."""

    def part(self, folder: RoundFolder) -> Part:
        """Return a client's part in a folder's session."""

    def settle(self, folder: Folder, ended: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Settle earlier uploads, by encoded ``statements.EndStatements``."""

    def obsolete_rounds(self, folder: Folder, place: int) -> Collection[int]:
        """Return rounds with sessions to give up as this one begins."""


class _AllRecords:
    """A course that is spent in full: nothing is refunded, and ended rounds are given up."""

    def part(self, folder: RoundFolder) -> Part:
        return RecordsPart(folder)

    def settle(self, folder: Folder, ended: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Do nothing."""

    def obsolete_rounds(self, folder: Folder, place: int) -> Collection[int]:
        return [each for each in folder.rounds if each != place]


def contribution_of(kind: CourseKind) -> Contribution:
    """Return clients' contributions to a kind of course."""
    if kind.changing is None:
        return _AllRecords()
    changes: Contribution = kind.changing.contribution()
    return changes


def part_of(folder: RoundFolder) -> Part:
    """Return a client's part in a folder's session."""
    return contribution_of(folder.kind).part(folder)


def spends_of(folder: RoundFolder) -> dict[str, Spend]:
    """Return a session's spends, by account."""
    run, digest = folder.roster.run, folder.plan.digest
    spends = {account.dataset: account.of_run(run) for account in folder.ledger.accounts()}
    return {name: each for name, each in spends.items() if each is not None and each.plan == digest}
