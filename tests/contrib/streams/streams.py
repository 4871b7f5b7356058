"""Small streams, records that come and go, and parties with ledgers, for the tests of streams."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import MomentsDelta, RecordRegistry
from tests.course.cases import promise

D, C, CLIENTS = 4, 3, 5
CLASSES = ps.ClassSchema(C, D, "NAB", 1.0)
RIDGE = ps.RidgeSchema(D, clip_norm=1.0, target_bound=2.0)
COHORT = ps.Cohort(CLIENTS, 3, 5000)
SECRET = b"s" * 32
EXACT = ps.NoPrivacy()


def plan_of(schema: Any = CLASSES, privacy: Any = None, **changes: Any) -> ps.Plan:
    return ps.Plan(schema=schema, cohort=COHORT, privacy=privacy or promise(**changes))


def levels_of(stream: ps.Stream) -> np.ndarray:
    """The deviation of each entry of a node, in grid steps."""
    noise = stream.first.noise
    return np.concatenate([np.full(each.size, noise.grid_sigma(each)) for each in stream.first.layout.segments])


def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weakened double: a party that takes silence for proof."""

    def lose(book: RecordRegistry, node: int) -> None:
        with book._log.changing() as changes:
            changes.end(node, "returned")

    monkeypatch.setattr(RecordRegistry, "lose", lose)


def stream_of(epochs: int = 4, mechanism: Any = "increments", *, plan: ps.Plan | None = None, **kind: Any) -> ps.Stream:
    return ps.Stream(plan or plan_of(), epochs, mechanism, **kind)


def exact_stream(epochs: int, schema: Any = CLASSES) -> ps.Stream:
    return ps.Stream(plan_of(schema, EXACT), epochs, deletions=True, allow_disclosing_leavers=True)


class World:
    """Records by id, each with a client of its own, drawn anew from one seed."""

    def __init__(self, schema: Any = CLASSES, seed: int = 0) -> None:
        self.schema, self.rng = schema, np.random.default_rng(seed)
        self.rows: dict[str, tuple[Any, Any]] = {}
        self.inside: list[set[str]] = [set() for _ in range(CLIENTS)]

    def born(self, client: int, count: int) -> list[str]:
        """New records of a client."""
        names = [f"{client}-{len(self.rows) + place}" for place in range(count)]
        for name in names:
            y = self.rng.integers(0, C) if isinstance(self.schema, ps.ClassSchema) else self.rng.normal()
            self.rows[name] = (self.rng.normal(size=D), y)
        self.inside[client].update(names)
        return names

    def dead(self, client: int, count: int) -> list[str]:
        """Some records of a client that leave."""
        gone = sorted(self.inside[client])[:count]
        self.inside[client].difference_update(gone)
        return gone

    def measured(self, names: Any) -> ps.moments.Moments | None:
        """Their moments; None of none."""
        names = list(names)
        if not names:
            return None
        X, y = zip(*(self.rows[name] for name in names), strict=True)
        return ps.measure(self.schema, np.array(X), np.array(y))

    def change(self, entering: Any, leaving: Any = ()) -> MomentsDelta:
        if not entering and not leaving:
            return MomentsDelta.nothing(self.schema)
        return MomentsDelta.of(self.measured(entering), self.measured(leaving))

    def afresh(self) -> ps.moments.Moments | None:
        """All records that are in, measured at once."""
        return self.measured(name for client in self.inside for name in sorted(client))


def registry(folder: Path, stream: ps.Stream, name: str = "party", secret: bytes = SECRET) -> RecordRegistry:
    """A party's book, with a ledger of its own, made or opened again."""
    path = folder / f"{name}.db"
    ledger = ps.dp.Ledger.open(path) if path.exists() else ps.dp.Ledger.create(path)
    privacy = stream.plan.privacy
    if isinstance(privacy, ps.Privacy) and not ledger.accounts():
        cap = {"unit": privacy.unit, "adjacency": privacy.adjacency}
        ledger.set_cap("ward", **cap, epsilon=privacy.epsilon, delta=privacy.delta)  # type: ignore[arg-type]
    return RecordRegistry.open(stream, ledger, ps.course.spend(stream, ledger, "ward", b"may"), secret)
