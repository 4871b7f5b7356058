"""What a journaled server shows of its machine, and its outputs: the exact sum, or the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from privstats.encoding import RingVector
from privstats.engines.journal.base import JournalBase
from privstats.engines.journal.session_outputs import SessionOutputs
from privstats.errors import PrivstatsError, ProtocolError, RemoteProtocolError
from privstats.plan import Plan
from privstats.release import Release
from privstats.secagg import Panel, Roster
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import Aggregator, Masking
from privstats.secagg.noise_layers import Opening
from privstats.session.accounting import Charging

__all__ = ["ServerView"]


class ServerView(JournalBase):
    """The properties of a server's machine that its journal passes on, and what is made of its sum."""

    _server: Aggregator
    _outputs: SessionOutputs
    _accepted: int
    _stood: str

    @contextmanager
    def _acting(self, refused: type[PrivstatsError] = ProtocolError) -> Iterator[None]:
        """The same, and remember the step: a machine that an error ended in memory has not ended on the disk."""
        try:
            with super()._acting(refused):
                yield
        finally:
            if not self._gone:
                self._stood = self._server.step

    @property
    def parameters(self) -> Masking:
        """The public parameters that all parties agreed on."""
        return self._server.parameters

    @property
    def roster(self) -> Roster:
        """The public identities of all parties."""
        return self._server.roster

    @property
    def panel(self) -> Panel | None:
        """Leader and helpers of the run; None if its protocol has none."""
        return getattr(self._server, "panel", None)

    @property
    def noise_due(self) -> bool:
        """See :attr:`Server.noise_due <privstats.secagg.Server.noise_due>`."""
        return self._server.noise_due

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order."""
        return self._server.steps

    @property
    def step(self) -> str:
        """See :attr:`Server.step <privstats.secagg.Server.step>`; on the disk, where this object is unusable."""
        return self._stood if self._gone else self._server.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients whose answer to this step has not arrived."""
        return self._server.waiting_for

    def awaits(self, client: int) -> bool:
        """Whether the client's answer to this step is still to come."""
        return self._server.awaits(client)

    @property
    def accepted(self) -> int:
        """The number of messages accepted since this object was made; each is on disk."""
        return self._accepted

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """See :attr:`Server.faults <privstats.secagg.Server.faults>`."""
        return self._server.faults

    @property
    def heard(self) -> dict[int, bytes]:
        """The last 64 bytes of the last accepted message of each peer; empty where a protocol keeps none."""
        return dict(getattr(self._server, "heard", {}))

    @property
    def abandoned(self) -> dict[int, bytes]:
        """The signed statements of helpers that abandoned the run, by place, for ``session.free``."""
        return dict(getattr(self._server, "abandoned", {}))

    @property
    def statements(self) -> dict[int, bytes]:
        """Signed statements that prove to a client that its upload is in no sum, for ``session.free``.

        The helpers' statements on the run's end, by place; in the interactive protocol the clients' signed lists of
        survivors.
        """
        return dict(getattr(self._server, "agreement", None) or getattr(self._server, "statements", {}))

    @property
    def openings(self) -> Mapping[int, Opening]:
        """See :attr:`Server.openings <privstats.secagg.Server.openings>`; :meth:`release` subtracts what they open."""
        return self._server.openings

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """See :attr:`Server.result <privstats.secagg.Server.result>`; use :meth:`release` for a release.

        Raises:
            LocalProtocolError: there is no result; or the plan's noise is central, and the exact sum has been released,
                or was handed out before a restart.
        """
        return self._hand_out()

    @exclusive
    def _hand_out(self) -> tuple[RingVector, tuple[int, ...]]:
        with self._acting():
            return self._outputs.hand_out()

    @exclusive
    def release(self, plan: Plan, charge: Charging = None) -> Release:
        """The release of this session's sum: the same in every call, also after crashes.

        Args:
            plan: the plan of the session.
            charge: as for ``session.release``; it is charged once, under the run's name, and may be left out once a
                release under it has returned or aborted: a spend without a release in the ledger can be withdrawn, so
                nothing is returned before the ledger has recorded the release.

        Raises:
            LocalProtocolError: there is no sum, or it is not this plan's.
            AggregationError: as ``session.release``, which is charged too; the same in every call.
            LedgerError, ReleaseError: as ``session.release``.
        """
        with self._acting(PrivstatsError):
            return self._outputs.release(plan, charge)
