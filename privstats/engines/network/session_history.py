"""What the server's folder keeps beside its journal: which node is who, which sessions have ended, and who said what.

Two small JSON files, and what others signed of a session's end; not secret, replaced whole. A session that is known
here is never opened a second time. Under ``host``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from privstats.engines.network.statements import EndStatements
from privstats.errors import LocalProtocolError
from privstats.files.atomic import atomic_write, read_whole

__all__ = ["EndedSession", "KeptWords", "NodeMap", "SessionHistory"]

T = TypeVar("T")


class EndedSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that has ended.

    Attributes:
        session: its name in this folder.
        ended: the day, ISO 8601.
        survivors: the parties in the release; empty where there is none.
        release: SHA-256 of the release's file, in hex; empty where there is none.
        why: why there is none.
        panel: the offers, in hex, that reports of a run without a sum were sealed for; empty where there were none.
    """

    session: str
    ended: str
    survivors: tuple[int, ...] = ()
    release: str = ""
    why: str = ""
    panel: tuple[str, ...] = ()

    def sentence(self, host: str) -> str:
        """What is said of it, for example when somebody runs it again."""
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
        """What became of a session; None where it has not ended.

        Raises:
            LocalProtocolError: the file is damaged.
        """
        return next((ended_session for ended_session in self.all() if ended_session.session == session), None)

    def all(self) -> tuple[EndedSession, ...]:
        """All of them, oldest first; raises as :meth:`of` does."""
        return _read(self._path, tuple[EndedSession, ...]) if self._path.exists() else ()

    def add(self, ended_session: EndedSession) -> None:
        """Remember one more; on disk when this returns."""
        others = tuple(each for each in self.all() if each.session != ended_session.session)
        atomic_write(self._path, msgspec.json.format(msgspec.json.encode((*others, ended_session))))


class KeptWords:
    """What others signed of the end of a folder's session, which frees whoever is in no sum: the file ``words``.

    Args:
        home: the folder.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "words"

    @property
    def proof(self) -> bytes:
        """``EndStatements``, encoded; empty while there are none, or a helper's is missing."""
        words = self._words()
        helpers = len(words.offers) - 1
        complete = bool(words.statements) and (not words.offers or len(words.statements) == helpers)
        return msgspec.msgpack.encode(words) if complete else b""

    def add(self, statements: Mapping[int, bytes], offers: tuple[bytes, ...] = ()) -> None:
        """Keep more of them; on disk when this returns."""
        if statements:
            words = EndStatements({**self._words().statements, **statements}, offers)
            atomic_write(self._path, msgspec.msgpack.encode(words))

    def forget(self) -> None:
        """Remove what was said of a session that ended before this one."""
        self._path.unlink(missing_ok=True)

    def _words(self) -> EndStatements:
        """What is kept; damage counts as nothing said, because a proof that is lost must not stop a session."""
        if not self._path.exists():
            return EndStatements({})
        try:
            return msgspec.msgpack.decode(
                read_whole(self._path, LocalProtocolError, "privstats flower"), type=EndStatements
            )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return EndStatements({})


class NodeMap:
    """Which node is which party, of one session at a time: ``nodes.json``."""

    def __init__(self, home: Path, session: str) -> None:
        self._path, self._session = home / "nodes.json", session

    @property
    def session(self) -> str:
        """The session that the file is of; empty where there is none, or it is damaged."""
        found = self._found()
        return "" if found is None else found.session

    def load(self) -> dict[int, int]:
        """From node to place; empty where there is no such file of this session: it is made anew by asking."""
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
