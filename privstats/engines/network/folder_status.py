"""A folder's state: run, round, step, missing parties, and where it resumes.

This module opens no journal, ledger or records, and changes nothing.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from privstats.engines.network.folder_documents import FolderDocuments, session_name
from privstats.engines.network.key_agreement import key_agreement
from privstats.engines.network.session_end import EndedSession, SessionHistory
from privstats.engines.network.status_file import (
    ASKED,
    OFFLINE,
    UNSEEN,
    ClosedStep,
    PartyStatus,
    ServerStatus,
    Supervision,
    read_status,
    supervision,
)
from privstats.engines.network.transport import CODES
from privstats.files.locks import is_locked

_CONNECT_SECONDS = 2.0
_DAY = 86_400.0
_WHY = {
    ASKED: "was asked and has not answered",
    OFFLINE: "is offline",
    UNSEEN: "has not connected since the session began",
}


@dataclass(frozen=True)
class HostStatus:
    """The state of the server's folder.

    Attributes:
        status: its loop's last state, of this roster.
        held: the process that runs ``serve``.
        ended: the ended rounds' sessions, in order.
    """

    documents: FolderDocuments
    status: ServerStatus | None
    held: Supervision | None
    running: bool
    ended: tuple[EndedSession, ...]

    @property
    def alive(self) -> bool:
        """Whether ``serve`` runs."""
        return self.held is not None

    @property
    def ready(self) -> bool:
        """Whether ``serve`` runs and accepts connections from parties."""
        return self.held is not None and _accepts(self.held.address)

    @property
    def over(self) -> bool:
        """Whether every round has ended."""
        return len(self.ended) == self.documents.course.most

    def facts(self) -> dict[str, Any]:
        """Return names and values, for JSON and for a table."""
        status = self.status or ServerStatus("", 0, 0, 0.0)
        return {
            "role": "server",
            **_documents(self.documents),
            "served": _held(self.held),
            **_tls(self.held),
            "session": self._session,
            "rounds_ended": len(self.ended),
            "rounds": self.documents.course.most,
            **({"step": status.step, "step_since": _time(status.since)} if status.step else {}),
            "answered": self._called(status.answered),
            "missing": [
                {"who": _called(self.documents, each.place), "why": _why(each.why), "since": _time(each.since)}
                for each in status.missing
            ],
            "steps": [self._closed(each) for each in status.closed],
            "bytes_received": status.received + sum(each.received for each in status.closed),
            "bytes_sent": status.sent + sum(each.sent for each in status.closed),
            "refusals": dict(status.refusals),
            "updated": _time(status.updated),
            "resumes": self._resumes(status),
        }

    @property
    def _session(self) -> str:
        if self.running:
            return "running"
        return "ended" if self.over else "not begun" if self.status is None else "stopped"

    def _called(self, places: Sequence[int]) -> list[str]:
        return [_called(self.documents, place) for place in places]

    def _closed(self, step: ClosedStep) -> dict[str, Any]:
        return {
            "round": step.place,
            "step": step.step,
            "answered": len(step.answered),
            "missing": self._called(step.missing),
            "seconds": round(step.seconds, 1),
            "bytes_received": step.received,
            "bytes_sent": step.sent,
        }

    def _resumes(self, status: ServerStatus) -> str:
        home, place = self.documents.home, len(self.ended)
        if self.over:
            name = self.documents.path(place - 1).relative_to(home.parent).as_posix()
            return f"{self.ended[-1].sentence(name)}. A new one needs a new run name: privstats flower renew"
        at = f"at step {status.step}" if status.step and status.place == place else "between two steps"
        if not (self.documents.path(place) / "journal" / "snapshot").exists():
            at = "at its beginning"
        where = at if self.documents.kind.single else f"in round {place}, {at}"
        if self.running:
            return f"it runs, {where}"
        study = home.parent.name
        return f'{where}: "flwr run {study}/app {study}" goes on from there'


@dataclass(frozen=True)
class HomeStatus:
    """The state of a party's or helper's folder.

    Attributes:
        status: at its last answer, under this roster.
        held: the process that runs ``join``.
    """

    documents: FolderDocuments
    status: PartyStatus | None
    held: Supervision | None

    @property
    def alive(self) -> bool:
        """Whether ``join`` runs."""
        return self.held is not None

    @property
    def ready(self) -> bool:
        """Whether ``join`` runs, its node is connected, and the identity has an index in the session."""
        return self.connected and self._place is not None

    @property
    def connected(self) -> bool:
        """Whether the server answered the node's last request, and the node worked in the last two minutes."""
        return self.held is not None and self.held.works(time.time())

    @property
    def over(self) -> bool:
        """Whether the server announced the session's end, or no part of it is on disk."""
        last = self.status
        ended = last is not None and (last.kind, last.code) == ("over", "ok")
        return ended or not any(path.exists() for place in self.documents.rounds for path in self._sessions(place))

    @property
    def _place(self) -> int | None:
        public, publics = self.documents.identity.public, self.documents.publics
        return publics.index(public) if public in publics else None

    def facts(self) -> dict[str, Any]:
        """Return names and values."""
        status, place = self.status or PartyStatus("", 0.0), self._place
        last = {} if not status.code else {"last_message": status.kind, "last_answer": _sentence(status.code)}
        helper = place is not None and place >= len(self.documents.roster)
        return {
            "role": "helper" if helper else "party",
            "place": "none: identity.pem is not on roster.toml" if place is None else _called(self.documents, place),
            **_documents(self.documents),
            "joined": _held(self.held),
            **_tls(self.held),
            "connected": self.connected,
            **_work(self.held),
            "round": max(status.place, 0),
            **({"step": status.step} if status.step else {}),
            **last,
            "answers": status.answers,
            "bytes_received": status.received,
            "bytes_sent": status.sent,
            "refusals": dict(status.refusals),
            "updated": _time(status.updated),
            "resumes": self._resumes(status),
        }

    def _resumes(self, status: PartyStatus) -> str:
        documents, place = self.documents, max(status.place, 0)
        if status.kind == "over" and status.code == "ok":
            return "nowhere: the server has declared this session over"
        if not any(path.exists() for path in self._sessions(place)):
            return "at the opening: nothing of this session is on the disk"
        after = f", after step {status.step}" if status.step else ""
        where = "" if documents.kind.single else f" in round {place}"
        return f"with the server's next message{where}{after}"

    def _sessions(self, place: int) -> Iterator[Path]:
        if place not in self.documents.rounds:
            return
        roster, home = self.documents.session(place), self.documents.path(place) / "sessions"
        yield home / session_name(self.documents.plan(place), roster)
        yield home / roster.digest.hex()


