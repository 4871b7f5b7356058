"""The server machine of the interactive protocol: it computes the sum and names lying clients.

It has no clock or socket, and stores one running sum. Its one global is OpenSSL's generator, which ML-KEM's
encapsulations use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from typing import Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.errors import LocalProtocolError
from privstats.secagg import kem, wire
from privstats.secagg.exclusive import exclusive
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.blame import (
    require_clients,
    require_dealers,
    require_signatures,
    shown_signers,
    signers,
)
from privstats.secagg.interactive.checks import (
    check_advertise,
    check_agree,
    check_check,
    check_layers,
    check_mask,
    check_share,
    check_unmask,
)
from privstats.secagg.interactive.client_secrets import Channel
from privstats.secagg.interactive.dealing import Public, fits_point, is_self_key, part, verified
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.interactive.server_steps import ServerSteps, StepActions
from privstats.secagg.interactive.state import ServerState
from privstats.secagg.interactive.unmasking import require_shares, unmask
from privstats.secagg.keys import Entropy, Identity, agree, derive, draw, public_of, require_identity, unseal_state
from privstats.secagg.machines import ENDS, Outbox, unshelved
from privstats.secagg.prg import add_packed, keystream
from privstats.secagg.roster import Roster
from privstats.secagg.scalars import WIDE_BYTES, checks, uniform
from privstats.secagg.transcript import MerkleTree
from privstats.secagg.wire import Refusal, to_bitmap


class Server(ServerSteps):
    """The aggregator of one session.

    Args:
        identity: the roster's ``server`` key, which signs the opening and any abort.
        entropy: source of 64 uniform bytes, for session name and session key; encapsulations use the system's
            generator.
        noise_due: the sum needs noise before publication; ``engines.journal`` allows only one sample.
        full_list: clients sign no list that names a client they dispute with, so no dispute may remain.

    Raises:
        LocalProtocolError: roster, identity and parameters do not fit together, or the roster must be numbered.

    Guarantee: :attr:`result` is the exact sum over its survivors, or there is none. An honest server checks each
    message against what the client signed. It does not check whether a client's *input* is honest.

    Example:
        >>> from privstats.engines import loopback
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 2)
        >>> loopback.run(parties.server, parties.clients).survivors, parties.server.step
        ((0, 1), 'done')
    """

    def __init__(
        self,
        parameters: Parameters,
        *,
        roster: Roster,
        identity: Identity,
        entropy: Entropy = os.urandom,
        threads: int = 1,
        noise_due: bool = False,
        full_list: bool = False,
    ) -> None:
        self._bind(Graph(parameters, roster), identity, threads)
        session, secret = draw(entropy, 32), bytearray(draw(entropy, 32))
        self._enter(ServerState(session=session, secret=secret, noise_due=noise_due, full_list=full_list))

    def _bind(self, graph: Graph, identity: Identity, threads: int) -> None:
        if require_identity(identity).public != graph.roster.server:
            raise LocalProtocolError("the identity is not the server's on the roster")
        kem.require_support()
        self._identity, self._failure = identity, ""
        self.parameters, self._graph, self._threads = graph.parameters, graph, threads
        self._channels: dict[int, Channel] = {}
        self._receivers_cache: dict[int, tuple[int, ...]] = {}
        self._weights_cache: list[int] = []
        self._pair_weights_cache: list[int] = []
        self._sent: dict[int, bytes] = {}
        self._tree: MerkleTree | None = None

    def _enter(self, state: ServerState) -> None:
        self._load(state)
        self._absent, self.fetch = dict(state.places), unshelved
        # Separate labels: breaking the X25519 key reveals nothing of the other key.
        private, seed = derive(state.secret, "server-key"), derive(state.secret, "server-kem", size=kem.SEED_BYTES)
        self._private, self._kem = X25519PrivateKey.from_private_bytes(private), kem.private_key(seed)
        self._public, self._kem_key = public_of(private), kem.public_of(self._kem)
        self._context = messages.context_of(self._graph, state.session, self._public, self._kem_key)

    @exclusive
    def abandon(self, code: str = "abandoned") -> Outbox:
        """End the session and return signed aborts, at which clients wipe themselves.

        ``code`` is one of ``messages.ABORTS``; after the end, messages carry "finished" or the failure's reason.
        """
        wire.require_word(code, messages.ABORTS)
        if self._state.step not in ENDS:
            self._failure = code
            self._end("failed")
        number = messages.ABORTS["finished" if self._state.step == "done" else self._failure]
        abort = messages.Abort(
            self._state.session, number, self._identity.sign(messages.abort_statement(self._context, number))
        )
        encoded = bytes(messages.encode(abort))
        return Outbox(range(self.parameters.clients), lambda _: encoded)

    @classmethod
    def resume(
        cls, sealed: bytes, key: bytes, *, parameters: Parameters, roster: Roster, identity: Identity, threads: int = 1
    ) -> Server:
        """Return the server that :meth:`export` sealed, at its step.

        Raises:
            LocalProtocolError: another key or plan, or damage.
        """
        server = cls.__new__(cls)
        server._bind(Graph(parameters, roster), identity, threads)
        server._enter(unseal_state(sealed, key, ServerState, role="server", place=server._graph.place))
        return server

    def _opened(self, sender: int, data: memoryview, kind: type[Any]) -> memoryview:
        if not 0 <= sender < self.parameters.clients:
            raise Refusal("stranger")
        if sender not in self._state.expected:
            raise Refusal("not_expected", "no answer from this client is due, or another was accepted")
        messages.check_header(data, kind, self.parameters)
        if self._state.step != "advertise":
            return self._channel(sender).open(data)
        if wire.session_of(data) != self._state.session:
            raise Refusal("wrong_session")
        return data

    def _read(self, sender: int, data: memoryview, kind: type[Any]) -> Any:
        message = messages.decode(data, kind)
        if message.sender != sender:
            raise Refusal("wrong_sender")
        if self._state.step != "advertise" and message.reply_to != self._sent_to(sender):
            raise Refusal("wrong_reply", "it answers another message than the one this server sent")
        return message

    def _channel(self, client: int) -> Channel:
        if client not in self._channels:
            advert = self._state.adverts[client]
            shared, ciphertext = agree(self._private, advert.box_key), advert.ciphertext
            secret = kem.combined(shared, kem.decapsulate(self._kem, ciphertext), ciphertext)
            self._channels[client] = Channel(secret, session=self._state.session, client=client)
        return self._channels[client]

    def _send(self, client: int, message: messages.ServerMessage) -> tuple[int, bytes]:
        sealed = self._channel(client).seal(messages.encode(message))
        self._sent[client] = sha256(sealed).digest()
        return client, sealed

    def _sent_to(self, client: int) -> bytes:
        if client not in self._sent:
            self._message(client)
        return self._sent[client]

    def _message(self, client: int) -> bytes:
        message = self._rows[self._state.step].opens(self, client)
        if self._state.step == "advertise":
            return bytes(messages.encode(message))
        return self._send(client, message)[1]

    def _opening(self, client: int) -> messages.Open:  # noqa: ARG002 - alike for all
        signature = self._identity.sign(messages.open_statement(self._context))
        head = self._state.session, self.parameters.digest, self._graph.roster.digest
        return messages.Open(*head, self._public, self._kem_key, signature)

    def _forget(self) -> None:
        self._sent, self._tree = {}, None
        if self._state.step in ENDS:
            self._channels, self._receivers_cache, self._weights_cache, self._pair_weights_cache = {}, {}, [], []
            del self._private, self._kem  # they could still decrypt a recording of the session

    def _receivers(self, owner: int) -> tuple[int, ...]:
        if owner not in self._receivers_cache:
            adverts = self._state.adverts
            self._receivers_cache[owner] = tuple(other for other in self._graph.neighbours(owner) if other in adverts)
        return self._receivers_cache[owner]

    def _owners(self, holder: int) -> set[int]:
        here = self._state.sharers if self._state.step == "check" else self._state.dealers
        return here.intersection(self._receivers(holder))

    def _weights(self) -> tuple[list[int], list[int]]:
        """Return weights that test the degree of g's and f's responses; a secret makes them unpredictable."""
        self._weights_cache = self._weights_cache or self._sample_weights("degree", 0)
        self._pair_weights_cache = self._pair_weights_cache or self._sample_weights("pair-degree", 1)
        return self._weights_cache, self._pair_weights_cache

    def _sample_weights(self, label: str, first: int) -> list[int]:
        k, t = self.parameters.neighbours, self.parameters.threshold
        spare = max(0, k + 1 - first - t)  # 0 if every share is needed
        stream = keystream(derive(self._state.secret, label), 0, 0, WIDE_BYTES * spare)
        return checks(k, uniform(stream), first)

    def _verified(self, sender: int, message: messages.Share) -> Public:
        public = message.commitments, message.responses, message.proofs
        return verified(*public, owner=sender, transcript=self._state.transcript, weights=self._weights())

    def _is_self_key(self, owner: int) -> Callable[[bytes], bool]:
        return lambda key: is_self_key(key, self._state.dealings[owner], owner, self._state.transcript)

    def _dealt_to(self, holder: int) -> Callable[[int, bytes], bool]:
        def dealt(owner: int, share: bytes) -> bool:
            dealing, k = self._state.dealings[owner], 0 if owner in self._state.survivors else 1
            point = self._graph.point(owner, holder)
            return fits_point(share, point, dealing, k, self._state.transcript, owner, holder)

        return dealt

    def _accept_advertise(self, sender: int, message: messages.Advertise) -> None:
        check_advertise(message, self._graph.roster.publics[sender], self._context, self._private)
        self._state.adverts[sender] = message

    def _accept_share(self, sender: int, message: messages.Share) -> None:
        check_share(message, len(self._receivers(sender)) * messages.BOX_BYTES)
        self._state.dealings[sender] = self._verified(sender, message)
        self._put(sender, message.boxes)

    def _accept_check(self, sender: int, message: messages.Check) -> None:
        owners = self._owners(sender)
        check_check(message, owners)
        self._state.checked.add(sender)
        above = sorted(owner for owner in owners.difference(message.failed) if owner > sender)
        links = (part(message.links, place, wire.HASH_BYTES) for place in range(len(above)))
        self._state.links[sender] = dict(zip(above, links, strict=True))
        if message.failed:
            self._state.failed[sender] = message.failed
        if isinstance(message, messages.CheckWithCommitment):
            self._state.commitments[sender] = message.commitment

    def _accept_mask(self, sender: int, message: messages.Mask) -> None:
        check_mask(message, self.parameters.ring.wire_bytes)
        if self._sum is None:
            self._sum = self.parameters.ring.zeros()
        add_packed(self._sum, message.vector)
        self._state.survivors.add(sender)

    def _accept_agree(self, sender: int, message: messages.Agree) -> None:
        statement = messages.survivors_statement(self._state.transcript, self._state.listed)
        check_agree(message, self._graph.roster.publics[sender], statement)
        self._state.signatures[sender] = message.signature

    def _accept_unmask(self, sender: int, message: messages.Unmask) -> None:
        state = self._state
        check_unmask(
            message,
            is_self_key=self._is_self_key(sender),
            owners=self._owners(sender).difference(state.failed.get(sender, ())),
            dealt=self._dealt_to(sender),
        )
        if isinstance(message, messages.UnmaskWithOpening):
            check_layers(message, self._opened_layers(sender), state.commitments[sender])
        state.answers[sender] = message

    def _check_advertise(self) -> None:
        require_clients(self._state.adverts, "advertise", self._graph)

    def _close_advertise(self) -> set[int]:
        self._state.transcript = messages.transcript_of(self._context, self._merkle_tree().root)
        return set(self._state.adverts)

    def _merkle_tree(self) -> MerkleTree:
        if self._tree is None:
            leaves = {client: messages.advert_leaf(advert) for client, advert in self._state.adverts.items()}
            self._tree = MerkleTree(leaves, self.parameters.clients)
        return self._tree

    def _adverts(self, client: int) -> messages.Adverts:
        others = self._receivers(client)
        proof = self._merkle_tree().proof(frozenset((client, *others)))
        known = tuple(self._state.adverts[other].known for other in others)
        return messages.Adverts(self._state.session, known, proof)

    def _check_share(self) -> None:
        require_clients(self._state.dealings, "share", self._graph)

    def _close_share(self) -> set[int]:
        self._state.sharers = set(self._state.dealings)
        return set(self._state.sharers)

    def _delivery(self, client: int) -> messages.Deliver:
        self._read_back()
        state, size, inbox = self._state, messages.BOX_BYTES, self._inbox(client)
        boxes, commitments, responses, challenges, sharers = bytearray(), bytearray(), bytearray(), bytearray(), []
        for place, owner in enumerate(self._receivers(client)):
            if owner in state.dealings:
                dealing, at = state.dealings[owner], self._graph.point(owner, client) - 1
                sharers.append(owner)
                boxes += part(inbox, place, size)
                commitments += part(dealing.commitments, at)
                responses += part(dealing.responses, at)
                challenges += dealing.challenges
        dealt = (bytes(each) for each in (boxes, commitments, responses, challenges))
        return messages.Deliver(state.session, tuple(sharers), *dealt)

    def _close_check(self) -> set[int]:
        state = self._state
        state.inboxes.clear()
        state.places.clear()
        self._absent.clear()
        state.dealers = set(self._require_dealers())
        state.listed = to_bitmap(state.dealers, self.parameters.clients)
        return set(state.dealers)

    def _require_dealers(self) -> frozenset[int]:
        state = self._state
        return require_dealers(state.checked, state.failed, self._graph, full_list=state.full_list)

    def _going_on(self, client: int) -> messages.Dealers:
        state = self._state
        refused = tuple(other for other in sorted(state.dealers) if client in state.failed.get(other, ()))
        return messages.Dealers(state.session, state.listed, refused)

    def _close_mask(self) -> set[int]:
        state = self._state
        state.listed = to_bitmap(state.survivors, self.parameters.clients)
        return set(signers(state.survivors, self._unproven, self._graph))

    def _survivors(self, client: int) -> messages.Survivors:  # noqa: ARG002 - alike for all
        return messages.Survivors(self._state.session, self._state.listed)

    def _require_survivors(self) -> None:
        require_clients(self._state.survivors, "mask", self._graph)
        signers(self._state.survivors, self._unproven, self._graph)

    def _close_agree(self) -> set[int]:
        self._state.agreement = {each: self._state.listed + sign for each, sign in self._state.signatures.items()}
        return set(self._require_signatures())

    def _require_signatures(self) -> list[int]:
        return require_signatures(self._state.signatures, self._graph)

    def _agreement(self, client: int) -> messages.Agreement:
        signed = self._state.signatures
        shown = shown_signers(client, signed, self._graph)
        return messages.Agreement(self._state.session, shown, b"".join(map(signed.__getitem__, shown)))

    def _require_shares(self) -> None:
        require_shares(self._state, self._graph)

    def _close_unmask(self) -> set[int]:
        if self._sum is None:
            raise LocalProtocolError("the saved state holds no sum to unmask")
        unmask(self._sum, self._state, self._graph, threads=self._threads)
        answers = self._state.answers.items()
        self._state.openings = {
            client: answer.opening for client, answer in answers if isinstance(answer, messages.UnmaskWithOpening)
        }
        return set()

    _rows: ClassVar[dict[StepName, StepActions]] = {
        "advertise": StepActions(_opening, _accept_advertise, _check_advertise, _close_advertise),
        "share": StepActions(_adverts, _accept_share, _check_share, _close_share),
        "check": StepActions(_delivery, _accept_check, _require_dealers, _close_check),
        "mask": StepActions(_going_on, _accept_mask, _require_survivors, _close_mask),
        "agree": StepActions(_survivors, _accept_agree, _require_signatures, _close_agree),
        "unmask": StepActions(_agreement, _accept_unmask, _require_shares, _close_unmask),
    }

    def __repr__(self) -> str:
        return f"Server(clients={self.parameters.clients}, step={self.step!r})"
