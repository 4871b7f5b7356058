"""Sums of settled parts by other processes: the journal stores a part until a snapshot holds its sum.

After a kill, parts since the last snapshot wait again and are summed anew.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from privstats.engines.journal.server_view import ServerView
from privstats.errors import LocalProtocolError
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import ENDS


class PartSums(ServerView):
    """A journaled server that other processes may sum parts for."""

    @abstractmethod
    def _compact(self) -> None:
        """Write a snapshot."""

    @exclusive
    def defer(self, on: bool) -> None:
        """Set whether later settled parts wait for :meth:`add_part_sum`; on disk when this returns."""
        with self._acting():
            machine = self._parted()
            if machine.defers != on and self._server.step not in ENDS:
                machine.defers = on
                self._compact()

    @property
    def unsummed(self) -> Mapping[int, tuple[int, ...]]:
        """Senders of each settled part without a sum, by part number."""
        return self._server.unsummed if isinstance(self._server, Deferring) else {}

    @exclusive
    def sealed(self, number: int, senders: Sequence[int]) -> Sequence[Any]:
        """Return bodies of an unsummed part as they arrived, each with the key that opens it alone.

        Raises:
            LocalProtocolError: no such part waits; or the log lost one, and this object is unusable.
        """
        with self._acting():
            return self._parted().sealed(number, senders)

    @exclusive
    def add_part_sum(self, number: int, packed: bytes) -> bool:
        """Add a part's sum, once, and return whether it was awaited; refuse a vector of another ring."""
        with self._acting():
            return self._parted().add_part_sum(number, packed)

    @exclusive
    def sum_part(self, number: int) -> None:
        """Sum a part here; raises as :meth:`sealed`."""
        with self._acting():
            self._parted().sum_part(number)

    def _parted(self) -> Deferring:
        if not isinstance(self._server, Deferring):
            raise LocalProtocolError("this server adds messages up as they come: only a leader's parts can wait")
        return self._server


@runtime_checkable
class Deferring(Protocol):
    """An aggregator that stores parts' messages until it receives their sums.

    Sums come in any order; the end of the step makes all missing ones.
    """

    defers: bool

    @property
    def unsummed(self) -> Mapping[int, tuple[int, ...]]:
        """See :attr:`PartSums.unsummed`."""

    def sealed(self, number: int, senders: Sequence[int]) -> Sequence[Any]:
        """See :meth:`PartSums.sealed`."""

    def add_part_sum(self, number: int, packed: bytes) -> bool:
        """See :meth:`PartSums.add_part_sum`."""

    def sum_part(self, number: int) -> None:
        """See :meth:`PartSums.sum_part`."""
