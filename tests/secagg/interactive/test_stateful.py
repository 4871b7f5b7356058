"""Any schedule of drops, repeats, delays, damage, lies and restarts ends in the exact sum or in a named abort.

Six hundred schedules in the nightly profile, thirty in CI.
"""

from collections.abc import Callable
from functools import partial
from threading import Thread
from unittest.mock import patch

import msgspec
import numpy as np
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import Client, Parameters, Server, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.machines import ENDS
from privstats.secagg.wire import members, to_bitmap
from tests.lengths import sized
from tests.secagg.interactive.cohorts import PLAN, RING, Cohort, cohort_of, play_until, read
from tests.secagg.interactive.inside import inside
from tests.threads import join

CLIENTS = 8
KEY = b"k" * 32


def strangers() -> list[bytes]:
    """Messages of an honest session with the same parties, in both directions, to be replayed into another."""
    found: list[bytes] = []
    for step in STEPS:
        cohort = cohort_of(CLIENTS, 5, 0, label="earlier")
        outbox = play_until(cohort, step)
        found += [outbox[1], cohort.clients[1].receive(outbox[1])[0][1]]
    return [*found, dict(cohort.server.abandon())[1]]


STRANGERS = strangers()
place = st.integers(0, 1 << 12)


def refused(receive: Callable[[bytes], object], data: bytes) -> bool:
    try:
        receive(data)
    except LocalProtocolError as refusal:
        return "one call at a time" in str(refusal)
    return False


def intact(cohort: Cohort, client: int, data: bytes, kind: type):
    """The message, if it is one of this kind and has not been damaged beyond reading."""
    try:
        return read(cohort, client, data, kind)
    except wire.Refusal:
        return None


