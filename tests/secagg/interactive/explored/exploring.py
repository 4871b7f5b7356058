"""Every state of a session, breadth first: what was sent may arrive at any time, again, at another party, or never.

A lost message is one that never arrives, so losses and vanished clients need no rule of their own. One client may lie:
then everything in ``lies`` is sent beside its honest answer.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from privstats.secagg.interactive import messages as kinds
from privstats.secagg.machines import ENDS
from tests.secagg.interactive.cohorts import Cohort, read
from tests.secagg.interactive.explored.automata import ClientAutomaton, Messages, Sent, ServerAutomaton
from tests.secagg.interactive.explored.lies import lies_of

Route = tuple[int, int]
"""A client and the number of a message to it, or from it."""


@dataclass(frozen=True)
class State:
    """A state of everybody, and everything that was sent so far; ``lies`` is what a liar may send, once."""

    server: int
    clients: tuple[int, ...]
    down: frozenset[Route]
    up: frozenset[Route]
    lies: frozenset[int] | None = frozenset()


@dataclass
class World:
    """The machines of one session as automata, and what one of them may send in place of the truth."""

    cohort: Cohort
    liar: int | None = None
    messages: Messages = field(default_factory=Messages)

    def __post_init__(self) -> None:
        self.server = ServerAutomaton(self.cohort, self.messages)
        self.clients = [ClientAutomaton(self.cohort, self.messages, k) for k in range(self.cohort.parameters.clients)]
        self._lies: dict[tuple[int, int], set[int]] = {}

    @property
    def start(self) -> State:
        """The opening was sent, and nobody has it."""
        return State(0, (0,) * len(self.clients), frozenset(self.server.outboxes[0]), frozenset())

    def lies(self, client: int, before: int, answers: tuple[int, ...]) -> set[int]:
        """What a liar may send beside these answers; nothing of anybody else."""
        if client != self.liar:
            return set()
        return {lie for answer in answers for lie in self._beside(before, answer)}

    def _beside(self, before: int, answer: int) -> set[int]:
        if (before, answer) not in self._lies:
            machine = self.clients[self.liar or 0].machine(before)
            told = () if machine.step in ENDS else lies_of(self.cohort, machine, self.messages.data[answer])
            self._lies[before, answer] = {self.messages.number(lie) for lie in told}
        return self._lies[before, answer]


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
    """Walk through all states and hold each against the rules; the numbers of what was met."""
    found = Found()
    for state in explore(world, found, misrouted=misrouted):
        _hold(world, state, found)
    return found


def explore(world: World, found: Found, *, misrouted: bool) -> Iterator[State]:
    """Every state that is reached, once."""
    known, waiting = {world.start}, deque([world.start])
    while waiting:
        state = waiting.popleft()
        found.states += 1
        yield state
        for after in _moves(world, state, found, misrouted=misrouted):
            found.moves += 1
            if after not in known:
                known.add(after)
                waiting.append(after)


def _moves(world: World, state: State, found: Found, *, misrouted: bool) -> Iterator[State]:
    everybody = range(len(world.clients))
    for to, message in state.down:
        for client in everybody if misrouted else (to,):
            yield _told(world, state, client, world.clients[client].received(state.clients[client], message), found)
    for by, message in state.up:
        for sender in everybody if misrouted else (by,):
            yield _heard(world, state, world.server.received(state.server, sender, message), found)
    for lie in state.lies or ():
        after = _heard(world, state, world.server.received(state.server, world.liar, lie), found)
        yield after if after.server == state.server else replace(after, lies=None)
    yield _heard(world, state, world.server.closed(state.server), found)


def _told(world: World, state: State, client: int, sent: Sent, found: Found) -> State:
    if sent.refusal:
        found.refusals.add(sent.refusal)
    _hold_charge(world, client, sent)
    before = state.clients[client]
    return replace(
        state,
        clients=(*state.clients[:client], sent.state, *state.clients[client + 1 :]),
        up=state.up.union((client, answer) for answer in sent.answers),
        lies=None if state.lies is None else state.lies.union(world.lies(client, before, sent.answers)),
    )


def _heard(world: World, state: State, sent: Sent, found: Found) -> State:
    if sent.refusal:
        found.refusals.add(sent.refusal)
    return replace(state, server=sent.state, down=state.down.union(world.server.outboxes[sent.state]))


def _hold_charge(world: World, client: int, sent: Sent) -> None:
    """The ledger is asked where a masked vector leaves for the first time, and nowhere else."""
    if sent.charged:
        (answer,) = sent.answers
        read(world.cohort, client, world.messages.data[answer], kinds.Mask)


def _hold(world: World, state: State, found: Found) -> None:
    """A sum is exact, and nobody but the liar is proven guilty."""
    assert world.server.proven[state.server] <= {world.liar}, "an honest client is proven guilty"
    end = world.server.ends.get(state.server)
    if end is None:
        return
    if end.survivors is None:
        found.aborts.add(end.code)
        return
    assert len(end.survivors) >= world.cohort.parameters.min_survivors
    assert np.array_equal(end.total, world.cohort.sum_over(end.survivors)), "a sum is wrong"
    found.sums[end.survivors] = found.sums.get(end.survivors, 0) + 1
