"""The client machine: bytes in, bytes out; it refuses whatever a lying server could use against it.

No clock, socket, thread or global; randomness is passed in. One instance serves one session and wipes itself after its
unmask message. Between a ring vector and the engine that carries its messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

from cryptography.exceptions import InvalidTag

from privstats.encoding import RingVector
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import messages as wire
from privstats.secagg.bitmap import members
from privstats.secagg.channel import Channel
from privstats.secagg.graph import Graph
from privstats.secagg.keys import Entropy, Identity, Roster, agree, verify
from privstats.secagg.material import ClientSecrets, box_cipher, pair_seed, self_stream
from privstats.secagg.parameters import Parameters
from privstats.secagg.prg import add_masks
from privstats.secagg.state import ClientState
from privstats.secagg.statements import (
    advert_leaf,
    advert_statement,
    box_context,
    context_of,
    seed_commitment,
    share_commitment,
    survivors_statement,
    transcript_of,
)
from privstats.secagg.steps import DONE, FAILED, STEPS, StepName

__all__ = ["Client"]

_SERVER = "server"
_NONCE = bytes(12)


class Client:
    """One client in one aggregation.

    Args:
        parameters: what all parties agreed on.
        vector: the client's contribution; it is copied when it is masked, never changed.
        index: this client's place on the roster.
        identity: the signing key behind that place.
        roster: everybody's public identities.
        entropy: source of 32 uniform bytes, asked once.

    Raises:
        LocalProtocolError: vector, identity or roster do not fit the parameters.

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
    ) -> None:
        self._bind(parameters, index, identity, roster)
        if vector.ring != parameters.ring:
            raise LocalProtocolError("the vector's ring differs from the parameters': encode it with parameters.ring")
        self._vector: RingVector | None = vector
        self._state = ClientState(root=bytearray(entropy(32)))

    def _bind(self, parameters: Parameters, index: int, identity: Identity, roster: Roster) -> None:
        if len(roster) != parameters.clients:
            raise LocalProtocolError(f"the roster lists {len(roster)} clients, the parameters {parameters.clients}")
        if not 0 <= index < parameters.clients or roster.publics[index] != identity.public:
            raise LocalProtocolError(f"the identity is not the one at place {index} of the roster")
        self.parameters, self.index, self._identity, self._roster = parameters, index, identity, roster
        self._graph = Graph(parameters, roster)
        self._channel: Channel | None = None
        self._material: ClientSecrets | None = None
        self.faults: tuple[RemoteProtocolError, ...] = ()

    @property
    def step(self) -> StepName:
        """The step whose opening message this client waits for; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Take one message from the server and return what to send: ``[("server", bytes)]``.

        Raises:
            RemoteProtocolError: the message is damaged (then nothing happened, and a good one is still welcome), or the
                server broke the protocol (then this client has failed and wiped itself).
            LocalProtocolError: this client has already finished or failed.
        """
        step = self._state.step
        if step in (DONE, FAILED):
            raise LocalProtocolError(f"this client is {step}: a client serves one session, make a new one")
        row = STEPS[step]
        try:
            message = self._parse(memoryview(data), row.opens)
        except wire.Malformed as damage:
            raise RemoteProtocolError(_SERVER, step, damage.code) from None
        try:
            answer = self._handlers[step](self, message)
        except RemoteProtocolError:
            self._wipe(FAILED)
            raise
        sent = self._sealed(answer)
        self._state.step = row.then
        if row.then == DONE:
            self._wipe(DONE)
        return [(_SERVER, sent)]

    def _parse(self, data: memoryview, kind: type[Any]) -> Any:
        if len(data) > wire.size_limit(kind, self.parameters):
            raise wire.Malformed("too_large")
        if kind is not wire.Open:
            data = self._link().open(data)
        return wire.decode(data, kind)

    def _sealed(self, answer: wire.ClientMessage) -> bytes:
        encoded = wire.encode(answer)
        return bytes(encoded) if isinstance(answer, wire.Advertise) else self._link().seal(encoded)

    def _link(self) -> Channel:
        if self._channel is None:
            shared = agree(self._secrets().box_private, self._state.server_key)
            self._channel = Channel(shared, session=self._state.session, client=self.index, at_client=True)
        return self._channel

    def _secrets(self) -> ClientSecrets:
        if self._material is None:
            self._material = ClientSecrets(self._state.root)
        return self._material

    # The five steps. Each takes the opening message, checks it, and returns the answer.

    def _advertise(self, message: wire.Open) -> wire.Advertise:
        state, secrets = self._state, self._secrets()
        if message.parameters != self.parameters.digest:
            raise self._accuse("wrong_plan", "the server runs other parameters or another plan")
        if message.roster != self._roster.digest:
            raise self._accuse("wrong_roster", "the server runs another roster")
        state.session, state.server_key = message.session, message.server_key
        try:
            self._link()
        except ValueError:
            raise self._accuse("bad_key", "the server's session key is a point of low order") from None
        state.context = context_of(self.parameters, self._roster, message.session, message.server_key)
        commitment = seed_commitment(message.session, self.index, secrets.seed)
        box_key, mask_key = (
            private.public_key().public_bytes_raw() for private in (secrets.box_private, secrets.mask_private)
        )
        statement = advert_statement(state.context, self.index, box_key, mask_key, commitment)
        signature = self._identity.sign(statement)
        state.advert = wire.Advertise(message.session, self.index, box_key, mask_key, commitment, signature)
        return state.advert

    def _share(self, message: wire.Adverts) -> wire.Share:
        state, secrets, me = self._state, self._secrets(), self.index
        self._check_adverts(message)
        state.transcript = transcript_of(state.context, message.digests)
        state.adverts = {advert.sender: advert for advert in message.adverts}
        neighbours = self._graph.neighbours(me)
        shares = secrets.shares(threshold=self.parameters.threshold, holders=len(neighbours))
        boxes, commitments = bytearray(), bytearray()
        for holder in state.adverts:
            both = shares[self._graph.point(me, holder) - 1].tobytes()
            boxes += self._cipher(holder, sender=me, receiver=holder).encrypt(
                _NONCE, both, box_context(state.session, me, holder)
            )
            commitments += _commit(state.transcript, me, holder, both)
        return wire.Share(state.session, me, bytes(boxes), bytes(commitments))

    def _check_adverts(self, message: wire.Adverts) -> None:
        state, graph = self._state, self._graph
        senders = [advert.sender for advert in message.adverts]
        if sorted(set(senders)) != senders or not set(senders) <= set(graph.neighbours(self.index)):
            raise self._accuse("strangers", "advertisements of clients that are not neighbours, or out of order")
        if len(senders) < self.parameters.quorum:
            raise self._accuse("too_few_neighbours", f"{len(senders)} advertised, {self.parameters.quorum} are needed")
        if len(message.digests) != wire.HASH_BYTES * self.parameters.clients:
            raise self._accuse("wrong_length", "there must be one digest per client")
        for advert in (*message.adverts, state.advert):
            place = slice(wire.HASH_BYTES * advert.sender, wire.HASH_BYTES * (advert.sender + 1))
            if message.digests[place] != advert_leaf(advert):
                raise self._accuse("wrong_transcript", f"client {advert.sender}'s digest is not of its advertisement")
        for advert in message.adverts:
            statement = advert_statement(
                state.context, advert.sender, advert.box_key, advert.mask_key, advert.commitment
            )
            if not verify(self._roster.publics[advert.sender], advert.signature, statement):
                raise self._accuse("bad_signature", f"client {advert.sender} did not sign these keys for this session")

    def _mask(self, message: wire.Deliver) -> wire.Mask:
        state, secrets, me = self._state, self._secrets(), self.index
        self._check_deliver(message)
        state.sharers = message.sharers
        for place, owner in enumerate(message.sharers):
            self._open_box(owner, place, message)
        seeds = {
            other: pair_seed(
                secrets.mask_private, state.adverts[other].mask_key, transcript=state.transcript, pair=(me, other)
            )
            for other in message.sharers
        }
        masked = self._take_vector()
        add_masks(
            masked,
            plus=[self_stream(secrets.seed, transcript=state.transcript), *(s for o, s in seeds.items() if o > me)],
            minus=[s for o, s in seeds.items() if o < me],
        )
        return wire.Mask(state.session, me, memoryview(masked.pack()))

    def _check_deliver(self, message: wire.Deliver) -> None:
        senders, state = message.sharers, self._state
        if tuple(sorted(set(senders))) != senders or not set(senders) <= state.adverts.keys():
            raise self._accuse("strangers", "boxes of clients that did not advertise, or out of order")
        if len(senders) < self.parameters.quorum:
            raise self._accuse("too_few_neighbours", f"{len(senders)} shared, {self.parameters.quorum} are needed")
        expected = (wire.BOX_BYTES * len(senders), 2 * wire.HASH_BYTES * len(senders))
        if (len(message.boxes), len(message.commitments)) != expected:
            raise self._accuse("wrong_length", "there must be one box and two commitments per sharer")

    def _open_box(self, owner: int, place: int, message: wire.Deliver) -> None:
        """Keep the owner's shares; a box that does not fit is a fault of the owner's, and its shares stay out."""
        state, me = self._state, self.index
        box = message.boxes[place * wire.BOX_BYTES : (place + 1) * wire.BOX_BYTES]
        try:
            shares = self._cipher(owner, sender=owner, receiver=me).decrypt(
                _NONCE, box, box_context(state.session, owner, me)
            )
        except InvalidTag:
            self.faults += (RemoteProtocolError(owner, "share", "bad_box"),)
            return
        size = 2 * wire.HASH_BYTES
        if _commit(state.transcript, owner, me, shares) != message.commitments[place * size : (place + 1) * size]:
            self.faults += (RemoteProtocolError(owner, "share", "bad_commitment"),)
            return
        state.held[owner] = shares

    def _take_vector(self) -> RingVector:
        vector, self._vector = self._vector, None
        if vector is None:  # pragma: no cover - the step table reaches this once
            raise LocalProtocolError("the vector was already masked")
        return RingVector(vector.ring, tuple(lane.copy() for lane in vector.lanes))

    def _agree(self, message: wire.Survivors) -> wire.Agree:
        state = self._state
        self._check_survivors(message.survivors)
        state.survivors = message.survivors
        signature = self._identity.sign(survivors_statement(state.transcript, message.survivors))
        return wire.Agree(state.session, self.index, signature)

    def _check_survivors(self, bitmap: bytes) -> None:
        try:
            survivors = members(bitmap, self.parameters.clients)
        except ValueError:
            raise self._accuse("wrong_length", "the survivor list is not a bitmap of the roster") from None
        neighbours = survivors & set(self._graph.neighbours(self.index))
        if self.index not in survivors or not neighbours <= set(self._state.sharers):
            raise self._accuse("strangers", "the survivor list has clients that did not share, or lacks this one")
        if len(survivors) < self.parameters.min_survivors:
            raise self._accuse(
                "too_few_survivors", f"{len(survivors)} are listed, the plan needs {self.parameters.min_survivors}"
            )
        if len(neighbours) < self.parameters.quorum:
            raise self._accuse("too_few_neighbours", "the survivor list would leave this client too few neighbours")

    def _unmask(self, message: wire.Agreement) -> wire.Unmask:
        state, secrets = self._state, self._secrets()
        self._check_agreement(message)
        survivors = members(state.survivors, self.parameters.clients)
        owners = tuple(sorted(state.held))
        half = wire.SECRET_BYTES
        # The one place where shares leave: the kind follows from the signed list and nothing else.
        shares = b"".join(
            state.held[owner][:half] if owner in survivors else state.held[owner][half:] for owner in owners
        )
        return wire.Unmask(state.session, self.index, secrets.seed, owners, shares)

    def _check_agreement(self, message: wire.Agreement) -> None:
        state, signers = self._state, message.signers
        allowed = members(state.survivors, self.parameters.clients) & set(self._graph.neighbours(self.index))
        if tuple(sorted(set(signers))) != signers or not set(signers) <= allowed:
            raise self._accuse("strangers", "signatures of clients that are not surviving neighbours, or out of order")
        if len(message.signatures) != wire.SIGNATURE_BYTES * len(signers):
            raise self._accuse("wrong_length", "there must be one signature per signer")
        if len(signers) < self.parameters.quorum:
            raise self._accuse("too_few_signatures", f"{len(signers)} signed, {self.parameters.quorum} are needed")
        statement = survivors_statement(state.transcript, state.survivors)
        for place, signer in enumerate(signers):
            signature = message.signatures[place * wire.SIGNATURE_BYTES : (place + 1) * wire.SIGNATURE_BYTES]
            if not verify(self._roster.publics[signer], signature, statement):
                raise self._accuse("other_list", f"client {signer} did not sign the survivor list shown to this client")

    _handlers: ClassVar[dict[StepName, Callable[[Client, Any], wire.ClientMessage]]] = {
        "advertise": _advertise,
        "share": _share,
        "mask": _mask,
        "agree": _agree,
        "unmask": _unmask,
    }

    def _cipher(self, other: int, *, sender: int, receiver: int) -> Any:
        shared = agree(self._secrets().box_private, self._state.adverts[other].box_key)
        return box_cipher(shared, transcript=self._state.transcript, sender=sender, receiver=receiver)

    def _accuse(self, code: str, detail: str) -> RemoteProtocolError:
        return RemoteProtocolError(_SERVER, self._state.step, code, detail)

    def _wipe(self, end: StepName) -> None:
        """Overwrite the root and forget everything derived from it, as far as Python lets us."""
        self._state.root[:] = bytes(len(self._state.root))
        self._state = ClientState(root=bytearray(), step=end)
        self._vector = self._material = self._channel = None

    def __repr__(self) -> str:
        return f"Client(index={self.index}, step={self.step!r})"


def _commit(transcript: bytes, owner: int, holder: int, shares: bytes) -> bytes:
    half = wire.SECRET_BYTES
    return share_commitment(transcript, b"s", owner, holder, shares[:half]) + share_commitment(
        transcript, b"k", owner, holder, shares[half:]
    )
