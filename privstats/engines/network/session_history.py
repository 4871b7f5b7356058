"""What the server's folder keeps beside its journal: the nodes' places, ended sessions, and signed statements.

Two small JSON files, and the statements about a session's end; none is secret, each is replaced whole. A session in
this history is never opened a second time. ``round_host`` writes them.

The map from nodes to parties (:class:`NodeRegistry`) is proved by signatures, which ``statements`` verifies. It decides
whom the loop asks; the sum does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from privstats.engines.network.statements import EndStatements
from privstats.errors import LocalProtocolError
from privstats.files.atomic import atomic_write, read_whole

__all__ = ["EndedSession", "KeptStatements", "NodeMap", "NodeRegistry", "SessionHistory"]

T = TypeVar("T")


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


class EndedSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that has ended.

    Attributes:
        session: its name, 32 hexadecimal digits.
        ended: the day, ISO 8601.
        survivors: the parties in the release; empty where there is none.
        release: SHA-256 of the release's file, in hex; empty where there is none.
        why: the reason why there is none.
        panel: the offers, in hex, for which reports of a run without a sum were sealed; empty where there were none.
    """

    session: str
    ended: str
    survivors: tuple[int, ...] = ()
    release: str = ""
    why: str = ""
    panel: tuple[str, ...] = ()

    def sentence(self, host: str) -> str:
        """A sentence about it, for example for an operator that runs it again."""
        if not self.release:
            return f"this session ended on {self.ended} without a sum: {self.why}"
        parties = ", ".join(map(str, self.survivors))
        return f"this session ended on {self.ended} with parties {parties}: {host}/release.safetensors"


class _Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str
    nodes: dict[str, int]


class SessionHistory:
    """The sessions of a folder that have ended: ``ended.json``."""

    def __init__(self, home: Path) -> None:
        self._path = home / "ended.json"

    def of(self, session: str) -> EndedSession | None:
        """A session's end; None where it has not ended.

        Raises:
            LocalProtocolError: the file is damaged.
        """
        return next((ended_session for ended_session in self.all() if ended_session.session == session), None)

    def all(self) -> tuple[EndedSession, ...]:
        """All ended sessions, oldest first; raises as :meth:`of` does."""
        return _read(self._path, tuple[EndedSession, ...]) if self._path.exists() else ()

    def add(self, ended_session: EndedSession) -> None:
        """Add one; on disk when this returns."""
        others = tuple(each for each in self.all() if each.session != ended_session.session)
        atomic_write(self._path, msgspec.json.format(msgspec.json.encode((*others, ended_session))))


class KeptStatements:
    """Signed statements about the end of a folder's session, which free clients that are in no sum: the file ``words``.

    Args:
        home: the folder.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "words"

    @property
    def proof(self) -> bytes:
        """``EndStatements``, encoded; empty while there are none, or one helper's is missing."""
        kept = self._kept()
        helpers = len(kept.offers) - 1
        complete = bool(kept.statements) and (not kept.offers or len(kept.statements) == helpers)
        return msgspec.msgpack.encode(kept) if complete else b""

    def add(self, statements: Mapping[int, bytes], offers: tuple[bytes, ...] = ()) -> None:
        """Add some; on disk when this returns."""
        if statements:
            kept = EndStatements({**self._kept().statements, **statements}, offers)
            atomic_write(self._path, msgspec.msgpack.encode(kept))

    def forget(self) -> None:
        """Remove those of an earlier session."""
        self._path.unlink(missing_ok=True)

    def _kept(self) -> EndStatements:
        """The kept statements; a damaged file counts as empty, because a lost proof must not stop a session."""
        if not self._path.exists():
            return EndStatements({})
        try:
            return msgspec.msgpack.decode(
                read_whole(self._path, LocalProtocolError, "privstats flower"), type=EndStatements
            )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return EndStatements({})


class NodeMap:
    """The nodes' places, of one session at a time: ``nodes.json``."""

    def __init__(self, home: Path, session: str) -> None:
        self._path, self._session = home / "nodes.json", session

    @property
    def session(self) -> str:
        """The file's session; empty where there is none, or it is damaged."""
        found = self._found()
        return "" if found is None else found.session

    def load(self) -> dict[int, int]:
        """From node to place; empty without a file of this session, and then the loop asks the nodes again."""
        found = self._found()
        if found is None or found.session != self._session:
            return {}
        return {int(node): place for node, place in found.nodes.items() if node.isdecimal()}

    def store(self, nodes: Mapping[int, int]) -> None:
        """Keep the map; on disk when this returns."""
        kept = _Nodes(self._session, {str(node): place for node, place in nodes.items()})
        atomic_write(self._path, msgspec.json.format(msgspec.json.encode(kept)))

    def _found(self) -> _Nodes | None:
        try:
            return _read(self._path, _Nodes)
        except LocalProtocolError:
            return None


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(read_whole(path, LocalProtocolError, "privstats flower"), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise LocalProtocolError(f"{path.name} is damaged: bring it back from where you keep copies") from None
