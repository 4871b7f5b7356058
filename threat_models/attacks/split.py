"""Attack 14 under ``protocol="split"``: a leader with all helpers but one lies to the real machines.

Each lie motivates one rule of the protocol. A lie that never succeeds proves nothing by itself: the tests run the same
lies against doubles that lack just that rule, where each reveals the victim's exact vector. An
upload is staged from the library's own machines, under the control of a leader with one colluding helper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Barrier, BrokenBarrierError, Thread

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import Ring, RingVector
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.secagg import Helper, HelperKeys, Identity, Leader, Offer, Panel, Roster, UploadParameters, xwing
from privstats.secagg.body_cipher import open_into
from privstats.secagg.upload import messages
from privstats.secagg.upload.checks import rows, stated
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.masking_scheme import Streams
from privstats.secagg.upload.signed_statements import box_info, roll_of, survivors_statement
from privstats.secagg.upload.suite import BOX_BYTES
from privstats.secagg.wire import to_bitmap
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.unmasking import never
from threat_models.report import Row

VICTIM = 0
UNTIL = 1 << 40  # no box key ends while an attack runs
CLIENTS, MIN_SURVIVORS, COLLUDERS, HELPERS = 6, 4, 1, 2
EVERYBODY = tuple(range(CLIENTS))
WITHOUT = tuple(client for client in EVERYBODY if client != VICTIM)
_RING = Ring(((4, 20), (4, 40)))
Value = NDArray[np.int64]

_PATIENCE = 0.5  # seconds for two threads to meet where nothing keeps them apart


def _pinned(run: Uploads, offers: Sequence[Offer]) -> Panel:
    """Build the panel as clients do: with the plan's identities, for any sender of the offers."""
    return Panel(tuple(member.public for member in run.members), tuple(offers))


