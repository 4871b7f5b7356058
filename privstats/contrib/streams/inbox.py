"""A party's inbox for a stream: batches of records, and the changes that a round carries.

In a stream of persons only the rows of a person's first batch count, all of them; rows in later batches are excluded
and counted.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.streams.moments_delta import MomentsDelta
from privstats.contrib.streams.person_rows import PersonRows
from privstats.contrib.streams.record_registry import Pending, PersonRegistry, RecordRegistry
from privstats.contrib.streams.registry_index import LONGEST_ID, record_keys
from privstats.contrib.streams.registry_log import RegistryLog
from privstats.contrib.streams.stream import Stream
from privstats.dp import Privacy
from privstats.errors import DataError, PrivstatsError, UnreadableRecordsWarning
from privstats.extend.records import LOST
from privstats.extend.support import atomic_write, read_bounded, write_new
from privstats.files.arrays import MOST_BYTES, read_arrays
from privstats.intake.person_ids import names_of
from privstats.moments import Moments, exact_moments, remarks_on

_INTEGER = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]+?)(?:\.0*)?", re.ASCII)
_RECORDS = "records"
Waiting: TypeAlias = Callable[[Collection[str]], int]
"""The records that a round already carries, where these leave."""


@dataclass(frozen=True, eq=False)
class Batch:
    """One party's records in one epoch.

    Attributes:
        ids: an unchanging text per record; for persons, each row's person id.
        leave: ids of earlier records or persons that leave.
    """

    ids: tuple[str, ...]
    X: NDArray[Any]
    y: NDArray[Any]
    leave: tuple[str, ...] = ()
    unit: str = "record"

    @property
    def names(self) -> tuple[str, ...]:
        """The records or persons, each once."""
        return tuple(dict.fromkeys(self.ids))


def read_batch(path: Path) -> Batch:
    """Return the batch in a file."""
    held = read_arrays(path)
    named = "persons" if "persons" in held and "ids" not in held else "ids"
    if set(held) - {named, "X", "y", "leave"} or not {named, "X", "y"} <= set(held):
        raise DataError(
            f"{path} must hold the arrays ids, X and y, and leave where records leave; it has {list(held)}; where "
            "records only leave, save ids=[], X=np.empty((0, FEATURES)) and y=[] with it; under a promise per person "
            "save persons, an id for each row, in place of ids"
        )
    if not held["X"].ndim or not held["y"].ndim:
        raise DataError(f"{path} must hold X with one row and y with one entry for every record; it has less")
    texts = {name: _texts(path, name, held[name]) for name in (named, "leave") if name in held}
    if len(texts[named]) != len(held["X"]) or len(texts[named]) != len(held["y"]):
        raise DataError(f"{path} must hold one id, one row and one label for every record")
    unit = "person" if named == "persons" else "record"
    return Batch(texts[named], held["X"], held["y"], texts.get("leave", ()), unit)


def picked(batches: Mapping[int, Batch], ids: Collection[str]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return records' rows and labels by epoch, or None."""
    wanted, parts = set(ids), []
    for batch in batches.values():
        rows = [place for place, record in enumerate(batch.ids) if record in wanted]
        if rows:
            parts.append((batch.X[rows], batch.y[rows]))
    if not parts:
        return None
    return _joined([X for X, _ in parts]), _joined([y for _, y in parts])


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate arrays; each value stays of its own type, which another day's array type would change."""
    if len({part.dtype for part in parts}) == 1:
        return np.concatenate(parts)
    return np.concatenate([np.fromiter(part.reshape(-1), object, part.size).reshape(part.shape) for part in parts])


def written_apart(earlier: Collection[str], ids: Collection[str]) -> int:
    """Count ids that repeat another id in another spelling, such as ``7``, ``007`` or ``7.0``, which would
    enter twice.
    """
    known = {_plain(record): record for record in earlier}
    return sum(known.setdefault(_plain(record), record) != record for record in ids)


def _plain(record: str) -> str:
    text = unicodedata.normalize("NFC", record).strip()
    number = _INTEGER.fullmatch(text)
    return text if number is None else ("-" if number["sign"] == "-" else "") + number["digits"]


def _texts(path: Path, name: str, array: NDArray[Any]) -> tuple[str, ...]:
    if array.ndim != 1 or (array.size and array.dtype.kind not in "Uiu"):
        raise DataError(f"{name} in {path} must be a list of texts or integers; save one per record")
    return tuple(str(each) for each in array.tolist())


def _nothing(_: Collection[str]) -> int:
    return 0


