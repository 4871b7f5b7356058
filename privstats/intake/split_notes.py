"""Note next to a file which split entered the sums, so that the head built from them is scored on no other split.

Under another seed some scored records would have built the head. The note holds nothing of any record.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Literal

import msgspec

from privstats import domains
from privstats.errors import DataError, PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.files.decoding import from_json
from privstats.intake.column_names import places_in
from privstats.intake.record_files import RecordFile
from privstats.intake.splits import RULE
from privstats.intake.table_sources import stored_at
from privstats.system import open_plain

_MAX_BYTES = 1 << 20
_NOTES = ".splits.json"
"""In a folder this name is hidden, so that no reader of the folder takes the notes for a table."""


class _Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A split, and the digests of its sums' plan and course.

    Attributes:
        persons: the id column.
        rule: version of the rule that held records out (``splits.RULE``). Version 1 was written without it. Persons
            are split by one rule in all versions, so their notes have no version.
        targets: the target columns, which the rule for records reads.
    """

    plan: str
    course: str
    split: float
    seed: int
    persons: str = ""
    rule: int = 1
    targets: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: RecordFile, split: float, plan: str, course: str) -> _Split:
        if file.persons:
            return cls(plan, course, split, file.seed, file.persons)
        return cls(plan, course, split, file.seed, rule=RULE, targets=_targets(file))

    def covers(self, file: RecordFile) -> bool:
        """Return whether the records that a file's split holds out are among those that this split held out."""
        if file.split is None or file.split > self.split:
            return False
        same_targets = bool(self.persons) or _alike(self.targets, _targets(file))
        return same_targets and (file.seed, file.persons or "") == (self.seed, self.persons)

    @property
    def options(self) -> str:
        """The options that choose this split."""
        targets = "".join(f" --target {quote(each)}" for each in self.targets)
        persons = f" --persons {quote(self.persons)}" if self.persons else ""
        return f"--split {self.split:g} --seed {self.seed}{persons}{targets}"


def _targets(file: RecordFile) -> tuple[str, ...]:
    return file.targets if file.is_table else ()


def _alike(noted: tuple[str, ...], given: tuple[str, ...]) -> bool:
    """Compare names of targets as a table's columns are compared."""
    return len(noted) == len(given) and places_in(noted, given) == list(range(len(given)))


class _Notes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="format", tag=domains.SPLITS_FILE):
    splits: tuple[_Split, ...]
    version: Literal[1] = 1


def notes_path(file: RecordFile) -> Path:
    """Return the path of a file's notes: next to the file, or inside a folder, which its patterns share.

    All tables of one DuckDB file share its notes.

    Example:
        >>> from privstats.moments import RecordFile
        >>> from privstats.intake.split_notes import notes_path
        >>> notes_path(RecordFile("north.csv", "ill", split=0.3)).name
        'north.csv.splits.json'
    """
    place = stored_at(Path(file.path))
    return place / _NOTES if place.is_dir() else place.with_name(f"{place.name}{_NOTES}")


def note_split(file: RecordFile, plan: str, course: str, *, again: bool) -> bool:
    """Note that a file is summed with its split, and return whether a note exists; sums of all records leave none.

    Args:
        again: whether sums under this plan may have left before, so that an earlier split still counts.
    """
    if file.split is None or file.kept_out:
        return False
    entry, before = _Split.of(file, file.split, plan, course), _read(file)
    known = tuple(each for each in before if again or (each.plan, each.course) != (plan, course))
    entries = known if entry in known else (*known, entry)
    if entries == before:
        return True
    try:
        atomic_write(notes_path(file), msgspec.json.format(msgspec.json.encode(_Notes(entries))) + b"\n")
    except PrivstatsError:
        return False
    return True


def require_same_split(file: RecordFile, plan: str | None, course: str | None) -> bool:
    """Refuse a split that may score records that built the head.

    A smaller share with the same seed holds out a subset, so it is allowed.

    Returns:
        Whether a note confirms the split.
    """
    noted = [each for each in _read(file) if each.plan == plan or each.course == course]
    for note in noted:
        if not note.persons and note.rule != RULE:
            raise DataError(
                f"{notes_path(file)} states that the sums of this head used a split of rule {note.rule}, and this "
                f"version knows rule {RULE} alone: score the head with the version of privstats that computed the "
                "sums, or on a file of records that are in no sum"
            )
        if not note.covers(file):
            raise DataError(
                f"{notes_path(file)} states that the sums of this head used {note.options}, so another split would "
                "score records that built it: pass this one"
            )
    return bool(noted)


def noted_seed(file: RecordFile, plan: str | None, course: str | None) -> int | None:
    """Return the seed of the split that built a head, by the note next to the file; None without such a note.

    Example:
        >>> from privstats.moments import RecordFile
        >>> from privstats.intake.split_notes import note_split, noted_seed
        >>> summed = RecordFile("north.csv", "ill", split=0.3, seed=7)
        >>> note_split(summed, "d1ce", "c0", again=False)
        True
        >>> noted_seed(summed, "d1ce", None), noted_seed(summed, "another", None)
        (7, None)
    """
    return next((each.seed for each in _read(file) if each.plan == plan or each.course == course), None)


def _read(file: RecordFile) -> tuple[_Split, ...]:
    path = notes_path(file)
    try:
        with open_plain(path) as notes:
            data = notes.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise DataError(f"cannot read {path}, which states what was summed: {error.strerror}; fix this first") from None
    try:
        return from_json(data, _Notes).splits
    except msgspec.DecodeError:
        raise DataError(
            f"{path} is no note of splits of version 1; move it away if no sum of this file is in a head that you score"
        ) from None
