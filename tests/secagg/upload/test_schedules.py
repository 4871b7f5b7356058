"""Any schedule of drops, repeats, delays, damage, lies, second uploads and restarts: the exact sum or a named abort.

The profile ``nightly`` plays ten thousand schedules, a slice 4,000, and each run 100. Where reports carry proofs,
clients also prove false sums: in 2,000, 800 and 6 schedules. What is checked after every message, and not at the end
alone: no helper answers two lists, a short one, or anything but the sum of its streams over just the reports of its
list, and none answers two queries about one report. So every *report* that is not on the roll of every helper's
answer keeps a stream that nobody has.
"""

from collections import Counter
from functools import cache
from hashlib import sha256
from itertools import product
from random import Random

import msgspec
import numpy as np
import pytest

from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import HelperKeys, wire
from privstats.secagg.upload import batching, messages
from privstats.secagg.upload.checks import stated
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.masking_scheme import scheme_of
from privstats.secagg.upload.signed_statements import roll_of, survivors_statement
from privstats.secagg.wire import members, to_bitmap
from tests.contrib.proofs.proved import doubled, proved_of, with_client
from tests.lengths import sized
from tests.secagg.interactive.cohorts import stream
from tests.secagg.upload.cohorts import UNTIL, Uploads, body_of, signed_batch, streams_of, uploads_of
from tests.secagg.upload.inside import inside

KEY = b"k" * 32
ABORTS = {"too_few_clients", "too_few_helpers"}
ACTIONS = {
    "deliver": 60,
    "drop": 2,
    "duplicate": 3,
    "replay": 3,
    "damage": 3,
    "cut": 1,
    "misroute": 1,
    "equivocate_list": 2,
    "equivocate_batch": 2,
    "short_list": 1,
    "second_upload": 2,
    "false_upload": 2,
    "restart_leader": 1,
    "restart_helper": 1,
    "resend": 2,
    "close": 3,
}


FALSE = 2
"""The life in which a client proves twice its sums."""


class Script:
    """All that is the same in every schedule with so many helpers, and dear to make: reports, and what is in them."""

    def __init__(self, helpers: int, proofs: bool) -> None:
        make = proved_of if proofs else uploads_of
        self.run, self.lives = make(helpers=helpers), (0, 1, FALSE) if proofs else (0, 1)
        places = range(self.run.parameters.clients)
        self.reports = {(index, life): self.report(index, life) for index in places for life in self.lives}
        self.vectors, self.streams = {}, {}
        for (index, life), report in self.reports.items():
            name = digest(self.run, report)
            if life != FALSE:
                self.vectors[name] = self.values(index, life)
            self.streams[name] = [self.stream(index, report, place) for place in range(1, helpers + 1)]
        earlier = make(helpers=helpers, run=b"an earlier run 7")
        self.strangers = [earlier.report(0), *dict(earlier.play_until("check")).values()]

    def report(self, index: int, life: int) -> bytes:
        if life == FALSE:
            return with_client(proved_of(helpers=self.run.parameters.helpers), index, doubled()).report(index)
        return self.run.client(index, self.values(index, life), life=life).start()[0][1]

    def values(self, index: int, life: int) -> np.ndarray:
        return self.run.values[(index + life) % len(self.run.values)]

    def stream(self, index: int, report: bytes, place: int):
        seed = self.run.seed(index, report, place)
        scheme = scheme_of(self.run.parameters, self.run.context)
        return streams_of(scheme, self.run.parameters.ring, [(index, seed)])

    def private(self, place: int) -> bytes:
        return stream(f"{self.run.label} box {place}")(32)

    def keys(self, place: int) -> HelperKeys:
        run = self.run
        return HelperKeys.from_private(
            run.members[place], place, run.parameters, run.roster, self.private(place), until=UNTIL
        )


def digest(run: Uploads, report: bytes) -> bytes:
    return sha256(stated(run.read(report, messages.kinds_of(run.parameters).report), run.parameters)).digest()


@cache
def script(helpers: int, proofs: bool = False) -> Script:
    return Script(helpers, proofs)