@dataclass
class Uploads:
    """Clients and panel of one run with values that the attacker must not learn.

    Attributes:
        rng: all randomness of the run.
        client, helper, keys: make the machines; weakened doubles take their place in tests.
        panel_of: how a client makes its panel of the offers that it is shown.
    """

    rng: Generator
    client: Callable[..., Client] = Client
    helper: Callable[..., Helper] = Helper
    keys: type[HelperKeys] = HelperKeys
    panel_of: Callable[[Uploads, Sequence[Offer]], Panel] = _pinned
    parameters: UploadParameters = field(init=False)

    def __post_init__(self) -> None:
        self.parameters = UploadParameters.solve(
            clients=CLIENTS,
            min_survivors=MIN_SURVIVORS,
            colluders=COLLUDERS,
            helpers=HELPERS,
            ring=_RING,
            plan_digest=bytes(32),
        )
        n, size = self.parameters.clients, self.parameters.ring.size
        self.identities = [Identity.generate(self.rng.bytes) for _ in range(n)]
        self.members = [Identity.generate(self.rng.bytes) for _ in range(HELPERS + 1)]
        publics = tuple(identity.public for identity in self.identities)
        self.roster = Roster(publics, server=self.members[0].public, run=self.rng.bytes(16))
        self.values = [(self.rng.uint64(size) % np.uint64(1000)).astype(np.int64) - 500 for _ in range(n)]
        self.boxes = [self.rng.bytes(32) for _ in self.members]
        keys = [self.key(place, member, self.boxes[place]) for place, member in enumerate(self.members)]
        self.held = keys
        self.panel = _pinned(self, [each.offer for each in keys])
        self.helpers = [self.help(place) for place in range(1, HELPERS + 1)]
        self.reports: dict[int, bytes] = {}

    def key(self, place: int, member: Identity, box: bytes) -> HelperKeys:
        """The keys around a box key."""
        return self.keys.from_private(member, place, self.parameters, self.roster, box, until=UNTIL)

    def help(self, place: int) -> Helper:
        """A helper from the keys that this place has, which our keys allow once."""
        return self.helper(self.parameters, keys=self.held[place], roster=self.roster, panel=self.panel)

    def report(self, index: int, offers: Sequence[Offer] | None = None) -> bytes:
        """A client's message after these offers."""
        panel = self.panel_of(self, self.panel.offers if offers is None else offers)
        vector, identity = self.parameters.ring.encode(self.values[index]), self.identities[index]
        given = {"index": index, "identity": identity, "roster": self.roster, "panel": panel}
        machine = self.client(self.parameters, vector, entropy=self.rng.bytes, allow_reproducible=True, **given)
        ((_, report),) = machine.start()
        return report

    def show(self, helper: Helper) -> None:
        """All reports reach a helper, as from an honest leader."""
        for index in EVERYBODY:
            self.reports.setdefault(index, self.report(index))
        keys = HelperKeys.from_private(self.members[0], 0, self.parameters, self.roster, self.boxes[0], until=UNTIL)
        leader = Leader(self.parameters, keys=keys, roster=self.roster, panel=self.panel)
        for index, report in self.reports.items():
            leader.receive(index, report)
        helper.receive(dict(leader.end_step())[helper.index])

    def list_of(self, listed: Sequence[int]) -> bytes:
        """A list of the leader's own making, well signed."""
        context, digests = self.panel.context(self.parameters, self.roster), []
        for sender in listed:
            digests.append((sender, sha256(stated(self._read(sender), self.parameters)).digest()))
        roll, bitmap = roll_of(digests), to_bitmap(listed, self.parameters.clients)
        signature = self.members[0].sign(survivors_statement(context, roll, bitmap))
        return messages.encode(messages.Survivors(context, bitmap, roll, signature))

    def asked(self, helper: Helper, listed: Sequence[int]) -> RingVector:
        """A helper's answer over a list."""
        ((_, answer),) = helper.receive(self.list_of(listed))
        context = self.panel.context(self.parameters, self.roster)
        revealed = messages.decode(memoryview(answer), messages.Reveal, self.parameters, context)
        return self.parameters.ring.unpack(revealed.answer)

    def body(self) -> RingVector:
        """The part of the victim's report that the leader can open."""
        return self.parameters.ring.unpack(self._body(self._read(VICTIM), self.boxes[0], self.panel))

    def stream(self, place: int) -> RingVector:
        """The victim's stream at a helper that is the leader's own."""
        return self._added(self._seed(self._read(VICTIM), place, self.boxes[place], self.panel), self.panel)

    def lifted(self, report: bytes, panel: Panel, boxes: Sequence[bytes]) -> RingVector:
        """A report under a panel whose box keys are all the attacker's."""
        context = panel.context(self.parameters, self.roster)
        message = messages.decode(memoryview(report), messages.Report, self.parameters, context)
        vector = self.parameters.ring.unpack(self._body(message, boxes[0], panel))
        for place in range(1, HELPERS + 1):
            vector.add(self._added(self._seed(message, place, boxes[place], panel), panel))
        return vector

    def got(self, vector: Value | None) -> bool:
        """Whether the attacker holds the victim's exact vector."""
        return vector is not None and np.array_equal(vector, self.values[VICTIM])

    def _read(self, sender: int) -> messages.Report:
        context = self.panel.context(self.parameters, self.roster)
        return messages.decode(memoryview(self.reports[sender]), messages.Report, self.parameters, context)

    def _body(self, report: messages.Report, private: bytes, panel: Panel) -> bytes:
        out = bytearray(self.parameters.upload_bytes)
        open_into(out, self._seed(report, 0, private, panel), report.body)
        return bytes(out)

    def _seed(self, report: messages.Report, place: int, private: bytes, panel: Panel) -> bytes:
        box = rows(report.boxes, BOX_BYTES)[place]
        return xwing.open_box(xwing.private_of(private), box, self._info(panel, place))

    def _info(self, panel: Panel, place: int) -> bytes:
        return box_info(panel.context(self.parameters, self.roster), VICTIM, place)

    def _added(self, seed: bytes, panel: Panel) -> RingVector:
        cover = Streams(self.parameters.ring, HELPERS, panel.context(self.parameters, self.roster))
        packed = memoryview(bytearray(self.parameters.ring.wire_bytes))
        cover.answer([(VICTIM, seed)], packed)
        return self.parameters.ring.unpack(packed)


