"""The charge of a stream's node: its mark and the records in its vector, written together by the party's registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privstats.dp import Spend
from privstats.errors import LedgerError
from privstats.ledger.registry_fold import Send
from privstats.moments import Moments, MomentsDelta
from privstats.plan import Plan
from privstats.session.charges import RoundCharge

if TYPE_CHECKING:
    from privstats.course.record_registry import RecordRegistry

__all__ = ["RegistryCharge"]


@dataclass(frozen=True)
class RegistryCharge(RoundCharge):
    """A node's mark and the records in its vector, in one transaction; made by :meth:`RecordRegistry.charge`.

    Attributes:
        registry, sends: the party's registry, and the records to send.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> stream, ledger = ps.Stream(plan, epochs=4), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
        >>> registry = ps.course.RecordRegistry.open(stream, ledger, entry, secret=os.urandom(32))
        >>> registry.enter(["patient 17"])
        >>> charge = registry.charge(stream.first, [], registry.pending(node=0, ids=["patient 17"]))
        >>> charge.place, len(charge.sends)
        (0, 1)
    """

    registry: RecordRegistry
    sends: tuple[Send, ...]

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments whose numbers of records differ from those of the charge.

        Raises:
            LedgerError: they differ; nothing is recorded then.
        """
        leaving = sum(send.leaves for send in self.sends)
        entering = len(self.sends) - leaving
        if not isinstance(moments, MomentsDelta) or (moments.entered, moments.left) != (entering, leaving):
            raise LedgerError(
                f"these are not the moments of the {len(self.sends)} {self.registry.unit}s that go with node "
                f"{self.place}: give what the registry's delta makes of measuring them"
            )

    def spend(self, plan: Plan, run: bytes) -> Spend:  # noqa: ARG002  a node has no name but its place
        """Mark the node and its records, once.

        Raises:
            LedgerError: the node has begun before, or a record was sent meanwhile; nothing may be drawn or sent then.
        """
        self._check(plan)
        self.registry._take(self.place, self.sends)
        return self.entry

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:  # noqa: ARG002
        """Record that the vector is sent: from here on its records count as sent.

        Raises:
            LedgerError: the node was withdrawn, or another vector of it was sent.
        """
        self._check(plan)
        self.registry._leave(self.place, upload)
