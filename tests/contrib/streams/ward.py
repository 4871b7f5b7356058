"""The folders of a stream between machines, records that come and go, and all that is in: for the tests of streams."""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from privstats.contrib.streams import Stream
from privstats.contrib.streams.inbox import RecordInbox
from privstats.contrib.streams.party import registry_of
from privstats.course import write
from privstats.dp import Ledger
from privstats.encoding import flatten
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.round_host import Ended
from privstats.release import Release
from privstats.secagg import Identity, Roster
from tests import made
from tests.contrib.streams.streams import CLASSES
from tests.course.cases import CLIENTS, promise
from tests.engines.network.courses.study import CourseStudy
from tests.engines.network.fake import NAMES, FolderNet, write_folders

DATASET = "ward"
COHORT = ps.Cohort(CLIENTS, 3, 500)


def exact(epochs: int, **changes: Any) -> Stream:
    """A stream without noise, whose records may leave."""
    return Stream(plan_of(ps.NoPrivacy(), **changes), epochs, deletions=True, allow_disclosing_leavers=True)


def plan_of(privacy: Any = None, **changes: Any) -> ps.Plan:
    return made.plan(CLASSES, COHORT, privacy or promise(epsilon=20.0), **changes)


class Ward:
    """A study's folders, and what the parties bring to it."""

    def __init__(self, place: Path, course: Stream, helpers: int = 0, seed: int = 0) -> None:
        self.rng, self.inside = np.random.default_rng(seed), [dict[str, Any]() for _ in range(CLIENTS)]
        self.place, self.born = place, 0
        server = Identity.generate(os.urandom)
        people = tuple(Identity.generate(os.urandom) for _ in range(CLIENTS + helpers))
        if helpers:
            panel = tuple(each.public.hex() for each in (server, *people[CLIENTS:]))
            course = replace(course, plan=replace(course.plan, protocol="split", panel=panel))
        publics = [each.public for each in people[:CLIENTS]]
        roster = Roster.numbered(publics, server=server.public, label="wards", counter=0, names=NAMES)
        self.study = CourseStudy(place, course, roster, people, server, [])
        for home in write_folders(self.study, server, people):
            write(home / "course.toml", course)
            if course.first.noise is not None:
                made.ledger(home / "ledger", DATASET, epsilon=20.001)
        self.net = FolderNet(self.study)

    @property
    def stream(self) -> Stream:
        return self.study.course

    def bring(self, party: int, count: int = 4, leave: Collection[str] = (), *, register: bool = True) -> list[str]:
        """New records for a party, and some that leave."""
        ids = [f"{party}/{self.born + place}" for place in range(count)]
        self.born += count
        X, y = self.rng.normal(size=(count, 4)), self.rng.integers(0, 3, count)
        path = self.place / "batch.npz"
        np.savez(path, ids=np.array(ids, "U20"), X=X, y=y, leave=np.array(list(leave), "U20"))
        RecordInbox(self.study.home(party), self.stream).bring(path)
        if register:
            self.inside[party] |= dict(zip(ids, zip(X, y, strict=True), strict=True))
            for each in leave:
                del self.inside[party][each]
        return ids

    def bring_all(self, count: int = 4) -> None:
        """New records for everybody."""
        for party in range(CLIENTS):
            self.bring(party, count)

    def counts(self) -> list[int]:
        """How many records of each class are in."""
        labels = [int(y) for party in self.inside for _, y in party.values()]
        return [labels.count(each) for each in range(3)]

    def afresh(self, parties: Collection[int] = range(CLIENTS)) -> np.ndarray:
        """Everything that is in, measured now."""
        rows = [row for party in parties for row in self.inside[party].values()]
        if not rows:
            return np.zeros(CLASSES_SIZE, np.int64)
        X, y = zip(*rows, strict=True)
        return flatten(ps.measure(CLASSES, np.array(X), np.array(y)))

    def releases(self) -> list[Release | None]:
        return Host.open(self.study.host).folder.releases_so_far()

    def total(self) -> np.ndarray:
        return self.stream.total(self.releases()).vector

    def epoch(self, away: Collection[int] = ()) -> tuple[tuple[int, ...] | None, ...]:
        """Run an epoch without these parties: who is in the sum of each of its rounds."""
        self.net.goes = dict.fromkeys((100 + party for party in away), 0.0)
        before, found = len(self.releases()), self.net.run()
        assert isinstance(found, Ended), (found.sentence, self.net.lines, self.net.logs)
        self.net.goes = {}
        return tuple(each and each.survivors for each in found.releases[before:])

    def party(self, party: int) -> Party:
        return Party.open(self.study.home(party))

    def book(self, party: int) -> Any:
        return registry_of(self.party(party).folder)

    def account(self, party: int) -> Any:
        return Ledger.open(self.study.home(party) / "ledger").accounts()[0]


CLASSES_SIZE = flatten(ps.measure(CLASSES, np.zeros((1, 4)), np.zeros(1, int))).size
