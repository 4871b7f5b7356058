"""The outputs of a journaled session: its exact sum, or one release of it, and the record in the ledger.

Each output is a decision in the journal before it is returned. The server's journal, which holds the lock, calls this.

The noise of a release comes from the journal's seed, bound to the sum that it hides: a copy of a journal that ends in
another sum draws other noise, so the difference of the two releases is not the difference of the sums.
``course.weighing`` binds the correlated noise of a stream.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from privstats import session
from privstats.encoding import RingVector
from privstats.engines.journal.server_files import HANDED_OUT, RELEASED, RELEASED_BY_SEED, SETTLED, ServerFiles
from privstats.errors import AggregationError, LocalProtocolError
from privstats.plan import Plan
from privstats.randomness import Generator, bound_to
from privstats.release import Release
from privstats.secagg.machines import Aggregator
from privstats.session.accounting import CHARGED_BEFORE, Account, Charging, charge_of, on_upload, spend

__all__ = ["SessionOutputs", "noise_of"]

_LABEL = b"privstats/journal/noise/2"  # /1 was the seed itself, not bound to the sum


class SessionOutputs:
    """The exact sum and the release of one session.

    Args:
        server: the server that holds the sum.
        files: its journal.
    """

    def __init__(self, server: Aggregator, files: ServerFiles) -> None:
        self._server, self._files = server, files
        self._handed_out = self._released = False  # handed out before a restart; released at any time
        self._by_seed = False  # released by a version whose noise did not depend on the sum
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
        """The exact sum; raises as :attr:`JournaledServer.result`."""
        result = self._server.result
        if self._server.noise_due:
            if self._handed_out or self._released:
                raise LocalProtocolError(
                    "the exact sum was handed out before and is not handed out again, because noise drawn for it "
                    "anew would average the noise away: release gives the same release every time"
                )
            self._files.append(HANDED_OUT)
        return result

    def release(self, plan: Plan, charge: Charging) -> Release:
        """The release; see :meth:`JournaledServer.release`, also for the errors."""
        if not isinstance(plan, Plan) or plan.masking != self._server.parameters:
            raise LocalProtocolError("the journal holds a session of another plan: give the plan it was made under")
        self._refuse_second_draw(plan)
        total, survivors = self._server.result
        account = charge_of(plan, CHARGED_BEFORE if self._settled and charge is None else charge)
        if account is not None and not self._released:
            spend(plan, account, self._run)
        made: Release | AggregationError
        try:
            rng = noise_of(self._files.seed, plan, self._run, total, survivors)
            made = session.release(plan, total, survivors, rng, CHARGED_BEFORE, openings=self._server.openings)
        except AggregationError as abort:  # it depends on the sum, so it counts as a release
            made = abort
        self._settle(plan, account)  # outside the handler: its error must not carry an abort that is not charged
        if isinstance(made, AggregationError):
            raise made
        return made

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
            on_upload(plan, account, self._run)(b"")
        if not self._settled:
            self._files.append(SETTLED)
            self._settled = True

    @property
    def _run(self) -> bytes:
        """The run's name; for a run without one, a name of this journal's own."""
        return self._server.roster.run or sha256(b"privstats/journal/run" + self._files.seed).digest()


def noise_of(seed: bytes, plan: Plan, run: bytes, total: RingVector, survivors: tuple[int, ...]) -> Generator:
    """The generator of one release: the same for the same sum, run and clients, and unrelated for any others."""
    return bound_to(seed, _LABEL, msgspec.msgpack.encode((plan.digest, run, survivors)), total.pack())
