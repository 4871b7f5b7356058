"""The graph of neighbours that exchange masks: complete, or a random k-regular Harary graph.

A permutation puts the clients on a circle, and the k nearest are neighbours. Another permutation selects the committee
that signs the one survivor list. The roster's digest alone seeds both, so each client computes them. Neither a plan nor
a course is in the seed: in a course the server writes what earlier rounds released, and would search for the graph of
the next round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.interactive.random_graph import committee_size
from privstats.secagg.prg import keystream
from privstats.secagg.roster import Roster, require_roster
from privstats.secagg.wire import labelled


@dataclass(frozen=True)
class Graph:
    """The neighbours of every client, in increasing order.

    Raises:
        LocalProtocolError: the roster does not fit the parameters.
    """

    parameters: Parameters
    roster: Roster

    def __post_init__(self) -> None:
        self.parameters.check_roster(require_roster(self.roster))

    @cached_property
    def place(self) -> bytes:
        """Digests of parameters and roster, 64 bytes, to which saved states are bound."""
        return self.parameters.digest + self.roster.digest

    def neighbours(self, client: int) -> tuple[int, ...]:
        """Return a client's neighbours."""
        if self.parameters.complete:
            return tuple(other for other in range(self.parameters.clients) if other != client)
        return tuple(int(other) for other in self._table[client])

    def point(self, owner: int, holder: int) -> int:
        """Return the Shamir point, 1 to 255, of a share: the holder's position among the owner's neighbours."""
        if self.parameters.complete:
            return holder + 1 if holder < owner else holder
        return int(np.searchsorted(self._table[owner], holder)) + 1

    def min_degree(self, members: frozenset[int]) -> int:
        """Return the smallest degree within ``members``."""
        if self.parameters.complete:
            return len(members) - 1
        present = np.zeros(self.parameters.clients, bool)
        present[list(members)] = True
        return int(present[self._table].sum(axis=1)[present].min())

    @property
    def committee(self) -> frozenset[int]:
        """The clients whose signatures on a survivor list count: all, or the first of a public permutation.

        It follows from the roster alone. If it followed from a session's transcript, a server could compute
        two transcripts and show each to the committee of its own (docs/proofs/random_graph.md, 8).
        """
        return _committee(labelled("committee", self.roster.digest), self.parameters.clients)

    @cached_property
    def _table(self) -> NDArray[np.int32]:
        return _harary(labelled("graph", self.roster.digest), self.parameters.clients, self.parameters.neighbours)


@lru_cache(maxsize=4)
def _committee(seed: bytes, clients: int) -> frozenset[int]:
    size = committee_size(clients)
    return frozenset(_permutation(seed, clients)[:size].tolist() if size < clients else range(size))


@lru_cache(maxsize=4)
def _harary(seed: bytes, clients: int, neighbours: int) -> NDArray[np.int32]:
    """Return neighbours by client, ``(clients, neighbours)``."""
    order = _permutation(seed, clients)  # by position on the circle
    half = neighbours // 2
    offsets = np.concatenate([np.arange(-half, 0), np.arange(1, half + 1)])
    table = np.empty((clients, neighbours), np.int32)
    table[order] = np.sort(order[(np.arange(clients)[:, None] + offsets) % clients], axis=1)
    table.setflags(write=False)
    return table


def _permutation(seed: bytes, clients: int) -> NDArray[np.int64]:
    """Return the clients in order of ``clients`` uint64 of the seed's keystream."""
    return np.argsort(np.frombuffer(keystream(seed, 0, 0, 8 * clients), "<u8"), kind="stable")
