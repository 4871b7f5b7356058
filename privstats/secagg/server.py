"""The server machine: bytes in, bytes out; it learns the sum of those who stayed and can prove every accusation.

No clock, socket, thread or global: the engine says when a step's time is up. It keeps one running sum, never n vectors.
Between the engine that carries the messages and whoever wants the sum.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.encoding import RingVector
from privstats.encoding.packing import packed_bytes, unpack
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import messages as wire
from privstats.secagg.bitmap import to_bitmap
from privstats.secagg.channel import Channel
from privstats.secagg.graph import Graph
from privstats.secagg.keys import Entropy, Roster, agree, public_of, verify
from privstats.secagg.parameters import Parameters
from privstats.secagg.prg import TILE
from privstats.secagg.state import ServerState
from privstats.secagg.statements import (
    advert_leaf,
    advert_statement,
    context_of,
    seed_commitment,
    share_commitment,
    survivors_statement,
    transcript_of,
)
from privstats.secagg.steps import DONE, FAILED, STEPS, StepName
from privstats.secagg.unmasking import check_keys, check_seeds, recover, remove_masks

__all__ = ["Outbox", "Server"]

Outbox = list[tuple[int, bytes]]


class Server:
    """The aggregator of one session.

    Args:
        parameters: what all parties agreed on.
        roster: everybody's public identities.
        entropy: source of 64 uniform bytes: the session's name and the server's session key.

    Raises:
        LocalProtocolError: the roster does not fit the parameters.

    Guarantee: :attr:`result` is the exact sum over :attr:`survivors`, or there is none. An honest server trusts no
    client for that: what a client sends is checked against what it signed. Whether its *input* is honest is not.
    """

    def __init__(self, parameters: Parameters, *, roster: Roster, entropy: Entropy = os.urandom) -> None:
        if len(roster) != parameters.clients:
            raise LocalProtocolError(f"the roster lists {len(roster)} clients, the parameters {parameters.clients}")
        self.parameters, self._roster = parameters, roster
        self._state = ServerState(session=entropy(32), secret=bytearray(entropy(32)))
        self._sum: RingVector | None = None
        self._derive()

    def _derive(self) -> None:
        """What follows from the state and is not part of it."""
        self._graph = Graph(self.parameters, self._roster)
        self._private = X25519PrivateKey.from_private_bytes(self._state.secret)
        self._public = public_of(self._state.secret)
        self._context = context_of(self.parameters, self._roster, self._state.session, self._public)
        self._channels: dict[int, Channel] = {}
        self._addressees: dict[int, tuple[int, ...]] = {}
        self.faults: tuple[RemoteProtocolError, ...] = ()

    @property
    def step(self) -> StepName:
        """The step whose answers the server waits for; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients whose answer to this step has not arrived."""
        return frozenset(self._state.expected)

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and the clients it is over, in increasing order.

        Raises:
            LocalProtocolError: the session has not finished, or failed.
        """
        if self._state.step != DONE or self._sum is None:
            raise LocalProtocolError(f"there is no result: the session is at step '{self._state.step}'")
        return self._sum, self._state.survivors

    def start(self) -> Outbox:
        """The messages that open the session, one per client of the roster.

        Raises:
            LocalProtocolError: called twice.
        """
        state = self._state
        if state.step != "advertise" or state.expected or state.adverts:
            raise LocalProtocolError("the session has already started: a server serves one session")
        state.expected = set(range(self.parameters.clients))
        opening = bytes(
            wire.encode(wire.Open(state.session, self.parameters.digest, self._roster.digest, self._public))
        )
        return [(client, opening) for client in sorted(state.expected)]

    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Take one message that the engine got from ``sender``; returns the next step's once all have answered.

        Raises:
            RemoteProtocolError: the message is refused and nothing changed; the session goes on, without the sender if
                no good message follows.
            AggregationError: this was the last answer of its step, and the session cannot go on.
            LocalProtocolError: the session has ended.
        """
        state = self._running()
        row = STEPS[state.step]
        try:
            message = self._parse(sender, memoryview(data), row.answers)
            self._absorbers[state.step](self, sender, message)
        except wire.Malformed as damage:
            raise self._record(RemoteProtocolError(sender, state.step, damage.code)) from None
        state.expected.discard(sender)
        return [] if state.expected else self.end_step()

    def end_step(self) -> Outbox:
        """The step's time is up: go on with those who answered.

        Raises:
            AggregationError: too few answered; the session has ended.
            LocalProtocolError: the session has ended before.
        """
        state = self._running()
        try:
            outbox = self._closers[state.step](self)
        except AggregationError:
            self._end(FAILED)
            raise
        state.expected = {client for client, _ in outbox}
        state.step = STEPS[state.step].then
        if state.step == DONE:
            self._end(DONE)
        return outbox

    def _running(self) -> ServerState:
        if self._state.step in (DONE, FAILED):
            raise LocalProtocolError(f"the session is {self._state.step}: make a new server for a new one")
        return self._state

    def _parse(self, sender: int, data: memoryview, kind: type[Any]) -> Any:
        state = self._state
        if sender not in state.expected:
            answered = 0 <= sender < self.parameters.clients
            raise wire.Malformed("not_expected" if answered else "stranger")
        if len(data) > wire.size_limit(kind, self.parameters):
            raise wire.Malformed("too_large")
        if kind is not wire.Advertise:
            data = self._link(sender).open(data)
        message = wire.decode(data, kind)
        if message.session != state.session:
            raise wire.Malformed("wrong_session")
        if message.sender != sender:
            raise wire.Malformed("wrong_sender")
        return message

    def _link(self, client: int) -> Channel:
        if client not in self._channels:
            shared = agree(self._private, self._state.adverts[client].box_key)
            self._channels[client] = Channel(shared, session=self._state.session, client=client, at_client=False)
        return self._channels[client]

    def _send(self, client: int, message: wire.ServerMessage) -> tuple[int, bytes]:
        return client, self._link(client).seal(wire.encode(message))

    def _record(self, fault: RemoteProtocolError) -> RemoteProtocolError:
        self.faults += (fault,)
        return fault

    # Absorbing one answer. Each refuses by raising Malformed and changes nothing before its last check.

    def _absorb_advertise(self, sender: int, message: wire.Advertise) -> None:
        statement = advert_statement(self._context, sender, message.box_key, message.mask_key, message.commitment)
        if not verify(self._roster.publics[sender], message.signature, statement):
            raise wire.Malformed("bad_signature")
        try:
            for public in (message.box_key, message.mask_key):
                agree(self._private, public)
        except ValueError:
            raise wire.Malformed("bad_key") from None
        self._state.adverts[sender] = message

    def _absorb_share(self, sender: int, message: wire.Share) -> None:
        count = len(self._receivers(sender))
        if (len(message.boxes), len(message.commitments)) != (count * wire.BOX_BYTES, count * 2 * wire.HASH_BYTES):
            raise wire.Malformed("wrong_length")
        self._state.boxes[sender], self._state.commitments[sender] = message.boxes, message.commitments

    def _absorb_mask(self, sender: int, message: wire.Mask) -> None:
        if len(message.vector) != self.parameters.ring.wire_bytes:
            raise wire.Malformed("wrong_length")
        if self._sum is None:
            self._sum = self.parameters.ring.zeros()
        _add_packed(self._sum, message.vector)
        self._state.survivors = tuple(sorted((*self._state.survivors, sender)))

    def _absorb_agree(self, sender: int, message: wire.Agree) -> None:
        if not verify(self._roster.publics[sender], message.signature, self._statement()):
            raise wire.Malformed("bad_signature")
        self._state.signatures[sender] = message.signature

    def _absorb_unmask(self, sender: int, message: wire.Unmask) -> None:
        state, size = self._state, wire.SECRET_BYTES
        if seed_commitment(state.session, sender, message.seed) != state.adverts[sender].commitment:
            raise wire.Malformed("bad_seed")
        known = set(self._graph.neighbours(sender)) & set(state.sharers)
        if tuple(sorted(set(message.owners))) != message.owners or not set(message.owners) <= known:
            raise wire.Malformed("strangers")
        if len(message.shares) != size * len(message.owners):
            raise wire.Malformed("wrong_length")
        survivors = frozenset(state.survivors)
        for place, owner in enumerate(message.owners):
            kind, share = b"s" if owner in survivors else b"k", message.shares[place * size : (place + 1) * size]
            if share_commitment(state.transcript, kind, owner, sender, share) != self._committed(owner, sender, kind):
                raise wire.Malformed("bad_share")
        state.answers[sender] = message

    def _committed(self, owner: int, holder: int, kind: bytes) -> bytes:
        start = (2 * bisect_left(self._receivers(owner), holder) + (kind == b"k")) * wire.HASH_BYTES
        return self._state.commitments[owner][start : start + wire.HASH_BYTES]

    def _receivers(self, owner: int) -> tuple[int, ...]:
        """The clients that ``owner`` made boxes for, in the order of its boxes."""
        if owner not in self._addressees:
            adverts = self._state.adverts
            self._addressees[owner] = tuple(other for other in self._graph.neighbours(owner) if other in adverts)
        return self._addressees[owner]

    def _statement(self) -> bytes:
        state = self._state
        return survivors_statement(state.transcript, to_bitmap(state.survivors, self.parameters.clients))

    # Closing a step: enough answers, then the next step's messages.

    def _close_advertise(self) -> Outbox:
        state = self._state
        self._require(state.adverts.keys())
        blank = bytes(wire.HASH_BYTES)
        digests = b"".join(
            advert_leaf(state.adverts[client]) if client in state.adverts else blank
            for client in range(self.parameters.clients)
        )
        state.transcript = transcript_of(self._context, digests)
        return [
            self._send(
                client,
                wire.Adverts(state.session, tuple(state.adverts[other] for other in self._receivers(client)), digests),
            )
            for client in sorted(state.adverts)
        ]

    def _close_share(self) -> Outbox:
        state = self._state
        self._require(state.boxes.keys())
        state.sharers = tuple(sorted(state.boxes))
        outbox = [self._send(client, self._delivery(client)) for client in state.sharers]
        state.boxes.clear()
        return outbox

    def _delivery(self, client: int) -> wire.Deliver:
        state = self._state
        owners = tuple(owner for owner in self._receivers(client) if owner in state.boxes)
        boxes, commitments = bytearray(), bytearray()
        for owner in owners:
            place = bisect_left(self._receivers(owner), client)
            boxes += state.boxes[owner][place * wire.BOX_BYTES : (place + 1) * wire.BOX_BYTES]
            commitments += self._committed(owner, client, b"s") + self._committed(owner, client, b"k")
        return wire.Deliver(state.session, owners, bytes(boxes), bytes(commitments))

    def _close_mask(self) -> Outbox:
        state = self._state
        self._require(state.survivors)
        listed = wire.Survivors(state.session, to_bitmap(state.survivors, self.parameters.clients))
        return [self._send(client, listed) for client in state.survivors]

    def _close_agree(self) -> Outbox:
        state = self._state
        outbox: Outbox = []
        for client in sorted(state.signatures):
            signers = tuple(other for other in self._receivers(client) if other in state.signatures)
            if len(signers) >= self.parameters.quorum:
                signatures = b"".join(state.signatures[signer] for signer in signers)
                outbox.append(self._send(client, wire.Agreement(state.session, signers, signatures)))
        if len(outbox) < self.parameters.threshold:
            raise AggregationError(
                "agree",
                "too_few_signatures",
                f"{len(outbox)} clients can be shown enough signatures, {self.parameters.threshold} are needed",
            )
        return outbox

    def _close_unmask(self) -> Outbox:
        state = self._state
        seeds = {client: answer.seed for client, answer in state.answers.items()}
        silent = [client for client in state.survivors if client not in seeds]
        recovered = recover(silent, state.answers, self._graph)
        check_seeds(recovered, state.adverts)
        keys = recover(sorted(set(state.sharers) - set(state.survivors)), state.answers, self._graph)
        check_keys(keys, state.adverts)
        total = self._total()
        remove_masks(
            total,
            seeds=seeds | recovered,
            keys=keys,
            adverts=state.adverts,
            transcript=state.transcript,
            graph=self._graph,
        )
        return []

    def _require(self, remaining: Iterable[int]) -> None:
        """Enough clients are left, and each has enough neighbours among them."""
        here, step = frozenset(remaining), self._state.step
        if len(here) < self.parameters.min_survivors:
            raise AggregationError(
                step, "too_few_clients", f"{len(here)} answered, the plan needs {self.parameters.min_survivors}"
            )
        for client in here if not self.parameters.complete else ():
            if len(here.intersection(self._graph.neighbours(client))) < self.parameters.quorum:
                raise AggregationError(step, "isolated", f"client {client} is left with too few neighbours")

    def _total(self) -> RingVector:
        if self._sum is None:
            raise LocalProtocolError("no vector has been summed")
        return self._sum

    _absorbers: ClassVar[dict[StepName, Callable[[Server, int, Any], None]]] = {
        "advertise": _absorb_advertise,
        "share": _absorb_share,
        "mask": _absorb_mask,
        "agree": _absorb_agree,
        "unmask": _absorb_unmask,
    }
    _closers: ClassVar[dict[StepName, Callable[[Server], Outbox]]] = {
        "advertise": _close_advertise,
        "share": _close_share,
        "mask": _close_mask,
        "agree": _close_agree,
        "unmask": _close_unmask,
    }

    def _end(self, end: StepName) -> None:
        survivors = self._state.survivors if end == DONE else ()
        self._state = ServerState(session=self._state.session, secret=bytearray(), step=end, survivors=survivors)
        self._channels, self._addressees = {}, {}
        if end == FAILED:
            self._sum = None

    def __repr__(self) -> str:
        return f"Server(clients={self.parameters.clients}, step={self.step!r})"


def _add_packed(total: RingVector, packed: memoryview) -> None:
    """Add a packed vector tile by tile, so that no second unpacked vector exists."""
    start = 0
    for lane, (size, bits) in zip(total.lanes, total.ring.segments, strict=True):
        for first in range(0, size, TILE):
            count = min(TILE, size - first)
            end = start + packed_bytes(count, bits)  # a full tile is a multiple of 8 entries: it ends on a byte
            tile = lane[first : first + count]
            np.add(tile, unpack(packed[start:end], count, bits), out=tile)
            start = end
