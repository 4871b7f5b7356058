"""The folders of a course, and a network of them: what the tests of this room run."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from privstats.course import write
from privstats.dp import Ledger
from privstats.encoding import flatten
from privstats.schema.public_values import Published, Values
from privstats.secagg import Identity, Roster
from tests import made
from tests.course.cases import CLIENTS, SOFTMAX, rounds, shards
from tests.engines.network.fake import NAMES, RECORDS

DATASET = "ward"


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
    homes = [study.host, *(study.home(peer) for peer in range(len(study.identities)))]
    for home, identity in zip(homes, (server, *study.identities), strict=True):
        home.mkdir(parents=True)
        home.chmod(0o700)
        write(home / "course.toml", course)
        roster.save(home / "roster.toml")
        identity.save(home / "identity.pem")
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
    assert plan.published is not None
    values = dict(plan.published.read())
    weights = values["W"].real.copy()
    weights[0, 0] += 1e-3 * np.abs(weights).max()
    values["W"] = Values.rounded(weights)
    return replace(plan, published=Published.of(values, bytes.fromhex(plan.published.after)))
