"""The client machine: bytes in, bytes out; it refuses whatever a lying server could use against it.

No clock, socket or global; randomness is passed in. One instance serves one session, one call at a time, and wipes
itself after its unmask message. Between a ring vector and the engine that carries its messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Any, ClassVar

from cryptography.exceptions import InvalidTag

from privstats.encoding import RingVector
from privstats.errors import LedgerError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import wire
from privstats.secagg.bitmap import members, to_bitmap
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.interactive import client_checks as checks
from privstats.secagg.interactive import messages
from privstats.secagg.interactive import statements as said
from privstats.secagg.interactive.channel import Channel
from privstats.secagg.interactive.client_secrets import ClientSecrets
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.names import StepName
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.interactive.repeats import Receipt, words_of
from privstats.secagg.interactive.state import ClientState
from privstats.secagg.interactive.steps import STEPS
from privstats.secagg.keys import Entropy, Identity, draw, verify
from privstats.secagg.machines import ENDS, OnLeft, give_back
from privstats.secagg.prg import add_masks
from privstats.secagg.roster import Roster
from privstats.secagg.sealing import seal_state, unseal_state
from privstats.secagg.transcript import root_of
from privstats.secagg.wire import Refusal

__all__ = ["Client"]

_SERVER = "server"
_ONE_SESSION = "a client serves one session, make a new one"
_REASONS = {number: reason for reason, number in messages.ABORTS.items()}


class Client(Exclusive):
    """One client in one aggregation.

    Args:
        parameters: what all parties agreed on.
        vector: the client's contribution; it is copied when it is masked, never changed.
        index: this client's place on the roster.
        identity: the signing key behind that place.
        roster: everybody's public identities, the server's among them.
        entropy: source of 32 uniform bytes, asked once.
        threads: processors to use for masks.
        on_left: told the SHA-256 of the masked vector's message before it leaves, and again if the process was killed
            in between; what it raises keeps the vector here. A client that has one is :attr:`charged`.
        only: the one list of survivors that it signs, as clients in order; None where the parameters alone decide.

    Raises:
        LocalProtocolError: vector, identity or roster do not fit the parameters, or the graph is not complete and the
            roster not numbered.

    Guarantee: a server together with at most ``colluders`` clients learns from this client's messages nothing but sums
    over at least ``min_survivors`` clients, even if it lies; ``docs/protocol.md`` has the sparse graph's assumption.
    """

    def __init__(
        self,
        parameters: Parameters,
        vector: RingVector,
        *,
        index: int,
        identity: Identity,
        roster: Roster,
        entropy: Entropy = os.urandom,
        threads: int = 1,
        on_left: OnLeft | None = None,
        only: Collection[int] | None = None,
    ) -> None:
        if vector.ring != parameters.ring:
            raise LocalProtocolError("the vector's ring differs from the parameters': encode it with parameters.ring")
        graph = self.check_place(parameters, index=index, identity=identity, roster=roster)
        self._bind(graph, index, identity, threads, on_left)
        self._vector: RingVector | None = vector
        self._state = ClientState(root=bytearray(draw(entropy, 32)), charged=on_left is not None)
        self._state.only = b"" if only is None else to_bitmap(only, parameters.clients)

    def _bind(self, graph: Graph, index: int, identity: Identity, threads: int, on_left: OnLeft | None) -> None:
        self._on_left = on_left
        self.parameters, self.index = graph.parameters, index
        self._graph, self._identity, self._threads = graph, identity, threads
        self._secrets_cache: ClientSecrets | None = None
        self._channel_cache: Channel | None = None
        self._faults: list[RemoteProtocolError] = []
        self._ended = ""

    @staticmethod
    def check_place(parameters: Parameters, *, index: int, identity: Identity, roster: Roster) -> Graph:
        """The graph, if there could be such a client, before anything is spent on it; raises as the class does."""
        graph = Graph(parameters, roster)
        roster.check_member(index, identity)
        return graph

    @property
    def step(self) -> StepName:
        """The step whose opening message this client waits for; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """What came wrong from peers without stopping this client: boxes that do not open or do not fit.

        All of them are unproven: the owner may have sealed garbage, or the server may have put it in the box's place.
        """
        return tuple(self._faults)

    @property
    def ended(self) -> str:
        """Why the server ended the session, a code of ``messages.ABORTS``; empty unless it did so in its own name."""
        return self._ended

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again where it may not have arrived; empty where there is none that may leave."""
        state = self._state
        answer = state.answer  # before the comparison: what may not leave is named before it is kept
        return answer if state.uploaded == state.upload else b""

    @property
    def upload(self) -> bytes:
        """SHA-256 of the masked vector's message; empty until it may leave, and the contribution counts as released."""
        return self._state.uploaded

    @property
    def agreed(self) -> tuple[int, ...]:
        """The clients over which it helped to unmask the sum, in order; empty until then, and where it did not."""
        listed = self._state.survivors if self._state.step == "done" else bytes((self.parameters.clients + 7) // 8)
        return tuple(sorted(members(listed, self.parameters.clients)))

    @property
    def agreement(self) -> dict[int, bytes]:
        """By client, the list of survivors that it signed, which is this client's own, and its signature.

        Enough of them, found good, before this client helped to unmask; empty until then, and where it did not. Anybody
        may see it: whoever is not on the list can prove with it that its upload is in no sum.
        """
        return dict(self._state.agreement) if self._state.step == "done" else {}

    @property
    def receipt(self) -> bytes:
        """What says later which upload was this client's, for ``session.free``; empty until it may leave."""
        state = self._state
        return Receipt(state.transcript, self.index, state.uploaded).encode() if state.uploaded else b""

    @property
    def charged(self) -> bool:
        """Whether somebody keeps account of this client's upload and must be told before it leaves."""
        return self._state.charged

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Nothing: the server opens a session."""
        return []

    @exclusive
    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Take one message from the server and return what to send: ``[("server", bytes)]``, or nothing at its end.

        An abort message wipes this client and leaves its code in :attr:`ended`. The message that was answered last is a
        repeat and gets the same bytes again, also after the end; one that was answered before that gets nothing,
        because the server has closed its step.

        Raises:
            RemoteProtocolError: the message is damaged or comes after the end (then nothing happened, a good one is
                still welcome), or the server broke the protocol (then this client has failed and wiped itself).
            LocalProtocolError: another call has not ended.
        """
        answers = self._heard(wire.view_of(data))
        if answers and self._state.uploaded != self._state.upload:
            self._leaving(self._state.upload)
            self._state.uploaded = self._state.upload
        return answers

    def _leaving(self, upload: bytes) -> None:
        """Called before the masked vector leaves, and again where this failed: what it raises keeps the vector here."""
        if self._on_left is not None:
            self._on_left(upload)
        elif self._state.charged:
            raise LedgerError(
                "this client is charged to a ledger, which must hear of its upload before that leaves: resume it with "
                "on_left=session.on_left(plan, roster, charge)"
            )

    def _heard(self, view: memoryview) -> list[tuple[str, bytes]]:
        state, name = self._state, sha256(view).digest()
        if name in state.answered:
            return [(_SERVER, state.answer)] if name == state.answered[-1] else []
        if state.step in ENDS:
            if messages.is_kind(view, messages.Abort):  # it has ended already, whoever says so
                return []
            detail = f"this client is {state.step}: {_ONE_SESSION}"
            raise RemoteProtocolError(_SERVER, state.step, "not_expected", detail, proven=False)
        try:
            if messages.is_kind(view, messages.Abort):
                self._hear_abort(view)
                return []
            message = self._parse(view, STEPS[state.step].opens)
        except Refusal as refusal:
            raise RemoteProtocolError(_SERVER, state.step, refusal.code, refusal.detail, proven=False) from None
        return [(_SERVER, self._answered(name, message))]

    def _answered(self, name: bytes, message: messages.ServerMessage) -> bytes:
        """Act on a message that was found whole, and remember the answer."""
        state, step, row = self._state, self._state.step, STEPS[self._state.step]
        state.reply_to = name
        try:
            answer = self._sealed(self._acts[step](self, message))
            if row.answers is messages.Mask:
                state.upload = sha256(answer).digest()
            state.answered.append(name)
            state.answer, state.step = answer, row.then
        except Refusal as refusal:
            if step != "advertise":  # an opening that is refused changes nothing: anybody could have sent it
                self._wipe("failed")
            proven = refusal.proven and step != "advertise"
            raise RemoteProtocolError(_SERVER, step, refusal.code, refusal.detail, proven=proven) from None
        except BaseException:  # half a step is no step to go on from
            self._wipe("failed")
            raise
        if row.then in ENDS:
            self._wipe(row.then)
        return answer

    @exclusive
    def discard(self) -> None:
        """Wipe this client: its session is over for whoever runs it. Nothing can be received or exported after.

        Raises:
            LedgerError: nothing has left, and the ledger could not be told so; the client is wiped all the same.
        """
        if self._state.step not in ENDS:
            self._wipe("failed")
        give_back(self._on_left, self._state.uploaded)

    @exclusive
    def export(self, key: bytes, *, entropy: Entropy = os.urandom) -> bytes:
        """This client's state, sealed under 32 bytes of ``key``; save it before sending an answer, and only the newest.

        Raises:
            LocalProtocolError: the client has finished or failed: what has sent its unmask message must not come back.
        """
        state = self._state
        if state.step in ENDS:
            raise LocalProtocolError(f"this client is {state.step}: {_ONE_SESSION}")
        state.vector = self._vector.pack() if self._vector is not None else b""
        state.faults = [(int(fault.peer), fault.step, fault.code) for fault in self._faults]
        try:
            return seal_state(state, key, role=f"client {self.index}", place=self._graph.place, entropy=entropy)
        finally:
            state.vector = b""

    @classmethod
    def resume(
        cls,
        sealed: bytes,
        key: bytes,
        *,
        parameters: Parameters,
        index: int,
        identity: Identity,
        roster: Roster,
        threads: int = 1,
        on_left: OnLeft | None = None,
    ) -> Client:
        """The client that :meth:`export` sealed, where it stood.

        ``on_left`` is told the SHA-256 of the masked vector's message before that leaves, and what it raises keeps the
        vector here; a client that is charged to a ledger uploads nothing without it.

        Raises:
            LocalProtocolError: another key, place or plan, or damage.
        """
        client = cls.__new__(cls)
        graph = cls.check_place(parameters, index=index, identity=identity, roster=roster)
        client._bind(graph, index, identity, threads, on_left)
        client._state = unseal_state(sealed, key, ClientState, role=f"client {index}", place=client._graph.place)
        client._vector = parameters.ring.unpack(client._state.vector) if client._state.vector else None
        client._state.vector = b""
        client._faults = [RemoteProtocolError(*fault, proven=False) for fault in client._state.faults]
        return client

    def _parse(self, data: memoryview, kind: type[Any]) -> Any:
        messages.check_header(data, kind, self.parameters)
        return messages.decode(data if kind is messages.Open else self._channel().open(data), kind)

    def _hear_abort(self, data: memoryview) -> None:
        """The server's own word that this session is over; anybody else's, or another session's, does nothing."""
        messages.check_header(data, messages.Abort, self.parameters)
        message = messages.decode(data, messages.Abort)
        if message.session != self._state.session:
            raise Refusal("wrong_session", "the abort is of a session that this client is not in")
        if not verify(
            self._graph.roster.server, message.signature, said.abort_statement(self._state.context, message.code)
        ):
            raise Refusal("bad_signature", "the server on the roster did not sign this abort")
        self._ended = _REASONS.get(message.code, str(message.code))
        self._wipe("failed")

    def _sealed(self, answer: messages.ClientMessage) -> bytes:
        encoded = messages.encode(answer)
        return bytes(encoded) if isinstance(answer, messages.Advertise) else self._channel().seal(encoded)

    def _channel(self) -> Channel:
        if self._channel_cache is None:
            shared = self._secrets().shared_with(self._state.server_key)
            self._channel_cache = Channel(shared, session=self._state.session, client=self.index)
        return self._channel_cache

    def _secrets(self) -> ClientSecrets:
        if self._secrets_cache is None:
            self._secrets_cache = ClientSecrets(self._state.root)
        return self._secrets_cache

    def _advertise(self, message: messages.Open) -> messages.Advertise:
        checks.check_open(message, self._graph)
        state, secrets, me = self._state, self._secrets(), self.index
        secrets.shared_with(message.server_key)  # refuses a low-order key before anything is remembered
        state.session, state.server_key = message.session, message.server_key
        state.context = said.context_of(self._graph, message.session, message.server_key)
        commitment = said.seed_commitment(message.session, me, secrets.seed)
        statement = said.advert_statement(state.context, me, secrets.box_public, secrets.mask_public, commitment)
        state.advert = messages.Advertise(
            message.session, me, secrets.box_public, secrets.mask_public, commitment, self._identity.sign(statement)
        )
        return state.advert

    def _share(self, message: messages.Adverts) -> messages.Share:
        state, graph, me = self._state, self._graph, self.index
        checks.check_adverts(message, graph, me, state)
        leaves = {advert.sender: said.advert_leaf(advert) for advert in (*message.adverts, state.advert)}
        root = root_of(leaves, self.parameters.clients, message.proof)
        state.transcript = said.transcript_of(state.context, root)
        state.adverts = {advert.sender: advert for advert in message.adverts}
        shares = self._secrets().shares(threshold=self.parameters.threshold, holders=len(graph.neighbours(me)))
        boxes, commitments = bytearray(), bytearray()
        for holder, advert in state.adverts.items():
            both = shares[graph.point(me, holder) - 1].tobytes()
            boxes += self._secrets().seal_box(both, me, advert, state.transcript)
            commitments += said.share_commitments(state.transcript, me, holder, both)
        return messages.Share(state.session, me, state.reply_to, bytes(boxes), bytes(commitments))

    def _mask(self, message: messages.Deliver) -> messages.Mask:
        state, secrets, me = self._state, self._secrets(), self.index
        checks.check_deliver(message, self._graph, state)
        state.sharers = message.sharers
        seeds = [(other, secrets.pair_seed(me, state.adverts[other], state.transcript)) for other in message.sharers]
        for place, owner in enumerate(message.sharers):
            self._keep_shares(owner, place, message)
        masked = self._copy_of_vector()
        add_masks(
            masked,
            plus=[secrets.self_stream(state.transcript), *(seed for other, seed in seeds if other > me)],
            minus=[seed for other, seed in seeds if other < me],
            threads=self._threads,
        )
        self._vector = None
        failed = tuple(owner for owner in message.sharers if owner not in state.held)
        return messages.Mask(state.session, me, state.reply_to, failed, memoryview(masked.pack()))

    def _keep_shares(self, owner: int, place: int, message: messages.Deliver) -> None:
        """Keep the owner's shares; a box that does not fit costs only these shares, and who spoilt it is unproven."""
        state, me = self._state, self.index
        box = message.boxes[place * messages.BOX_BYTES : (place + 1) * messages.BOX_BYTES]
        size = 2 * wire.HASH_BYTES
        try:
            shares = self._secrets().open_box(box, me, state.adverts[owner], state.transcript)
        except InvalidTag:
            self._faults.append(RemoteProtocolError(owner, "share", "bad_box", proven=False))
            return
        if said.share_commitments(state.transcript, owner, me, shares) != message.commitments[place * size :][:size]:
            self._faults.append(RemoteProtocolError(owner, "share", "bad_commitment", proven=False))
            return
        state.held[owner] = shares

    def _copy_of_vector(self) -> RingVector:
        if self._vector is None:
            raise LocalProtocolError("the saved state holds no vector to mask")
        return RingVector(self._vector.ring, tuple(lane.copy() for lane in self._vector.lanes))

    def _agree(self, message: messages.Survivors) -> messages.Agree:
        state = self._state
        checks.check_survivors(message.survivors, self._graph, self.index, state)
        state.survivors = message.survivors
        signature = self._identity.sign(said.survivors_statement(state.transcript, message.survivors))
        return messages.Agree(state.session, self.index, state.reply_to, signature)

    def _unmask(self, message: messages.Agreement) -> messages.Unmask:
        """The one place where shares leave: which kind follows from the signed list and from nothing else."""
        state, half = self._state, messages.SECRET_BYTES
        checks.check_agreement(message, self._graph, self.index, state)
        own = self._identity.sign(said.survivors_statement(state.transcript, state.survivors))  # as before: no nonce
        state.agreement = words_of(state.survivors, message, {self.index: own})
        survivors = members(state.survivors, self.parameters.clients)
        owners = tuple(sorted(state.held))
        shares = b"".join(
            state.held[owner][:half] if owner in survivors else state.held[owner][half:] for owner in owners
        )
        return messages.Unmask(state.session, self.index, state.reply_to, self._secrets().seed, owners, shares)

    _acts: ClassVar[dict[StepName, Callable[[Client, Any], messages.ClientMessage]]] = {
        "advertise": _advertise,
        "share": _share,
        "mask": _mask,
        "agree": _agree,
        "unmask": _unmask,
    }

    def _wipe(self, end: StepName) -> None:
        """Overwrite the root and forget everything derived from it, as far as Python lets us.

        What was answered last stays after a good end, sealed as it was sent, so that it can be repeated.
        """
        old = self._state
        old.root[:] = bytes(len(old.root))
        self._state = ClientState(root=bytearray(), step=end, upload=old.upload, uploaded=old.uploaded)
        self._state.transcript = old.transcript
        if end == "done":
            self._state.agreement = old.agreement
            self._state.answered, self._state.answer = old.answered, old.answer
            self._state.survivors = old.survivors
        self._vector = self._secrets_cache = self._channel_cache = None

    def __repr__(self) -> str:
        return f"Client(index={self.index}, step={self.step!r})"