class Schedule:
    """One run, in which chance decides; messages in flight are a bag."""

    def __init__(self, random: Random, proofs: bool = False) -> None:
        self.random, self.proofs = random, proofs
        self.script = script(self.random.choice((1, 2, 2, 3)), proofs)
        self.run = run = self.script.run
        common = {"roster": run.roster, "panel": run.panel}
        self.leader = Leader(run.parameters, keys=self.script.keys(0), **common)
        places = range(1, run.parameters.helpers + 1)
        self.helpers = [Helper(run.parameters, keys=self.script.keys(place), **common) for place in places]
        self.told: list[list[bytes]] = [[] for _ in places]  # what a helper's journal would hold
        self.answers: dict[int, bytes] = {}
        self.queries: dict[tuple[int, int], bytes] = {}  # what a helper was asked of a report's proof
        silent = self.random.randrange(0, 3)
        self.up = [(index, self.script.reports[index, 0]) for index in range(run.parameters.clients - silent)]
        self.down: list[tuple[int, bytes]] = []
        self.seen: list[tuple[int, bytes]] = []
        self.aborted, self.events, self.patience = "", Counter(), 20

    def play(self) -> str:
        for _ in range(self.random.randrange(10, 90)):
            if self.leader.step in ("done", "failed"):
                break
            (action,) = self.random.choices(list(ACTIONS), ACTIONS.values())
            getattr(self, action)()
            self.events[action] += 1
        return self.finish()

    def finish(self) -> str:
        """From here on everything arrives, and steps are closed."""
        while self.leader.step not in ("done", "failed"):
            while self.up or self.down:
                self.deliver()
            if self.leader.waiting_for and self.leader.step != "report" and self.patience:
                self.patience -= 1
                self.resend()
            else:
                self.close()
        self.check_the_sum()
        return self.leader.step

    # --- what may happen ---

    def bag(self) -> list[tuple[int, bytes]]:
        return self.random.choice([bag for bag in (self.up, self.down) if bag] or [[]])

    def one_of(self, bag: list) -> int:
        return self.random.randrange(len(bag))

    def deliver(self) -> None:
        bag = self.bag()
        if not bag:
            return
        peer, data = bag.pop(self.one_of(bag))
        self.seen.append((peer, data))
        (self.hear if bag is self.up else self.tell)(peer, data)

    def hear(self, peer: int, data: bytes) -> None:
        try:
            self.down += self.leader.receive(peer, data)
        except RemoteProtocolError as refusal:
            if refusal.code == "busy" and self.patience:  # the client sends again, and the helpers are asked again
                self.patience -= 1
                self.up.append((peer, data))
                self.down += self.leader.outbox

    def tell(self, peer: int, data: bytes) -> None:
        number = peer - self.run.parameters.clients
        if not 0 <= number < len(self.helpers):
            return
        helper = self.helpers[number]
        before = helper.step, helper.parts
        try:
            ((_, answer),) = helper.receive(data)
        except RemoteProtocolError:
            assert (helper.step, helper.parts) == before
            return
        if helper.parts > before[1]:
            self.told[number].append(data)
        if self.proofs and messages.is_kind(data, messages.ProvedBatch):
            self.check_query(number, data)
        if helper.step == "done":
            self.check_answer(number, data, answer)
        self.up.append((peer, answer))

    def drop(self) -> None:
        if bag := self.bag():
            bag.pop(self.one_of(bag))

    def duplicate(self) -> None:
        if bag := self.bag():
            bag.append(bag[self.one_of(bag)])

    def replay(self) -> None:
        peer, data = self.random.choice(self.seen or [(0, b"")])
        if self.random.random() < 0.3:
            data = self.random.choice(self.script.strangers)
        self.random.choice((self.up, self.down)).append((peer, data))

    def misroute(self) -> None:
        peers = self.run.parameters.clients + len(self.helpers)
        if bag := self.bag():
            self.random.choice((self.up, self.down)).append((self.random.randrange(peers), bag[self.one_of(bag)][1]))

    def damage(self) -> None:
        if (bag := self.bag()) and (place := self.one_of(bag)) is not None and bag[place][1]:
            peer, data = bag[place]
            bit = self.random.randrange(8 * len(data))
            bag[place] = peer, data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]

    def cut(self) -> None:
        if bag := self.bag():
            place = self.one_of(bag)
            peer, data = bag[place]
            bag[place] = peer, data[: self.random.randrange(len(data) + 1)]

    def resend(self) -> None:
        self.down += self.leader.outbox
        if self.leader.step == "report":
            self.up += [(peer, self.script.reports[peer, 0]) for peer in sorted(self.leader.waiting_for)[:2]]

    def second_upload(self) -> None:
        index = self.random.randrange(self.run.parameters.clients)
        self.up.append((index, self.script.reports[index, 1]))

    def false_upload(self) -> None:
        """A client proves twice its sums, as well as it can; without proofs there is none."""
        if self.proofs:
            index = self.random.randrange(self.run.parameters.clients)
            self.up.append((index, self.script.reports[index, FALSE]))

    def equivocate_list(self, least: int | None = None) -> None:
        """The leader shows one helper a list of its own making: of what that helper accepted, so that it may answer."""
        number = self.random.randrange(len(self.helpers))
        helper = self.helpers[number]
        accepted = [sender for sender, flag in enumerate(inside(helper).seen) if flag == 2]
        size = self.random.randrange(least if least is not None else 4, 7)
        listed = sorted(self.random.sample(accepted, min(size, len(accepted))))
        roll = roll_of((sender, inside(helper).digest(sender)) for sender in listed)
        bitmap = to_bitmap(listed, self.run.parameters.clients)
        signature = self.run.members[0].sign(survivors_statement(self.run.context, roll, bitmap))
        lie = messages.encode(messages.Survivors(self.run.context, bitmap, roll, signature))
        self.down.append((self.run.parameters.clients + number, lie))

    def short_list(self) -> None:
        self.equivocate_list(least=0)

    def equivocate_batch(self) -> None:
        """The leader changes what it shows one helper, under its signature: other reports, places, columns."""
        kind = messages.kinds_of(self.run.parameters).batch
        batches = [(peer, data) for peer, data in self.down + self.seen if messages.is_kind(data, kind)]
        if not batches:
            return
        peer, data = self.random.choice(batches)
        try:
            batch = self.run.read(data, kind)
        except wire.Refusal:
            return
        change = self.random.choice(
            [
                {"part": self.random.randrange(4)},
                {"boxes": bytes(len(batch.boxes))},
                {"signatures": batch.signatures[::-1]},
                {"encs": bytes(32)},
                {"senders": tuple(sender + 1 for sender in batch.senders)},
                {"proofs": batch.proofs[::-1]},
                *([{"rho": batch.rho[::-1]}, {"parts": batch.parts[::-1]}] if self.proofs else []),
            ]
        )
        place = peer - self.run.parameters.clients + 1
        if 1 <= place <= len(self.helpers):
            self.down.append((peer, signed_batch(self.run, place, msgspec.structs.replace(batch, **change))))

    def restart_leader(self) -> None:
        run = self.run
        self.leader = Leader.resume(
            self.leader.export(KEY), KEY, parameters=run.parameters, roster=run.roster, identity=run.members[0]
        )

    def restart_helper(self) -> None:
        """As its journal does: the key it has, and what it was told; a helper that has ended has neither."""
        number = self.random.randrange(len(self.helpers))
        if self.helpers[number].step == "check":
            run = self.run
            again = Helper(run.parameters, keys=self.script.keys(number + 1), roster=run.roster, panel=run.panel)
            for data in self.told[number]:
                again.take(data)
            self.helpers[number] = again

    def close(self) -> None:
        foreseen = self.leader.step_status()
        try:
            self.down += self.leader.end_step()
        except AggregationError as abort:
            self.aborted = abort.code
            assert str(abort) == str(foreseen.abort)
        else:
            assert foreseen.abort is None

    # --- what must hold ---

    def check_query(self, number: int, question: bytes) -> None:
        """One rho for a client's report, ever: also over restarts."""
        batch = self.run.read(question, messages.ProvedBatch)
        for sender in batch.senders:
            assert self.queries.setdefault((number, sender), batch.rho) == batch.rho

    def check_answer(self, number: int, question: bytes, answer: bytes) -> None:
        """One list, long enough, of reports that clients made, and the sum of their streams: nothing else leaves."""
        assert self.answers.setdefault(number, answer) == answer
        asked, told = self.run.read(question, messages.Survivors), self.run.read(answer, messages.Reveal)
        listed = sorted(members(asked.bitmap, self.run.parameters.clients))
        assert len(listed) >= self.run.parameters.min_survivors
        lives = self.script.lives
        choices = [[digest(self.run, self.script.reports[sender, life]) for life in lives] for sender in listed]
        names = next(
            names for names in product(*choices) if roll_of(zip(listed, names, strict=True)) == told.roll == asked.roll
        )
        total = self.run.parameters.ring.zeros()
        for name in names:
            total.add(self.script.streams[name][number])
        assert total.pack() == bytes(told.answer)

    def check_the_sum(self) -> None:
        assert (self.leader.step == "done") != bool(self.aborted)
        assert not self.aborted or self.aborted in ABORTS
        if self.leader.step == "done":
            total, survivors = self.leader.result
            assert len(survivors) >= self.run.parameters.min_survivors
            vectors = [self.script.vectors[inside(self.leader).state.listed[sender]] for sender in survivors]
            assert np.array_equal(total.lift(), np.sum(vectors, axis=0))


