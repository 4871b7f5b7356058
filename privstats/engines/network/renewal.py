"""A study's next run: move the identity, ledger and records from the last run's folder into the next one's.

A ledger is never copied. The identity moves last, so the same command completes an interrupted move.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from privstats.engines.journal.client_file import ClientFile
from privstats.engines.network.folder_documents import (
    COURSES,
    FolderDocuments,
    check_modes,
    read_documents,
    session_name,
)
from privstats.engines.network.folder_status import HostStatus, status_of
from privstats.engines.network.measuring import SCRIPT
from privstats.errors import InUseError, LocalProtocolError, NothingToResumeError, PrivstatsError
from privstats.files.atomic import read_bounded
from privstats.printable.command_line import command_line
from privstats.secagg import Roster

_IDENTITY, _CARRIER, _KEY = "identity.pem", ".flower", "journal.key"
_STAYS = frozenset(
    [
        "plan.toml",
        "plan.values",
        *COURSES,
        "roster.toml",
        "journal.key",
        "moments",
        "checked-file",
        "sessions",
        "sessions.counts",
        "journal",
        "journal.counts",
        "nodes",
        "nodes.json",
        "status.json",
        "ended.json",
        "words",
        "release.safetensors",
    ]
)
"""The files of one run."""


@dataclass(frozen=True)
class Renewed:
    """The result of a renewal.

    Attributes:
        script_stays: whether the new folder's edited ``records.py`` stays.
    """

    moved: tuple[str, ...]
    script_stays: bool


def renew(old: Path, new: Path, *, untouched: bytes, unfinished: bool = False) -> Renewed:
    """Move everything that outlives a run.

    Args:
        old: the folder of an ended run, of any role.
        new: the owner's folder of the next run, as the coordinator sent it.
        untouched: an unedited ``records.py``, which is replaced.
        unfinished: move even if this party has not heard the end of the old session.

    Raises:
        InUseError: a process works in the old folder.
        LocalProtocolError: the run name or role does not fit; or the old session has not ended.
        PrivstatsError: both folders have a file, or one cannot be moved; moved files stay moved.
    """
    if not (old / _IDENTITY).exists():
        raise PrivstatsError(f"{old} has no {_IDENTITY}: it was renewed before, or is another folder")
    documents = FolderDocuments.read(old)
    check_modes(new)
    _, roster = read_documents(new)
    _check_next(documents, roster, new)
    _check_over(documents, unfinished)
    script_stays = _script_stays(old, new, untouched)
    names = [name for name in _moving(documents) if not (name == SCRIPT and script_stays)]
    both = [name for name in names if name != SCRIPT and (new / name).exists()]
    if both:
        raise PrivstatsError(f"{old} and {new} both have {', '.join(both)}: move away what is not meant")
    for name in names:
        _move(old / name, new / name)
    return Renewed(tuple(names), script_stays)


def _check_next(documents: FolderDocuments, roster: Roster, new: Path) -> None:
    if roster.run == documents.roster.run:
        raise LocalProtocolError(
            f"{new}/roster.toml has the run name of the old folder: make the next one with `privstats roster renew`"
        )
    mine, (course, _) = documents.identity.public, read_documents(new)
    panel = tuple(bytes.fromhex(key) for key in course.first.panel[1:])
    before = (mine == documents.roster.server, mine in documents.roster.publics)
    after = (mine == roster.server, mine in roster.publics)
    if before != after or (not any(after) and mine not in panel):
        raise LocalProtocolError(
            f"the identity of {documents.home} has no such place in {new}: ask the coordinator for the roster and plan "
            "that name your key"
        )


def _check_over(documents: FolderDocuments, unfinished: bool) -> None:
    """The old session may still need the identity."""
    status, home = status_of(documents.home), documents.home
    if status.held is not None:
        raise InUseError(f"{home} is used by process {status.held.process}: end serve, or join, first")
    if isinstance(status, HostStatus):
        if status.running:
            raise InUseError(f"{home} carries a session now: let it end first")
        if not status.over and any((documents.path(place) / "journal/snapshot").exists() for place in documents.rounds):
            raise LocalProtocolError(
                f"{home} has a session that has not ended: run it to its end, or end it by "
                f"{command_line('flower', 'give-up', home)}"
            )
    elif not (unfinished or status.over or _ended(documents)):
        raise LocalProtocolError(
            f"{home} has not heard the end of its session: wait for it, leave it by "
            f"`{command_line('flower', 'withdraw', home)}`, or pass --yes, and what it has uploaded stays spent"
        )


def _ended(documents: FolderDocuments) -> bool:
    homes = [(place, documents.path(place) / "sessions") for place in documents.rounds]
    for place, home in homes:
        roster = documents.session(place)
        path = home / session_name(documents.plan(place), roster)
        if (home / roster.digest.hex()).exists():
            return False  # a helper's; the server reports its end
        with suppress(NothingToResumeError):
            key = read_bounded(documents.home / _KEY, LocalProtocolError, "privstats flower")
            file = ClientFile(path, key)
            if path.exists() and (saved := file.read()).state and not file.is_expired(saved):
                return False
    return True


def _script_stays(old: Path, new: Path, untouched: bytes) -> bool:
    if not ((old / SCRIPT).exists() and (new / SCRIPT).exists()):
        return False
    text = read_bounded(new / SCRIPT, LocalProtocolError, "privstats flower new")
    return text != untouched


def _moving(documents: FolderDocuments) -> Iterator[str]:
    home, server = documents.home, documents.identity.public == documents.roster.server
    changing = documents.kind.changing
    stays = _STAYS.union(() if changing is None else changing.stays)
    for path in sorted(home.iterdir()):
        if path.name not in stays and path.name != _IDENTITY and not path.name.startswith("."):
            yield path.name
    if server and (home / _CARRIER).is_dir():
        yield _CARRIER  # where nodes stay registered
    yield _IDENTITY


def _move(source: Path, target: Path) -> None:
    try:
        if target.is_file():
            target.unlink()
        shutil.move(source, target)
    except OSError as error:
        raise PrivstatsError(f"cannot move {source} to {target}: {error.strerror}; say the same again") from None
