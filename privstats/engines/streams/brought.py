"""What one party has brought to a stream, batch by batch, and what of it a node carries.

Files under the party's folder and its book of them; who is charged for a node is ``Holding``'s, and no bytes move here.
Under ``epoch``, and under the same over a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from privstats.course import Due, Holding, Stream
from privstats.dp import Privacy
from privstats.engines.streams.records import Batch, picked, read_batch
from privstats.errors import DataError
from privstats.files import write_new, write_whole
from privstats.moments import SignedMoments, measure

__all__ = ["Brought"]

_RECORDS = "records"


@dataclass(frozen=True)
class Brought:
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

    def check(self, who: str, batch: Batch, number: int | None = None) -> None:
        """Refuse everything that can be refused before the first record is noted.

        Args:
            who: brings it, for the sentence.
            batch: what is brought.
            number: its own; the next when omitted.

        Raises:
            DataError: a record comes twice, one leaves that was never in or may not, there are more than the plan
                prices, or they do not fit.
        """
        before = (each for at, each in self.batches().items() if number is None or at < number)
        earlier = {record for each in before for record in each.ids}
        twice = earlier.intersection(batch.ids)
        if twice or len(set(batch.ids)) != len(batch.ids):
            raise DataError(f"{who} brings {len(twice) or 'some'} records a second time; a record enters once")
        strangers = set(batch.leave) - earlier
        if strangers:
            raise DataError(f"{who} names {len(strangers)} records that leave and were never in; check leave")
        if batch.leave and not self.stream.deletions:
            raise DataError("this stream was paid for without deletions; leave out leave, or make one with --deletions")
        privacy = self.stream.first.privacy
        most = privacy.max_records_per_client if isinstance(privacy, Privacy) else None
        if most is not None and len(earlier) + len(batch.ids) > most:
            raise DataError(
                f"{who} would have {len(earlier) + len(batch.ids)} records in the stream, and the plan prices at most "
                f"{most} over all epochs (max_records_per_client); sample fewer"
            )
        if batch.ids:
            measure(self.stream.first.schema, batch.X, batch.y)

    def keep(self, source: Path, number: int) -> None:
        """Keep the file under a number; a number that is taken is kept anew."""
        write_whole(self.path(number), source.read_bytes())
        self._read.pop(number, None)

    def bring(self, source: Path) -> Batch:
        """Check a file of records and keep it as the next batch: they go with the next epoch in which the party is.

        Raises:
            DataError: it cannot be read, or as for :meth:`check`; nothing is kept then.
            PrivstatsError: it cannot be kept, or another process brings one now.
        """
        batch = read_batch(source)
        self.check("the file", batch)
        self.path(0).parent.mkdir(mode=0o700, exist_ok=True)
        write_new(self.path(max(self._numbers(), default=-1) + 1), source.read_bytes())
        return batch

    def note(self, holding: Holding) -> None:
        """Enter and leave what was brought and is not in the book yet; a call that was killed is made good.

        Raises:
            LedgerError: a record enters twice, or leaves and is not in.
        """
        pending: list[Batch] = []
        for batch in reversed(list(self.batches().values())):
            if batch.ids or batch.leave:
                if _noted(holding, batch):
                    break
                pending.append(batch)
        for batch in reversed(pending):
            if any(holding.state(record) == "new" for record in batch.ids[:1]):
                holding.enter(batch.ids)
            if any(holding.state(record) == "in" for record in batch.leave[:1]):
                holding.leave(batch.leave)

    def due(self, holding: Holding, node: int) -> Due:
        """What a node must carry of it."""
        return holding.due(node, [record for each in self.batches().values() for record in each.ids])

    def change(self, holding: Holding, due: Due) -> SignedMoments:
        """What is due, measured.

        Raises:
            DataError: it cannot be measured, or a batch is gone.
        """
        batches, schema = self.batches(), self.stream.first.schema
        parts = [picked(batches, ids) for ids in (due.entering, due.leaving)]
        return holding.delta(due, *(None if part is None else measure(schema, *part) for part in parts))


def _noted(holding: Holding, batch: Batch) -> bool:
    entered = not any(holding.state(record) == "new" for record in batch.ids[:1])
    return entered and not any(holding.state(record) == "in" for record in batch.leave[:1])