def played(count: int, first: int, monkeypatch, proofs: bool = False) -> Counter:
    run = script(2, proofs).run
    monkeypatch.setattr(batching, "PART_BYTES", 2 * run.parameters.upload_bytes)
    monkeypatch.setattr(batching, "IN_FLIGHT", 2)
    ends, happened = Counter(), Counter()
    for seed in range(first, first + count):
        schedule = Schedule(Random(seed), proofs)
        try:
            end = schedule.play()
        except (AssertionError, LocalProtocolError) as error:
            raise AssertionError(f"schedule {seed}") from error
        ends[schedule.aborted or end] += 1
        happened += schedule.events
    assert set(happened) == set(ACTIONS)
    return ends


@pytest.mark.ci
def test_a_hundred_schedules_end_in_the_exact_sum_or_a_named_abort(monkeypatch) -> None:
    ends = played(100, 0, monkeypatch)
    assert ends["done"] > 15
    assert ends.total() - ends["done"] > 15


@pytest.mark.nightly
def test_thousands_of_schedules_end_in_the_exact_sum_or_a_named_abort(monkeypatch) -> None:
    count = sized(4_000, 10_000)
    ends = played(count, 1_000_000, monkeypatch)
    assert ends.total() == count
    print(dict(ends))


def test_a_dozen_schedules_with_proofs_end_in_the_exact_sum_of_true_reports_or_a_named_abort(monkeypatch) -> None:
    assert 0 < played(6, 0, monkeypatch, proofs=True)["done"] < 6


@pytest.mark.nightly
def test_many_schedules_with_proofs_end_in_the_exact_sum_of_true_reports_or_a_named_abort(monkeypatch) -> None:
    count = sized(800, 2_000)
    ends = played(count, 2_000_000, monkeypatch, proofs=True)
    assert ends.total() == count
    print(dict(ends))


def test_the_body_is_uniform_without_any_one_stream() -> None:
    """Bodies minus all streams but one: nothing of the vector is left in them, whichever stream is missing."""
    run = script(2).run
    for missing in (0, 1):
        left = [0, 0]
        for index in range(run.parameters.clients):
            vector = body_of(run, index, script(2).reports[index, 0])
            vector.add(script(2).streams[digest(run, script(2).reports[index, 0])][1 - missing])
            left[0] += int(np.sum(vector.lift() == run.values[index]))
            left[1] += vector.ring.size
        assert left[0] <= left[1] // 20
