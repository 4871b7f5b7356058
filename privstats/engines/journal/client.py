"""A crash-safe client.

After its last answer it holds no secret and only repeats that answer (:class:`FinishedClient`); otherwise a server
killed while last answers were in transit would lose its session.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar, NoReturn

import msgspec

from privstats.engines.journal.base import JournalBase, require_callable, require_peer, require_threads, written
from privstats.engines.journal.client_file import ClientFile, Saved, client_outside
from privstats.engines.journal.expiry import forget_look
from privstats.errors import LocalProtocolError, RemoteProtocolError, SessionEndedError
from privstats.files.outside import Outside
from privstats.secagg import Identity, Roster, wire
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import ENDS, Masking, OnUpload, Peer, give_back, session_id
from privstats.secagg.protocols import protocol_of
from privstats.secagg.wire import members

_SERVER = "server"


class JournaledClient(JournalBase):
    """A :class:`~privstats.secagg.Client` that can be killed at any moment and resumed.

    The client's state is on disk before an answer is sent. The last answer, with the hash of its question, replaces the
    state before it is sent: the resumed client repeats it and refuses other messages, so it never unmasks twice.

    A journal that was restored from a backup, or copied, is refused until the client has ended. For named runs a
    counter in the user's state folder also detects a restored party folder. Not detected: a completely restored disk,
    or a folder without its own state folder.

    Example:
        >>> from privstats.engines.journal import JournaledClient
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 2)
        >>> client = JournaledClient.create("ulm.journal", os.urandom(32), parties.clients[0])
        >>> client.step, os.path.exists("ulm.journal")
        ('advertise', True)
    """

    def __init__(
        self, file: ClientFile, client: Peer, *, on_upload: OnUpload | None, charged: bool, known: bool = False
    ) -> None:
        super().__init__(file.lock, file.path)
        self._file, self._client, self._on_upload = file, client, on_upload
        self._answer, self._charged = client.answer, charged
        self.reproducible = known or getattr(client, "reproducible", False)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        key: bytes,
        client: Peer,
        *,
        on_upload: OnUpload | None = None,
        restored: bool = False,
    ) -> JournaledClient:
        """Journal a fresh client.

        Args:
            path: one file, sealed under ``key``.
            key: 32 bytes.
            client: the machine, which only the journal may use from now on.
            on_upload: called before the masked vector is sent; if it raises, nothing is sent.
            restored: the operator confirms that the lost client sent nothing: two clients at one index of a run reveal
                single clients' vectors.

        Raises:
            RestoredError: a client at this index of this run began on this machine before.
            LocalProtocolError: the file exists or is in use, or bad input.
        """
        require_peer(client)
        _require_callback(on_upload)
        outside = client_outside(getattr(client, "session_id", b""), client.index)
        with ClientFile.held(path, key, outside) as file:
            if file.path.exists():
                raise LocalProtocolError(f"{file.path} already holds a client: resume it, or remove it")
            return cls._created(file, client, on_upload, restored=restored)

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        key: bytes,
        *,
        parameters: Masking,
        index: int,
        identity: Identity,
        roster: Roster,
        threads: int = 1,
        on_upload: OnUpload | None = None,
        restored: bool = False,
    ) -> JournaledClient:
        """Return the client at its last answer; send :attr:`answer` again.

        ``restored=True`` confirms that no other copy has answered since: two answers to two lists reveal single
        clients' vectors.

        Raises:
            NothingToResumeError: there is no journal.
            SessionEndedError: the client was discarded, failed or received an abort; or its report's box keys have
                ended, and the report is removed.
            RestoredError: it was restored or copied, and may not be the only copy.
            LocalProtocolError: bad input, damage, in use, or a failed write.
        """
        machine = _Machine(parameters, index, identity, roster, threads)
        _require_callback(on_upload)
        with ClientFile.held(path, key, machine.outside) as file, written(file.path):
            return cls._resumed(file, machine, on_upload, restored)

    @classmethod
    def resume_or_create(
        cls,
        path: str | os.PathLike[str],
        key: bytes,
        make: Callable[[], Peer],
        *,
        parameters: Masking,
        index: int,
        identity: Identity,
        roster: Roster,
        threads: int = 1,
        on_upload: OnUpload | None = None,
        restored: bool = False,
    ) -> JournaledClient:
        """Return the client in the journal, or a new one; for a restarted process.

        ``make`` is called only without a journal: a restart spends and draws nothing twice. For a new client
        ``restored`` is as for :meth:`create`. Raises as :meth:`resume`.
        """
        machine = _Machine(parameters, index, identity, roster, threads)
        _require_callback(on_upload)
        require_callable("make", make)
        with ClientFile.held(path, key, machine.outside) as file:
            if file.path.exists():
                with written(file.path):
                    return cls._resumed(file, machine, on_upload, restored)
            if not restored:
                file.require_new()
            return cls._created(file, machine.checked(make()), on_upload, restored=True)

    @classmethod
    def _created(cls, file: ClientFile, client: Peer, on_upload: OnUpload | None, *, restored: bool) -> JournaledClient:
        if not restored:
            file.require_new()
        charged = client.charged or on_upload is not None
        journaled = cls(file, client, on_upload=on_upload, charged=charged)
        with journaled._acting():
            journaled._save()
        return journaled

    @classmethod
    def _resumed(
        cls, file: ClientFile, machine: _Machine, on_upload: OnUpload | None, restored: bool
    ) -> JournaledClient:
        saved = file.read()
        if file.is_expired(saved):
            file.replace(saved.permanent())
            forget_look(file.path)
            raise SessionEndedError(f"the report at {file.path} is removed: the box keys that open it have ended")
        if not saved.state:
            file.catch_up()
        if not saved.state and not saved.answer:
            raise SessionEndedError(f"the client at {file.path} has ended and must not come back: it may have unmasked")
        if not saved.state:  # copies repeat the same answer, so a copy is not refused
            finished = FinishedClient(
                machine.parameters, machine.index, saved.question, saved.answer, saved.receipt, saved.agreement
            )
            charged = saved.charged or finished.charged
            return cls(file, finished, on_upload=None, charged=charged, known=saved.known_noise)
        if not restored:
            file.require_newest()
        client = machine.resumed(saved.state, file.key, on_upload)
        charged = saved.charged or client.charged
        if charged and not client.upload and on_upload is None:
            raise LocalProtocolError(
                f"the client at {file.path} is charged to a ledger, which must record its upload before it is sent: "
                "give on_upload=session.on_upload(plan, roster, charge)"
            )
        if restored:
            file.replace(saved)
        charges = charged or on_upload is not None
        # the client itself has on_upload
        return cls(file, client, on_upload=None, charged=charges, known=saved.known_noise)

    @property
    def parameters(self) -> Masking:
        """The run's public parameters."""
        return self._client.parameters

    @property
    def index(self) -> int:
        """This client's index on the roster."""
        return self._client.index

    @property
    def step(self) -> str:
        """See :attr:`Client.step <privstats.secagg.Client.step>`."""
        return self._client.step

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """See :attr:`Client.faults <privstats.secagg.Client.faults>`."""
        return self._client.faults

    @property
    def ended(self) -> str:
        """See :attr:`Client.ended <privstats.secagg.Client.ended>`."""
        return self._client.ended

    @property
    def agreed(self) -> tuple[int, ...]:
        """Survivors of the sum that this client helped to unmask.

        Save it before :meth:`discard` if an alignment's next round needs it.
        """
        listed: tuple[int, ...] = getattr(self._client, "agreed", ())
        return listed

    @property
    def agreement(self) -> dict[int, bytes]:
        """The survivor list that this client helped to unmask, signed, by signer."""
        return dict(getattr(self._client, "agreement", {}))

    @property
    def receipt(self) -> bytes:
        """Identifies the upload for ``session.free``; empty until it may be sent."""
        receipt: bytes = getattr(self._client, "receipt", b"")
        return receipt

    @property
    def charged(self) -> bool:
        """See :attr:`Client.charged <privstats.secagg.Client.charged>`, and ``on_upload`` here."""
        return self._charged

    @property
    def upload(self) -> bytes:
        """See :attr:`Client.upload <privstats.secagg.Client.upload>`."""
        return self._client.upload

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again if it may not have arrived."""
        return b"" if self._gone else self._answer

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Start; the messages are on disk before ``on_upload`` is called and before this returns.

        After a ``LocalProtocolError`` nothing may be sent.
        """
        with self._acting():
            prepare = getattr(self._client, "prepare", None)
            if prepare is not None and prepare():
                self._write(self._client.export(self._file.key))
            before, uploaded = self._client.step, self._client.upload
            sent = self._client.start()
            if self._client.upload != uploaded and self._on_upload is not None:
                self._on_upload(self._client.upload)
            if (self._client.step, self._client.upload) != (before, uploaded):
                self._write(self._client.export(self._file.key))
            self._answer = self._client.answer
            return sent

    @exclusive
    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Answer a message; first save the new state, or remove a finished client's secrets.

        Errors as for :meth:`start`.
        """
        with self._acting():
            before, uploaded = self._client.step, self._client.upload
            try:
                answers = self._client.receive(data)
            except RemoteProtocolError:
                if self._client.step != before:
                    self._keep(data)
                raise
            if self._client.step != before:
                if self._client.upload != uploaded and self._on_upload is not None:
                    self._on_upload(self._client.upload)
                self._keep(data)
            return answers

    @exclusive
    def export(self, key: bytes) -> bytes:
        """Return the client's sealed state."""
        with self._acting():
            return self._client.export(key)

    @exclusive
    def discard(self) -> None:
        """End the session for good: remove state and last answer, and record the end.

        If nothing was sent, the spend is then withdrawn from the ledger.

        Raises:
            LedgerError: the withdrawal failed; the journal is wiped all the same, see ``session.withdraw_run``.
        """
        with self._acting():
            try:
                self._write(b"")
                self._wiped()
            finally:
                self._let_go()

    def _keep(self, question: bytes | bytearray | memoryview) -> None:
        """Withdraw the spend if the message ended the client before its upload."""
        self._save(question)
        self._answer = self._client.answer
        if self._client.step in ENDS and not self._client.upload:
            self._wiped()

    def _wiped(self) -> None:
        self._client.discard()
        give_back(self._on_upload, self._client.upload)

    def _save(self, question: bytes | bytearray | memoryview = b"") -> None:
        if self._client.step not in ENDS:
            self._write(self._client.export(self._file.key))
        else:
            self._write(b"", sha256(question).digest(), self._client.answer)

    def _write(self, state: bytes, question: bytes = b"", answer: bytes = b"") -> None:
        panel = getattr(self._client, "panel", None)
        until = panel.until if panel is not None and self._client.upload else 0
        saved = Saved(state, question, answer, self.receipt, self.agreement, until, self._charged)
        self._file.replace(msgspec.structs.replace(saved, known_noise=self.reproducible))


