"""What one party has brought to a stream, batch by batch, and what of it a node carries.

Files under the party's folder and its book of them; who is charged for a node is ``RecordRegistry``'s, and no bytes
move here. Under ``parts``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from privstats.course import Pending, RecordRegistry, Stream
from privstats.course.record_registry import LONGEST_ID
from privstats.dp import Privacy
from privstats.engines.network.streams.records import Batch, picked, read_batch
from privstats.errors import DataError, PrivstatsError
from privstats.files.atomic import atomic_write, write_new
from privstats.moments import MomentsDelta, measure

__all__ = ["RecordInbox"]

_RECORDS = "records"


@dataclass(frozen=True)
class RecordInbox:
    """One party's batches, ``records/<number>.npz`` in the order in which they came; each is read once.

    Args:
        home: the party's folder.
        stream: what they are brought to.
    """

    home: Path
    stream: Stream
    _read: dict[int, Batch] = field(default_factory=dict, init=False, repr=False, compare=False)

    def path(self, number: int) -> Path:
        """Where a batch is, or goes."""
        return self.home / _RECORDS / f"{number}.npz"

    def batches(self) -> Mapping[int, Batch]:
        """Every batch, by number.

        Raises:
            DataError: one cannot be read.
        """
        for number in self._numbers():
            if number not in self._read:
                self._read[number] = read_batch(self.path(number))
        return dict(sorted(self._read.items()))

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in (self.home / _RECORDS).glob("*.npz") if path.stem.isdecimal()]

    def check(self, who: str, batch: Batch, number: int | None = None, waiting: int = 0) -> None:
        """Refuse everything that can be refused before the first record is noted.

        Args:
            who: brings it, for the sentence.
            batch: what is brought.
            number: its own; the next when omitted.
            waiting: records that the next node carries already, both ways counted.

        Raises:
            DataError: a record comes twice or has no usable name, one leaves that is not in or may not, there are more
                than the plan prices or than the next node has room for, or they do not fit.
        """
        before = [each for at, each in self.batches().items() if number is None or at < number]
        earlier = {record for each in before for record in each.ids}
        twice = earlier.intersection(batch.ids)
        if twice or len(set(batch.ids)) != len(batch.ids):
            raise DataError(f"{who} brings {len(twice) or 'some'} records a second time; a record enters once")
        if not all(0 < len(record) <= LONGEST_ID for record in batch.ids):
            raise DataError(f"{who} has an id that is none: an id is a text of 1 to {LONGEST_ID} characters")
        self._check_leavers(who, batch, earlier.difference(*(each.leave for each in before)))
        self._check_price(who, len(earlier) + len(batch.ids))
        self._check_room(who, waiting + len(batch.ids) + len(batch.leave))
        if batch.ids:
            measure(self.stream.first.schema, batch.X, batch.y)

    def _check_leavers(self, who: str, batch: Batch, inside: Collection[str]) -> None:
        """Here, because beside one that has left before the book would note none of the others."""
        strangers = set(batch.leave).difference(inside)
        if strangers or len(set(batch.leave)) != len(batch.leave):
            raise DataError(
                f"{who} names {len(strangers) or 'some'} records that leave and were never in, have left already or "
                "come twice; check leave"
            )
        if batch.leave and not self.stream.deletions:
            raise DataError("this stream was paid for without deletions; leave out leave, or make one with --deletions")

    def _check_price(self, who: str, records: int) -> None:
        privacy = self.stream.first.privacy
        most = privacy.max_records_per_client if isinstance(privacy, Privacy) else None
        if most is not None and records > most:
            raise DataError(
                f"{who} would have {records} records in the stream, and the plan prices at most {most} over all "
                "epochs (max_records_per_client); sample fewer"
            )

    def _check_room(self, who: str, moved: int) -> None:
        cohort = self.stream.first.cohort
        if not self.room:
            raise DataError(
                f"cohort.max_records={cohort.max_records} is no record for each of {cohort.clients} clients; agree on "
                "a larger one"
            )
        if self._promised and moved > self.room:
            raise DataError(
                f"with {who} the next epoch would move {moved} of this party's records, and the plan has room for "
                f"{self.room} (max_records{' shared by the clients' if self.stream.deletions else ''}); bring the rest "
                "after that epoch"
            )

    @property
    def room(self) -> int:
        """Records that one party moves in one node, both ways counted.

        Where records leave, counts that cancel hide a sum of more records than the ring is made for, which would wrap:
        so each party keeps to its part of ``max_records``. Where none leaves, such a sum is refused by its own counts.
        """
        cohort = self.stream.first.cohort
        return cohort.max_records // (cohort.clients if self.stream.deletions else 1)

    @property
    def _promised(self) -> bool:
        return isinstance(self.stream.first.privacy, Privacy)

    def keep(self, source: Path, number: int) -> None:
        """Keep the file under a number; a number that is taken is kept anew."""
        atomic_write(self._made(number), source.read_bytes())
        self._read.pop(number, None)

    def bring(self, source: Path, waiting: int = 0) -> Batch:
        """Check a file of records and keep it as the next batch: they go with the next epoch in which the party is.

        Args:
            source: the file.
            waiting: as for :meth:`check`.

        Raises:
            DataError: it cannot be read, or as for :meth:`check`; nothing is kept then.
            PrivstatsError: it cannot be kept, or another process brings one now.
        """
        batch = read_batch(source)
        number = max(self._numbers(), default=-1) + 1  # before the look: whoever brings meanwhile takes this number
        self.check("the file", batch, number, waiting)
        write_new(self._made(number), source.read_bytes())
        return batch

    def _made(self, number: int) -> Path:
        """Where a batch goes, in a folder that is there."""
        place = self.path(number)
        try:
            place.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise PrivstatsError(f"cannot make {place.parent}: {error.strerror}; nothing was kept") from None
        return place

    def register(self, registry: RecordRegistry) -> None:
        """Enter and leave what was brought and is not in the book yet; a call that was killed is made good.

        Raises:
            LedgerError: a record enters twice, or leaves and is not in.
        """
        pending: list[Batch] = []
        for batch in reversed(list(self.batches().values())):
            if batch.ids or batch.leave:
                if _noted(registry, batch):
                    break
                pending.append(batch)
        for batch in reversed(pending):
            if any(registry.state(record) == "new" for record in batch.ids[:1]):
                registry.enter(batch.ids)
            if any(registry.state(record) == "in" for record in batch.leave[:1]):
                registry.leave(batch.leave)

    def pending(self, registry: RecordRegistry, node: int) -> Pending:
        """What a node must carry of it; without a promise as far as there is :attr:`room`, who leaves first.

        Under a promise nothing is put off: a record more would move others from node to node, and cost for all of them.
        """
        pending = registry.pending(node, [record for each in self.batches().values() for record in each.ids])
        if self._promised:
            return pending
        leaving = pending.leaving[: self.room]
        return replace(pending, entering=pending.entering[: self.room - len(leaving)], leaving=leaving)

    def change(self, registry: RecordRegistry, pending: Pending) -> MomentsDelta:
        """What is due, measured.

        Raises:
            DataError: it cannot be measured, a batch is gone, or there is no :attr:`room` for it.
        """
        moved = len(pending.entering) + len(pending.leaving)
        if moved > self.room:
            raise DataError(f"{moved} records are due at node {pending.node} and the plan has room for {self.room}")
        batches, schema = self.batches(), self.stream.first.schema
        parts = [picked(batches, ids) for ids in (pending.entering, pending.leaving)]
        return registry.delta(pending, *(None if part is None else measure(schema, *part) for part in parts))


def _noted(registry: RecordRegistry, batch: Batch) -> bool:
    entered = not any(registry.state(record) == "new" for record in batch.ids[:1])
    return entered and all(registry.state(record) == "gone" for record in batch.leave[:1])
