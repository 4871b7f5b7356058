"""The client machine of the interactive protocol: bytes in, bytes out; it verifies every message of the server.

No clock, socket or global; randomness is passed in. One instance serves one session, one call at a time, and wipes
itself after its unmask message. This module processes the messages;
:mod:`privstats.secagg.interactive.client_steps` parses, repeats and refuses them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, ClassVar, cast

from cryptography.exceptions import InvalidTag

from privstats.encoding import RingVector
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import kem
from privstats.secagg.interactive import checks, messages
from privstats.secagg.interactive.client_secrets import ClientSecrets
from privstats.secagg.interactive.client_steps import ClientSteps, Secrets
from privstats.secagg.interactive.dealing import KINDS, fits_share, part
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.hybrid import HybridSecrets
from privstats.secagg.interactive.non_inclusion import words_of
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.interactive.state import ClientState, answers_of
from privstats.secagg.keys import Entropy, Identity, draw, unseal_state
from privstats.secagg.machines import ROOT_BYTES, OnUpload, opened_layers, opening
from privstats.secagg.prg import add_masks
from privstats.secagg.roster import Roster
from privstats.secagg.transcript import root_of
from privstats.secagg.wire import members, to_bitmap


class Client(ClientSteps):
    """One client in one aggregation.

    Args:
        parameters: the public parameters that all parties agreed on.
        vector: the client's contribution; masking copies it and never changes it.
        index: this client's place on the roster.
        identity: the signing key behind that place.
        roster: the public identities of all parties, the server's among them.
        entropy: source of 32 uniform bytes, read once.
        threads: processors to use for masks.
        on_upload: called with the SHA-256 of the masked-vector message before it is sent, and again if the process was
            killed in between. If it raises, nothing is sent. A client that has one is :attr:`charged`.
        only: the one list of survivors that it signs, as clients in order; None where the parameters alone decide.
        noise_root: where the parameters have levels, the 32 secret bytes from which the layers of the vector's noise
            were drawn (:mod:`privstats.secagg.machines`).

    Raises:
        LocalProtocolError: vector, identity, roster or noise_root do not fit the parameters, or the graph is not
            complete and the roster not numbered.

    Guarantee: a server together with at most ``colluders`` clients learns from this client's messages nothing but sums
    over at least ``min_survivors`` clients, even if it lies; ``docs/protocol.md`` states the assumption for sparse
    graphs.

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

    @staticmethod
    def check_place(parameters: Parameters, *, index: int, identity: Identity, roster: Roster) -> Graph:
        """The graph, after the checks of the constructor that need no vector; raises as the class does."""
        graph = Graph(parameters, roster)
        if parameters.hybrid:
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
        """The client that :meth:`export` sealed, at the step where it was.

        ``on_upload`` is called with the SHA-256 of the masked-vector message before it is sent, and if it raises,
        nothing is sent; a client that is charged to a ledger uploads nothing without it.

        Raises:
            LocalProtocolError: another key, place or plan, or damage.
        """
        client = cls.__new__(cls)
        graph = cls.check_place(parameters, index=index, identity=identity, roster=roster)
        client._bind(graph, index, identity, threads)
        state = unseal_state(sealed, key, ClientState, role=f"client {index}", place=graph.place)
        client._go_on(state, on_upload)
        client._faults = [RemoteProtocolError(*fault, proven=False) for fault in state.faults]
        return client

    def _secrets(self) -> Secrets:
        if self._secrets_cache is None:
            root = self._state.root
            self._secrets_cache = (
                HybridSecrets(root, self._graph, self.index) if self.parameters.hybrid else ClientSecrets(root)
            )
        return self._secrets_cache

    def _advertise(self, message: Any) -> messages.Advertise | messages.HybridAdvertise:
        checks.check_open(message, self._graph)
        state, secrets, context = self._state, self._secrets(), checks.context_of_open(message, self._graph)
        # it refuses a bad key before the state changes
        state.advert = secrets.advertise(message, context, self.index, self._identity, state)
        state.session, state.server_key, state.context = message.session, message.server_key, context
        return state.advert

    def _share(self, message: messages.Adverts | messages.HybridAdverts) -> messages.Share:
        state, graph, me = self._state, self._graph, self.index
        checks.check_adverts(message, graph, me, state)
        leaves = {advert.sender: messages.advert_leaf(advert) for advert in (*message.adverts, state.advert)}
        root = root_of(leaves, self.parameters.clients, message.proof)
        state.transcript = messages.transcript_of(state.context, root)
        state.adverts = {advert.sender: advert for advert in message.adverts}
        dealing = self._secrets().deal(state.transcript, me, graph.neighbours(me), self.parameters.threshold)
        secrets = cast("Any", self._secrets())
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
            self._keep_shares(owner, place, message)
        failed = tuple(owner for owner in message.sharers if owner not in state.held)
        commitment = [self._opening(0)] if self._layers else []
        links = self._secrets().links(state)
        return kind(state.session, self.index, state.reply_to, failed, *links, *commitment)  # type: ignore[no-any-return]

    def _keep_shares(self, owner: int, place: int, message: messages.Deliver) -> None:
        """Keep the owner's shares; an invalid box costs only these shares, and its culprit cannot be proved."""
        state, me = self._state, self.index
        try:
            box, secrets = part(message.boxes, place, messages.box_bytes(self.parameters)), cast("Any", self._secrets())
            shares = secrets.open_box(box, me, state.adverts[owner], state.transcript)
        except InvalidTag:
            self._faults.append(RemoteProtocolError(owner, "share", "bad_box", proven=False))
            return
        public = (part(pairs, place) for pairs in (message.commitments, message.responses, message.challenges))
        if not all(
            fits_share(*fields, transcript=state.transcript, kind=kind, owner=owner, holder=me)
            for kind, fields in zip(KINDS, _by_kind((shares, *public)), strict=True)
        ):
            self._faults.append(RemoteProtocolError(owner, "share", "bad_share", proven=False))
            return
        state.held[owner] = shares

    def _mask(self, message: messages.Dealers) -> messages.Mask:
        state, secrets, me = self._state, self._secrets(), self.index
        checks.check_dealers(message.dealers, self._graph, me, state)
        here = members(message.dealers, self.parameters.clients)
        state.dealers = tuple(other for other in state.sharers if other in here)
        partners = state.dealers
        if isinstance(message, messages.HybridDealers):  # a pair in dispute shares no secret
            state.refused = message.refused
            checks.check_refused(self._graph, state)
            partners = tuple(other for other in partners if other not in checks.unproven(state))
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
        """The one place where shares are sent: the signed list alone decides which kind of each."""
        state, half = self._state, messages.SECRET_BYTES
        checks.check_agreement(message, self._graph, self.index, state)
        own = self._identity.sign(
            messages.survivors_statement(state.transcript, state.survivors)
        )  # as before: no nonce
        state.agreement = words_of(state.survivors, message, {self.index: own})
        survivors = members(state.survivors, self.parameters.clients)
        owners = tuple(owner for owner in state.dealers if owner in state.held)
        shares = b"".join(part(state.held[owner], 0 if owner in survivors else 1, half) for owner in owners)
        answer = state.session, self.index, state.reply_to, self._secrets().revealed(state.transcript), owners, shares
        if not self._layers:
            return messages.Unmask(*answer)
        proven = len(survivors - checks.unproven(state))  # who proved nothing may be none: theorem 6
        return messages.UnmaskWithOpening(*answer, self._opening(opened_layers(self.parameters.levels, proven)))

    def _opening(self, opened: int) -> bytes:
        """The value that opens so many layers of its noise."""
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

    def __repr__(self) -> str:
        return f"Client(index={self.index}, step={self.step!r})"


def _by_kind(pairs: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
    """The first halves of all pairs, then the second."""
    return zip(*((part(pair, 0, len(pair) // 2), part(pair, 1, len(pair) // 2)) for pair in pairs), strict=True)
