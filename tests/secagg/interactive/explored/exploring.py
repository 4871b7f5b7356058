"""Every state of a session, breadth first: what was sent may arrive at any time, again, at another party, or never.

A lost message is one that never arrives, so losses and vanished clients need no rule of their own. One client may lie:
then everything in ``lies`` is sent beside its honest answer.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from privstats.secagg.interactive import messages as kinds
from privstats.secagg.machines import ENDS
from tests.secagg.interactive.cohorts import Cohort, read
from tests.secagg.interactive.explored.automata import ClientAutomaton, Messages, Sent, ServerAutomaton
from tests.secagg.interactive.explored.lies import lies_of

Route = tuple[int, int]
"""A client and the number of a message to it, or from it."""

T = TypeVar("T", bound=Hashable)


class Sets(Generic[T]):
    """Sets as integers with one bit per element, so that hundreds of thousands of states share them cheaply."""

    def __init__(self) -> None:
        self._bits: dict[T, int] = {}
        self._members: dict[int, tuple[T, ...]] = {}

    def of(self, elements: Iterable[T]) -> int:
        """Return the set of these elements."""
        found = 0
        for each in elements:
            found |= self._bits.setdefault(each, 1 << len(self._bits))
        return found

    def members(self, one: int) -> tuple[T, ...]:
        """Return the elements of a set."""
        if one not in self._members:
            self._members[one] = tuple(each for each, bit in self._bits.items() if bit & one)
        return self._members[one]


class State(NamedTuple):
    """A state of everybody, and the sets of everything that was sent; ``lies`` is what a liar may send, once."""

    server: int
    clients: tuple[int, ...]
    down: int
    up: int = 0
    lies: int | None = 0


@dataclass
class World:
    """The machines of one session as automata, and what one of them may send in place of the truth."""

    cohort: Cohort
    liar: int | None = None
    messages: Messages = field(default_factory=Messages)

    def __post_init__(self) -> None:
        self.server = ServerAutomaton(self.cohort, self.messages)
        self.clients = [ClientAutomaton(self.cohort, self.messages, k) for k in range(self.cohort.parameters.clients)]
        self.routes, self.lying = Sets[Route](), Sets[int]()
        self._outboxes: dict[int, int] = {}
        self._lies: dict[tuple[int, int], int] = {}
        self._charged: set[Route] = set()
        self._ended: set[int] = set()

    @property
    def start(self) -> State:
        """The opening was sent, and nobody has it."""
        return State(0, (0,) * len(self.clients), self.outbox(0))

    def outbox(self, server: int) -> int:
        """What the server has sent in a state."""
        if server not in self._outboxes:
            self._outboxes[server] = self.routes.of(self.server.outboxes[server])
        return self._outboxes[server]

    def lies(self, client: int, before: int, answers: tuple[int, ...]) -> int:
        """What a liar may send beside these answers; nothing of anybody else."""
        found = 0
        for answer in answers if client == self.liar else ():
            found |= self._beside(before, answer)
        return found

    def _beside(self, before: int, answer: int) -> int:
        if (before, answer) not in self._lies:
            machine = self.clients[self.liar or 0].machine(before)
            told = () if machine.step in ENDS else lies_of(self.cohort, machine, self.messages.data[answer])
            self._lies[before, answer] = self.lying.of({self.messages.number(lie) for lie in told})
        return self._lies[before, answer]

    def hold_charge(self, client: int, sent: Sent) -> None:
        """Require that the ledger is asked where a masked vector leaves for the first time, and nowhere else."""
        if sent.charged and (client, sent.answers[0]) not in self._charged:
            (answer,) = sent.answers
            read(self.cohort, client, self.messages.data[answer], kinds.Mask)
            self._charged.add((client, answer))

    def hold_end(self, server: int) -> None:
        """Require that a sum is exact, and that nobody but the liar is proven guilty."""
        if server in self._ended:
            return
        assert self.server.proven[server] <= {self.liar}, "an honest client is proven guilty"
        end = self.server.ends.get(server)
        if end is not None and end.survivors is not None:
            assert len(end.survivors) >= self.cohort.parameters.min_survivors
            assert np.array_equal(end.total, self.cohort.sum_over(end.survivors)), "a sum is wrong"
        self._ended.add(server)


@dataclass
class Found:
    """What was met.

    Attributes:
        states, moves: of everybody, and from one to another; a move that changes nothing is counted too.
        sums: by survivors, how many states end in their sum.
        aborts: the codes of sessions without a sum.
        refusals: codes of refusals.
    """

    states: int = 0
    moves: int = 0
    sums: dict[tuple[int, ...], int] = field(default_factory=dict)
    aborts: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)


def explored(world: World, *, misrouted: bool = True) -> Found:
    """Walk through all states, breadth first, hold each against the rules, and count what was met."""
    found = Found()
    known, waiting = {world.start}, deque([world.start])
    while waiting:
        state = waiting.popleft()
        found.states += 1
        _hold(world, state.server, found)
        for after in _moves(world, state, found, misrouted=misrouted):
            found.moves += 1
            if after not in known:
                known.add(after)
                waiting.append(after)
    return found


def _moves(world: World, state: State, found: Found, *, misrouted: bool) -> Iterator[State]:
    everybody = range(len(world.clients))
    for to, message in world.routes.members(state.down):
        for client in everybody if misrouted else (to,):
            yield _told(world, state, client, world.clients[client].received(state.clients[client], message), found)
    for by, message in world.routes.members(state.up):
        for sender in everybody if misrouted else (by,):
            yield _heard(world, state, world.server.received(state.server, sender, message), found)
    for lie in world.lying.members(state.lies or 0):
        after = _heard(world, state, world.server.received(state.server, world.liar, lie), found)
        yield after if after.server == state.server else State(*after[:-1], lies=None)
    yield _heard(world, state, world.server.closed(state.server), found)


def _told(world: World, state: State, client: int, sent: Sent, found: Found) -> State:
    if sent.refusal:
        found.refusals.add(sent.refusal)
    world.hold_charge(client, sent)
    server, clients, down, up, lies = state
    before = clients[client]
    if sent.answers:
        up |= world.routes.of((client, answer) for answer in sent.answers)
        lies = None if lies is None else lies | world.lies(client, before, sent.answers)
    return State(server, (*clients[:client], sent.state, *clients[client + 1 :]), down, up, lies)


def _heard(world: World, state: State, sent: Sent, found: Found) -> State:
    if sent.refusal:
        found.refusals.add(sent.refusal)
    _, clients, down, up, lies = state
    return State(sent.state, clients, down | world.outbox(sent.state), up, lies)


def _hold(world: World, server: int, found: Found) -> None:
    """Hold the server's state against the rules, and count how it ended."""
    world.hold_end(server)
    end = world.server.ends.get(server)
    if end is None:
        return
    if end.survivors is None:
        found.aborts.add(end.code)
    else:
        found.sums[end.survivors] = found.sums.get(end.survivors, 0) + 1