@dataclass(frozen=True)
class RecordInbox:
    """One party's batches, ``records/<number>.npz`` in order of arrival."""

    home: Path
    stream: Stream
    _read: dict[int, Batch] = field(default_factory=dict, init=False, repr=False, compare=False)

    def path(self, number: int) -> Path:
        """Return a batch's file."""
        return self.home / _RECORDS / f"{number}.npz"

    def batches(self) -> Mapping[int, Batch]:
        """Return every batch, by number."""
        for number in self._numbers():
            if number not in self._read:
                self._read[number] = read_batch(self.path(number))
        return dict(sorted(self._read.items()))

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in (self.home / _RECORDS).glob("*.npz") if path.stem.isdecimal()]

    def check(self, who: str, batch: Batch, number: int | None = None, waiting: Waiting = _nothing) -> Batch:
        """Check a complete batch before its first record is registered; return its admitted part.

        Args:
            number: the batch's; the next when omitted.
            waiting: function from leaving ids to the number of records, entering and leaving, that the next round
                already carries; the maximum over a tree's levels.

        Raises:
            DataError: an inadmissible id or leaver, too many records, or records that do not fit the schema.
        """
        batch = self._admitted(who, batch, number)
        before = [each for at, each in self.batches().items() if number is None or at < number]
        earlier = {record for each in before for record in each.names}
        if not all(0 < len(record) <= LONGEST_ID and LOST not in record for record in batch.names):
            raise DataError(
                f"{who} has an invalid id: an id is a text of 1 to {LONGEST_ID} characters, and no U+FFFD, which "
                "stands for one that was lost in decoding; read the ids in their own encoding"
            )
        self._check_once(who, batch, earlier)
        self._check_leavers(who, batch, earlier.difference(*(each.leave for each in before)))
        self._check_price(who, len(earlier) + len(batch.names))
        moved = self.weigh(batch.names, batch) + self.weigh(batch.leave)
        self._check_room(who, waiting(batch.leave) + moved)
        if batch.ids:
            self._measured(batch)
        return batch

    def _admitted(self, who: str, batch: Batch, number: int | None) -> Batch:  # noqa: ARG002  of persons it decides
        self._check_unit(who, batch)
        return batch

    def _check_once(self, who: str, batch: Batch, earlier: Collection[str]) -> None:
        twice = set(earlier).intersection(batch.ids)
        if twice or len(set(batch.ids)) != len(batch.ids):
            raise DataError(f"{who} holds {len(twice) or 'some'} records a second time; a record enters once")
        if apart := written_apart(earlier, batch.ids):
            raise DataError(
                f"{who} holds {apart} ids in another spelling than before, such as 007 for 7: a record with two ids "
                "enters twice; write them as before"
            )

    def _measured(self, batch: Batch) -> Moments:
        plan = self.stream.first
        return exact_moments(plan.schema, batch.X, batch.y, unreadable=plan.unreadable)

    def weigh(self, ids: Collection[str], batch: Batch | None = None) -> int:  # noqa: ARG002  of persons it has rows
        """Return the number of records that limits count."""
        return len(ids)

    def due(self, registry: RecordRegistry, place: int) -> int:
        """Return the number of records due at this level."""
        return registry.pending(place, ()).missing  # with no records at hand all are missing

    def carried(self, registry: RecordRegistry, place: int) -> int:
        """Return the number of records in a node's vector."""
        return len(RegistryLog(registry.ledger, registry.entry).carried(place))

    def _check_unit(self, who: str, batch: Batch) -> None:
        promised = "person" if self.stream.plan.person_clip is not None else "record"
        if batch.unit != promised:
            right = "persons, an id for each row" if promised == "person" else "ids, one per record"
            raise DataError(f"{who} holds ids of {batch.unit}s, and the plan promises {promised}s: save {right}")

    def remarks(self, batch: Batch) -> tuple[str, ...]:
        """Return notes on a batch's clip, for the data holder: exact shares."""
        return remarks_on(self._measured(batch)) if batch.ids else ()

    def _check_leavers(self, who: str, batch: Batch, inside: Collection[str]) -> None:
        """Check here: one who has left would stop the registry from recording the others."""
        outside = set(batch.leave).difference(inside)
        if outside or len(set(batch.leave)) != len(batch.leave):
            raise DataError(
                f"{who} lists {len(outside) or 'some'} records in leave that never entered, left already or occur "
                "twice; correct leave"
            )
        if batch.leave and not self.stream.deletions:
            raise DataError("this stream was charged without deletions; omit leave, or make a stream with --deletions")

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
        if self.promised and moved > self.room:
            of, later = (
                ("a node of the tree", "make a stream with a larger max_records")
                if self.stream.levels > 1
                else ("the next epoch", "queue the rest after that epoch")
            )
            raise DataError(
                f"with {who} {of} would move {moved} of this party's records, and the plan has room for {self.room} "
                f"(max_records{' shared by the clients' if self.stream.deletions else ''}); {later}"
            )

    @property
    def room(self) -> int:
        """Maximum number of records, entering and leaving together, that one party may move in one round.

        Where records leave, cancelling counts could hide a ring overflow, so each party gets a share of
        ``max_records``.
        """
        cohort = self.stream.first.cohort
        return cohort.max_records // (cohort.clients if self.stream.deletions else 1)

    @property
    def promised(self) -> bool:
        """Whether the plan has a promise, under which no record is postponed."""
        return isinstance(self.stream.first.privacy, Privacy)

    def keep(self, source: Path, number: int) -> None:
        """Store the file under a number, replacing any other."""
        atomic_write(self._file_for(number), self._bytes_of(source))
        self._read.pop(number, None)

    def bring(self, source: Path, waiting: Waiting = _nothing) -> Batch:
        """Check a file of records, and store a valid one for the next epoch.

        Args:
            waiting: as for :meth:`check`.
        """
        batch = read_batch(source)
        number = max(self._numbers(), default=-1) + 1  # before the check: a concurrent batch takes this number
        batch = self.check("the file", batch, number, waiting)
        write_new(self._file_for(number), self._bytes_of(source))
        return batch

    @staticmethod
    def _bytes_of(source: Path) -> bytes:
        return read_bounded(source, DataError, "numpy.savez", MOST_BYTES)

    def _file_for(self, number: int) -> Path:
        place = self.path(number)
        try:
            place.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise PrivstatsError(f"cannot make {place.parent}: {error.strerror}; nothing was queued") from None
        return place

    def register(self, registry: RecordRegistry) -> None:
        """Enter new batches in the registry, or complete an interrupted call."""
        pending: list[Batch] = []
        for batch in reversed(list(self.batches().values())):
            if batch.ids or batch.leave:
                if _noted(registry, batch):
                    break
                pending.append(batch)
        for batch in reversed(pending):
            if any(registry.state(record) == "new" for record in batch.ids[:1]):
                self._enter(registry, batch)
            if any(registry.state(record) == "in" for record in batch.leave[:1]):
                registry.leave(batch.leave)

    def _enter(self, registry: RecordRegistry, batch: Batch) -> None:
        registry.enter(batch.ids)

    def pending(self, registry: RecordRegistry, node: int) -> Pending:
        """Return the changes that a round must carry; without a promise up to :attr:`room`, leaving records first.

        Under a promise nothing is postponed: moving one record would move others between rounds.
        """
        pending = registry.pending(node, [record for each in self.batches().values() for record in each.names])
        if self.promised:
            return pending
        leaving = pending.leaving[: self.room]
        return replace(pending, entering=pending.entering[: self.room - len(leaving)], leaving=leaving)

    def change(self, registry: RecordRegistry, pending: Pending) -> MomentsDelta:
        """Measure the pending changes."""
        moved = self.weigh(pending.entering) + self.weigh(pending.leaving)
        if moved > self.room:
            raise DataError(f"{moved} records are due at round {pending.node} and the plan has room for {self.room}")
        return self._delta(registry, pending)

    def _delta(self, registry: RecordRegistry, pending: Pending) -> MomentsDelta:
        batches, plan = self.batches(), self.stream.first
        parts = [picked(batches, ids) for ids in (pending.entering, pending.leaving)]
        return registry.delta(
            pending,
            *(
                None if part is None else exact_moments(plan.schema, *part, unreadable=plan.unreadable)
                for part in parts
            ),
        )


