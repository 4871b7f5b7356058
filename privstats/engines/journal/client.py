"""A crash-safe client: it can be killed at any moment and resumed.

One file holds its sealed state and is replaced before an answer is sent; after the end it holds the last answer, until
the client is discarded. Wraps the machine of ``secagg``; sends no bytes itself.

After its last answer a client holds no key, share or vector (:class:`FinishedClient`): it repeats that answer to the
same message and refuses any other. A server that was killed while last answers were in transit asks again, and without
the repeats its session and all its vectors would be lost.
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

    Its state is on disk before an answer is sent. Before its last answer is sent, the state is removed from disk and
    replaced by the answer, with the hash of the answered message: resumed, the client sends the same bytes for the same
    message and refuses any other, so it can repeat its answer and never unmasks twice. Call :meth:`discard` to remove
    the answer, once the server has it. A journal that was restored from a backup, or copied, is detected and refused
    until the client has ended, also where its complete folder was restored in place and the journal with it is gone: a
    counter is stored in the user's state folder too, for every run that has a name. A disk that was restored completely
    is not detected, nor a folder without its state folder, or with another user's.

    Made with :meth:`create`, :meth:`resume` or :meth:`resume_or_create`.

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
            on_upload: called, for a ledger for example, before the masked vector is sent. If it raises, nothing is
                sent.
            restored: the journal of this client is lost, and its operator confirms that it has sent nothing: two
                clients of one place in one run reveal the vectors of single clients.

        Raises:
            RestoredError: a client of this place in this run began on this machine before.
            LocalProtocolError: the file exists, because one journal serves one session; or is in use; or an argument is
                not a client or not a function.
        """
        require_peer(client)
        _require_told(on_upload)
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
        """The client at the state of its last answer, which is in :attr:`answer` to be sent again.

        After the end :attr:`step` is ``"done"``, and the client repeats its last answer to the same message only.
        With ``restored=True`` its operator confirms that it was restored or copied, and that no other copy of it has
        answered since: two answers to two lists reveal the vectors of single clients.

        Raises:
            NothingToResumeError: there is no journal.
            SessionEndedError: the client was discarded or failed, or received the abort of the session; or the box keys
                that its report is sealed to have ended, and the report is removed.
            RestoredError: it was restored from a backup, or copied, and may not be the only copy.
            LocalProtocolError: another process or object runs it and could sign another list; or another key, plan or
                place, or damage; or the journal could not be written before it continues.
        """
        machine = _Machine(parameters, index, identity, roster, threads)
        _require_told(on_upload)
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
        """Return the client in the journal, or a new one if there is no journal; for a restarted process.

        ``make`` is called only if there is no journal, and under the lock: a restart does not spend and draw again what
        ``make`` has spent and drawn. Where there is no journal, ``restored`` is as for :meth:`create`.

        Raises:
            SessionEndedError, RestoredError: as for :meth:`resume`; ``make`` is not called.
            LocalProtocolError: as for :meth:`resume`, or ``make`` returned a client of another place or plan.
        """
        machine = _Machine(parameters, index, identity, roster, threads)
        _require_told(on_upload)
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
        if saved.state and saved.ended:
            file.replace(saved.kept())
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
        """The public parameters that all parties agreed on."""
        return self._client.parameters

    @property
    def index(self) -> int:
        """This client's place on the roster."""
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
        """The survivors of the sum that this client helped to unmask; empty before, and for a protocol without lists.

        A caller that needs it in the next round of an alignment must save it before it discards the client.
        """
        listed: tuple[int, ...] = getattr(self._client, "agreed", ())
        return listed

    @property
    def agreement(self) -> dict[int, bytes]:
        """The list over which this client helped to unmask, with its signature, by signer; empty before, and without
        lists."""
        return dict(getattr(self._client, "agreement", {}))

    @property
    def receipt(self) -> bytes:
        """Identifies its upload later, for ``session.free``; empty until the upload may be sent."""
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
        """The last answer, to be sent again if it may not have arrived; empty if none may be sent."""
        return b"" if self._gone else self._answer

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Like the client's; the messages are on disk before ``on_upload`` is called, and before this returns.

        Raises:
            LocalProtocolError: a message could not be saved; it is not returned then, and must not be sent.
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
        """Like the client's; before it returns, the new state is on disk, and a finished client's secrets are removed.

        Raises:
            LocalProtocolError: the answer could not be saved; it is not returned then, and must not be sent.
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
        """Like the client's."""
        with self._acting():
            return self._client.export(key)

    @exclusive
    def discard(self) -> None:
        """End the session for good: remove state and last answer from disk, and record that the client has ended.

        If nothing was sent, the spend is then withdrawn from the ledger.

        Raises:
            LocalProtocolError: the journal could not be written.
            LedgerError: the ledger could not record that; the journal is wiped all the same, see
                ``session.withdraw_run``.
        """
        with self._acting():
            try:
                self._write(b"")
                self._wiped()
            finally:
                self._let_go()

    def _keep(self, question: bytes | bytearray | memoryview) -> None:
        """Save the state after a message; withdraw the spend if the message ended the client before its upload."""
        self._save(question)
        self._answer = self._client.answer
        if self._client.step in ENDS and not self._client.upload:
            self._wiped()

    def _wiped(self) -> None:
        """Wipe the machine, after its state on disk, and withdraw the spend if nothing was sent."""
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
    """The arguments for resuming a client, in addition to its saved state."""

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
        """The counter in the user's state folder; None for a place that the machine refuses."""
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


def _require_told(on_upload: object) -> None:
    if on_upload is not None:
        require_callable("on_upload", on_upload)


@dataclass(frozen=True, repr=False)
class FinishedClient:
    """A client after its end, as a :class:`~privstats.secagg.machines.Peer`.

    Attributes:
        parameters: the public parameters that all parties agreed on.
        index: its place on the roster.
        question: SHA-256 of the message that was answered last.
        answer: the answer, as it was sealed for the server.
        receipt: identifies its upload.
        agreement: by signer, the list that it is on and the signature.
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
        """The survivors of the sum that this client helped to unmask; empty for a protocol without lists."""
        lists = [statement[: -wire.SIGNATURE_BYTES] for statement in self.agreement.values()]
        return tuple(sorted(members(lists[0], self.parameters.clients))) if lists else ()

    def start(self) -> list[tuple[str, bytes]]:
        """Return an empty list: it has sent all its messages."""
        return []

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Repeat the answer to the message that it answered.

        Raises:
            RemoteProtocolError: any other message.
        """
        view = wire.view_of(data)
        fits = len(view) <= protocol_of(self.parameters).machines.largest_request(self.parameters)
        if fits and sha256(view).digest() == self.question:
            return [(_SERVER, self.answer)]
        detail = "this client has ended, and only repeats its last answer"
        raise RemoteProtocolError(_SERVER, self.step, "not_expected", detail, proven=False)

    def export(self, key: bytes) -> NoReturn:  # noqa: ARG002
        """Refuse: its journal holds the whole state.

        Raises:
            LocalProtocolError: always.
        """
        raise LocalProtocolError("this client has ended: there is no state to save")

    def discard(self) -> None:
        """Do nothing; the journal removes the answer."""