class Session(RuleBasedStateMachine):
    """Messages in flight are two bags; rules take from them in any order, or put back what does not belong."""

    @initialize(sparse=st.booleans())
    def begin(self, sparse: bool) -> None:
        self.cohort = Cohort(Parameters(CLIENTS, 4, 5, 0, 6, RING, PLAN)) if sparse else cohort_of(CLIENTS, 5, 0)
        self.server, self.clients = self.cohort.server, self.cohort.clients
        self.down, self.up = list(self.server.start()), []
        self.seen: list[tuple[int, bytes]] = []
        self.revealed: dict[int, tuple[set[int], set[int]]] = {i: (set(), set()) for i in range(CLIENTS)}
        self.aborted = False
        self.heard: list[tuple[int, bytes]] = []
        self.answers: dict[int, tuple[bytes, bytes]] = {}

    def running(self) -> bool:
        return self.server.step not in ENDS

    def take(self, bag: list[tuple[int, bytes]], which: int) -> tuple[int, bytes]:
        return bag.pop(which % len(bag))

    def hear(self, client: int, data: bytes) -> None:
        try:
            assert not self.server.receive(client, data)
        except RemoteProtocolError as refusal:
            assert refusal.peer == client
        else:
            self.cohort.channel(client)  # computed while the server still has its keys
            self.heard.append((client, data))

    def tell(self, client: int, data: bytes) -> None:
        machine = self.clients[client]
        before, held = machine.step, dict(inside(machine).state.held)
        try:
            answers = machine.receive(data)
        except RemoteProtocolError as refusal:
            assert refusal.peer == "server"
            return
        for _, answer in answers:
            self.up.append((client, answer))
            self.answers[client] = (data, answer)
            if before != machine.step == "done":
                self.note_shares(client, answer, held)

    def note_shares(self, holder: int, answer: bytes, held: dict[int, bytes]) -> None:
        message = read(self.cohort, holder, answer, messages.Unmask)
        for number, owner in enumerate(message.owners):
            share = message.shares[32 * number :][:32]
            kinds = (share == held[owner][:32], share == held[owner][32:])
            assert sum(kinds) == 1
            self.revealed[owner][kinds.index(True)].add(holder)

    @precondition(lambda self: self.down)
    @rule(which=place)
    def deliver_down(self, which: int) -> None:
        self.seen.append(self.down[which % len(self.down)])
        self.tell(*self.take(self.down, which))

    @precondition(lambda self: self.up)
    @rule(which=place)
    def deliver_up(self, which: int) -> None:
        self.seen.append(self.up[which % len(self.up)])
        self.hear(*self.take(self.up, which))

    @precondition(lambda self: self.down or self.up)
    @rule()
    def deliver_everything(self) -> None:
        while self.down:
            self.tell(*self.down.pop(0))
        while self.up:
            self.hear(*self.up.pop(0))

    @precondition(lambda self: self.heard)
    @rule(which=place)
    def repeat_to_the_server(self, which: int) -> None:
        """Whatever has been accepted once, the last message of the session too, is a repeat for ever."""
        before = self.server.step, self.server.waiting_for
        assert not self.server.receive(*self.heard[which % len(self.heard)])
        assert (self.server.step, self.server.waiting_for) == before

    @precondition(lambda self: self.answers)
    @rule(which=place)
    def repeat_to_a_client(self, which: int) -> None:
        client = sorted(self.answers)[which % len(self.answers)]
        question, answer = self.answers[client]
        if self.clients[client].step != "failed":
            assert self.clients[client].receive(question) == [("server", answer)]

    @precondition(lambda self: self.down or self.up)
    @rule(which=place)
    def deliver_in_the_middle_of_a_delivery(self, which: int) -> None:
        """A second thread brings the same message while the first is inside: it is turned away."""
        bag = self.up or self.down
        client, data = bag[which % len(bag)]
        again = partial(self.server.receive, client) if bag is self.up else self.clients[client].receive
        original, turned_away = messages.decode, []

        def decode(*args):
            if not turned_away:  # this test reads messages too, afterwards
                thread = Thread(target=lambda: turned_away.append(refused(again, data)))
                thread.start()
                join(thread)
            return original(*args)

        with patch.object(messages, "decode", decode):
            (self.hear if bag is self.up else self.tell)(client, data)
        assert all(turned_away)

    @precondition(lambda self: self.down or self.up)
    @rule(which=place)
    def drop(self, which: int) -> None:
        self.take(self.down or self.up, which)

    @precondition(lambda self: self.down or self.up)
    @rule(which=place)
    def duplicate(self, which: int) -> None:
        bag = self.up or self.down
        bag.append(bag[which % len(bag)])

    @precondition(lambda self: self.seen)
    @rule(which=place, to_server=st.booleans(), client=st.integers(0, CLIENTS - 1))
    def replay_or_misroute(self, which: int, to_server: bool, client: int) -> None:
        (self.up if to_server else self.down).append((client, self.seen[which % len(self.seen)][1]))

    @rule(data=st.sampled_from(STRANGERS), to_server=st.booleans(), client=st.integers(0, CLIENTS - 1))
    def replay_another_session(self, data: bytes, to_server: bool, client: int) -> None:
        (self.up if to_server else self.down).append((client, data))

    @precondition(lambda self: self.down or self.up)
    @rule(which=place, bit=st.integers(0, 1 << 14), cut=st.booleans())
    def damage(self, which: int, bit: int, cut: bool) -> None:
        bag = self.up or self.down
        client, data = bag[which % len(bag)]
        if not data:
            return
        at = bit // 8 % len(data)
        flipped = data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]
        bag[which % len(bag)] = (client, data[:at] if cut else flipped)

    @precondition(lambda self: self.down and self.server.step in ("agree", "unmask"))
    @rule(which=place, client=st.integers(0, CLIENTS - 1))
    def equivocate(self, which: int, client: int) -> None:
        """Show one client another survivor list, or other signatures, under a valid tag."""
        receiver, data = self.down[which % len(self.down)]
        if receiver not in inside(self.server).state.adverts:
            return
        if (message := intact(self.cohort, receiver, data, messages.Survivors)) is not None:
            other = members(message.survivors, CLIENTS) ^ {client}
            lie = msgspec.structs.replace(message, survivors=to_bitmap(other, CLIENTS))
        elif (message := intact(self.cohort, receiver, data, messages.Agreement)) is not None:
            lie = msgspec.structs.replace(message, signatures=message.signatures[64:] + message.signatures[:64])
        else:
            return
        sealed = inside(self.server).channel(receiver).seal(messages.encode(lie))
        self.down[which % len(self.down)] = (receiver, sealed)

    @precondition(lambda self: self.down and self.server.step in ("share", "mask"))
    @rule(which=place, what=place)
    def show_one_client_less(self, which: int, what: int) -> None:
        """Leave a neighbour out of what one client is shown, under a valid tag."""
        receiver, data = self.down[which % len(self.down)]
        if receiver not in inside(self.server).state.adverts:
            return
        if (message := intact(self.cohort, receiver, data, messages.Adverts)) is not None:
            lie = msgspec.structs.replace(message, adverts=message.adverts[:-1])
        elif (message := intact(self.cohort, receiver, data, messages.Deliver)) is not None and message.sharers:
            at, pair = what % len(message.sharers), messages.PAIR_BYTES
            sizes = {"boxes": messages.BOX_BYTES, "commitments": pair, "responses": pair, "challenges": pair}
            columns = {name: (getattr(message, name), size) for name, size in sizes.items()}
            lie = msgspec.structs.replace(
                message,
                sharers=message.sharers[:at] + message.sharers[at + 1 :],
                **{name: data[: size * at] + data[size * (at + 1) :] for name, (data, size) in columns.items()},
            )
        else:
            return
        self.down[which % len(self.down)] = (receiver, inside(self.server).channel(receiver).seal(messages.encode(lie)))

    @precondition(lambda self: self.running())
    @rule(patience=st.integers(0, 4))
    def time_is_up(self, patience: int) -> None:
        """Mostly after everything has arrived, now and then while messages are still on their way."""
        if patience:
            self.deliver_everything()
        foreseen = self.server.step_status()
        assert set(foreseen.waiting_for) == self.server.waiting_for
        try:
            self.down += self.server.end_step()
        except AggregationError as abort:
            self.aborted = True
            assert str(foreseen.abort) == str(abort)
        else:
            assert foreseen.abort is None

    @precondition(lambda self: self.running())
    @rule()
    def restart_the_server(self) -> None:
        self.server = self.cohort.server = Server.resume(self.server.export(KEY), KEY, **self.cohort.place())

    @rule(client=st.integers(0, CLIENTS - 1))
    def restart_a_client(self, client: int) -> None:
        if self.clients[client].step not in ENDS:
            sealed = self.clients[client].export(KEY)
            self.clients[client] = Client.resume(sealed, KEY, **self.cohort.place(client))

    @invariant()
    def no_sum_is_ever_wrong(self) -> None:
        if hasattr(self, "server") and self.server.step == "done":
            total, survivors = self.server.result
            assert len(survivors) >= self.cohort.parameters.min_survivors
            assert np.array_equal(total.lift(), self.cohort.sum_over(survivors))

    @invariant()
    def nobody_honest_is_accused(self) -> None:
        assert not hasattr(self, "server") or self.server.faults == ()

    @invariant()
    def nobody_can_be_unmasked_twice(self) -> None:
        """The shares that have left never suffice for both of anybody's secrets."""
        threshold = self.cohort.parameters.threshold if hasattr(self, "cohort") else 0
        for seeds, keys in getattr(self, "revealed", {}).values():
            assert min(len(seeds), len(keys)) < threshold

    def teardown(self) -> None:
        """Whatever has happened, playing on honestly ends the session."""
        while hasattr(self, "server") and self.running():
            self.time_is_up(patience=1)
        if hasattr(self, "server"):
            self.no_sum_is_ever_wrong()
            assert (self.server.step == "done") != self.aborted
            event(f"the session is {self.server.step}")


TestSession = Session.TestCase
TestSession.settings = settings(max_examples=sized(30, 600))
