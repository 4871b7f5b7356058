"""One epoch of a stream in a folder: records arrive, then every node of the epoch is summed through journals.

Called again after any kill it goes on where it stood: what is on the disk is not done twice, a node that was marked
and not journaled is withdrawn, and a release that was made is the same bytes. Over ``folder``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from privstats import session
from privstats.course import Pending, RecordRegistry, Releases, node_run
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.engines.network.streams.folder import RUN, Folder
from privstats.engines.network.streams.records import read_batch
from privstats.errors import AggregationError, DataError, LedgerError, PlanError, SessionEndedError
from privstats.plan import Plan
from privstats.randomness import secure
from privstats.release import Release
from privstats.secagg import Roster
from privstats.secagg.machines import ENDS, Aggregator, Peer
from privstats.secagg.protocols import protocol_of

__all__ = ["run_epoch"]


def run_epoch(folder: Folder, changes: Path) -> list[Release | None]:
    """Release the nodes of the next epoch, or of the one that was cut short.

    Args:
        folder: of the stream.
        changes: a folder with ``<party>.npz`` for every party that takes part; the others vanish in this epoch, and
            send with the next what they owe.

    Returns:
        What the nodes of the epoch came to; None for one that ended without a sum.

    Raises:
        PlanError: the stream has ended, or there is no such folder.
        DataError: records that do not fit; nothing of the epoch has begun then.
        LedgerError: a record enters twice, or leaves and is not in.
    """
    stream, done = folder.stream, folder.releases()
    if len(done) >= stream.most:
        raise PlanError(f"this stream has ended: all {stream.epochs} epochs are released")
    epoch = stream.nodes[len(done)].epoch
    present = _arrive(folder, epoch, changes)
    outcome: list[Release | None] = []
    while len(done) < stream.most and stream.nodes[len(done)].epoch == epoch:
        release = _Node(folder, len(done), tuple(done), present).run()
        folder.end(len(done), release)
        done.append(release)
        outcome.append(release)
    return outcome


def _arrive(folder: Folder, epoch: int, changes: Path) -> tuple[int, ...]:
    """Keep the epoch's records and note them in the holdings; both are done once."""
    if not changes.is_dir():
        raise PlanError(f"{changes} is not a folder with a file of records per party; name one")
    present = tuple(index for index in range(folder.clients) if (changes / f"{index}.npz").exists())
    for index in present:
        source, inbox = changes / f"{index}.npz", folder.inbox(index)
        batch, kept = read_batch(source), inbox.path(epoch)
        inbox.check(f"party {index}", batch, epoch)
        if not kept.exists():
            inbox.keep(source, epoch)
        elif read_batch(kept).ids != batch.ids or read_batch(kept).leave != batch.leave:
            raise DataError(f"party {index} has begun epoch {epoch} with other records; give the same file again")
    for index in present:
        folder.inbox(index).register(folder.registry(index))
    return present


class _Node:
    """One node's session among the parties that are present."""

    def __init__(self, folder: Folder, place: int, done: Releases, present: tuple[int, ...]) -> None:
        self._folder, self._place, self._done, self._present = folder, place, done, present
        self._plan: Plan = folder.stream.first
        self._journal = folder.nodes / f"{place}.journal"
        self._roster: Roster = folder.roster(node_run(RUN, place))

    def run(self) -> Release | None:
        self._journal.mkdir(exist_ok=True)
        begun = self._by_server and self._place in self._folder.server[1].begun
        if begun and not (self._journal / "server" / "snapshot").exists():
            return None  # its seed is gone, and another one would be a second draw
        with self._server() as server:
            if self._by_server and not begun:
                ledger, entry = self._folder.server
                ledger.mark_started(
                    entry, self._place, sums_only=True
                )  # after the seed is on the disk, before any sum is there
            release = self._summed(server)
        self._settle()
        return release

    @property
    def _by_server(self) -> bool:
        return self._plan.noise is not None and self._plan.noise.trust.drawn_by == "server"

    def _summed(self, server: JournaledServer) -> Release | None:
        clients = self._clients() if server.step not in ENDS else {}
        try:
            return self._released(server, clients)
        except AggregationError:
            return None
        finally:
            for client in clients.values():
                client.close()

    def _server(self) -> JournaledServer:
        identity = self._folder.identity("server")
        return JournaledServer.resume_or_create(
            self._journal / "server",
            self._folder.key(f"server {self._place}"),
            self._fresh_server,
            parameters=self._plan.masking,
            roster=self._roster,
            identity=identity,
        )

    def _fresh_server(self) -> Aggregator:
        """Of a correlated stream the sum is weighed before noise is due, and may be read again after a kill."""
        identity = self._folder.identity("server")
        if not self._folder.stream.row.correlated:
            return session.server(self._plan, self._roster, identity=identity)
        make = protocol_of(self._plan.masking).server
        return make(self._plan.masking, roster=self._roster, noise_due=False, identity=identity, entropy=secure().bytes)

    def _clients(self) -> dict[int, JournaledClient]:
        found = ((index, self._client(index)) for index in self._present)
        return {index: client for index, client in found if client is not None}

    def _client(self, index: int) -> JournaledClient | None:
        """The party's machine; None where a kill has taken its node from it, which is then withdrawn."""
        registry = self._folder.registry(index)
        pending = self._folder.inbox(index).pending(registry, self._place)
        charge = registry.charge(self._plan, self._done, pending)
        try:
            return JournaledClient.resume_or_create(
                self._journal / f"client-{index}",
                self._folder.key(f"client {index} {self._place}"),
                partial(self._fresh_client, index, registry, pending, charge),
                parameters=self._plan.masking,
                index=index,
                identity=self._folder.identity(str(index)),
                roster=self._roster,
                on_upload=session.on_upload(self._plan, self._roster, charge),
            )
        except (LedgerError, SessionEndedError):
            with suppress(LedgerError):
                registry.withdraw(self._place)
            return None

    def _fresh_client(self, index: int, registry: RecordRegistry, pending: Pending, charge: session.NodeCharge) -> Peer:
        delta = self._folder.inbox(index).change(registry, pending)
        identity = self._folder.identity(str(index))
        return session.client(self._plan, delta, index=index, identity=identity, roster=self._roster, charge=charge)

    def _released(self, server: JournaledServer, clients: Mapping[int, JournaledClient]) -> Release:
        while server.step not in ENDS:
            for index, message in server.outbox:
                if index in clients and server.awaits(index):
                    for _, answer in clients[index].receive(message):
                        server.receive(index, answer)
            server.end_step()
        if not self._folder.stream.row.correlated:
            return server.release(self._plan, "uncharged")  # the node is marked, and the journal draws once
        return self._folder.totals.weighed(server.result, self._done)

    def _settle(self) -> None:
        """The session is over: what never left may be sent with the next node, and its client never speaks.

        Of everybody: whoever was there before a kill need not be there after it.
        """
        for index in range(self._folder.clients):
            with suppress(LedgerError):
                self._folder.registry(index).withdraw(self._place)
