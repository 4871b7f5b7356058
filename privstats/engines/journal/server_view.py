"""State and outputs of a journaled server's machine.

Each output is a decision in the journal before it is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256

import msgspec

from privstats import domains, session
from privstats.encoding import RingVector
from privstats.engines.journal.base import JournalBase
from privstats.engines.journal.server_files import HANDED_OUT, RELEASED, RELEASED_BY_SEED, SETTLED, ServerFiles
from privstats.errors import AggregationError, LocalProtocolError, PrivstatsError, ProtocolError, RemoteProtocolError
from privstats.plan import Plan
from privstats.randomness import Generator, bound_to
from privstats.release import Release
from privstats.secagg import Panel, Roster
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import ENDS, Aggregator, Masking, Opening
from privstats.session.accounting import CHARGED_BEFORE, Chargeable, Charging, LedgerCallback, charge_of


class ServerView(JournalBase):
    """The server machine's properties, and the outputs built from its sum."""

    _server: Aggregator
    _outputs: SessionOutputs
    _accepted: int
    _stood: str

    @contextmanager
    def _acting(self, refused: type[PrivstatsError] = ProtocolError) -> Iterator[None]:
        """Record the step even after an error, which ends the machine in memory but not on disk."""
        try:
            with super()._acting(refused):
                yield
        finally:
            if not self._gone:
                self._stood = self._server.step

    @property
    def parameters(self) -> Masking:
        """The run's public parameters."""
        return self._server.parameters

    @property
    def roster(self) -> Roster:
        """All parties' public identities."""
        return self._server.roster

    @property
    def panel(self) -> Panel | None:
        """Leader and helpers."""
        return getattr(self._server, "panel", None)

    @property
    def noise_due(self) -> bool:
        """See :attr:`Server.noise_due <privstats.secagg.Server.noise_due>`."""
        return self._server.noise_due

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps' names, in order."""
        return self._server.steps

    @property
    def step(self) -> str:
        """See :attr:`Server.step <privstats.secagg.Server.step>`; the step on disk where this object is unusable."""
        return self._stood if self._gone else self._server.step

    @property
    def is_over(self) -> bool:
        """Whether :attr:`step` is the end, with a result or without."""
        return self.step in ENDS

    @property
    def waiting_for(self) -> frozenset[int]:
        """Clients yet to answer this step."""
        return self._server.waiting_for

    def awaits(self, client: int) -> bool:
        """Return whether the client has yet to answer."""
        return self._server.awaits(client)

    @property
    def accepted(self) -> int:
        """Number of messages accepted since this object was made; each is on disk."""
        return self._accepted

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """See :attr:`Server.faults <privstats.secagg.Server.faults>`."""
        return self._server.faults

    @property
    def heard(self) -> dict[int, bytes]:
        """Last 64 bytes of each peer's last accepted message, for some protocols."""
        return dict(getattr(self._server, "heard", {}))

    @property
    def abandoned(self) -> dict[int, bytes]:
        """Helpers' signed abandonments by index, for ``session.free``."""
        return dict(getattr(self._server, "abandoned", {}))

    @property
    def statements(self) -> dict[int, bytes]:
        """Signed proof for clients that their upload is in no sum, for ``session.free``."""
        return dict(getattr(self._server, "agreement", None) or getattr(self._server, "statements", {}))

    @property
    def openings(self) -> Mapping[int, Opening]:
        """See :attr:`Server.openings <privstats.secagg.Server.openings>`; :meth:`release` subtracts them."""
        return self._server.openings

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """See :attr:`Server.result <privstats.secagg.Server.result>`; use :meth:`release` for a release.

        Raises:
            LocalProtocolError: there is no result; or the noise is central, and the sum was released, or returned
                before a restart.
        """
        return self._hand_out()

    @exclusive
    def _hand_out(self) -> tuple[RingVector, tuple[int, ...]]:
        with self._acting():
            return self._outputs.hand_out()

    @exclusive
    def release(self, plan: Plan, charge: Charging = None) -> Release:
        """Return the release of this session's sum: identical in every call, also after crashes.

        Args:
            charge: as for ``session.release``; charged once. May be omitted once a release under it has returned or
                aborted. The ledger records the release before it is returned, because a spend without one can be
                withdrawn.

        Raises:
            LocalProtocolError: there is no sum, or it belongs to another plan.
            AggregationError: as ``session.release``, which is charged too; repeated in every call.
            LedgerError, ReleaseError: as ``session.release``.
        """
        with self._acting(PrivstatsError):
            return self._outputs.release(plan, charge)


class SessionOutputs:
    """One session's exact sum and release."""

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
        """Return the release; see :meth:`JournaledServer.release`."""
        if not isinstance(plan, Plan) or plan.masking != self._server.parameters:
            raise LocalProtocolError("the journal holds a session of another plan: give the plan it was made under")
        self._refuse_second_sample(plan)
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
        # Called outside the handler: its error must not carry an abort that is not charged.
        self._settle(plan, account, self._name_of(plan, total, survivors))
        if isinstance(outcome, AggregationError):
            raise outcome
        return outcome

    def _summed(self) -> tuple[RingVector, tuple[int, ...]]:
        total, survivors = self._server.result
        known = not set(self._files.known_noise).isdisjoint(survivors)
        return replace(total, reproducible=True) if known else total, survivors

    def _refuse_second_sample(self, plan: Plan) -> None:
        """Refuse to sample noise again after a release by an older version."""
        # That version's noise differs, so two releases would reveal more than one.
        if self._by_seed and plan.noise is not None and plan.noise.trust.at_release:
            raise LocalProtocolError(
                "an older privstats made the release of this journal, and what this one draws would be a second one: "
                "keep the release that was made"
            )

    def _name_of(self, plan: Plan, total: RingVector, survivors: tuple[int, ...]) -> bytes:
        """Return a digest that identifies the one release of this sum, or its abort, to the ledger."""
        drawn = self._files.seed + msgspec.msgpack.encode((plan.digest, self._run, survivors)) + total.pack()
        return sha256(domains.JOURNAL_RELEASE + drawn).digest()

    def _settle(self, plan: Plan, account: Chargeable | None, name: bytes) -> None:
        """Record the release in the journal, then in the ledger; the reverse order could lose it in a crash.

        A crash between them leaves the spend withdrawable, so calls name the ledger until a third record marks that
        the ledger has the release.
        """
        if not self._released:
            self._files.append(RELEASED)
            self._released = True
        if account is not None:
            LedgerCallback(plan, account, self._run)(name)
        if not self._settled:
            self._files.append(SETTLED)
            self._settled = True

    @property
    def _run(self) -> bytes:
        return self._server.roster.run or sha256(domains.JOURNAL_RUN + self._files.seed).digest()


def noise_of(seed: bytes, plan: Plan, run: bytes, total: RingVector, survivors: tuple[int, ...]) -> Generator:
    """Return the generator of one release, determined by seed, plan, run, survivors and sum."""
    return bound_to(seed, domains.JOURNAL_NOISE, msgspec.msgpack.encode((plan.digest, run, survivors)), total.pack())