def two_lists(run: Uploads) -> Value | None:
    """Show two honest helpers different lists, which suffices where they hold the same seeds."""
    one, other = run.helpers
    run.show(one)
    run.show(other)
    return _difference(run, run.asked(one, EVERYBODY), run.asked(other, WITHOUT))


def second_answer(run: Uploads) -> Value | None:
    """The honest helper is asked about a second list."""
    honest, _ = run.helpers
    run.show(honest)
    return _with_the_others(run, run.asked(honest, EVERYBODY), run.asked(honest, WITHOUT))


def second_life(run: Uploads) -> Value | None:
    """The honest helper's keys, from a backup of its machine, are put into a second machine with another list."""
    honest, _ = run.helpers
    twin = run.help(1)
    for machine in (honest, twin):
        run.show(machine)
    return _with_the_others(run, run.asked(honest, EVERYBODY), run.asked(twin, WITHOUT))


def unpinned_panel(run: Uploads) -> Value | None:
    """The victim is shown well signed offers of helpers that the leader made up."""
    boxes = [run.rng.bytes(32) for _ in range(HELPERS + 1)]
    people = [run.members[0], *(Identity.generate(run.rng.bytes) for _ in range(HELPERS))]
    run_of = (run.parameters, run.roster)
    offers = [Offer.make(place, people[place], box, *run_of, until=UNTIL) for place, box in enumerate(boxes)]
    report = run.report(0, offers)
    panel = Panel(tuple(person.public for person in people), tuple(offers))
    return run.lifted(report, panel, boxes).lift()


def two_threads(run: Uploads) -> Value | None:
    """Two threads bring two lists to the honest helper at the same moment."""
    honest, _ = run.helpers
    run.show(honest)
    meeting, answers = Barrier(2, timeout=_PATIENCE), dict[tuple[int, ...], RingVector]()
    add_up = honest._scheme.answer

    def slowly(pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        held = list(pieces)
        with suppress(BrokenBarrierError):
            meeting.wait()
        add_up(held, out)

    honest._scheme.answer = slowly  # type: ignore[method-assign]

    def ask(listed: tuple[int, ...]) -> None:
        try:
            answers[listed] = run.asked(honest, listed)
        except (LocalProtocolError, RemoteProtocolError):
            meeting.abort()

    threads = [Thread(target=ask, args=(listed,)) for listed in (EVERYBODY, WITHOUT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _with_the_others(run, answers[EVERYBODY], answers[WITHOUT]) if len(answers) == len(threads) else None


LIES: Mapping[str, Callable[[Uploads], Value | None]] = {
    "two lists": two_lists,
    "second answer": second_answer,
    "second life": second_life,
    "unpinned panel": unpinned_panel,
    "two threads": two_threads,
}
"""Every lie, by name: what it believes to be the victim's vector."""


class SplitLies(Examination):
    """The rate at which a lying leader unmasks one client of the one upload's machines as shipped."""

    name = "split-lies"
    number = 14
    goal = "unmasking"
    title = "an attacker who leads one upload, with all helpers but one, lies to the rest to unmask a client"
    needs = Adversary(sees="transcript", knows="none", active=True)
    effort = 0.1

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan with a panel."""
        return None if plan.protocol == "split" else "lies to helpers, and this plan's protocol has none"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row per lie, in runs of six clients and two helpers; the cover promises that none ever succeeds."""
        del plan
        return never(self, LIES, lambda: Uploads(rng), trials, confidence)


def _difference(run: Uploads, more: RingVector, less: RingVector) -> Value:
    """The victim's body with the difference of two answers: its vector, if they differ by all of its streams."""
    vector = run.body()
    vector.add(more)
    vector.subtract(less)
    return np.asarray(vector.lift())


def _with_the_others(run: Uploads, more: RingVector, less: RingVector) -> Value:
    """Unmask with the streams of the helpers on the leader's side."""
    for place in range(2, HELPERS + 1):
        more.add(run.stream(place))
    return _difference(run, more, less)
