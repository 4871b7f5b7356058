"""Sums of settled parts that other processes add up: the journal stores a part until a snapshot holds its sum.

Nothing of a sum is written before that: after a kill the parts since the last snapshot wait once more, with the same
reports, and their sums are made anew.
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
    """A journaled server's parts that other processes may add up."""

    @abstractmethod
    def _compact(self) -> None:
        """Write a snapshot."""

    @exclusive
    def defer(self, on: bool) -> None:
        """Leave the sums of parts that settle from now on to :meth:`add_part_sum`, or make them here; on the disk.

        Raises:
            LocalProtocolError: the server has no parts.
        """
        with self._acting():
            machine = self._parted()
            if machine.defers != on and self._server.step not in ENDS:
                machine.defers = on
                self._compact()

    @property
    def unsummed(self) -> Mapping[int, tuple[int, ...]]:
        """Settled parts without a sum yet, by number, with the senders of each."""
        return self._server.unsummed if isinstance(self._server, Deferring) else {}

    @exclusive
    def sealed(self, number: int, senders: Sequence[int]) -> Sequence[Any]:
        """Bodies of such a part as they arrived, read from the log, each with the key that opens it alone.

        Raises:
            LocalProtocolError: no such part waits; or the log has lost one, and then this object is unusable.
        """
        with self._acting():
            return self._parted().sealed(number, senders)

    @exclusive
    def add_part_sum(self, number: int, packed: bytes) -> bool:
        """Add a part's sum, once.

        Returns:
            Whether it was awaited.

        Raises:
            LocalProtocolError: it is no vector of the ring; nothing changes.
        """
        with self._acting():
            return self._parted().add_part_sum(number, packed)

    @exclusive
    def sum_part(self, number: int) -> None:
        """Add a part up here; raises as :meth:`sealed` does."""
        with self._acting():
            self._parted().sum_part(number)

    def _parted(self) -> Deferring:
        if not isinstance(self._server, Deferring):
            raise LocalProtocolError("this server adds messages up as they come: only a leader's parts can wait")
        return self._server


@runtime_checkable
class Deferring(Protocol):
    """An aggregator that may leave the sums of parts to others, and keeps their messages until each sum is in.

    ``unsummed`` are the parts that wait, by number, with their senders; ``sealed`` gives bodies of one as they arrived,
    each with the key that opens it alone. Sums come in any order; :meth:`sum_part` makes one here, and the end of the
    step all that are missing.
    """

    defers: bool

    @property
    def unsummed(self) -> Mapping[int, tuple[int, ...]]:
        """The senders of each part without a sum."""

    def sealed(self, number: int, senders: Sequence[int]) -> Sequence[Any]:
        """Bodies of a part that waits."""

    def add_part_sum(self, number: int, packed: bytes) -> bool:
        """Add a part's sum, once; whether it was awaited."""

    def sum_part(self, number: int) -> None:
        """Add a part up here."""