def _noted(registry: RecordRegistry, batch: Batch) -> bool:
    entered = not any(registry.state(record) == "new" for record in batch.ids[:1])
    return entered and all(registry.state(record) == "gone" for record in batch.leave[:1])


@dataclass(frozen=True)
class PersonInbox(RecordInbox):
    """One party's batches of persons, each row with its person's name.

    Args:
        home, stream: as for :class:`RecordInbox`.
    """

    _named: dict[tuple[int, ...], Batch] = field(default_factory=dict, init=False, repr=False, compare=False)

    def batches(self) -> Mapping[int, Batch]:
        """Return batches without rows of unknown or earlier persons."""
        admitted: dict[int, Batch] = {}
        seen = set[str]()
        for number, batch in super().batches().items():
            key = (*admitted, number)
            if key not in self._named:
                self._named[key] = _first(batch, seen)[0]
            admitted[number] = self._named[key]
            seen.update(admitted[number].names)
        return admitted

    def keep(self, source: Path, number: int) -> None:
        """See :meth:`RecordInbox.keep`."""
        super().keep(source, number)
        self._named.clear()

    def weigh(self, ids: Collection[str], batch: Batch | None = None) -> int:
        """Count each person's rows, up to the clip's maximum."""
        clip, schema = self.stream.first.person_clip, self.stream.first.schema
        assert clip is not None  # noqa: S101  parts makes this inbox for such streams
        most, rows = clip.most_records(schema), self._rows(batch)
        return sum(min(rows.get(name, 0), most) for name in ids)

    def due(self, registry: RecordRegistry, place: int) -> int:
        """See :meth:`RecordInbox.due`."""
        pending = registry.pending(place, [name for each in self.batches().values() for name in each.names])
        return self.weigh(pending.entering) + self.weigh(pending.leaving) + pending.missing

    def carried(self, registry: RecordRegistry, place: int) -> int:
        """See :meth:`RecordInbox.carried`."""
        held = set(RegistryLog(registry.ledger, registry.entry).carried(place))
        names = [name for each in self.batches().values() for name in each.names]
        keys = record_keys(registry.secret, names)
        return self.weigh([name for key, name in zip(keys, names, strict=True) if key in held])

    def _rows(self, batch: Batch | None) -> Mapping[str, int]:
        batches = self.batches().values() if batch is None else (batch,)
        rows: dict[str, int] = {}
        for name in (name for each in batches for name in each.ids):
            rows[name] = rows.get(name, 0) + 1
        return rows

    def _admitted(self, who: str, batch: Batch, number: int | None) -> Batch:
        batch = super()._admitted(who, batch, number)
        before = [each for at, each in self.batches().items() if number is None or at < number]
        admitted, remarks = _first(batch, {name for each in before for name in each.names})
        if not admitted.ids and not admitted.leave and remarks:
            raise DataError(f"{who} holds nobody who enters and nobody who leaves: {'; '.join(remarks)}")
        for remark in remarks:
            warnings.warn(f"of {who} {remark}", UnreadableRecordsWarning, stacklevel=4)
        return admitted

    def _check_once(self, who: str, batch: Batch, earlier: Collection[str]) -> None:
        """Refuse nothing: later rows are excluded already."""

    def _measured(self, batch: Batch) -> Moments:
        plan = self.stream.first
        assert plan.person_clip is not None  # noqa: S101  parts makes this inbox for such streams
        return _rows_of(batch).measured(plan.schema, plan.person_clip, plan.unreadable)

    def _enter(self, registry: RecordRegistry, batch: Batch) -> None:
        _of_persons(registry).enter(_rows_of(batch))

    def _delta(self, registry: RecordRegistry, pending: Pending) -> MomentsDelta:
        """Measure a person's change from one batch's rows, never a later one's."""
        batches, wanted = self.batches(), {*pending.entering, *pending.leaving}
        rows = picked(batches, wanted)
        names = tuple(name for each in batches.values() for name in each.ids if name in wanted)
        return _of_persons(registry).delta(pending, None if rows is None else PersonRows(*rows, names))


def _of_persons(registry: RecordRegistry) -> PersonRegistry:
    assert isinstance(registry, PersonRegistry)  # noqa: S101  parts opens it for such streams
    return registry


def _rows_of(batch: Batch) -> PersonRows:
    return PersonRows(batch.X, batch.y, batch.ids)


def _first(batch: Batch, seen: Collection[str]) -> tuple[Batch, list[str]]:
    names, leave = names_of(batch.ids), names_of(batch.leave)
    if None in leave:
        raise DataError("leave holds an id that names no person; save integers or texts")
    again = [name for name in names if name in seen]
    rows = [place for place, name in enumerate(names) if name is not None and name not in seen]
    remarks = []
    if unnamed := names.count(None):
        remarks.append(
            f"{unnamed} rows have an id that names no person, and are excluded: put a letter before ids that are "
            "dates, times, truths or fractions"
        )
    if again:
        remarks.append(
            f"{len(again)} rows of {len(set(again))} persons who entered before are excluded: a person enters once, "
            "with all rows of one file"
        )
    ids, gone = (tuple(name for name in listed if name is not None) for listed in ([names[at] for at in rows], leave))
    return replace(batch, ids=ids, X=batch.X[rows], y=batch.y[rows], leave=gone), remarks
