"""A small cohort with a panel, whose randomness is fixed, for the tests of this room."""

from dataclasses import dataclass, field
from hashlib import sha256

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from privstats.encoding import Ring, RingVector
from privstats.errors import RemoteProtocolError
from privstats.secagg import Identity, Roster, xwing
from privstats.secagg.body_cipher import open_into
from privstats.secagg.upload import messages
from privstats.secagg.upload.checks import rows, stated
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.helper_keys import HelperKeys
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.panel import Panel
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.signed_statements import batch_statement, box_info, proofs, roll_of, survivors_statement
from privstats.secagg.upload.suite import BOX_BYTES
from privstats.secagg.wire import to_bitmap
from tests.secagg.interactive.cohorts import PLAN, RING, stream

RUN = b"the first run 01"
UNTIL = 1 << 40  # of every box key here


@dataclass
class Uploads:
    """Clients, leader, helpers and plaintext of one run."""

    parameters: UploadParameters
    label: str = "uploads"
    run: bytes = RUN
    leader_class: type[Leader] = Leader
    helper_class: type[Helper] = Helper
    client_class: type[Client] = Client
    identities: list[Identity] = field(init=False)
    values: list[NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        n, h, rng = self.parameters.clients, self.parameters.helpers, np.random.default_rng(7)
        self.identities = [Identity.generate(stream(f"identity {i}")) for i in range(n)]
        self.members = [Identity.generate(stream(f"member {place}")) for place in range(h + 1)]
        self.roster = Roster(
            tuple(each.public for each in self.identities), server=self.members[0].public, run=self.run
        )
        self.privates = [stream(f"{self.label} box {place}")(32) for place in range(h + 1)]
        self.keys = [self.key(place) for place in range(h + 1)]
        self.panel = Panel(tuple(each.public for each in self.members), tuple(keys.offer for keys in self.keys))
        self.context = self.panel.context(self.parameters, self.roster)
        self.values = self.drawn(rng)
        self.clients = [self.client(index) for index in range(n)]
        self.leader = self.leader_class(self.parameters, keys=self.keys[0], roster=self.roster, panel=self.panel)
        self.helpers = [self.helper(keys) for keys in self.keys[1:]]

    def drawn(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """The clients' vectors."""
        return [rng.integers(-100, 100, self.parameters.ring.size) for _ in range(self.parameters.clients)]

    def key(self, place: int) -> HelperKeys:
        """Fresh keys; their randomness depends on the label and the place."""
        drawn = stream(f"{self.label} box {place}")
        return HelperKeys(self.members[place], place, self.parameters, self.roster, until=UNTIL, entropy=drawn)

    def helper(self, keys: HelperKeys) -> Helper:
        """A helper around these keys."""
        return self.helper_class(self.parameters, keys=keys, roster=self.roster, panel=self.panel)

    def client(self, index: int, values: NDArray[np.int64] | None = None, *, life: int = 0, **other) -> Client:
        """A fresh client; ``life`` tells a second one of the same index from the first."""
        vector = self.parameters.ring.encode(self.values[index] if values is None else values)
        place = {"index": index, "identity": self.identities[index], "roster": self.roster, "panel": self.panel}
        drawn = stream(f"{self.label} client {index} {life}")
        return self.client_class(self.parameters, vector, **{**place, "entropy": drawn, **other})

    def report(self, index: int) -> bytes:
        """The client's report."""
        ((_, data),) = self.clients[index].start()
        return data

    def peer(self, place: int) -> int:
        """The number of a helper among the peers."""
        return self.parameters.clients + place - 1

    def sum_over(self, survivors: tuple[int, ...]) -> NDArray[np.int64]:
        """The answer, computed without any cover."""
        return np.sum([self.values[i] for i in survivors], axis=0)

    def play_until(self, step: str, silent: tuple[int, ...] = ()) -> dict[int, bytes]:
        """Play honestly up to ``step``; what the leader asks the helpers there."""
        following = dict(self.leader.start())
        if step == "report":
            return following
        for index in sorted(set(range(self.parameters.clients)) - set(silent)):
            self.pass_on(self.leader.receive(index, self.report(index)))
        following = dict(self.leader.end_step())
        if step == "check":
            return following
        self.pass_on(self.leader.outbox)
        return dict(self.leader.end_step())

    def pass_on(self, outbox) -> None:
        """Bring messages to the helpers and their answers to the leader, until there are no more."""
        for peer, message in outbox:
            ((_, answer),) = self.helpers[peer - self.parameters.clients].receive(message)
            self.pass_on(self.leader.receive(peer, answer))

    def finish(self) -> tuple[NDArray[np.int64], tuple[int, ...]]:
        """Play honestly from where it stands to the end."""
        while self.leader.step not in ("done", "failed"):
            if self.leader.step != "report":
                self.pass_on(self.leader.outbox)
            self.leader.end_step()
        total, survivors = self.leader.result
        return total.lift(), survivors

    def boxes(self, report: bytes) -> list[bytes]:
        """The boxes of a report, lowest place first."""
        return rows(self._report(report).boxes, BOX_BYTES)

    def seed(self, sender: int, report: bytes, place: int) -> bytes:
        """What a member opens of a report: a helper its seed, the leader the key of the body."""
        return xwing.open_box(self.private(place), self.boxes(report)[place], box_info(self.context, sender, place))

    def body(self, sender: int, report: bytes) -> bytearray:
        """What the leader opens of a report."""
        out = bytearray(self.parameters.upload_bytes)
        open_into(out, self.seed(sender, report, 0), self._report(report).body)
        return out

    def private(self, place: int):
        """A member's private key."""
        return xwing.private_of(self.privates[place])

    def _report(self, data: bytes) -> messages.Wire:
        return self.read(data, messages.kinds_of(self.parameters).report)

    def read(self, data: bytes, kind: type) -> messages.Wire:
        """What a message says."""
        return messages.decode(memoryview(data), kind, self.parameters, self.context)


def parameters_of(
    clients: int = 6,
    min_survivors: int = 4,
    colluders: int = 1,
    helpers: int = 2,
    ring: Ring = RING,
    noisy_helpers: bool = False,
) -> UploadParameters:
    """The solved parameters of a cohort, without its keys and values."""
    return UploadParameters.solve(
        clients=clients,
        min_survivors=min_survivors,
        colluders=colluders,
        helpers=helpers,
        ring=ring,
        plan_digest=PLAN,
        noisy_helpers=noisy_helpers,
    )


def uploads_of(
    clients: int = 6, min_survivors: int = 4, colluders: int = 1, helpers: int = 2, label: str = "uploads", **other
) -> Uploads:
    """A cohort with solved parameters."""
    solved = {name: other.pop(name) for name in ("ring", "noisy_helpers") if name in other}
    return Uploads(parameters_of(clients, min_survivors, colluders, helpers, **solved), label, **other)


def batch_of(run: Uploads, place: int, senders: tuple[int, ...], *, part: int = 0, **change) -> bytes:
    """A batch of the leader's own making, well signed: these reports, with columns changed as it likes."""
    reports = [run.read(run.report(sender), messages.Report) for sender in senders]
    boxes = [rows(report.boxes, BOX_BYTES) for report in reports]
    batch = messages.Batch(
        run.context,
        part,
        senders,
        b"",
        b"".join(proofs(each)[place] for each in boxes),
        b"".join(each[place] for each in boxes),
        b"".join(report.signature for report in reports),
        bytes(64),
    )
    return signed_batch(run, place, msgspec.structs.replace(batch, **change))


def signed_batch(run: Uploads, place: int, batch: messages.Batch) -> bytes:
    """The batch under the leader's signature for one helper."""
    data = messages.encode(batch)
    digest = sha256(messages.signed_part(memoryview(data))).digest()
    return data[:-64] + run.members[0].sign(batch_statement(run.context, place, digest))


def list_of(run: Uploads, listed: tuple[int, ...], *, roll: bytes | None = None, signer=None) -> bytes:
    """A list of the leader's own making, well signed, with the roll of these clients' reports."""
    digests = []
    for sender in listed:
        report = run.read(run.report(sender), messages.kinds_of(run.parameters).report)
        digests.append((sender, sha256(stated(report, run.parameters)).digest()))
    roll = roll_of(digests) if roll is None else roll
    bitmap = to_bitmap(listed, run.parameters.clients)
    signature = (signer or run.members[0]).sign(survivors_statement(run.context, roll, bitmap))
    return messages.encode(messages.Survivors(run.context, bitmap, roll, signature))


def answer_of(run: Uploads, helper: Helper, message: bytes) -> RingVector:
    """The answer in a helper's reveal."""
    ((_, data),) = helper.receive(message)
    return run.parameters.ring.unpack(run.read(data, messages.Reveal).answer)


def streams_of(scheme, ring: Ring, pieces: list[tuple[int, bytes]]) -> RingVector:
    """The sum of these streams, as a helper adds them up."""
    packed = memoryview(bytearray(ring.wire_bytes))
    scheme.answer(pieces, packed)
    return ring.unpack(packed)


def body_of(run: Uploads, sender: int, report: bytes | None = None) -> RingVector:
    """What the leader opens of a report."""
    return run.parameters.ring.unpack(run.body(sender, report or run.report(sender)))


def refused(code: str):
    """The refusal of a message with this code."""
    return pytest.raises(RemoteProtocolError, match=rf": {code}\b")