@dataclass(frozen=True)
class _Machine:
    parameters: Masking
    index: int
    identity: Identity
    roster: Roster
    threads: int

    def __post_init__(self) -> None:
        protocol_of(self.parameters)  # refuses a plan, for example, before anything is on the disk
        require_threads(self.threads)

    @property
    def outside(self) -> Outside | None:
        if not isinstance(self.index, int) or self.index < 0:
            return None
        return client_outside(session_id(self.parameters, self.roster), self.index)

    def resumed(self, state: bytes, key: bytes, on_upload: OnUpload | None) -> Peer:
        return protocol_of(self.parameters).machines.client.resume(
            state,
            key,
            parameters=self.parameters,
            index=self.index,
            identity=self.identity,
            roster=self.roster,
            threads=self.threads,
            on_upload=on_upload,
        )

    def checked(self, machine: object) -> Peer:
        client = require_peer(machine)
        if (client.parameters, client.index) != (self.parameters, self.index):
            raise LocalProtocolError("make gave a client of another plan or place than the one to be resumed")
        return client


def _require_callback(on_upload: object) -> None:
    if on_upload is not None:
        require_callable("on_upload", on_upload)


@dataclass(frozen=True, repr=False)
class FinishedClient:
    """A client after its end, as a :class:`~privstats.secagg.machines.Peer`.

    Attributes:
        question: SHA-256 of the last answered message.
        answer: the last answer, sealed for the server.
        agreement: by signer, survivor list and signature.
    """

    parameters: Masking
    index: int
    question: bytes
    answer: bytes
    receipt: bytes = b""
    agreement: dict[int, bytes] = field(default_factory=dict)

    step: ClassVar[str] = "done"
    faults: ClassVar[tuple[RemoteProtocolError, ...]] = ()
    ended: ClassVar[str] = ""
    charged: ClassVar[bool] = False
    upload: ClassVar[bytes] = b""

    @property
    def agreed(self) -> tuple[int, ...]:
        """Survivors of the sum."""
        lists = [statement[: -wire.SIGNATURE_BYTES] for statement in self.agreement.values()]
        return tuple(sorted(members(lists[0], self.parameters.clients))) if lists else ()

    def start(self) -> list[tuple[str, bytes]]:
        """Return an empty list."""
        return []

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Repeat the last answer to its own question; refuse any other message."""
        view = wire.view_of(data)
        fits = len(view) <= protocol_of(self.parameters).machines.largest_request(self.parameters)
        if fits and sha256(view).digest() == self.question:
            return [(_SERVER, self.answer)]
        detail = "this client has ended, and only repeats its last answer"
        raise RemoteProtocolError(_SERVER, self.step, "not_expected", detail, proven=False)

    def export(self, key: bytes) -> NoReturn:  # noqa: ARG002
        """Refuse with a ``LocalProtocolError``."""
        raise LocalProtocolError("this client has ended: there is no state to save")

    def discard(self) -> None:
        """Do nothing."""
