"""One session staged for an attack: the library's own machines, under the control of a lying server.

The lies in ``protocol`` drive it message by message; in tests doubles replace the real client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import Ring, RingVector
from privstats.randomness import Generator
from privstats.secagg import Client, Identity, Parameters, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS, ServerState
from privstats.secagg.scalars import combine, scalar_of

VICTIM = 0
CLIENTS, MIN_SURVIVORS, COLLUDERS = 6, 5, 1
RING = Ring(((4, 20), (4, 40)))
Value = NDArray[np.int64]


@dataclass
class Cohort:
    """Clients and server of one session with values that the attacker must not learn.

    Attributes:
        rng: all randomness of the session.
        client: makes a client machine; weakened doubles take its place in tests.
        parameters: of the masking.
    """

    rng: Generator
    client: Callable[..., Client] = Client
    parameters: Parameters = field(
        default_factory=lambda: Parameters.solve(
            clients=CLIENTS, min_survivors=MIN_SURVIVORS, colluders=COLLUDERS, ring=RING, plan_digest=bytes(32)
        )
    )

    def __post_init__(self) -> None:
        n, size = self.parameters.clients, self.parameters.ring.size
        self.identities = [Identity.generate(self.rng.bytes) for _ in range(n)]
        self.aggregator = Identity.generate(self.rng.bytes)
        publics = tuple(identity.public for identity in self.identities)
        self.roster = self._roster_of(publics)
        self.values = [(self.rng.uint64(size) % np.uint64(1000)).astype(np.int64) - 500 for _ in range(n)]
        self.clients = [self.machine(place, self.roster) for place in range(n)]
        self.server = self.serve(self.roster)

    def _roster_of(self, publics: tuple[bytes, ...]) -> Roster:
        server, name = self.aggregator.public, self.rng.bytes(16)
        if self.parameters.complete:
            return Roster(publics, server=server, run=name)
        return Roster.numbered(publics, server=server, label=name.hex(), counter=0)

    def again(self) -> Cohort:
        """Another session of the same people, under the same roster."""
        other = Cohort(self.rng, self.client, self.parameters)
        other.identities, other.aggregator, other.roster = self.identities, self.aggregator, self.roster
        other.clients = [other.machine(place, other.roster) for place in range(len(other.identities))]
        other.server = other.serve(other.roster)
        return other

    def machine(self, place: int, roster: Roster, identity: Identity | None = None) -> Client:
        """A client at a place of a roster."""
        vector = self.parameters.ring.encode(self.values[place])
        identity = identity or self.identities[place]
        return self.client(
            self.parameters, vector, index=place, identity=identity, roster=roster, entropy=self.rng.bytes
        )

    def serve(self, roster: Roster) -> Server:
        """A server for a roster."""
        return Server(self.parameters, roster=roster, identity=self.aggregator, entropy=self.rng.bytes)

    def play(self, until: str = "", silent: Mapping[str, Collection[int]] | None = None) -> dict[int, bytes]:
        """Play honestly up to a step, or to the end, and return the messages that open it."""
        outbox, gone = dict(self.server.start()), set[int]()
        for step in STEPS:
            if step == until:
                break
            gone |= set((silent or {}).get(step, ()))
            here = {client: message for client, message in outbox.items() if client not in gone}
            outbox = self.step({client: answer_of(self.clients[client], message) for client, message in here.items()})
        return outbox

    def step(self, answers: Mapping[int, bytes]) -> dict[int, bytes]:
        """Hand one step's answers to the server and close it."""
        step = self.server.step
        following: dict[int, bytes] = {}
        for client, answer in answers.items():
            following = dict(self.server.receive(client, answer)) or following
        return following if self.server.step != step else dict(self.server.end_step())

    def got(self, vector: Value | None) -> bool:
        """Whether the attacker holds the victim's exact vector."""
        return vector is not None and np.array_equal(vector, self.values[VICTIM])


def answer_of(client: Client, message: bytes) -> bytes:
    """The one answer of a client to one message."""
    ((_, answer),) = client.receive(message)
    return answer


def vector_of(cohort: Cohort, answer: bytes) -> RingVector:
    """The server's reading of the victim's Mask message, which it does not forward."""
    message = messages.decode(cohort.server._channel(VICTIM).open(memoryview(answer)), messages.Mask)
    return cohort.parameters.ring.unpack(message.vector)


def shares_of(cohort: Cohort, masks: Mapping[int, bytes], others: Collection[int]) -> ServerState:
    """Finish a session without a word of the victim after its Mask; what the server then knows."""
    agree = {client: message for client, message in cohort.step(masks).items() if client in others}
    unmask = cohort.step({client: answer_of(cohort.clients[client], message) for client, message in agree.items()})
    state = cohort.server._state
    cohort.step({client: answer_of(cohort.clients[client], unmask[client]) for client in others})
    return state


def secret_of(cohort: Cohort, state: ServerState, holders: Collection[int], at: int = 0) -> int:
    """The value at a point of the victim's polynomial that the holders gave shares of: at 0 of g its self-mask key."""
    graph, chosen = cohort.server._graph, sorted(holders)[: cohort.parameters.threshold]
    shares = []
    for holder in chosen:
        answer = state.answers[holder]
        place = answer.owners.index(VICTIM) * messages.SECRET_BYTES
        shares.append(scalar_of(answer.shares[place : place + messages.SECRET_BYTES]))
    return combine([graph.point(VICTIM, holder) for holder in chosen], shares, at)
