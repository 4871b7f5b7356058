"""State of a journaled server's machine, and its outputs: the exact sum, or the release.

Each output is a decision in the journal before it is returned. The noise of a release comes from the journal's seed,
bound to the sum that it hides: a copy of a journal that ends in another sum draws other noise, so the difference of the
two releases is not the difference of the sums. ``contrib.streams.stream`` binds the correlated noise of a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256

import msgspec

from privstats import session
from privstats.encoding import RingVector
from privstats.engines.journal.base import JournalBase
from privstats.engines.journal.server_files import HANDED_OUT, RELEASED, RELEASED_BY_SEED, SETTLED, ServerFiles
from privstats.errors import AggregationError, LocalProtocolError, PrivstatsError, ProtocolError, RemoteProtocolError
from privstats.plan import Plan
from privstats.randomness import Generator, bound_to
from privstats.release import Release
from privstats.secagg import Panel, Roster
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import Aggregator, Masking, Opening
from privstats.session.accounting import CHARGED_BEFORE, Account, Charging, LedgerCallback, charge_of

_LABEL = b"privstats/journal/noise/2"  # /1 was the seed itself, not bound to the sum


class ServerView(JournalBase):
    """The properties of a server's machine that its journal passes on, and what is made of its sum."""

    _server: Aggregator
    _outputs: SessionOutputs
    _accepted: int
    _stood: str

    @contextmanager
    def _acting(self, refused: type[PrivstatsError] = ProtocolError) -> Iterator[None]:
        """Run the machine under the journal's checks, and remember the step: a machine that an error ended in memory
        has not ended on the disk."""
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
        """Clients without an answer to this step yet."""
        return self._server.waiting_for

    def awaits(self, client: int) -> bool:
        """Return whether the client's answer to this step is still to come."""
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
        """Return the release of this session's sum: the same in every call, also after crashes.

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


class SessionOutputs:
    """The exact sum and the release of one session.

    Args:
        server: the server that holds the sum.
        files: its journal.
    """

    def __init__(self, server: Aggregator, files: ServerFiles) -> None:
        self._server, self._files = server, files
        self._handed_out = self._released = False  # handed out before a restart; released at any time
        self._by_seed = False  # released by a version with noise that did not depend on the sum
        self._settled = False  # the ledger has recorded the release, or the caller named no ledger

    def repeat(self, decision: int) -> None:
        """Restore a decision from the journal."""
        if decision == HANDED_OUT:
            self._handed_out = True
        elif decision in (RELEASED, RELEASED_BY_SEED):
            self._released, self._by_seed = True, decision == RELEASED_BY_SEED
        elif decision == SETTLED:
            self._settled = True

    def hand_out(self) -> tuple[RingVector, tuple[int, ...]]:
        """Return the exact sum; raises as :attr:`JournaledServer.result`."""
        result = self._summed()
        if self._server.noise_due:
            if self._handed_out or self._released:
                raise LocalProtocolError(
                    "the exact sum was handed out before and is not handed out again, because noise drawn for it "
                    "anew would average the noise away: release gives the same release every time"
                )
            self._files.append(HANDED_OUT)
        return result

    def release(self, plan: Plan, charge: Charging) -> Release:
        """Return the release; see :meth:`JournaledServer.release`, also for the errors."""
        if not isinstance(plan, Plan) or plan.masking != self._server.parameters:
            raise LocalProtocolError("the journal holds a session of another plan: give the plan it was made under")
        self._refuse_second_draw(plan)
        total, survivors = self._summed()
        account = charge_of(plan, CHARGED_BEFORE if self._settled and charge is None else charge)
        if account is not None and not self._released:
            account.spend(plan, self._run)
        outcome: Release | AggregationError
        try:
            rng = noise_of(self._files.seed, plan, self._run, total, survivors)
            outcome = session.release(plan, total, survivors, rng, CHARGED_BEFORE, openings=self._server.openings)
        except AggregationError as abort:  # it depends on the sum, so it counts as a release
            outcome = abort
        self._settle(plan, account)  # outside the handler: its error must not carry an abort that is not charged
        if isinstance(outcome, AggregationError):
            raise outcome
        return outcome

    def _summed(self) -> tuple[RingVector, tuple[int, ...]]:
        """Return the sum and its survivors; the sum is marked where a survivor's noise is known."""
        total, survivors = self._server.result
        known = not set(self._files.known_noise).isdisjoint(survivors)
        return replace(total, reproducible=True) if known else total, survivors

    def _refuse_second_draw(self, plan: Plan) -> None:
        """Refuse a release that an older privstats made: this version would draw other noise."""
        if self._by_seed and plan.noise is not None and plan.noise.trust.at_release:
            raise LocalProtocolError(
                "an older privstats made the release of this journal, and what this one draws would be a second one: "
                "keep the release that was made"
            )

    def _settle(self, plan: Plan, account: Account | None) -> None:
        """Record the release in the journal, then in the ledger; in the reverse order a crash would lose the release.

        Between the two records the spend can still be withdrawn. So a third record marks that the ledger has the
        release, and until that is on disk every call must name the ledger, which refuses a withdrawn spend.
        """
        if not self._released:
            self._files.append(RELEASED)
            self._released = True
        if account is not None:
            LedgerCallback(plan, account, self._run)(b"")
        if not self._settled:
            self._files.append(SETTLED)
            self._settled = True

    @property
    def _run(self) -> bytes:
        """The run's name; for a run without one, a name of this journal's own."""
        return self._server.roster.run or sha256(b"privstats/journal/run" + self._files.seed).digest()


def noise_of(seed: bytes, plan: Plan, run: bytes, total: RingVector, survivors: tuple[int, ...]) -> Generator:
    """Return the generator of one release: the same for the same sum, run and clients, and unrelated for any others."""
    return bound_to(seed, _LABEL, msgspec.msgpack.encode((plan.digest, run, survivors)), total.pack())
