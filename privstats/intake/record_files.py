"""Read and split files of records: tables with a target column, and archives of arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, UnevenSplitWarning
from privstats.files.arrays import read_arrays
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.file_source import FileSource
from privstats.intake.frames import Unopened
from privstats.intake.sources import columns_named
from privstats.intake.splits import Split, empty_part, seed_of_party
from privstats.intake.table_files import Table, require_file
from privstats.intake.table_parts import Part, Requested, joined, labels_of, parts_of, present, warn_of_copies
from privstats.intake.table_sources import Catalogue, TableSource, is_table, path_of, table_file


@dataclass(frozen=True, repr=False)
class Records:
    """Features and their targets.

    Attributes:
        X: ``(n, features)``, or :class:`~privstats.intake.tables.Codes` of declared columns.
        y: ``(n,)``; from an archive also ``(n, targets)``.
        persons: each row's id, ``(n,)``, as in the file.

    Example:
        >>> from privstats.moments import Records
        >>> learned, scored = Records(np.eye(8), np.arange(8) % 2).split(0.5, seed=3)
        >>> len(learned.X) + len(scored.y)
        8
    """

    X: Any
    y: NDArray[Any]
    names: tuple[str, ...] = ()
    persons: NDArray[Any] | None = None

    def split(self, share: float, seed: int) -> tuple[Records, Records]:
        """Return two parts, of which the second has about this share of the records.

        A record's part follows from its own values, its target included, the seed, and the number of equal records
        before it (:class:`~privstats.intake.splits.Split`). So one record more moves that record or nothing, and under
        add-remove a part keeps the promise of all records. Under replace-one a record may leave its part, as if
        removed. The promise then holds only if the noise's ``dp.joint_mu`` is no larger under add-remove. A party's
        folder checks that.

        With ``persons`` a person's rows are in one part, by the seed and the id alone. A promise per person then holds
        under both adjacencies (docs/proofs/persons.md, One person).

        Raises:
            DataError: a part would be empty, or X, y and persons differ in length.

        Warns:
            UnevenSplitWarning: the second part has another share of the records, or of a class, than asked for.
        """
        return self._parts(self._held_out(share, seed), share)

    def summed(self, share: float, seed: int) -> Records:
        """Return the first part, even if empty: else one record could decide a refusal.

        Raises:
            DataError: as :meth:`split`, except for empty parts.
        """
        return self._where(~self._held_out(share, seed))

    def held_out(self, share: float, seed: int) -> Records:
        """Return the second part; otherwise as :meth:`summed`."""
        return self._where(self._held_out(share, seed))

    def _held_out(self, share: float, seed: int, of: str | os.PathLike[str] = "X") -> NDArray[np.bool_]:
        if not 0 < share < 1:
            raise empty_part(share, f" of {len(self.X)} records")
        if len(self.X) != len(self.y):
            raise DataError(f"X has {len(self.X)} rows but y has {len(self.y)}; give one label or target per row")
        if self.persons is not None and len(self.persons) != len(self.X):
            raise DataError(f"X has {len(self.X)} rows and persons {len(self.persons)} ids; pass one id for each row")
        split = Split(share, seed)
        scored = split.held_out(self.X, self.y, self.persons)
        _warn_of_shares(split, of)
        return scored

    def _parts(self, scored: NDArray[np.bool_], share: float) -> tuple[Records, Records]:
        if not 0 < scored.sum() < len(scored):
            raise empty_part(share, f" of {len(scored)} records")
        return self._where(~scored), self._where(scored)

    def _where(self, chosen: NDArray[np.bool_]) -> Records:
        persons = None if self.persons is None else self.persons[chosen]
        return Records(self.X[chosen], self.y[chosen], self.names, persons)


@dataclass(frozen=True)
class RecordFile(Unopened):
    """A file of records; nothing is read until needed. ``load()`` in a party's ``records.py`` may return one.

    :func:`privstats.measure` and all that accept a path accept a RecordFile, which states how the file is written.

    Args:
        path: a file of a table, of any kind in docs/parts.md, which its first bytes decide, not its name; an npz file
            with ``X`` and ``y``; a folder or a pattern of tables with the same columns (``parts/2024-*.csv``); or a
            table of a file (``base.duckdb/patients``). Files that are read together are one party's records.
        target: a table's target column; several as a tuple, in the plan's order.
        split: share held out of every sum, between 0 and 1; :meth:`Records.split` has the promise.
        seed: fixes the split.
        encoding, separator, decimal: a CSV file's format, never guessed (``csv_dialect.Dialect``).
        kept_out: read exactly the held-out records, to score a head from the same split, seed and columns.
        persons: column of person ids, or in an npz file the array; it stays in this process.
        lines, quoted, thousands: how a CSV file's lines form records, and its thousands sign, likewise.

    Example:
        >>> from privstats.moments import RecordFile
        >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), np.array([0, 1, 0, 1])
        >>> np.savez("trees.npz", X=X, y=y)
        >>> learned, scored = RecordFile("trees.npz", split=0.5, seed=1).parts()
        >>> len(learned.X) + len(scored.y)
        4
    """

    path: str | os.PathLike[str]
    target: str | tuple[str, ...] | None = None
    split: float | None = None
    seed: int = 0
    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    kept_out: bool = False
    persons: str | None = None
    lines: bool = False
    quoted: bool = False
    thousands: str = ""

    def __post_init__(self) -> None:
        _ = self.dialect, path_of(self.path)
        if self.kept_out and self.split is None:
            raise DataError(
                "the split decides which records were held out: pass --split (in Python split=) and its seed as for "
                "the sums of the head"
            )

    @property
    def targets(self) -> tuple[str, ...]:
        """The target columns."""
        return (self.target,) if isinstance(self.target, str) else self.target or ()

    @property
    def dialect(self) -> Dialect:
        """The CSV format."""
        return Dialect(self.encoding, self.separator, self.decimal, self.thousands, self.lines, self.quoted)

    @property
    def is_table(self) -> bool:
        """Whether the path names a table, and not an archive of arrays."""
        return is_table(Path(self.path))

    @property
    def opened(self) -> TableSource:
        """The table, opened by its names alone."""
        return self.opened_by(None)

    def opened_by(self, declared: Sequence[str] | None) -> TableSource:
        """Return the table, opened by its names alone; declared columns are the names of a file that has none."""
        return table_file(Path(self.path), self.dialect, declared)

    @property
    def left_out(self) -> tuple[Path, ...]:
        """Files of a folder or pattern that hold no record: bookkeeping of other programs, and files of 0 bytes."""
        return Catalogue.of(Path(self.path)).left_out

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of a table's columns, without reading a record."""
        return tuple(self.opened.names)

    @property
    def nameless(self) -> tuple[int, ...]:
        """A CSV file's columns without a name, counted from 1, which are never read."""
        return self.opened.nameless

    @property
    def doubt(self) -> str:
        """Why a table's row of names may be a record, in a sentence without its texts; "" where it is none.

        For those who show or write names. It compares them with the first records; no session asks it.
        """
        return self.opened.doubt

    def with_target(self, y: Any, declared: Sequence[str] | None = None) -> tuple[Any, Any]:
        """Return the file's table, and ``y`` or else its own target, as :func:`privstats.measure` accepts them.

        Args:
            declared: the columns that a plan declares; None: it declares none.

        Raises:
            DataError: the file has a split or ids, which only a reader of all records knows.
        """
        if self.split is not None or self.persons is not None:
            what = "persons" if self.split is None else "split"
            raise DataError(
                f"{self.path} has {what}=, which is not read here: pass X and y of its read(), or omit {what}"
            )
        if self.is_table:
            target = self.target if y is None else y
            table = self.opened_by(columns_named(None if declared is None else tuple(declared), target))
            return FileSource(table), list(target) if isinstance(target, tuple) else target
        records = self.all_records()
        return records.X, records.y if y is None else y

    def table(self, names: Sequence[str] | None = None, marks: Sequence[Marks] = ()) -> Table:
        """Load columns as written; ``marks`` states for each what its declaration lets a field be."""
        table = self.opened_by(names)
        warn_of_copies(table)
        wanted = table.names if names is None else present(self, table, names)
        return table.load(list(dict.fromkeys(wanted)), dict(zip(wanted, marks, strict=False)))

    def read(
        self,
        names: Requested = None,
        *,
        unreadable: Literal["refuse", "leave out"] = "refuse",
        texts: bool = False,
        words: Collection[str] = (),
    ) -> Records:
        """Read all records, or those that the split does not hold out; with ``kept_out``, the others.

        Args:
            names: the plan's declared columns or ``feature_names``, in this order; None: all columns but the target.
            unreadable: treatment of a text or gap in a requested column. ``"refuse"``: refuse the file.
                ``"leave out"``: read NaN, or None for a target, and :func:`measure` excludes the record.
            texts: with ``"leave out"``, keep texts, because :func:`measure` knows those that a plan declares.
            words: words for a gap, such as ``"none"``, that stay texts because the plan declares them.

        Raises:
            DataError: the file cannot be read, or lacks a column.
            RecordError: without ``unreadable="leave out"``, texts or gaps in a requested column.
        """
        how: Any = {"unreadable": unreadable, "texts": texts, "words": words}
        if self.split is None:
            return self.all_records(names, **how)
        records, scored = self._divided(self.split, names, **how)
        return records._where(scored if self.kept_out else ~scored)

    def batches(
        self,
        names: Requested = None,
        *,
        unreadable: Literal["refuse", "leave out"] = "refuse",
        words: Collection[str] = (),
    ) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the records of :meth:`read` as batches.

        Memory does not grow with a table, except for a split without persons: by 120 to 230 MiB per million distinct
        records.
        """
        if not self.is_table:
            records = self.read(names, unreadable=unreadable, texts=True)
            yield records.X, records.y
            return
        gaps = unreadable == "leave out"
        split = None if self.split is None else Split(self.split, self.seed)
        for part in parts_of(self, names, gaps=gaps, words=words):
            goals = part.goals if gaps else labels_of(part.goals)
            records = Records(part.X, goals)
            if split is not None:
                scored = part.held_out(split)
                records = records._where(scored if self.kept_out else ~scored)
            yield records.X, records.y
        if split is not None:
            _warn_of_shares(split, self.path)

    def parts(
        self,
        names: Requested = None,
        *,
        unreadable: Literal["refuse", "leave out"] = "refuse",
        words: Collection[str] = (),
    ) -> tuple[Records, Records]:
        """Return the records to sum, and those held out; raises as :meth:`read`, and without a split."""
        if self.split is None:
            raise DataError(
                f"{self.path} holds one set of records; set the share to score on with --split (in Python split=), "
                "such as 0.25"
            )
        records, scored = self._divided(self.split, names, unreadable=unreadable, words=words)
        return records._parts(scored, self.split)

    def all_records(
        self,
        names: Requested = None,
        *,
        unreadable: Literal["refuse", "leave out"] = "refuse",
        texts: bool = False,
        words: Collection[str] = (),
    ) -> Records:
        """Read every record; raises as :meth:`read`."""
        gaps = unreadable == "leave out"
        if not self.is_table:
            arrays = self.arrays(f"X y {self.persons or ''}")
            return Records(arrays["X"], arrays["y"], (), arrays[self.persons] if self.persons else None)
        return Records(*joined(parts_of(self, names, gaps=gaps, words=words), gaps=gaps, texts=texts))

    def arrays(self, *wanted: str) -> Mapping[str, NDArray[Any]]:
        """Read the first complete set of an npz file's arrays.

        Args:
            wanted: sets of names, separated by spaces.

        Raises:
            DataError: no such file, or it has no complete set.
        """
        require_file(Path(self.path))
        sets = " or ".join(", ".join(names.split()) for names in wanted)

        def complete_set(held: Collection[str]) -> Iterable[str]:
            for names in wanted:
                if set(names.split()) <= set(held):
                    return names.split()
            missing = [name for name in wanted[0].split() if name not in held]
            raise DataError(f"{self.path} lacks {', '.join(missing)}; give {sets}")

        return read_arrays(self.path, complete_set)

    def _divided(
        self,
        share: float,
        names: Requested,
        *,
        unreadable: Literal["refuse", "leave out"],
        texts: bool = False,
        words: Collection[str] = (),
    ) -> tuple[Records, NDArray[np.bool_]]:
        """Read every record, and which of them a split holds out."""
        if not self.is_table:
            records = self.all_records(names)
            return records, records._held_out(share, self.seed, self.path)
        gaps, split, sides = unreadable == "leave out", Split(share, self.seed), list[NDArray[np.bool_]]()

        def read_parts() -> Iterator[Part]:
            for part in parts_of(self, names, gaps=gaps, words=words):
                sides.append(part.held_out(split))
                yield part

        records = Records(*joined(read_parts(), gaps=gaps, texts=texts))
        _warn_of_shares(split, self.path)
        return records, np.concatenate(sides)


def of_party(file: RecordFile, party: int) -> RecordFile:
    """Return a file with its party's seed, where the files of several parties share one (:func:`seed_of_party`).

    Args:
        party: number of the party, from 0.

    Example:
        >>> from privstats.intake.record_files import RecordFile, of_party
        >>> of_party(RecordFile("south.csv", "ill", split=0.25, seed=7), 1).seed
        1000000007
    """
    return replace(file, seed=seed_of_party(file.seed, party, persons=file.persons is not None))


def _warn_of_shares(split: Split, of: str | os.PathLike[str]) -> None:
    if remark := split.remark():
        warnings.warn(f"{of}: {remark}", UnevenSplitWarning, stacklevel=3)
