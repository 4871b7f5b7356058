"""A party's role in a session, client or helper: a journaled machine, one message at a time.

Every call opens and closes the journal, because another process may handle the next message.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from privstats import session
from privstats.dp.ledger.rules import check_waiting
from privstats.engines.journal import JournaledClient, JournaledHelper
from privstats.engines.journal.client_file import client_outside, never
from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.parts import Part, part_of, spends_of
from privstats.engines.network.statements import offered_panel, panel_of
from privstats.engines.network.transport import Declined
from privstats.errors import NothingToResumeError, RemoteProtocolError, RestoredError, SessionEndedError
from privstats.secagg.machines import ENDS, Peer, session_id
from privstats.session.validation import check_opening, required_survivors

SESSION_ENDED = "this party has finished this session and will not answer again"
"""A party's operator reads this when a server asks after the end."""

_SERVER = "identity.pem is the server's on roster.toml: name the folder of a party or a helper here"
_STRANGER = "identity.pem is not on roster.toml: ask the coordinator for a roster with your key"

OTHERS = (
    "this round is over other clients than the earlier sum that this party signed: a server that lists others could "
    "learn single clients from the difference; nothing was sent"
)
"""A party's operator reads this when a round names another list than the stored one."""


class ClientRole:
    """A client: one file under ``sessions/``."""

    def __init__(self, folder: RoundFolder, place: int, part: Part) -> None:
        self._folder, self.place, self.part = folder, place, part
        self.reached = ""
        self._path = folder.client_file

    @property
    def there(self) -> bool:
        """Whether the client was ever made."""
        return self._path.exists()

    def greeting(self) -> bytes:
        """Return no bytes."""
        return b""

    def opened(self, opening: bytes) -> bytes:
        """Make the client, once, and return its answer.

        The opening is the panel's offers or the server's message.
        """
        with self._journal(lambda: self._new_client(opening)) as client:
            answer = answered(client, opening, begins=True)
            self.reached = client.step
            return answer

    def stepped(self, message: bytes) -> bytes:
        """Return the client's answer."""
        if not self.there:
            self._lost()
        with self._journal(self._lost) as client:
            answer = answered(client, message)
            self.reached = client.step
            if client.agreed:
                self._folder.remember(client.agreed)
            return answer

    def helped(self, opening: bytes, message: bytes) -> bytes:
        """Decline, because this party is no helper."""
        raise Declined("refused", f"the server takes this party for a helper ({len(opening) + len(message)} bytes)")

    def session_ended(self, beside: bytes = b"") -> bytes:
        """Remove state and last answer; the part decides on refunds.

        A mark stays, so that no client begins here any more.
        """
        self._end()
        self.part.settle(beside)
        return b""

    def withdraw(self) -> tuple[str, ...]:
        """End the session here, independently of the server; return the refunded accounts.

        Raises:
            LedgerError: the upload was sent, and the session continues; if sent during this call, it has ended.
        """
        for spend in spends_of(self._folder).values():
            check_waiting(spend)
        self._end()
        spends = spends_of(self._folder)  # an opening answered meanwhile has spent
        for spend in spends.values():
            self._folder.ledger.withdraw(spend)
        return tuple(spends)

    def _end(self) -> None:
        """Remove secrets and answers; a restored journal is only ended, which is safe for every copy."""
        with suppress(Declined), self._journal(self._lost, charges=False, restored=True) as client:
            client.discard()
        folder = self._folder
        never(self._path, folder.key, client_outside(session_id(folder.plan.masking, folder.roster), self.place))

    def _journal(self, make: Callable[[], Peer], *, charges: bool = True, restored: bool = False) -> JournaledClient:
        folder = self._folder
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            return JournaledClient.resume_or_create(
                self._path,
                folder.key,
                make,
                parameters=folder.plan.masking,
                index=self.place,
                identity=folder.identity,
                roster=folder.roster,
                on_upload=self.part.on_upload() if charges else lambda _: None,
                restored=restored,
            )
        except SessionEndedError:
            raise Declined("over", SESSION_ENDED) from None

    def _new_client(self, opening: bytes) -> Peer:
        folder = self._folder
        if required_survivors(folder.plan) not in (None, folder.agreed):
            raise Declined("not_next", OTHERS)
        self._verify(opening)
        panel, (moments, charge) = panel_of(folder.plan, opening), self.part.contribution()
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
        """Verify the opening before anything is measured, spent or drawn for it."""
        try:
            check_opening(self._folder.plan, self._folder.roster, opening)
        except RemoteProtocolError as error:
            raise Declined("damaged", str(error)) from None

    def _lost(self) -> Peer:
        raise Declined("lost", f"sessions/{self._path.name} is gone, and with it this party's part of the session")


