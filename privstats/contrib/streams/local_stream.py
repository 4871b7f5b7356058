"""A stream in a folder: every party and the server on one machine, durable through any kill.

For studies and tests: only the network is simulated.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from privstats.contrib.streams.inbox import read_batch
from privstats.contrib.streams.party import inbox_of, registry_of, waiting
from privstats.contrib.streams.stream import Stream
from privstats.course import write
from privstats.dp import Ledger, Privacy
from privstats.engines.carriers import COURSE, Deadlines, Folder, Host, LocalTransport
from privstats.errors import DataError, PlanError
from privstats.release import Release
from privstats.secagg import Identity, Roster

DATASET = "stream"
"""Name of the account in every ledger."""

_HOST, _EARLIER = "host", "stream.toml"
_RUN_BYTES = 16
_DEADLINES = Deadlines(120, 120)  # online parties answer at once, so no step waits


@dataclass
class _Clock:
    now: float = 0.0

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def new_stream(path: Path, stream: Stream) -> None:
    """Create the folders of all parties and of the server, each with its own keys, and charge each party's ledger.

    Raises:
        PlanError: the folder is not empty, or the plan's protocol needs a panel.
        LedgerError: a ledger cannot be created.
    """
    plan = stream.plan
    if plan.panel:
        raise PlanError("a stream in a folder is summed interactively; for a panel use `privstats stream init`")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise PlanError(f"{path} is not empty, or no folder; name a new folder")
    server, *people = (Identity.generate(os.urandom) for _ in range(plan.cohort.clients + 1))
    roster = Roster(tuple(each.public for each in people), server=server.public, run=os.urandom(_RUN_BYTES))
    for party, identity in enumerate(people):
        _write_folder(path / str(party), stream, identity, roster)
        registry_of(Folder.open(path / str(party)))
    _write_folder(path / _HOST, stream, server, roster)  # last: without it the folder does not count


def _write_folder(home: Path, stream: Stream, identity: Identity, roster: Roster) -> None:
    home.mkdir(mode=0o700, parents=True)
    identity.save(home / "identity.pem")
    roster.save(home / "roster.toml")
    ledger, privacy = Ledger.create(home / "ledger"), stream.plan.privacy
    if isinstance(privacy, Privacy):
        promised = {"epsilon": privacy.epsilon, "delta": privacy.delta}
        ledger.set_cap(DATASET, unit=privacy.unit, adjacency=privacy.adjacency, **promised)
    write(home / COURSE, stream)


def server_folder(path: Path) -> tuple[Folder, Stream]:
    """Return the server folder, and the stream."""
    if (path / _EARLIER).exists():
        raise PlanError(
            f"{path} was made by an earlier privstats, with one key for all parties: finish it with that version, or "
            "make a new folder with `privstats stream new`"
        )
    folder = Folder.open(path / _HOST if (path / _HOST).exists() else path)
    if not isinstance(folder.course, Stream):
        raise PlanError(f"{path} holds another course; show its releases with `privstats release show`")
    return folder, folder.course


def run_epoch(path: Path, changes: Path, away: Collection[int] = ()) -> list[Release | None]:
    """Release the rounds of the next epoch, or of an interrupted one.

    A release lists its parties. So a party without records also takes part: its empty change looks like any other.

    Args:
        path: from :func:`new_stream`.
        changes: a folder with ``<party>.npz`` for every party with entering or leaving records.
        away: parties with machines that are off; their changes join the next epoch.

    Returns:
        Outcomes of rounds ended here; None without a sum.

    Raises:
        PlanError: the stream has ended, no such folder exists, or ``away`` names no party.
        ReleaseError: an earlier release is missing or damaged; restore it.
        DataError, LedgerError: inadmissible records; no round of the epoch has begun then.
    """
    folder, stream = server_folder(path)
    host = Host.open(folder.home)
    begin = place = host.reached
    if begin >= stream.most:
        raise PlanError(f"this stream has ended: all {stream.epochs} epochs are released")
    for earlier in range(begin):
        folder.release(earlier)  # a missing one is noticed before this epoch begins
    epoch, everybody = stream.nodes[begin].epoch, range(stream.plan.cohort.clients)
    if unknown := sorted(set(away).difference(everybody)):
        raise PlanError(f"away names parties from 0 to {everybody[-1]}, got {unknown[0]}; omit it")
    _arrived(path, stream, epoch, changes)
    nodes = LocalTransport({party: path / str(party) for party in everybody if party not in away})
    clock = _Clock()
    while place < stream.most and stream.nodes[place].epoch == epoch:
        result = host.run(nodes, _DEADLINES, clock=clock.read, sleep=clock.sleep, say=lambda _: None)
        if result.waits:
            host.give_up()
        place = host.reached
    return [folder.release(each) for each in range(begin, place)]


def _arrived(path: Path, stream: Stream, epoch: int, changes: Path) -> None:
    if not changes.is_dir():
        raise PlanError(f"{changes} is not a folder with a file of records per party; name one")
    clients = stream.plan.cohort.clients
    bringing = [party for party in range(clients) if (changes / f"{party}.npz").exists()]
    strays = sorted(
        {each.name for each in changes.glob("*.npz")}.difference(f"{party}.npz" for party in range(clients))
    )
    if strays:  # a party counted from 1 would be summed without its records, in an epoch that never comes again
        raise DataError(
            f"{changes} holds {strays[0]}, of no party: parties are 0 to {clients - 1}, each with its own <party>.npz; "
            "rename that file, or move it away"
        )
    inboxes = {party: inbox_of(Folder.open(path / str(party))) for party in bringing}
    for party, box in inboxes.items():
        source, stored = changes / f"{party}.npz", box.path(epoch)
        batch = read_batch(source)
        if stored.exists():
            box.check(f"party {party}", batch, epoch)  # the batch is among those that wait
        else:
            box.check(f"party {party}", batch, epoch, partial(waiting, Folder.open(path / str(party))))
        if not stored.exists():
            box.keep(source, epoch)
        elif read_batch(stored).ids != batch.ids or read_batch(stored).leave != batch.leave:
            raise DataError(f"party {party} has begun epoch {epoch} with other records; pass the same file again")
    for party, box in inboxes.items():
        box.register(registry_of(Folder.open(path / str(party))))
