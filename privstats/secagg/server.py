"""The server machine: bytes in, bytes out; it learns the sum of those who stayed and can name whoever lied.

No clock, socket or global: the engine says when a step's time is up. It keeps one running sum, never n vectors.
Between the engine that carries the messages and whoever wants the sum.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.encoding import RingVector
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import messages as wire
from privstats.secagg import statements as said
from privstats.secagg.bitmap import to_bitmap
from privstats.secagg.channel import Channel
from privstats.secagg.graph import Graph
from privstats.secagg.intake import check_advertise, check_agree, check_mask, check_share, check_unmask
from privstats.secagg.keys import Entropy, Identity, agree, draw, public_of
from privstats.secagg.messages import Refusal
from privstats.secagg.parameters import Parameters
from privstats.secagg.roster import Roster
from privstats.secagg.sealing import seal_state, unseal_state
from privstats.secagg.state import ServerState
from privstats.secagg.steps import ENDS, STEPS, StepName
from privstats.secagg.sums import add_packed
from privstats.secagg.transcript import MerkleTree, advert_leaf
from privstats.secagg.unmasking import unmask
from privstats.secagg.verdicts import accused, quorums, require_clients, signers

__all__ = ["Outbox", "Server"]

Outbox: TypeAlias = list[tuple[int, bytes]]


class Server:
    """The aggregator of one session.

    Args:
        parameters: what all parties agreed on.
        roster: everybody's public identities, the server's among them.
        identity: the signing key behind the roster's ``server``; it signs the opening, and an abort.
        entropy: source of 64 uniform bytes: the session's name and the server's session key.
        threads: processors to use for masks.

    Raises:
        LocalProtocolError: roster, identity and parameters do not fit together, or the roster must be numbered.

    Guarantee: :attr:`result` is the exact sum over its survivors, or there is none. An honest server trusts no client
    for that: what a client sends is checked against what it signed. Whether its *input* is honest is not checked.
    """

    def __init__(
        self,
        parameters: Parameters,
        *,
        roster: Roster,
        identity: Identity,
        entropy: Entropy = os.urandom,
        threads: int = 1,
    ) -> None:
        self._bind(Graph(parameters, roster), identity, threads)
        self._enter(ServerState(session=draw(entropy, 32), secret=bytearray(draw(entropy, 32))))

    def _bind(self, graph: Graph, identity: Identity, threads: int) -> None:
        if identity.public != graph.roster.server:
            raise LocalProtocolError("the identity is not the server's on the roster")
        self._identity, self._failure = identity, ""
        self.parameters, self._graph, self._threads = graph.parameters, graph, threads
        self._channels: dict[int, Channel] = {}
        self._receivers_cache: dict[int, tuple[int, ...]] = {}
        self._sum: RingVector | None = None

    def _enter(self, state: ServerState) -> None:
        self._state = state
        self._private = X25519PrivateKey.from_private_bytes(state.secret)
        self._public = public_of(state.secret)
        self._context = said.context_of(self._graph, state.session, self._public)

    @property
    def step(self) -> StepName:
        """The step whose answers the server waits for; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients whose answer to this step has not arrived."""
        return frozenset(self._state.expected)

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """What was refused, once per client, step and code, and whose boxes others could not use, which is unproven."""
        return (*(RemoteProtocolError(*fault) for fault in self._state.faults), *accused(self._state.failed))

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and the clients it is over, in increasing order.

        Raises:
            LocalProtocolError: the session has not finished, or failed.
        """
        if self._state.step != "done" or self._sum is None:
            raise LocalProtocolError(f"there is no result: the session is at step '{self._state.step}'")
        return self._sum, tuple(sorted(self._state.survivors))

    def start(self) -> Outbox:
        """The messages that open the session, one per client of the roster.

        Raises:
            LocalProtocolError: called twice.
        """
        state = self._state
        if state.step != "advertise" or state.expected or state.adverts:
            raise LocalProtocolError("the session has already started: a server serves one session")
        state.expected = set(range(self.parameters.clients))
        signature = self._identity.sign(said.open_statement(self._context))
        digests = self.parameters.digest, self._graph.roster.digest
        opening = wire.Open(state.session, *digests, self._public, signature)
        return [(client, bytes(wire.encode(opening))) for client in sorted(state.expected)]

    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Take one message that the engine got from ``sender``; returns the next step's once all have answered.

        Raises:
            RemoteProtocolError: the message is refused and nothing changed; the session goes on, without the sender if
                no good message follows.
            AggregationError: this was the last answer of its step, and the session cannot go on.
            LocalProtocolError: the session has ended.
        """
        state = self._running()
        try:
            message = self._parse(sender, memoryview(data), STEPS[state.step].answers)
            self._accepts[state.step](self, sender, message)
        except Refusal as refusal:
            if 0 <= sender < self.parameters.clients:
                state.faults.add((sender, state.step, refusal.code))
            raise RemoteProtocolError(sender, state.step, refusal.code, refusal.detail) from None
        state.expected.discard(sender)
        return [] if state.expected else self.end_step()

    def end_step(self) -> Outbox:
        """The step's time is up: go on with those who answered.

        Raises:
            AggregationError: too few answered, or shares do not fit; the session has ended.
            LocalProtocolError: the session has ended before.
        """
        state = self._running()
        try:
            outbox = self._closers[state.step](self)
        except AggregationError as error:
            self._failure = error.code
            self._end("failed")
            raise
        state.expected = {client for client, _ in outbox}
        state.step = STEPS[state.step].then
        if state.step in ENDS:
            self._end(state.step)
        return outbox

    def abandon(self, code: str = "abandoned") -> Outbox:
        """End the session and return what tells every client so; whoever is still in it wipes itself.

        After the end it changes nothing, and the messages say "finished" or why the session failed.

        Raises:
            LocalProtocolError: ``code`` is no word of ``messages.ABORTS``.
        """
        if code not in wire.ABORTS:
            raise LocalProtocolError(f"a session is abandoned with one of {', '.join(wire.ABORTS)}, got {code!r}")
        if self._state.step not in ENDS:
            self._failure = code
            self._end("failed")
        number = wire.ABORTS["finished" if self._state.step == "done" else self._failure]
        abort = wire.Abort(
            self._state.session, number, self._identity.sign(said.abort_statement(self._context, number))
        )
        return [(client, bytes(wire.encode(abort))) for client in range(self.parameters.clients)]

    def export(self, key: bytes, *, entropy: Entropy = os.urandom) -> bytes:
        """The server's state, sealed under 32 bytes of ``key``.

        Save it before anything is sent that followed from it, and resume only the newest: an older one could seal two
        different messages under one nonce. ``engines.journal`` does both.

        Raises:
            LocalProtocolError: the session has ended.
        """
        state = self._running()
        state.total = self._sum.pack() if self._sum is not None else b""
        sealed = seal_state(state, key, role="server", graph=self._graph, entropy=entropy)
        state.total = b""
        return sealed

    @classmethod
    def resume(
        cls,
        sealed: bytes,
        key: bytes,
        *,
        parameters: Parameters,
        roster: Roster,
        identity: Identity,
        threads: int = 1,
    ) -> Server:
        """The server that :meth:`export` sealed, where it stood.

        Raises:
            LocalProtocolError: another key or plan, or damage.
        """
        server = cls.__new__(cls)
        server._bind(Graph(parameters, roster), identity, threads)
        state = unseal_state(sealed, key, ServerState, role="server", graph=server._graph)
        server._sum = parameters.ring.unpack(state.total) if state.total else None
        state.total = b""
        server._enter(state)
        return server

    def _running(self) -> ServerState:
        if self._state.step in ENDS:
            raise LocalProtocolError(f"the session is {self._state.step}: make a new server for a new one")
        return self._state

    def _parse(self, sender: int, data: memoryview, kind: type[Any]) -> Any:
        if not 0 <= sender < self.parameters.clients:
            raise Refusal("stranger")
        if sender not in self._state.expected:
            raise Refusal("not_expected")
        wire.check_header(data, kind, self.parameters)
        if kind is wire.Advertise and wire.session_of(data) != self._state.session:
            raise Refusal("wrong_session")
        message = wire.decode(data if kind is wire.Advertise else self._channel(sender).open(data), kind)
        if message.sender != sender:
            raise Refusal("wrong_sender")
        if kind is not wire.Advertise and message.reply_to != self._state.sent[sender]:
            raise Refusal("wrong_reply", "it answers another message than the one this server sent")
        return message

    def _channel(self, client: int) -> Channel:
        if client not in self._channels:
            shared = agree(self._private, self._state.adverts[client].box_key)
            self._channels[client] = Channel(shared, session=self._state.session, client=client)
        return self._channels[client]

    def _send(self, client: int, message: wire.ServerMessage) -> tuple[int, bytes]:
        sealed = self._channel(client).seal(wire.encode(message))
        self._state.sent[client] = sha256(sealed).digest()
        return client, sealed

    def _receivers(self, owner: int) -> tuple[int, ...]:
        """The clients that ``owner`` makes boxes for: its neighbours that advertised, in order."""
        if owner not in self._receivers_cache:
            adverts = self._state.adverts
            self._receivers_cache[owner] = tuple(other for other in self._graph.neighbours(owner) if other in adverts)
        return self._receivers_cache[owner]

    def _dealers(self, holder: int) -> set[int]:
        """The clients whose boxes ``holder`` was sent."""
        return self._state.sharers.intersection(self._receivers(holder))

    def _commitment(self, owner: int, holder: int, kind: bytes) -> bytes:
        """What ``owner`` committed ``holder``'s share to be."""
        start = (2 * bisect_left(self._receivers(owner), holder) + (kind == b"k")) * wire.HASH_BYTES
        return self._state.commitments[owner][start : start + wire.HASH_BYTES]

    def _accept_advertise(self, sender: int, message: wire.Advertise) -> None:
        check_advertise(message, self._graph.roster.publics[sender], self._context, self._private)
        self._state.adverts[sender] = message

    def _accept_share(self, sender: int, message: wire.Share) -> None:
        receivers, size = self._receivers(sender), wire.BOX_BYTES
        check_share(message, len(receivers))
        self._state.commitments[sender] = message.commitments
        for place, receiver in enumerate(receivers):
            start = size * bisect_left(self._receivers(receiver), sender)
            self._inbox(receiver)[start : start + size] = message.boxes[size * place : size * (place + 1)]

    def _accept_mask(self, sender: int, message: wire.Mask) -> None:
        check_mask(message, self.parameters.ring.wire_bytes, self._dealers(sender))
        if self._sum is None:
            self._sum = self.parameters.ring.zeros()
        add_packed(self._sum, message.vector)
        self._state.survivors.add(sender)
        if message.failed:
            self._state.failed[sender] = message.failed

    def _accept_agree(self, sender: int, message: wire.Agree) -> None:
        statement = said.survivors_statement(self._state.transcript, self._state.listed)
        check_agree(message, self._graph.roster.publics[sender], statement)
        self._state.signatures[sender] = message.signature

    def _accept_unmask(self, sender: int, message: wire.Unmask) -> None:
        state = self._state
        check_unmask(
            message,
            advert=state.adverts[sender],
            transcript=state.transcript,
            owners=self._dealers(sender).difference(state.failed.get(sender, ())),
            survivors=state.survivors,
            commitment=self._commitment,
        )
        state.answers[sender] = message

    _accepts: ClassVar[dict[StepName, Callable[[Server, int, Any], None]]] = {
        "advertise": _accept_advertise,
        "share": _accept_share,
        "mask": _accept_mask,
        "agree": _accept_agree,
        "unmask": _accept_unmask,
    }

    def _close_advertise(self) -> Outbox:
        state = self._state
        require_clients(state.adverts, "advertise", self._graph)
        leaves = {client: advert_leaf(advert) for client, advert in state.adverts.items()}
        tree = MerkleTree(leaves, self.parameters.clients)
        state.transcript = said.transcript_of(self._context, tree.root)
        return [self._send(client, self._adverts(client, tree)) for client in sorted(state.adverts)]

    def _adverts(self, client: int, tree: MerkleTree) -> wire.Adverts:
        others = self._receivers(client)
        proof = tree.proof(frozenset((client, *others)))
        return wire.Adverts(self._state.session, tuple(self._state.adverts[other] for other in others), proof)

    def _inbox(self, receiver: int) -> bytearray:
        """Boxes for ``receiver``, in the order of its neighbours; each is freed as it turns into a message."""
        if receiver not in self._state.inboxes:
            self._state.inboxes[receiver] = bytearray(wire.BOX_BYTES * len(self._receivers(receiver)))
        return self._state.inboxes[receiver]

    def _close_share(self) -> Outbox:
        state = self._state
        require_clients(state.commitments, "share", self._graph)
        state.sharers = set(state.commitments)
        outbox = [self._send(client, self._delivery(client)) for client in sorted(state.sharers)]
        state.inboxes.clear()
        return outbox

    def _delivery(self, client: int) -> wire.Deliver:
        state, size, inbox = self._state, wire.BOX_BYTES, self._inbox(client)
        boxes, commitments, sharers = bytearray(), bytearray(), []
        for place, owner in enumerate(self._receivers(client)):
            if owner in state.commitments:
                sharers.append(owner)
                boxes += inbox[size * place : size * (place + 1)]
                commitments += self._commitment(owner, client, b"s") + self._commitment(owner, client, b"k")
        del state.inboxes[client]
        return wire.Deliver(state.session, tuple(sharers), bytes(boxes), bytes(commitments))

    def _close_mask(self) -> Outbox:
        state = self._state
        require_clients(state.survivors, "mask", self._graph)
        state.listed = to_bitmap(state.survivors, self.parameters.clients)
        asked = signers(state.survivors, state.failed, self._graph)
        return [self._send(client, wire.Survivors(state.session, state.listed)) for client in asked]

    def _close_agree(self) -> Outbox:
        state = self._state
        shown = quorums(state.signatures, self._receivers, self.parameters)
        return [
            self._send(
                client, wire.Agreement(state.session, signers, b"".join(map(state.signatures.__getitem__, signers)))
            )
            for client, signers in shown.items()
        ]

    def _close_unmask(self) -> Outbox:
        if self._sum is None:
            raise LocalProtocolError("the saved state holds no sum to unmask")
        unmask(self._sum, self._state, self._graph, threads=self._threads)
        return []

    _closers: ClassVar[dict[StepName, Callable[[Server], Outbox]]] = {
        "advertise": _close_advertise,
        "share": _close_share,
        "mask": _close_mask,
        "agree": _close_agree,
        "unmask": _close_unmask,
    }

    def _end(self, end: StepName) -> None:
        """Forget everything but the result and the faults."""
        old = self._state
        old.secret[:] = bytes(len(old.secret))
        survivors = old.survivors if end == "done" else set()
        self._state = ServerState(
            bytearray(), old.session, step=end, survivors=survivors, failed=old.failed, faults=old.faults
        )
        self._channels, self._receivers_cache = {}, {}
        del self._private  # with it, a recording of the session could still be opened
        if end == "failed":
            self._sum = None

    def __repr__(self) -> str:
        return f"Server(clients={self.parameters.clients}, step={self.step!r})"
