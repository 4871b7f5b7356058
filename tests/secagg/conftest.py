"""A small cohort whose randomness is fixed, so that every failure can be replayed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from privstats.encoding import Ring
from privstats.secagg import Client, Identity, Parameters, Roster, Server

PLAN = hashlib.sha256(b"the plan of the tests").digest()
RING = Ring(((3, 12), (5, 20), (7, 40)))


def stream(label: str) -> Callable[[int], bytes]:
    """Entropy that depends on nothing but a label and on how often it was asked."""
    asked = 0

    def entropy(size: int) -> bytes:
        nonlocal asked
        asked += 1
        return hashlib.shake_256(f"{label}/{asked}".encode()).digest(size)

    return entropy


@dataclass
class Cohort:
    """Clients, server and plaintext of one session."""

    parameters: Parameters
    label: str = "cohort"
    identities: list[Identity] = field(init=False)
    values: list[NDArray[np.int64]] = field(init=False)
    roster: Roster = field(init=False)
    clients: list[Client] = field(init=False)
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        n, rng = self.parameters.clients, np.random.default_rng(7)
        self.identities = [Identity.generate(stream(f"identity {i}")) for i in range(n)]
        self.roster = Roster(tuple(identity.public for identity in self.identities))
        self.values = [rng.integers(-100, 100, self.parameters.ring.size) for _ in range(n)]
        self.clients = [self.client(i) for i in range(n)]
        self.server = Server(self.parameters, roster=self.roster, entropy=stream(f"{self.label} server"))

    def client(self, index: int, *, parameters: Parameters | None = None, roster: Roster | None = None) -> Client:
        """A fresh client; its randomness depends on the cohort's label and its index."""
        vector = self.parameters.ring.encode(self.values[index])
        return Client(
            parameters or self.parameters,
            vector,
            index=index,
            identity=self.identities[index],
            roster=roster or self.roster,
            entropy=stream(f"{self.label} client {index}"),
        )

    def sum_over(self, survivors: tuple[int, ...]) -> NDArray[np.int64]:
        """The answer, computed without any masks."""
        return np.sum([self.values[i] for i in survivors], axis=0)


def cohort_of(clients: int = 6, min_survivors: int = 4, colluders: int = 1, label: str = "cohort", **solve) -> Cohort:
    """A cohort with solved parameters."""
    ring = solve.pop("ring", RING)
    parameters = Parameters.solve(
        clients=clients, min_survivors=min_survivors, colluders=colluders, ring=ring, plan_digest=PLAN, **solve
    )
    return Cohort(parameters, label)


@pytest.fixture
def cohort() -> Cohort:
    """Six clients, of whom four must survive and one may collude."""
    return cohort_of()
