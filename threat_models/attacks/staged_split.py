"""One upload staged for an attack: the library's own machines, under the control of a leader with one colluding helper.

The lies in ``split`` drive it message by message; in tests doubles replace the real client, helper and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from privstats.encoding import Ring, RingVector
from privstats.randomness import Generator
from privstats.secagg import Helper, HelperKeys, Identity, Leader, Offer, Panel, Roster, UploadParameters, hpke
from privstats.secagg.upload import messages
from privstats.secagg.upload.checks import rows
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.masking_scheme import Streams
from privstats.secagg.upload.signed_statements import box_info, report_statement, roll_of, survivors_statement
from privstats.secagg.upload.signed_statements import boxes_root as root_of
from privstats.secagg.wire import to_bitmap

__all__ = ["EVERYBODY", "UNTIL", "VICTIM", "WITHOUT", "Uploads", "Value"]

VICTIM = 0
UNTIL = 1 << 40  # no box key ends while an attack runs
CLIENTS, MIN_SURVIVORS, COLLUDERS, HELPERS = 6, 4, 1, 2
EVERYBODY = tuple(range(CLIENTS))
WITHOUT = tuple(client for client in EVERYBODY if client != VICTIM)
_RING = Ring(((4, 20), (4, 40)))
Value = NDArray[np.int64]


def _pinned(run: Uploads, offers: Sequence[Offer]) -> Panel:
    """As our clients do: the identities are the plan's, for any sender of the offers."""
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
    parameters: UploadParameters = field(
        default_factory=lambda: UploadParameters.solve(
            clients=CLIENTS,
            min_survivors=MIN_SURVIVORS,
            colluders=COLLUDERS,
            helpers=HELPERS,
            ring=_RING,
            plan_digest=bytes(32),
        )
    )

    def __post_init__(self) -> None:
        n, size = self.parameters.clients, self.parameters.ring.size
        self.identities = [Identity.generate(self.rng.bytes) for _ in range(n)]
        self.members = [Identity.generate(self.rng.bytes) for _ in range(HELPERS + 1)]
        publics = tuple(identity.public for identity in self.identities)
        self.roster = Roster(publics, server=self.members[0].public, run=self.rng.bytes(16))
        self.values = [(self.rng.uint64(size) % np.uint64(1000)).astype(np.int64) - 500 for _ in range(n)]
        self.boxes = [self.rng.bytes(32) for _ in self.members]
        made = [self.key(place, member, self.boxes[place]) for place, member in enumerate(self.members)]
        self.held = made
        self.panel = _pinned(self, [each.offer for each in made])
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
            report, enc = self._read(sender), bytes(self._read(sender).body[: hpke.ENC_BYTES])
            root = root_of(rows(report.boxes, messages.BOX_BYTES))
            digests.append((sender, sha256(report_statement(context, sender, enc, root)).digest()))
        roll, bitmap = roll_of(digests), to_bitmap(listed, self.parameters.clients)
        signature = self.members[0].sign(survivors_statement(context, roll, bitmap))
        return messages.encode(messages.Survivors(context, bitmap, roll, signature))

    def asked(self, helper: Helper, listed: Sequence[int]) -> RingVector:
        """A helper's answer over a list."""
        ((_, answer),) = helper.receive(self.list_of(listed))
        context = self.panel.context(self.parameters, self.roster)
        told = messages.decode(memoryview(answer), messages.Reveal, self.parameters, context)
        return self.parameters.ring.unpack(told.answer)

    def body(self) -> RingVector:
        """The part of the victim's report that the leader can open."""
        return self.parameters.ring.unpack(self._opened(self._read(VICTIM).body, 0, self.boxes[0], self.panel))

    def stream(self, place: int) -> RingVector:
        """The victim's stream at a helper that is the leader's own."""
        box = rows(self._read(VICTIM).boxes, messages.BOX_BYTES)[place - 1]
        return self._added(self._opened(box, place, self.boxes[place], self.panel), self.panel)

    def lifted(self, report: bytes, panel: Panel, boxes: Sequence[bytes]) -> RingVector:
        """A report under a panel whose box keys are all the attacker's."""
        context = panel.context(self.parameters, self.roster)
        message = messages.decode(memoryview(report), messages.Report, self.parameters, context)
        vector = self.parameters.ring.unpack(self._opened(message.body, 0, boxes[0], panel))
        for place, box in enumerate(rows(message.boxes, messages.BOX_BYTES), start=1):
            vector.add(self._added(self._opened(box, place, boxes[place], panel), panel))
        return vector

    def got(self, vector: Value | None) -> bool:
        """Whether the attacker holds the victim's exact vector."""
        return vector is not None and np.array_equal(vector, self.values[VICTIM])

    def _read(self, sender: int) -> messages.Report:
        context = self.panel.context(self.parameters, self.roster)
        return messages.decode(memoryview(self.reports[sender]), messages.Report, self.parameters, context)

    def _opened(self, box: bytes | memoryview, place: int, private: bytes, panel: Panel) -> bytes:
        info = box_info(panel.context(self.parameters, self.roster), VICTIM, place)
        return hpke.open_box(X25519PrivateKey.from_private_bytes(private), box, info)

    def _added(self, seed: bytes, panel: Panel) -> RingVector:
        cover = Streams(self.parameters.ring, HELPERS, panel.context(self.parameters, self.roster))
        packed = memoryview(bytearray(self.parameters.ring.wire_bytes))
        cover.answer([(VICTIM, seed)], packed)
        return self.parameters.ring.unpack(packed)
