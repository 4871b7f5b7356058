"""A party's inbox for a stream of persons: of each person the rows that came first, whole.

Rows of a person who is in a batch before are left out and counted, and no file is refused for them: one person who
comes again decides nothing for others. ``stream_inbox`` has the files, ``PersonRegistry`` who was sent when.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from privstats.course import Pending, PersonRegistry, RecordRegistry
from privstats.engines.network.stream_inbox import Batch, RecordInbox, picked
from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.ledger.registry_fold import record_keys
from privstats.ledger.registry_log import RegistryLog
from privstats.moments import Moments, MomentsDelta, PersonRows
from privstats.moments.person_ids import names_of

__all__ = ["PersonInbox"]


@dataclass(frozen=True)
class PersonInbox(RecordInbox):
    """One party's batches of persons, each row beside the name of its person."""

    _named: dict[tuple[int, ...], Batch] = field(default_factory=dict, init=False, repr=False, compare=False)

    def batches(self) -> Mapping[int, Batch]:
        """Every batch, by number, without rows of nobody and of persons who are in an earlier one."""
        found: dict[int, Batch] = {}
        seen = set[str]()
        for number, batch in super().batches().items():
            key = (*found, number)
            if key not in self._named:
                self._named[key] = _first(batch, seen)[0]
            found[number] = self._named[key]
            seen.update(found[number].names)
        return found

    def keep(self, source: Path, number: int) -> None:
        """Keep the file under a number, replacing an existing one."""
        super().keep(source, number)
        self._named.clear()

    def weigh(self, ids: Collection[str], batch: Batch | None = None) -> int:
        """For how many records these persons count towards the limits of the plan: their rows, at most those of the
        clip."""
        clip, schema = self.stream.first.person_clip, self.stream.first.schema
        assert clip is not None  # noqa: S101  parts makes this inbox for such streams
        most, rows = clip.most_records(schema), self._rows(batch)
        return sum(min(rows.get(name, 0), most) for name in ids)

    def due(self, registry: RecordRegistry, place: int) -> int:
        """Records that a node at this one's level has to carry, entering and leaving together."""
        pending = registry.pending(place, [name for each in self.batches().values() for name in each.names])
        return self.weigh(pending.entering) + self.weigh(pending.leaving) + pending.missing

    def carried(self, registry: RecordRegistry, place: int) -> int:
        """Records that a node's vector holds."""
        held = set(RegistryLog(registry.ledger, registry.entry).carried(place))
        names = [name for each in self.batches().values() for name in each.names]
        keys = record_keys(registry.secret, names)
        return self.weigh([name for key, name in zip(keys, names, strict=True) if key in held])

    def _rows(self, batch: Batch | None) -> Mapping[str, int]:
        """How many rows each person has."""
        batches = self.batches().values() if batch is None else (batch,)
        found: dict[str, int] = {}
        for name in (name for each in batches for name in each.ids):
            found[name] = found.get(name, 0) + 1
        return found

    def _admitted(self, who: str, batch: Batch, number: int | None) -> Batch:
        batch = super()._admitted(who, batch, number)
        before = [each for at, each in self.batches().items() if number is None or at < number]
        kept, remarks = _first(batch, {name for each in before for name in each.names})
        if not kept.ids and not kept.leave and remarks:
            raise DataError(f"{who} brings nobody new and nobody who leaves: {'; '.join(remarks)}")
        for remark in remarks:
            warnings.warn(f"of {who} {remark}", UnreadableRecordsWarning, stacklevel=4)
        return kept

    def _check_once(self, who: str, batch: Batch, earlier: Collection[str]) -> None:
        """Nothing is left to refuse: later rows are out, and each id is read as one person."""

    def _measured(self, batch: Batch) -> Moments:
        plan = self.stream.first
        assert plan.person_clip is not None  # noqa: S101  parts makes this inbox for such streams
        return _rows_of(batch).measured(plan.schema, plan.person_clip, plan.unreadable)

    def _enter(self, registry: RecordRegistry, batch: Batch) -> None:
        _of_persons(registry).enter(_rows_of(batch))

    def _delta(self, registry: RecordRegistry, pending: Pending) -> MomentsDelta:
        """What a person adds or takes is measured from the rows of one batch, and no later one."""
        batches, wanted = self.batches(), {*pending.entering, *pending.leaving}
        found = picked(batches, wanted)
        names = tuple(name for each in batches.values() for name in each.ids if name in wanted)
        return _of_persons(registry).delta(pending, None if found is None else PersonRows(*found, names))


def _of_persons(registry: RecordRegistry) -> PersonRegistry:
    assert isinstance(registry, PersonRegistry)  # noqa: S101  parts opens it for such streams
    return registry


def _rows_of(batch: Batch) -> PersonRows:
    return PersonRows(batch.X, batch.y, batch.ids)


def _first(batch: Batch, seen: Collection[str]) -> tuple[Batch, list[str]]:
    """The rows of those who were in no batch before, and sentences about the rows that are left out.

    Raises:
        DataError: an id in leave says of nobody who that is.
    """
    names, leave = names_of(list(batch.ids)), names_of(list(batch.leave))
    if None in leave:
        raise DataError("leave holds an id that says of nobody who that is; give whole numbers or texts")
    again = [name for name in names if name in seen]
    rows = [place for place, name in enumerate(names) if name is not None and name not in seen]
    remarks = []
    if unnamed := names.count(None):
        remarks.append(f"{unnamed} rows say of nobody whose they are, and are left out")
    if again:
        remarks.append(
            f"{len(again)} rows of {len(set(again))} persons who were brought before are left out: a person enters "
            "once, with all rows of one file"
        )
    ids, gone = (tuple(name for name in found if name is not None) for found in ([names[at] for at in rows], leave))
    return replace(batch, ids=ids, X=batch.X[rows], y=batch.y[rows], leave=gone), remarks
