"""The folders of a course, and a network of them: what the tests of this room run."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import write
from privstats.dp import Ledger
from privstats.encoding import flatten
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.round_transport import OutgoingAnnouncement
from privstats.engines.network.statements import Envelope, RoundAnnouncement, SignedAnnouncement
from privstats.schema.public_values import Published, Values
from privstats.secagg import Identity, Roster
from tests import made
from tests.course.cases import CLIENTS, SOFTMAX, rounds, shards
from tests.engines.network.fake import NAMES, RECORDS, write_folders

DATASET = "ward"


def silence(patch: pytest.MonkeyPatch) -> None:
    """Have all noise be zeros."""
    for name in ("draw_share", "draw_central"):
        patch.setattr(f"privstats.dp.{name}", lambda noise, layout, rng: np.zeros(layout.slices[-1].stop, np.int64))


@dataclass
class CourseStudy:
    """The folders of one course: a host's, one per party, one per helper."""

    place: Path
    course: Any
    roster: Roster
    identities: tuple[Identity, ...]
    server: Identity
    shards: list[tuple[np.ndarray, np.ndarray]]

    @property
    def peers(self) -> tuple[Identity, ...]:
        """Clients, then helpers."""
        return self.identities

    @property
    def host(self) -> Path:
        return self.place / "study" / "host"

    def home(self, peer: int) -> Path:
        return self.place / "study" / f"party {peer}"

    def exact(self, plan: ps.Plan, survivors: Any) -> np.ndarray:
        """The sum over the survivors' records at the plan's own published values, without any protocol or noise."""
        parts = [ps.measure(plan.schema, *self.shards[peer], published=plan.published) for peer in survivors]
        return np.sum([flatten(part) for part in parts], axis=0)

    def account(self, peer: int) -> Any:
        return Ledger.open(self.home(peer) / "ledger").account(DATASET)


def course_study(place: Path, course: Any = None, helpers: int = 0, schema: Any = SOFTMAX) -> CourseStudy:
    """Keys, course, roster and all folders, with records and an account in those of the parties."""
    server = Identity.generate(os.urandom)
    size = CLIENTS if course is None else course.first.cohort.clients
    clients = tuple(Identity.generate(os.urandom) for _ in range(size))
    panel = tuple(Identity.generate(os.urandom) for _ in range(helpers))
    if panel:
        keys = tuple(each.public.hex() for each in (server, *panel))
        course = rounds(schema, model="distributed", protocol="split", panel=keys)
    course = course or rounds(schema, model="distributed")
    publics = [each.public for each in clients]
    roster = Roster.numbered(publics, server=server.public, label="courses", counter=0, names=(*NAMES, *"FGHIJ")[:size])
    study = CourseStudy(place, course, roster, (*clients, *panel), server, shards(schema, size))
    for home in write_folders(study, server, study.identities):
        write(home / "course.toml", course)
    for peer in range(size):
        give_records(study, peer)
    return study


def give_records(study: CourseStudy, peer: int) -> None:
    X, y = study.shards[peer]
    (study.home(peer) / "records.py").write_text(RECORDS)
    np.savez(study.home(peer) / "records.npz", X=X, y=y)
    if isinstance(study.course.first.privacy, ps.Privacy):
        open_account(study.home(peer), study.course.first.privacy.unit)


def open_account(home: Path, unit: Any = "record") -> None:
    Ledger.create(home / "ledger").set_cap(DATASET, **made.cap(4.001, unit=unit))


def another_weight(plan: ps.Plan) -> ps.Plan:
    """The plan at a W of the server's choice, one entry away from the one that follows."""
    values = dict(plan.published.read())
    weights = values["W"].real.copy()
    weights[0, 0] += 1e-3 * np.abs(weights).max()
    values["W"] = Values.rounded(weights)
    return replace(plan, published=Published.of(values, bytes.fromhex(plan.published.after)))


class Desk:
    """One party of a course that is under way, and the server's words to it."""

    def __init__(self, study: CourseStudy) -> None:
        self.study = study
        self.lines: list[str] = []
        self.home = self.study.home(0)

    @property
    def host(self) -> Host:
        return Host.open(self.study.host)

    def outgoing(self, node: int, /, **changes: Any) -> OutgoingAnnouncement:
        """What the server says of a round whose plan lies in its folder."""
        outgoing = self.host._announcing(self.host.folder.round(node))
        said = {name: getattr(outgoing.announcement, name) for name in RoundAnnouncement.__struct_fields__}
        return replace(outgoing, announcement=RoundAnnouncement(**{**said, **changes}))

    def ask(
        self, signed: SignedAnnouncement | None, place: int = 0, kind: str = "hello", data: bytes | None = None
    ) -> str:
        """The code that the party answers."""
        header = self.host.folder.round(place).header.encode() if data is None else data
        envelope = Envelope(place, kind, header, signed)  # type: ignore[arg-type]
        return self.tell("round", envelope.encode())

    def tell(self, kind: str, data: bytes) -> str:
        return Party.open(self.home, self.lines.append).answer(kind, data).code
