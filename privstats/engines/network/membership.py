"""The map from nodes to parties: proved by a signature, and kept over restarts.

``statements`` verifies the proofs. The map decides whom the loop asks; the sum does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

__all__ = ["NodeRegistry"]


class NodeRegistry:
    """Nodes and places, one to one.

    Args:
        publics: all public keys: the clients, then the helpers.
        clients: number of clients among them.
        names: the clients' names for people; may be empty.
        nodes: the kept map, from node to place.
        store: called with the map whenever it grows.
    """

    def __init__(
        self,
        publics: Sequence[bytes],
        clients: int,
        *,
        names: Sequence[str] = (),
        nodes: Mapping[int, int] | None = None,
        store: Callable[[Mapping[int, int]], None] = lambda _: None,
    ) -> None:
        self.publics, self.clients = tuple(publics), clients
        self._names, self._store = tuple(names), store
        self._places = dict(nodes or {})
        self._nodes = {place: node for node, place in self._places.items()}

    def place_of(self, node: int) -> int | None:
        """The node's place; None where it has proved none."""
        return self._places.get(node)

    def node_of(self, place: int) -> int | None:
        """The node at a place; None while no node has proved it."""
        return self._nodes.get(place)

    def claim(self, node: int, place: int) -> bool:
        """Assign ``node`` the place that it has proved, replacing an earlier one; False where another node has it."""
        if self._nodes.get(place, node) != node:
            return False
        if self._places.get(node) != place:
            self._nodes.pop(self._places.get(node, place), None)
            self._places[node], self._nodes[place] = place, node
            self._store(dict(self._places))
        return True

    def title(self, place: int) -> str:
        """A party's name in sentences: ``party 3``, ``helper 1``."""
        return f"party {place}" if place < self.clients else f"helper {place - self.clients + 1}"

    def listed(self, places: Sequence[int]) -> str:
        """Places with their names: ``1 (Bonn), 3 (St. Mary)``."""
        return ", ".join(self._listed(place) for place in places)

    def _listed(self, place: int) -> str:
        if place >= self.clients:
            return self.title(place)
        return f"{place} ({self._names[place]})" if self._names else str(place)
