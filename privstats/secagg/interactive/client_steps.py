"""Message handling of a client: parsing, replies, repeats, refusals, and the saving and wiping of its state.

This module knows the order of the steps; ``client`` holds their cryptography. It stands between the engine that
carries the messages and the protocol.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.files.signing import verify
from privstats.secagg import wire
from privstats.secagg.exclusive import exclusive
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import Channel, ClientSecrets
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.hybrid import HybridSecrets
from privstats.secagg.interactive.non_inclusion import Receipt
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.interactive.state import STEPS, ClientState, steps_of
from privstats.secagg.keys import Identity
from privstats.secagg.machines import ENDS, give_back, session_id
from privstats.secagg.uploader import Uploader
from privstats.secagg.wire import Refusal, members

Secrets: TypeAlias = ClientSecrets | HybridSecrets
_SERVER = "server"
_ONE_SESSION = "a client serves one session, make a new one"
_REASONS = {number: reason for reason, number in messages.ABORTS.items()}


class ClientSteps(Uploader):
    """The client interface for engines; its subclass :class:`~privstats.secagg.Client` processes the messages."""

    parameters: Parameters
    index: int
    _state: ClientState
    _graph: Graph
    _acts: ClassVar[dict[StepName, Callable[[Any, Any], messages.ClientMessage]]]

    def _bind(self, graph: Graph, index: int, identity: Identity, threads: int) -> None:
        self.parameters, self.index = graph.parameters, index
        self._graph, self._identity, self._threads = graph, identity, threads
        self._secrets_cache: Secrets | None = None
        self._channel_cache: Channel | None = None
        self._faults: list[RemoteProtocolError] = []
        self._ended = ""

    @abstractmethod
    def _secrets(self) -> Secrets:
        """The secrets that are derived from the root."""

    @property
    def step(self) -> StepName:
        """The step whose opening message this client waits for; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Faults of peers that did not stop this client: boxes that do not open, or whose shares do not fit.

        All of them are unproven: the owner may have sealed garbage, or the server may have replaced the box.
        """
        return tuple(self._faults)

    @property
    def ended(self) -> str:
        """Why the server ended the session, a code of ``messages.ABORTS``; empty without a signed abort message."""
        return self._ended

    @property
    def agreed(self) -> tuple[int, ...]:
        """The survivors whose sum this client helped to unmask, in order; empty until it has helped."""
        listed = self._state.survivors if self._state.step == "done" else bytes((self.parameters.clients + 7) // 8)
        return tuple(sorted(members(listed, self.parameters.clients)))

    @property
    def agreement(self) -> dict[int, bytes]:
        """By client, the list of survivors that it signed, which is this client's own, and its signature.

        This client verified enough of them before it helped to unmask; empty until it has helped. The statements are
        public: a client that is not on the list can prove with them that its upload is in no sum.
        """
        return dict(self._state.agreement) if self._state.step == "done" else {}

    @property
    def session_id(self) -> bytes:
        """See :func:`~privstats.secagg.machines.session_id`."""
        return session_id(self.parameters, self._graph.roster)

    @property
    def receipt(self) -> bytes:
        """Identifies this client's upload later, for ``session.free``; empty until the upload may be sent."""
        state = self._state
        return Receipt(state.transcript, self.index, state.uploaded).encode() if state.uploaded else b""

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Return an empty list: the server opens a session."""
        return []

    @exclusive
    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Process one message from the server and return what to send: ``[("server", bytes)]``, or an empty list.

        An abort message wipes this client and leaves its code in :attr:`ended`. A repeat of the message that was
        answered last gets the same bytes again, also after the end; a repeat of an earlier one gets no answer,
        because the server has closed its step.

        Raises:
            RemoteProtocolError: the message is damaged, too large or comes after the end (the state is unchanged, and a
                valid message is still accepted), or the server broke the protocol (this client has failed and wiped
                itself).
            LocalProtocolError: another call is still running.
        """
        answers = self._receive_message(wire.view_of(data))
        if answers:
            self._release()
        return answers

    def _receive_message(self, view: memoryview) -> list[tuple[str, bytes]]:
        state = self._state
        try:
            wire.check_size(view, messages.largest_request(self.parameters))  # before the hash, which reads all of it
        except Refusal as refusal:
            raise RemoteProtocolError(_SERVER, state.step, refusal.code, refusal.detail, proven=False) from None
        name = sha256(view).digest()
        if name in state.answered:
            return [(_SERVER, state.answer)] if name == state.answered[-1] else []
        if state.step in ENDS:
            if messages.is_kind(view, messages.Abort):  # this client has already ended, so the sender does not matter
                return []
            detail = f"this client is {state.step}: {_ONE_SESSION}"
            raise RemoteProtocolError(_SERVER, state.step, "not_expected", detail, proven=False)
        try:
            if messages.is_kind(view, messages.Abort):
                self._process_abort(view)
                return []
            message = self._parse(view, steps_of(self.parameters)[state.step].opens)
        except Refusal as refusal:
            raise RemoteProtocolError(_SERVER, state.step, refusal.code, refusal.detail, proven=False) from None
        return [(_SERVER, self._answer_message(name, message))]

    def _answer_message(self, name: bytes, message: messages.ServerMessage) -> bytes:
        """Process a message that was parsed, and store the answer."""
        state, step, row = self._state, self._state.step, STEPS[self._state.step]
        state.reply_to = name
        try:
            answer = self._sealed(self._acts[step](self, message))
            if row.answers is messages.Mask:
                state.upload = sha256(answer).digest()
            state.answered.append(name)
            state.answer, state.step = answer, row.then
        except Refusal as refusal:
            if step != "advertise":  # a refused opening changes nothing: it may come from anyone
                self._wipe("failed")
            proven = refusal.proven and step != "advertise"
            raise RemoteProtocolError(_SERVER, step, refusal.code, refusal.detail, proven=proven) from None
        except BaseException:  # a step that was interrupted cannot be continued
            self._wipe("failed")
            raise
        if row.then in ENDS:
            self._wipe(row.then)
        return answer

    @exclusive
    def discard(self) -> None:
        """End the session on this side and wipe this client, which can then receive and export nothing.

        Raises:
            LedgerError: nothing was sent, and the ledger could not record that; the client is wiped all the same.
        """
        if self._state.step not in ENDS:
            self._wipe("failed")
        give_back(self._on_upload, self._state.uploaded)

    def _saved(self) -> tuple[str, bytes]:
        """Role and place for sealing; a client that has sent its unmask message must not be resumed."""
        if self._state.step in ENDS:
            raise LocalProtocolError(f"this client is {self._state.step}: {_ONE_SESSION}")
        self._state.faults = [(int(fault.peer), fault.step, fault.code) for fault in self._faults]
        return f"client {self.index}", self._graph.place

    def _parse(self, data: memoryview, kind: type[Any]) -> Any:
        messages.check_header(data, kind, self.parameters)
        return messages.decode(data if self._state.step == "advertise" else self._channel().open(data), kind)

    def _process_abort(self, data: memoryview) -> None:
        """End this client if the roster's server signed the abort of this session; any other abort is refused."""
        messages.check_header(data, messages.Abort, self.parameters)
        message = messages.decode(data, messages.Abort)
        if message.session != self._state.session:
            raise Refusal("wrong_session", "the abort is of a session that this client is not in")
        if not verify(
            self._graph.roster.server, message.signature, messages.abort_statement(self._state.context, message.code)
        ):
            raise Refusal("bad_signature", "the server on the roster did not sign this abort")
        self._ended = _REASONS.get(message.code, str(message.code))
        self._wipe("failed")

    def _sealed(self, answer: messages.ClientMessage) -> bytes:
        encoded = messages.codec_of(self.parameters).encode(answer)
        return bytes(encoded) if self._state.step == "advertise" else self._channel().seal(encoded)

    def _channel(self) -> Channel:
        if self._channel_cache is None:
            secret, hybrid = self._secrets().channel_secret(self._state), self.parameters.hybrid
            self._channel_cache = Channel(secret, session=self._state.session, client=self.index, hybrid=hybrid)
        return self._channel_cache

    def _wipe(self, end: StepName) -> None:
        """Overwrite the root and drop everything derived from it, as far as Python allows.

        After a successful end the last answer stays, sealed as it was sent, so that it can be repeated.
        """
        old = self._state
        for secret in (old.root, old.noise_root, old.kem_secret):
            secret[:] = bytes(len(secret))
        self._state = ClientState(root=bytearray(), step=end, upload=old.upload, uploaded=old.uploaded)
        self._state.transcript = old.transcript
        if end == "done":
            self._state.agreement = old.agreement
            self._state.answered, self._state.answer = old.answered, old.answer
            self._state.survivors = old.survivors
        self._vector = self._secrets_cache = self._channel_cache = None
