"""The client machine of the interactive protocol: it verifies every server message.

It has no clock or socket, serves one session, and wipes itself after its unmask message. Its one global is OpenSSL's
generator, which ML-KEM's encapsulations use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256
from typing import Any, ClassVar

from cryptography.exceptions import InvalidTag

from privstats.encoding import RingVector
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.files.signing import verify
from privstats.secagg import kem, wire
from privstats.secagg.exclusive import exclusive
from privstats.secagg.interactive import checks, messages
from privstats.secagg.interactive.client_secrets import Channel, ClientSecrets
from privstats.secagg.interactive.dealing import POLYNOMIALS, fits_share, part
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.non_inclusion import Receipt
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.interactive.state import STEPS, ClientState, answers_of
from privstats.secagg.keys import Entropy, Identity, draw, unseal_state
from privstats.secagg.machines import ENDS, ROOT_BYTES, OnUpload, give_back, opened_layers, opening, session_id
from privstats.secagg.prg import add_masks
from privstats.secagg.roster import Roster
from privstats.secagg.transcript import root_of
from privstats.secagg.uploader import Uploader
from privstats.secagg.wire import Refusal, members, to_bitmap

_SERVER = "server"
_ONE_SESSION = "a client serves one session: build a new one"
_REASONS = {number: reason for reason, number in messages.ABORTS.items()}


class Client(Uploader):
    """One client in one aggregation.

    Args:
        vector: the client's contribution; masking copies it.
        identity: the signing key of this index.
        entropy: source of 32 uniform bytes, read once; encapsulations use the system's generator.
        on_upload: called with the masked-vector message's SHA-256 before it is sent, and again after a kill
            before sending. If the call raises, nothing is sent. With ``on_upload`` the client is :attr:`charged`.
        only: the one list of survivors that the client signs.
        full_list: sign no list that names a client in dispute with this one; ``only`` implies it.
        noise_root: 32 secret bytes that seeded the vector's noise layers; empty without levels.

    Raises:
        LocalProtocolError: arguments do not fit the parameters, or a graph that is not complete has no numbered roster.

    Guarantee: a server with at most ``colluders`` clients learns from this client's messages nothing but one
    sum over at least ``min_survivors`` clients. This holds even if the server deviates (docs/proofs/masking.md):

    - complete graphs: theorems 2 and 7.
    - random graphs: theorem 8. ``parameters.condition`` and ``failure`` limit it.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(schema, [[0.1, 0.2]], [0])] * 2)
        >>> client, opening = parties.clients[0], dict(parties.server.start())[0]
        >>> [(peer, len(message) > 0) for peer, message in client.receive(opening)]
        [('server', True)]
        >>> client.step
        'share'
    """

    parameters: Parameters
    index: int
    _state: ClientState
    _graph: Graph

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
        on_upload: OnUpload | None = None,
        only: Collection[int] | None = None,
        full_list: bool = False,
        noise_root: bytes = b"",
    ) -> None:
        if vector.ring != parameters.ring:
            raise LocalProtocolError("the vector's ring differs from the parameters': encode it with parameters.ring")
        if len(noise_root) != (ROOT_BYTES if parameters.levels else 0):
            raise LocalProtocolError("noise_root is 32 bytes where the parameters have levels, and empty elsewhere")
        graph = self.check_place(parameters, index=index, identity=identity, roster=roster)
        self._bind(graph, index, identity, threads)
        self._vector, self._on_upload, self.reproducible = vector, on_upload, vector.reproducible
        self._state = ClientState(root=bytearray(draw(entropy, 32)), charged=on_upload is not None)
        self._state.noise_root = bytearray(noise_root)
        self._state.only = b"" if only is None else to_bitmap(only, parameters.clients)
        self._state.full_list = full_list

    @staticmethod
    def check_place(parameters: Parameters, *, index: int, identity: Identity, roster: Roster) -> Graph:
        """Return the graph after the constructor's checks that need no vector."""
        graph = Graph(parameters, roster)
        kem.require_support()
        roster.check_member(index, identity)
        return graph

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
        on_upload: OnUpload | None = None,
    ) -> Client:
        """Return the client that :meth:`export` sealed, at its step.

        If charged to a ledger, it uploads nothing without ``on_upload``.

        Raises:
            LocalProtocolError: another key, index or plan, or damage.
        """
        client = cls.__new__(cls)
        graph = cls.check_place(parameters, index=index, identity=identity, roster=roster)
        client._bind(graph, index, identity, threads)
        state = unseal_state(sealed, key, ClientState, role=f"client {index}", place=graph.place)
        client._go_on(state, on_upload)
        client._faults = [RemoteProtocolError(*fault, proven=False) for fault in state.faults]
        return client

    def _bind(self, graph: Graph, index: int, identity: Identity, threads: int) -> None:
        self.parameters, self.index = graph.parameters, index
        self._graph, self._identity, self._threads = graph, identity, threads
        self._secrets_cache: ClientSecrets | None = None
        self._channel_cache: Channel | None = None
        self._faults: list[RemoteProtocolError] = []
        self._ended = ""

    @property
    def step(self) -> StepName:
        """The awaited step; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Peers' invalid boxes or shares; unproven, as the server may have spoilt them."""
        return tuple(self._faults)

    @property
    def ended(self) -> str:
        """The reason in the server's signed abort (``messages.ABORTS``); else empty."""
        return self._ended

    @property
    def agreed(self) -> tuple[int, ...]:
        """The survivor list for which this client sent its shares; empty before that."""
        listed = self._state.survivors if self._state.step == "done" else bytes((self.parameters.clients + 7) // 8)
        return tuple(sorted(members(listed, self.parameters.clients)))

    @property
    def agreement(self) -> dict[int, bytes]:
        """The survivor list with its signature, by signer; empty before unmasking.

        These verified public statements let an unlisted client prove that its upload is in no sum.
        """
        return dict(self._state.agreement) if self._state.step == "done" else {}

    @property
    def session_id(self) -> bytes:
        """See :func:`~privstats.secagg.machines.session_id`."""
        return session_id(self.parameters, self._graph.roster)

    @property
    def receipt(self) -> bytes:
        """Identifies the upload for ``session.free`` (:class:`Receipt`); empty until the upload may be sent."""
        state, place = self._state, b"" if self.parameters.complete else self._graph.place
        return Receipt(state.transcript, self.index, state.uploaded, place).encode() if state.uploaded else b""

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Return an empty list: the server opens a session."""
        return []

    @exclusive
    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Process one server message and return ``[("server", bytes)]``, or an empty list.

        An abort wipes this client. A repeat of the last answered message gets identical bytes, also after success; an
        earlier one gets no answer.

        Raises:
            RemoteProtocolError: the message is damaged, too large or late, or a refused opening; no state changes. Or
                the server broke the protocol, and this client is wiped.
            LedgerError: ``on_upload`` refused; nothing is sent.
        """
        answers = self._receive_message(wire.view_of(data))
        if answers:
            self._release()
        return answers

    @exclusive
    def discard(self) -> None:
        """End the session on this side and wipe this client.

        Raises:
            LedgerError: the ledger could not record that nothing was sent; the client is wiped.
        """
        if self._state.step not in ENDS:
            self._wipe("failed")
        give_back(self._on_upload, self._state.uploaded)

    def __repr__(self) -> str:
        return f"Client(index={self.index}, step={self.step!r})"

    # --- a message: parsing, repeats, refusals, the end

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
            message = self._parse(view, STEPS[state.step].opens)
        except Refusal as refusal:
            raise RemoteProtocolError(_SERVER, state.step, refusal.code, refusal.detail, proven=False) from None
        return [(_SERVER, self._answer_message(name, message))]

    def _answer_message(self, name: bytes, message: messages.ServerMessage) -> bytes:
        state, step, row = self._state, self._state.step, STEPS[self._state.step]
        state.reply_to = name
        try:
            answer = self._sealed(self._acts[step](self, message))
            if step == self.parameters.upload_step:
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

    def _saved(self) -> tuple[str, bytes]:
        # A finished client must not be resumed.
        if self._state.step in ENDS:
            raise LocalProtocolError(f"this client is {self._state.step}: {_ONE_SESSION}")
        self._state.faults = [(int(fault.peer), fault.step, fault.code) for fault in self._faults]
        return f"client {self.index}", self._graph.place

    def _parse(self, data: memoryview, kind: type[Any]) -> Any:
        messages.check_header(data, kind, self.parameters)
        return messages.decode(data if self._state.step == "advertise" else self._channel().open(data), kind)

    def _process_abort(self, data: memoryview) -> None:
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
        encoded = messages.encode(answer)
        return bytes(encoded) if self._state.step == "advertise" else self._channel().seal(encoded)

    def _channel(self) -> Channel:
        if self._channel_cache is None:
            secret = self._secrets().channel_secret(self._state)
            self._channel_cache = Channel(secret, session=self._state.session, client=self.index)
        return self._channel_cache

    def _wipe(self, end: StepName) -> None:
        """Overwrite secrets as far as Python allows; after success the sealed answer remains, to be repeated."""
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

    # --- the six steps

    def _secrets(self) -> ClientSecrets:
        if self._secrets_cache is None:
            self._secrets_cache = ClientSecrets(self._state.root, self._graph, self.index)
        return self._secrets_cache

    def _advertise(self, message: messages.Open) -> messages.Advertise:
        checks.check_open(message, self._graph)
        state, secrets, context = self._state, self._secrets(), checks.context_of_open(message, self._graph)
        # A bad server key is refused before the state changes.
        state.advert = secrets.advertise(message, context, self.index, self._identity, state)
        state.session, state.server_key, state.context = message.session, message.server_key, context
        return state.advert

    # Fix the transcript, deal to all neighbours, and seal a box for each that advertised.
    def _share(self, message: messages.Adverts) -> messages.Share:
        state, graph, me = self._state, self._graph, self.index
        checks.check_adverts(message, graph, me, state)
        adverts: tuple[messages.Advertise | messages.KnownAdvertise, ...] = (*message.adverts, state.advert)
        leaves = {advert.sender: messages.advert_leaf(advert) for advert in adverts}
        root = root_of(leaves, self.parameters.clients, message.proof)
        state.transcript = messages.transcript_of(state.context, root)
        state.adverts = {advert.sender: advert for advert in message.adverts}
        secrets = self._secrets()
        dealing = secrets.deal(state.transcript, me, graph.neighbours(me), self.parameters.threshold)
        boxes = b"".join(
            secrets.seal_box(part(dealing.shares, graph.point(me, holder) - 1), me, advert, state.transcript)
            for holder, advert in state.adverts.items()
        )
        public = dealing.commitments, dealing.responses, dealing.proofs
        return messages.Share(state.session, me, state.reply_to, boxes, *public)

    def _check(self, message: messages.Deliver) -> messages.Check:
        state = self._state
        checks.check_deliver(message, self._graph, state)
        state.sharers = message.sharers
        kind: Any = answers_of("check", self.parameters)
        for place, owner in enumerate(message.sharers):
            self._store_shares(owner, place, message)
        failed = tuple(owner for owner in message.sharers if owner not in state.held)
        commitment = [self._opening(0)] if self._layers else []
        links = self._secrets().links(state)
        return kind(state.session, self.index, state.reply_to, failed, links, *commitment)  # type: ignore[no-any-return]

    def _store_shares(self, owner: int, place: int, message: messages.Deliver) -> None:
        """Store one owner's shares, unless its box is invalid; no culprit can be proved."""
        state, me = self._state, self.index
        try:
            box = part(message.boxes, place, messages.BOX_BYTES)
            shares = self._secrets().open_box(box, me, state.adverts[owner], state.transcript)
        except InvalidTag:
            self._faults.append(RemoteProtocolError(owner, "share", "bad_box", proven=False))
            return
        public = (part(pairs, place) for pairs in (message.commitments, message.responses, message.challenges))
        if not all(
            fits_share(*fields, transcript=state.transcript, kind=kind, owner=owner, holder=me)
            for kind, fields in zip(POLYNOMIALS, _by_kind((shares, *public)), strict=True)
        ):
            self._faults.append(RemoteProtocolError(owner, "share", "bad_share", proven=False))
            return
        state.held[owner] = shares

    # Mask the vector toward every dealer that shares a secret, and with the self-mask.
    def _mask(self, message: messages.Dealers) -> messages.Mask:
        state, secrets, me = self._state, self._secrets(), self.index
        checks.check_dealers(message.dealers, self._graph, me, state)
        here = members(message.dealers, self.parameters.clients)
        state.dealers = tuple(other for other in state.sharers if other in here)
        state.refused = message.refused
        checks.check_refused(self._graph, state)
        partners = sorted(set(state.dealers) - checks.unproven(state))
        seeds = list(secrets.pair_seeds(partners, state))
        masked = self._copy_of_vector()
        add_masks(
            masked,
            plus=[secrets.self_stream(state.transcript), *(seed for other, seed in seeds if other > me)],
            minus=[seed for other, seed in seeds if other < me],
            threads=self._threads,
        )
        self._vector = None
        return messages.Mask(state.session, me, state.reply_to, memoryview(masked.pack()))

    def _copy_of_vector(self) -> RingVector:
        if self._vector is None:
            raise LocalProtocolError("the saved state holds no vector to mask")
        return RingVector(self._vector.ring, tuple(lane.copy() for lane in self._vector.lanes))

    def _agree(self, message: messages.Survivors) -> messages.Agree:
        state = self._state
        checks.check_survivors(message.survivors, self._graph, self.index, state)
        state.survivors = message.survivors
        signature = self._identity.sign(messages.survivors_statement(state.transcript, message.survivors))
        return messages.Agree(state.session, self.index, state.reply_to, signature)

    def _unmask(self, message: messages.Agreement) -> messages.Unmask:
        """Send one share per owner: the signed list alone decides which. No other method sends held shares."""
        state, half = self._state, messages.SECRET_BYTES
        checks.check_agreement(message, self._graph, self.index, state)
        # Ed25519 is deterministic, so this equals the signature that this client's ``Agree`` carried.
        own = self._identity.sign(messages.survivors_statement(state.transcript, state.survivors))
        size = wire.SIGNATURE_BYTES
        signed = {other: part(message.signatures, place, size) for place, other in enumerate(message.signers)}
        state.agreement = {each: state.survivors + name for each, name in sorted({**signed, self.index: own}.items())}
        survivors = members(state.survivors, self.parameters.clients)
        owners = tuple(owner for owner in state.dealers if owner in state.held)
        shares = b"".join(part(state.held[owner], 0 if owner in survivors else 1, half) for owner in owners)
        answer = state.session, self.index, state.reply_to, self._secrets().revealed(state.transcript), owners, shares
        if not self._layers:
            return messages.Unmask(*answer)
        # Clients that proved nothing may be absent, so they do not count (docs/proofs/surplus_noise.md, 6).
        proven = len(survivors - checks.unproven(state))
        return messages.UnmaskWithOpening(*answer, self._opening(opened_layers(self.parameters.levels, proven)))

    def _opening(self, opened: int) -> bytes:
        return opening(self._state.noise_root, self._layers, opened)

    @property
    def _layers(self) -> int:
        return max(0, len(self.parameters.levels) - 1)

    _acts: ClassVar[dict[StepName, Callable[[Any, Any], messages.ClientMessage]]] = {
        "advertise": _advertise,
        "share": _share,
        "check": _check,
        "mask": _mask,
        "agree": _agree,
        "unmask": _unmask,
    }


def _by_kind(pairs: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
    return zip(*((part(pair, 0, len(pair) // 2), part(pair, 1, len(pair) // 2)) for pair in pairs), strict=True)