class HelperRole:
    """A helper: one folder under ``sessions/``, from its offer until a mark replaces its key.

    Args:
        place: the helper's index among the peers, clients first.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import Folder, HelperRole
        >>> leader, helper, *people = (ps.secagg.Identity.generate(os.urandom) for _ in range(5))
        >>> panel = {"protocol": "split", "panel": [leader.public.hex(), helper.public.hex()]}
        >>> privacy, cohort = ps.NoPrivacy(), ps.Cohort(3, 3, 9)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=cohort, privacy=privacy, **panel)
        >>> roster = ps.secagg.Roster([each.public for each in people], server=leader.public, run=os.urandom(16))
        >>> home = Path("helper")
        >>> home.mkdir(mode=0o700)
        >>> _ = (home / "plan.toml").write_text(plan.to_toml())
        >>> roster.save(home / "roster.toml")
        >>> helper.save(home / "identity.pem")
        >>> with HelperRole(Folder.open(home).round(0), place=3).machine() as machine:
        ...     machine.offered.place
        1
    """

    def __init__(self, folder: RoundFolder, place: int) -> None:
        self._folder, self.place = folder, place
        self.reached = ""

    def machine(self, until: int | None = None) -> JournaledHelper:
        """Resume this run's helper, or create it with a fresh box key.

        Args:
            until: second since 1970 at which a fresh box key ends; default 30 days from now.
        """
        folder = self._folder
        try:
            return self._resumed()
        except NothingToResumeError:
            (folder.home / "sessions").mkdir(mode=0o700, exist_ok=True)
            number = self.place - folder.plan.masking.clients + 1
            return JournaledHelper.offer(**_journal_of(folder), place=number, until=until)

    def greeting(self) -> bytes:
        """Return the offer of this run's box key, created if missing."""
        with self.machine() as helper:
            _require_running(helper)
            return helper.offered.encode()

    def opened(self, opening: bytes) -> bytes:  # noqa: ARG002
        """Return no bytes."""
        return b""

    def stepped(self, message: bytes) -> bytes:
        """Decline, because this party is no client."""
        raise Declined("refused", f"the server takes this helper for a client ({len(message)} bytes)")

    def helped(self, opening: bytes, message: bytes) -> bytes:
        """Return the helper's answer, bound permanently to the opening's panel."""
        try:
            helper = self._resumed()
        except NothingToResumeError:
            raise Declined("lost", "the box key of this run is gone, and with it this helper's part") from None
        with helper:
            if helper.step not in ENDS:
                helper.bind(offered_panel(self._folder.plan, opening))
            answer = answered(helper, message)
            self.reached = helper.step
            return answer

    def session_ended(self, beside: bytes = b"") -> bytes:
        """Destroy the box key, and sign that where the message has the panel's offers.

        A helper that has answered signs nothing, because the run counts as a release; nor does a restored one, because
        its copy may have answered.
        """
        try:
            resumed = self._resumed()
        except (NothingToResumeError, SessionEndedError):  # no key, or an earlier version's, which is destroyed
            return b""
        except RestoredError:
            with self._resumed(restored=True) as twin:
                twin.discard()
            return b""
        with resumed as helper:
            if beside and helper.step != "done":
                if helper.step not in ENDS:
                    helper.bind(offered_panel(self._folder.plan, beside))
                return helper.abandon()[0][1]
            helper.discard()
        return b""

    def _resumed(self, *, restored: bool = False) -> JournaledHelper:
        return JournaledHelper.resume(**_journal_of(self._folder), restored=restored)


Role: TypeAlias = ClientRole | HelperRole
"""A party's role in one session; ``reached`` is the machine's step after its last answer, empty before one."""


def _journal_of(folder: RoundFolder) -> dict[str, Any]:
    """Return the arguments that locate a helper's journal."""
    return {
        "home": folder.home / "sessions",
        "key": folder.key,
        "identity": folder.identity,
        "parameters": folder.plan.masking,
        "roster": folder.roster,
        "noise": session.helper_noise(folder.plan),
    }


def role_of(folder: RoundFolder) -> Role | None:
    """Return the role of a folder's identity; None for one not on roster or panel."""
    public = folder.identity.public
    if public not in folder.publics:
        return None
    place = folder.publics.index(public)
    return ClientRole(folder, place, part_of(folder)) if place < len(folder.roster) else HelperRole(folder, place)


def require_role(folder: RoundFolder) -> Role:
    """Return the role of a folder's identity, or raise ``Declined``."""
    role = role_of(folder)
    if role is None:
        raise Declined("stranger", _SERVER if folder.identity.public == folder.roster.server else _STRANGER)
    return role


def _require_running(machine: Peer) -> None:
    if machine.step in ENDS:
        raise Declined("over", SESSION_ENDED)


def answered(machine: Peer, message: bytes, *, begins: bool = False) -> bytes:
    """Return the machine's first message or answer; empty without one."""
    before = machine.step
    try:
        sent = (machine.start() if begins else []) or machine.receive(message)
    except RemoteProtocolError as error:
        if before in ENDS:
            raise Declined("over", SESSION_ENDED) from None
        raise Declined("refused" if machine.step in ENDS else "damaged", str(error)) from None
    return sent[0][1] if sent else b""
