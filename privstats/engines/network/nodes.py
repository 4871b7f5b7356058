"""Map nodes to parties, and decide when to repeat requests to nodes.

Signatures prove the map; the sum does not depend on it. Repeating a request is safe, because a machine repeats its
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import msgspec

from privstats.engines.network.status_file import read_json
from privstats.engines.network.transport import (
    ARRIVING,
    CODES,
    OK,
    SILENT,
    SOON,
    MessageKind,
    Reply,
    Transport,
    code_of,
    pulled,
)
from privstats.files.atomic import atomic_write

_POLL_SECONDS, _SLOWEST_SECONDS, _LEAST_SECONDS = 0.5, 2.0, 0.01
_QUIETER = 20.0  # delays the discovery of a reply by at most a twentieth of its time
_CARRIER = "error:"  # prefix of the carrier's own errors, which no party sent


@dataclass
class Request:
    """One request to one node.

    Attributes:
        again: the time to repeat it; None for never.
        code: of its last refusal; may be empty.
    """

    kind: MessageKind
    digest: bytes
    again: float | None
    messages: list[str] = field(default_factory=list)
    code: str = ""

    @property
    def final(self) -> bool:
        """Whether the node's refusal is final."""
        return self.again is None


class RequestQueue:
    """The requests of one step, one per node at a time.

    Args:
        until: the step's deadline, on that clock.
    """

    def __init__(self, transport: Transport, clock: Callable[[], float], until: float, most: int) -> None:
        self._transport, self._clock, self._until, self._most = transport, clock, until, most
        self._asked: dict[int, Request] = {}
        self.sent = self.received = 0
        self._heard = clock()

    def ask(self, node: int, kind: MessageKind, make: Callable[[], bytes]) -> None:
        """Send the result of ``make``, unless it is too early to repeat that request."""
        request, now = self._asked.get(node), self._clock()
        if request is not None and (request.again is None or now < request.again):
            return
        data = make()
        if request is None:
            request = self._asked[node] = Request(kind, sha256(data).digest(), None)
        request.again = now + SILENT
        name = self._transport.push(node, kind, data, ttl=max(1.0, self._until - now))
        self.sent += len(data)
        if name:
            request.messages.append(name)

    def replies(self) -> Iterator[tuple[int, Request, Reply]]:
        """Yield replies; the carrier's own errors are handled here."""
        waiting = {name: (node, request) for node, request in self._asked.items() for name in request.messages}
        for name, reply in pulled(self._transport, list(waiting), self._most):
            node, request = waiting[name]
            self._heard = self._clock()
            if reply.code == ARRIVING:
                if request.again is not None:
                    request.again = max(request.again, self._heard + SILENT)
                continue
            request.messages.remove(name)
            self.received += len(reply.data)
            if reply.code.startswith(_CARRIER):
                request.again = self._soon(request)
            elif self._asked.get(node) is request:
                if reply.code != OK:
                    self._note(request, reply.code)
                yield node, request, reply

    @property
    def pause(self) -> float:
        """Seconds until the next poll; grows while nothing arrives, at most to the deadline."""
        now = self._clock()
        quiet = min(max(_POLL_SECONDS, (now - self._heard) / _QUIETER), _SLOWEST_SECONDS)
        return min(quiet, max(self._until - now, _LEAST_SECONDS))

    def _soon(self, asked: Request) -> float | None:
        return None if asked.again is None else min(asked.again, self._clock() + SOON)

    def _note(self, asked: Request, code: str) -> None:
        asked.code = code_of(code)
        wait = CODES[asked.code].again
        asked.again = None if wait is None else self._clock() + wait

    def done(self, node: int) -> None:
        """Note the node's answer, so another request may be sent."""
        self._asked.pop(node, None)

    def later(self, node: int, seconds: float) -> None:
        """Repeat the request after some seconds."""
        self._asked[node].again = self._clock() + seconds

    def returns(self, node: int) -> None:
        """Repeat the request to a node that was offline."""
        request = self._asked.get(node)
        if request is not None and request.again is not None:
            request.again = self._clock()

    def never(self, node: int) -> None:
        """Send this node no more requests."""
        self._asked[node].again = None

    def refusal(self, node: int) -> str:
        """Return the node's last refusal code, or ""."""
        return self._asked[node].code if node in self._asked else ""

    def final(self, node: int) -> bool:
        """Return whether the node's refusal is final."""
        return node in self._asked and self._asked[node].final


class NodeRegistry:
    """Nodes and party indices, one to one.

    Args:
        publics: all public keys: the clients, then the helpers.
        nodes: the stored map, from node to index.
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
        """Return the index that the node has proved, if any."""
        return self._places.get(node)

    def node_of(self, place: int) -> int | None:
        """Return the node that has proved an index, if any."""
        return self._nodes.get(place)

    def claim(self, node: int, place: int) -> bool:
        """Assign a node the index that it has proved; False where another node has it."""
        if self._nodes.get(place, node) != node:
            return False
        if self._places.get(node) != place:
            self._nodes.pop(self._places.get(node, place), None)
            self._places[node], self._nodes[place] = place, node
            self._store(dict(self._places))
        return True

    def correct(self, node: int, place: int) -> None:
        """Assign a node the index of its own signature, instead of one that a mix-up on the way had proved."""
        holder = self._nodes.pop(place, None)
        if holder is not None:
            del self._places[holder]
        self.claim(node, place)

    def title(self, place: int) -> str:
        """Return a party's name in sentences: ``party 3``, ``helper 1``."""
        return f"party {place}" if place < self.clients else f"helper {place - self.clients + 1}"

    def listed(self, places: Sequence[int]) -> str:
        """Return indices with names: ``1 (Bonn), 3 (St. Mary)``."""
        return ", ".join(self._listed(place) for place in places)

    def _listed(self, place: int) -> str:
        if place >= self.clients:
            return self.title(place)
        return f"{place} ({self._names[place]})" if self._names else str(place)


class _Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str
    nodes: dict[str, int]


class NodeMap:
    """One session's indices by node: ``nodes.json``."""

    def __init__(self, home: Path, session: str) -> None:
        self._path, self._session = home / "nodes.json", session

    @property
    def session(self) -> str:
        """The file's session; empty if missing or damaged."""
        stored = read_json(self._path, _Nodes)
        return "" if stored is None else stored.session

    def load(self) -> dict[int, int]:
        """Return the index by node, if stored for this session."""
        stored = read_json(self._path, _Nodes)
        if stored is None or stored.session != self._session:
            return {}
        return {int(node): place for node, place in stored.nodes.items() if node.isdecimal()}

    def store(self, nodes: Mapping[int, int]) -> None:
        """Store the map; on disk when this returns."""
        entry = _Nodes(self._session, {str(node): place for node, place in nodes.items()})
        atomic_write(self._path, msgspec.json.format(msgspec.json.encode(entry)))