FolderStatus = HostStatus | HomeStatus


def status_of(home: str | os.PathLike[str]) -> FolderStatus:
    """Return a folder's state from its files; raises as :meth:`FolderDocuments.read`.

    Returns:
        The state with ``facts()`` for people, ``alive`` and ``ready``, by the folder's owner.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import simulated_study, status_of
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> status_of("study/host").facts()["session"], status_of("study/parties/0").alive
        ('not begun', False)
    """
    documents = FolderDocuments.read(home)
    if documents.identity.public != documents.roster.server:
        mine = read_status(documents.home, PartyStatus)
        return HomeStatus(documents, _of_run(mine, documents), supervision(documents.home, "joined"))
    ended = tuple(_ended(documents))
    place = min(len(ended), documents.course.most - 1)
    known = _of_run(read_status(documents.home, ServerStatus), documents)
    running = is_locked(documents.path(place) / "journal")
    return HostStatus(documents, known, supervision(documents.home, "served"), running, ended)


def _of_run(status: Any, documents: FolderDocuments) -> Any:
    return status if status is not None and status.run == documents.roster.run.hex() else None


def _ended(documents: FolderDocuments) -> Iterator[EndedSession]:
    for place in documents.rounds:
        name = session_name(documents.plan(place), documents.session(place))
        ended = SessionHistory(documents.path(place)).of(name)
        if ended is None:
            return
        yield ended


def _documents(documents: FolderDocuments) -> dict[str, str]:
    return {documents.noun: documents.digest, "run": documents.roster.run.hex()}


def _called(documents: FolderDocuments, place: int) -> str:
    clients = len(documents.roster)
    return documents.roster.called(place) if place < clients else f"helper {place - clients + 1}"


def _held(held: Supervision | None) -> str:
    return "no" if held is None else f"by process {held.process} since {_time(held.since)}, {held.address}"


def _work(held: Supervision | None) -> dict[str, str]:
    if held is None:
        return {}
    now = time.time()
    word = "connected_since" if held.works(now) else "offline_since"
    return {word: _time(held.stands_since(now)), "last_work": _time(held.worked) or "none"}


def _tls(held: Supervision | None) -> dict[str, Any]:
    agreed = {"tls_key_agreement": str(key_agreement())}
    if held is None or not held.certificate_ends:
        return agreed
    days = (held.certificate_ends - time.time()) // _DAY
    return {**agreed, "certificate_ends": _time(held.certificate_ends), "certificate_days_left": int(days)}


def _why(why: str) -> str:
    return _WHY[why] if why in _WHY else _sentence(why)


def _sentence(code: str) -> str:
    return f"{code}: {CODES[code].sentence.format(plan='')}".rstrip() if code in CODES else code


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host.strip("[]"))  # noqa: S104 - to be reached
    try:
        with socket.create_connection((here, int(port)), _CONNECT_SECONDS):
            return True
    except OSError:
        return False
