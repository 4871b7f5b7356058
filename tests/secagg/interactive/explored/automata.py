"""The real machines as automata: states are numbers, and what a message does to a state is computed once.

A machine's randomness is fixed, so that its state is a function of what it received, and two states are one where every
field of them is the same. A state is kept sealed, as a journal keeps it, and resumed to take one more message.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec
import numpy as np

from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import Client, Server
from privstats.secagg.interactive.messages import Advertise, is_kind
from privstats.secagg.machines import ENDS
from tests.secagg.interactive.cohorts import Cohort
from tests.secagg.interactive.inside import inside

KEY = b"k" * 32
M = TypeVar("M", Client, Server)


class Messages:
    """Messages by number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.data: list[bytes] = []

    def number(self, data: bytes) -> int:
        """Of these bytes; a new one for new ones."""
        if data not in self._numbers:
            self._numbers[data] = len(self.data)
            self.data.append(data)
        return self._numbers[data]


@dataclass(frozen=True)
class Sent:
    """What one message does to a machine.

    Attributes:
        state: the number of the state behind it.
        answers: numbers of the messages that it sends.
        refusal: the code of its refusal, or nothing.
        charged: how often the ledger was asked.
    """

    state: int
    answers: tuple[int, ...] = ()
    refusal: str = ""
    charged: int = 0


@dataclass(frozen=True)
class ServerEnd:
    """How a session ended at the server.

    Attributes:
        survivors: of the sum, or None where there is none.
        total: the sum.
        code: why there is none.
    """

    survivors: tuple[int, ...] | None = None
    total: tuple[int, ...] = ()
    code: str = ""


@dataclass
class _Kept(Generic[M]):
    """A state: sealed, or the machine itself where it has ended."""

    sealed: bytes = b""
    ended: M | None = None


@dataclass
class _Automaton(Generic[M]):
    """A machine of a cohort.

    Args:
        cohort: whose randomness is fixed.
        messages: by number.
        forgotten: fields of a state that are left out where two states are compared.
    """

    cohort: Cohort
    messages: Messages
    forgotten: frozenset[str] = frozenset()
    _numbers: dict[tuple[bytes, object], int] = field(default_factory=dict, init=False)
    _kept: list[_Kept[M]] = field(default_factory=list, init=False)
    _known: dict[tuple[int, object], Sent] = field(default_factory=dict, init=False)

    def _resumed(self, sealed: bytes) -> M:
        raise NotImplementedError

    def _named(self, machine: M) -> int:
        """The state's number; a new one for a state that was never seen."""
        name = _plain(inside(machine).state, self.forgotten), self._beside(machine)
        if name not in self._numbers:
            self._numbers[name] = len(self._kept)
            ended = machine.step in ENDS
            self._kept.append(_Kept(ended=machine) if ended else _Kept(machine.export(KEY)))
            self._seen(machine)
        return self._numbers[name]

    def _beside(self, machine: M) -> object:
        raise NotImplementedError

    def _seen(self, machine: M) -> None:
        """A state for the first time."""

    def machine(self, state: int) -> M:
        """The machine in this state, to be used once."""
        kept = self._kept[state]
        return kept.ended if kept.ended is not None else self._resumed(kept.sealed)

    @property
    def states(self) -> int:
        """How many were met."""
        return len(self._kept)


def _plain(state: msgspec.Struct, forgotten: frozenset[str]) -> bytes:
    """A state without the forgotten fields, and without the order of its sets and dicts."""
    kept = [_listed(getattr(state, name)) for name in state.__struct_fields__ if name not in forgotten]
    return msgspec.msgpack.encode(kept, order="deterministic")


def _listed(value: object) -> object:
    """Dicts as sorted lists: msgspec sorts only those whose keys are texts."""
    if not isinstance(value, dict):
        return value
    return sorted((key, _listed(each)) for key, each in value.items())


