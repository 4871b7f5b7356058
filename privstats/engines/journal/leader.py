"""The journal of a leader's box key, until the run's journal holds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, TypeAlias

from privstats.engines.journal.base import (
    ServerPlace,
    created_directory,
    require_callable,
    require_panel,
    require_threads,
)
from privstats.engines.journal.panel_member import EARLIER, HpkeKey, PanelMember
from privstats.engines.journal.rollback import Counter, server_outside
from privstats.engines.journal.server import JournaledServer
from privstats.engines.records import read_sealed, write_sealed
from privstats.errors import LocalProtocolError, SessionEndedError
from privstats.secagg import HelperKeys, Identity, Offer, Panel, Roster, UploadParameters, end_of
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import Aggregator

LeaderState: TypeAlias = Literal["offered", "bound", "leading"]

_SERVER, _PANEL, _END = "server", "panel", "end"
_EXPIRED = "is over: its box key has ended before the run was led; name another run"
_LEADER = 0
_LED = 2  # events once a journal of the run holds the box key; binding is the first, see ``panel_member``


class JournaledLeader(PanelMember):
    """A leader's membership in the panel of one run, which can be killed at any moment.

    :meth:`lead` moves the box key into the run's journal, ``server`` in the run's subdirectory, and destroys it here.

    Guarantee: one run has one box key of this leader, however often the process is killed: its offer to helpers and
    clients stays valid, and no report sealed to it is lost with a process.

    Example:
        >>> from privstats.engines.journal import JournaledLeader
        >>> leader, helper, *people = (ps.secagg.Identity.generate(os.urandom) for _ in range(5))
        >>> panel = {"protocol": "split", "panel": [leader.public.hex(), helper.public.hex()]}
        >>> privacy, cohort = ps.NoPrivacy(), ps.Cohort(3, 3, 9)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=cohort, privacy=privacy, **panel)
        >>> roster = ps.secagg.Roster([each.public for each in people], server=leader.public, run=os.urandom(16))
        >>> run = {"identity": leader, "parameters": plan.masking, "roster": roster}
        >>> JournaledLeader.offer("leader", os.urandom(32), **run).offered.place
        0
    """

    _LASTS, _ROLE = (_SERVER, _END), "leader"
    _restored = False

    @classmethod
    def offer(
        cls,
        home: str | os.PathLike[str],
        key: bytes,
        *,
        identity: Identity,
        parameters: UploadParameters,
        roster: Roster,
        until: int | None = None,
    ) -> JournaledLeader:
        """Make a fresh box key for one run, on disk before :attr:`offered` can be sent.

        Args:
            identity: the signing key that the plan's panel names first.
            key, parameters, roster: as for :meth:`privstats.engines.journal.JournaledHelper.offer`.
            until: second since 1970 at which the box key ends; default 30 days from now.

        Raises:
            LocalProtocolError: the run is known or in use; or bad input.
        """
        end = end_of(until)
        with cls._offering(home, key, identity, parameters, roster) as offering:
            offering._box_key = HpkeKey.make(offering._path, key, _LEADER, end)
        return offering

    @classmethod
    def resume(
        cls,
        home: str | os.PathLike[str],
        key: bytes,
        *,
        identity: Identity,
        parameters: UploadParameters,
        roster: Roster,
        restored: bool = False,
    ) -> JournaledLeader:
        """Return the leader at its last state.

        Args:
            home, key, identity, parameters, roster: as for :meth:`offer`.
            restored: the operator confirms that no other copy has led this run since: two servers with one box key may
                end in two sums.

        Raises:
            NothingToResumeError: this run was never offered here.
            RestoredError: the home was restored or copied after binding; after leading, :meth:`lead` raises it.
            SessionEndedError: the box key ended before the run was led, or is an earlier version's, and is destroyed.
            LocalProtocolError: bad input, damage, or in use.
        """
        with cls._resuming(home, key, identity, parameters, roster) as leader, leader._acting():
            if leader._leading:
                HpkeKey.destroy(leader._path)  # the process died after the journal of the run had it
            else:
                leader._box_key = leader._open_key()
                if restored:
                    leader._vouch(leader._box_key)
                leader._require_newest()
            leader._restored = restored
        return leader

    def _open_key(self) -> HpkeKey:
        """Return the box key; destroy one that has ended, after a mark that the run gets no second one."""
        mark = self._path / _END
        if not mark.exists():
            box_key = HpkeKey.read(self._path, self._key)
            if box_key.require_open():
                return box_key
            write_sealed(mark, self._key, (EARLIER if box_key.earlier else _EXPIRED).encode())
        HpkeKey.destroy(self._path)
        raise SessionEndedError(f"the run at {self._path} {read_sealed(mark, self._key).decode()}")

    @property
    def _leading(self) -> bool:
        """The run's journal holds the key once its snapshot exists, which is written atomically."""
        return (self._path / _SERVER / "snapshot").exists()

    @property
    def state(self) -> LeaderState:
        """``"offered"``, ``"bound"`` to a panel, or ``"leading"``."""
        if self._box_key is None:
            return "leading"
        return "offered" if self._box_key.panel is None else "bound"

    @property
    def offered(self) -> Offer:
        """The signed offer of this run's box key: identical bytes every time, until the run is led."""
        if self._box_key is None:
            raise LocalProtocolError(f"the run at {self._path} is led already: its panel is in its journal")
        return self._box_key.offer(self._identity, self.parameters, self.roster)

    @exclusive
    def lead(self, panel: Panel, make: Callable[[HelperKeys], Aggregator], *, threads: int = 1) -> JournaledServer:
        """Bind the key to a panel, for good, and return the run's existing or new journal.

        Args:
            panel: leader and helpers, by the identities that the plan names.
            make: makes the machine of the keys: ``lambda keys: session.server(plan, roster, keys=keys, panel=panel)``.
                Called again only if a kill preceded saving the machine.

        Raises:
            LocalProtocolError: another panel than before, or the arguments do not fit.
        """
        require_panel(panel)
        require_callable("make", make)
        require_threads(threads)
        with self._acting():
            self._bind(panel)
            server = self._opened(lambda: make(self._keys()), threads)
            try:
                self._counter.keep(_LED)
                HpkeKey.destroy(self._path)
            except BaseException:
                server.close()
                raise
            self._box_key = None
            return server

    def _opened(self, make: Callable[[], Aggregator], threads: int) -> JournaledServer:
        """Open the server's journal."""
        # The counter is outside the leader's home, so that backups do not contain it.
        directory, run = created_directory(self._path / _SERVER), self._path
        place = ServerPlace(self.parameters, self.roster, self._identity, threads)
        outside = server_outside(self.parameters, self.roster)
        counter = Counter.of(directory, f"{run.name}.{_SERVER}", beside=run.parent, outside=outside)
        return JournaledServer.opened(directory, self._key, make, place, counter, restored=self._restored)

    def _bind(self, panel: Panel) -> None:
        """Bind the box key to a panel, once."""
        # The panel's digest stays for checks after the key has moved.
        panel.context(self.parameters, self.roster)
        if self._box_key is not None:
            panel.require_open()
            self._box_key = self._box_key.bound(panel, self.offered)
            self._counter.keep(self._happened)
            write_sealed(self._path / _PANEL, self._key, panel.digest)
        elif read_sealed(self._path / _PANEL, self._key) != panel.digest:
            raise LocalProtocolError(f"the run at {self._path} is led for another panel: it serves one, once")

    def _keys(self) -> HelperKeys:
        if self._box_key is None:
            raise LocalProtocolError(f"the journal of the run at {self._path} is gone, and the box key with it")
        return self._box_key.keys(self._identity, self.parameters, self.roster)