class ClientAutomaton(_Automaton[Client]):
    """One client of the cohort; state 0 waits for the opening."""

    def __init__(self, cohort: Cohort, messages: Messages, index: int, forgotten: frozenset[str] = frozenset()) -> None:
        super().__init__(cohort, messages, forgotten)
        self.index, self.steps = index, []
        self._charges = 0
        self._named(cohort.client(index, on_upload=self._charged))

    def _charged(self, _: bytes) -> None:
        self._charges += 1

    def _beside(self, machine: Client) -> object:
        return inside(machine).vector is None

    def _seen(self, machine: Client) -> None:
        self.steps.append(machine.step)

    def _resumed(self, sealed: bytes) -> Client:
        return Client.resume(sealed, KEY, on_upload=self._charged, **self.cohort.place(self.index))

    def received(self, state: int, message: int) -> Sent:
        """What a message from the server does."""
        if (state, message) not in self._known:
            machine, before = self.machine(state), self._charges
            answers: tuple[int, ...] = ()
            refusal = ""
            try:
                sent = machine.receive(self.messages.data[message])
                answers = tuple(self.messages.number(data) for _, data in sent)
                if sent and is_kind(sent[0][1], Advertise):
                    self.cohort.advertised(self.index, sent[0][1])
            except RemoteProtocolError as error:
                assert error.peer == "server"
                refusal = error.code
            self._known[state, message] = Sent(self._named(machine), answers, refusal, self._charges - before)
        return self._known[state, message]


class ServerAutomaton(_Automaton[Server]):
    """The server; state 0 has sent its opening."""

    def __init__(self, cohort: Cohort, messages: Messages) -> None:
        super().__init__(cohort, messages)
        self.steps: list[str] = []
        self.ends: dict[int, ServerEnd] = {}
        self.outboxes: list[tuple[tuple[int, int], ...]] = []
        self.proven: list[frozenset[int]] = []
        self._failure = ""
        cohort.server.start()
        self._named(cohort.server)

    def _beside(self, machine: Server) -> object:
        total = inside(machine).sum
        return None if total is None else total.pack()

    def _seen(self, machine: Server) -> None:
        self.steps.append(machine.step)
        self.proven.append(frozenset(fault.peer for fault in machine.faults if fault.proven))
        if machine.step == "done":
            total, survivors = machine.result
            self.ends[len(self.steps) - 1] = ServerEnd(survivors, tuple(np.concatenate([total.lift()]).tolist()))
        elif machine.step == "failed":
            self.ends[len(self.steps) - 1] = ServerEnd(code=self._failure)
        running = machine.step not in ENDS
        self.outboxes.append(tuple((k, self.messages.number(data)) for k, data in machine.outbox) if running else ())

    def _resumed(self, sealed: bytes) -> Server:
        cohort = self.cohort
        place = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
        return Server.resume(sealed, KEY, **place)

    def received(self, state: int, sender: int, message: int) -> Sent:
        """What a message from a client does."""
        return self._after(state, (sender, message), lambda server: self._receive(server, sender, message))

    def closed(self, state: int) -> Sent:
        """What the end of the step does."""
        return self._after(state, "close", self._close)

    def _after(self, state: int, event: object, act: Callable[[Server], str]) -> Sent:
        if (state, event) not in self._known:
            server = self.machine(state)
            refusal = act(server)
            self._known[state, event] = Sent(self._named(server), (), refusal)
        return self._known[state, event]

    def _receive(self, server: Server, sender: int, message: int) -> str:
        try:
            assert not server.receive(sender, self.messages.data[message])
        except RemoteProtocolError as error:
            assert error.peer == sender
            return error.code
        return ""

    def _close(self, server: Server) -> str:
        try:
            server.end_step()
        except AggregationError as error:
            self._failure = error.code
            return error.code
        except LocalProtocolError:
            assert server.step in ENDS
            return "ended"
        return ""
