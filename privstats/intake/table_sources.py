"""List what a path names: a file, a folder or pattern of files, or a table of a file.

Every door that reads files asks here. A party's records are often in many files. Opened as one table they are read in
order, file by file, and every command reads them alike. Each entry of a folder or pattern is read, or is bookkeeping of
another program, or is refused by its name: no file of records is left out without a word. The rows of one person may be
in several files: they are clipped together, as in one file.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np

from privstats.errors import DataError
from privstats.intake.column_names import place_of, places_in, require_records, same_names
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.delta_tables import files_of_log
from privstats.intake.file_kinds import ARRAYS, HEAD, compression_of, head_of, opened, unread_kind
from privstats.intake.foreign_files import DuckDb, Excel, Feather, Orc, SasData, SasTransport, Spss, Sqlite, Stata
from privstats.intake.json_lines import JsonLines
from privstats.intake.table_files import (
    Csv,
    Parquet,
    Table,
    TableFile,
    TextFile,
    first_part,
    fitting,
    joined_values,
    require_file,
)
from privstats.system import open_plain

TABLE_FILES: tuple[type[TableFile], ...] = (
    *(Parquet, DuckDb, Sqlite, Excel, Feather, Orc),
    *(Spss, Stata, SasTransport, SasData),
    *(JsonLines, Csv),
)
"""Every kind of file that is read, the first that fits."""

_BOOKKEEPING = (
    *("_SUCCESS", "_metadata", "_common_metadata", ".*.crc", ".DS_Store", "._*", "Thumbs.db", "desktop.ini", "~$*"),
    *(".~lock.*#", ".splits.json", "*.splits.json"),
)
"""Names of files that hold no record.

They are those of Spark, Hadoop, Arrow, macOS, Windows, Excel and LibreOffice, and notes of splits.
"""

_BACKUP = re.compile(r"#(.+)#|\.?(.+?)(?:~|\.~\d+~|\.(?:bak|old|orig|save|sw[a-p])\d*)", re.IGNORECASE)
"""The name of a backup, and in it the name of its file: those of Emacs, Vim, gedit, and of copies by hand."""

_LOGS: Mapping[str, str] = {
    "_delta_log": "Delta",
    "metadata/*.metadata.json*": "Iceberg",
    ".hoodie": "Hudi",
    "_versions/*.manifest": "Lance",
    "_spark_metadata": "Spark streaming",
}
"""By an entry of its folder, the format of a table whose own log states which files are current."""
_ACID = re.compile(r"base_[0-9]{7,}(_v[0-9]+)?|(delete_)?delta_[0-9]{7,}_[0-9]{7,}(_v?[0-9]+)*")
"""Folder names of transactional tables of Hive."""
_SIGNS = frozenset("*?[")
_NO_KEY = "__HIVE_DEFAULT_PARTITION__"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One file with records.

    Attributes:
        table: the table of the file that is named.
        keys: columns of one value each, by the names of folders such as ``year=2026`` or by a log.
    """

    path: Path
    kind: type[TableFile]
    table: str | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)

    def opened(self, dialect: Dialect, declared: Sequence[str] | None = None) -> TableFile:
        """Open the file by its names; declared columns are the names of a file that has none."""
        if issubclass(self.kind, Parquet):
            return self.kind.with_keys(self.path, self.keys)
        if issubclass(self.kind, JsonLines) and declared is not None:
            return self.kind.declared(self.path, declared)
        return self.kind.of(self.path, dialect, self.table)


@dataclass(frozen=True)
class Catalogue:
    """What a path names.

    Attributes:
        entries: the files with records, in the order of names.
        left_out: bookkeeping of other programs, and files of 0 bytes.
        columns: of a table with a log, its columns; a file that is older than a column has gaps there.

    Example:
        >>> from pathlib import Path
        >>> from privstats.intake.table_sources import Catalogue
        >>> Path("parts").mkdir()
        >>> for name in ("a.csv", "b.csv", "_SUCCESS"):
        ...     _ = Path("parts", name).write_text("" if name == "_SUCCESS" else "age,ill\\n50,no\\n")
        ...
        >>> listed = Catalogue.of(Path("parts"))
        >>> [entry.path.name for entry in listed.entries], [path.name for path in listed.left_out]
        (['a.csv', 'b.csv'], ['_SUCCESS'])
    """

    path: Path
    entries: tuple[Entry, ...]
    left_out: tuple[Path, ...] = ()
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, path: Path) -> Catalogue:
        """List what a path names.

        Args:
            path: a file; a folder of files; a pattern such as ``parts/2024-*.csv``; or ``base.duckdb/TABLE``, where the
                table may be omitted if it is the only one.

        Raises:
            DataError: no such file, or an entry that is no table; the sentence names the entry.
        """
        _require_outside_logs([path])
        if _is_pattern(path):
            return cls._of_many(path)
        if (named := _in_file(path)) is not None:
            file, table = named
            return cls(path, (_table_in(file, table),))
        require_file(path)
        if not path.is_dir():
            return cls(path, (Entry(path, _kind_of(path)),))
        if (log := _log_of(path)) == "Delta":
            columns, files = files_of_log(path)
            return cls(path, tuple(Entry(file, Parquet, keys=keys) for file, keys in files), columns=columns)
        if log:
            raise _has_log(path, log)
        return cls._of_many(path)

    @classmethod
    def _of_many(cls, path: Path) -> Catalogue:
        start = path if path.is_dir() else _folder_above(path)
        entries, left_out = list[Entry](), list[Path]()
        paths = sorted(set(_entries_of(path, start)))
        _require_outside_logs(paths)
        for file in paths:
            if _is_bookkeeping(file):
                left_out.append(file)
                continue
            if path.is_dir():
                _require_shown(file, path)
            entries.append(Entry(file, _kind_of(file), keys=_keys(file.relative_to(start).parent)))
        _require_no_backup(entry.path for entry in entries)
        if not entries:
            raise DataError(f"{path} names no file with records; name a file, or a folder or pattern of files")
        _require_one_name(entry.path for entry in entries)
        return cls(path, tuple(entries), tuple(left_out))

    def opened(self, dialect: Dialect, declared: Sequence[str] | None = None) -> TableFile | Several:
        """Open the files as one table; declared columns are the names of files that have none."""
        if len(self.entries) == 1 and self.columns is None:
            return self.entries[0].opened(dialect, declared)
        return Several(self.path, tuple(entry.opened(dialect, declared) for entry in self.entries), self.columns)

    @property
    def csv(self) -> list[Path]:
        """The CSV files."""
        return [entry.path for entry in self.entries if entry.kind is Csv]


@dataclass(frozen=True, repr=False)
class Several:
    """Files that are read one after another as one table.

    Attributes:
        names: the columns that every file has, as the first one writes them; or those of the table's log.
    """

    path: Path
    files: tuple[TableFile, ...]
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for file in self.files:
            if twins := same_names(file.names):
                doubled = f"{file.path} has the columns {twins[0]!r} and {twins[1]!r}; keep one of them"
                raise DataError(file.doubt or doubled)
        if not self.names:
            first = self.files[0]
            other = next((file for file in self.files if not any(map(first.names.__contains__, file.names))), first)
            raise DataError(
                f"{other.path} has no column of {first.path}, and files of {self.path} are read together: if one is no "
                "part of them, name the others by a pattern"
            )

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        if self.columns is not None:
            return list(self.columns)
        first, *others = self.files
        alike = [places_in(first.names, file.names) for file in others]
        return [name for name, *places in zip(first.names, *alike, strict=True) if None not in places]

    @property
    def nameless(self) -> tuple[int, ...]:
        """Columns without a name in any of the files, counted from 1."""
        return tuple(sorted({place for file in self.files for place in file.nameless}))

    @property
    def misfit(self) -> str:
        """Place of the first record that does not fit its file's header; "" if all fit."""
        return next((f"{file.path.name}, {why}" for file in self.files if (why := file.misfit)), "")

    @property
    def doubt(self) -> str:
        """Why the first line of a file may be a record; "" where all are rows of names."""
        return next((doubt for file in self.files if (doubt := file.doubt)), "")

    def lacking(self, name: str) -> str:
        """Return which file lacks a column that another one has, as a sentence; "" where none has it.

        No name of a file is shown that may be a record.
        """
        having = [place_of(name, file.names) is not None for file in self.files]
        if self.columns is not None or not any(having) or all(having):
            return ""
        lacks, has = self.files[having.index(False)], self.files[having.index(True)]
        return (
            lacks.doubt
            or has.doubt
            or (
                f"{lacks.path} lacks the column {name!r}, which {has.path} has: files that are read together must all "
                "have a column that is read; if one is no part of them, name the others by a pattern"
            )
        )

    @property
    def copies(self) -> Iterator[tuple[Path, Path]]:
        """Pairs of files with equal bytes and a record; files of a table with a log are what the log states.

        A file such as ``a.csv.gz`` is compared with ``a.csv``.
        """
        files = {file.path: file for file in self.files} if self.columns is None else {}
        sizes, first = defaultdict[object, set[Path]](set), dict[bytes, Path]()
        for path in files:
            sizes[path.stat().st_size].add(path)
            if (unpacked := path.with_suffix("")) in files:
                sizes[unpacked] |= {path, unpacked}
        alike = {path for same in sizes.values() if len(same) > 1 for path in same}
        for path, file in files.items():
            one = first.setdefault(_digest_of(path), path) if path in alike else path
            if one != path and any(map(len, first_part(file.parts(file.names[:1], gaps=True)).values())):
                yield one, path

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"record {record + 1} of all files"

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield some columns, some thousand records at a time."""
        for file in self.files:
            own = self._own(file, wanted)
            its_marks = None if marks is None else {own[name]: mark for name, mark in marks.items() if name in own}
            for part in file.parts(list(own.values()) or file.names[:1], gaps=gaps, marks=its_marks):
                yield _with_gaps(part, own, wanted)

    def records(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a part's records that fit their header."""
        return fitting(part) if all(isinstance(values, list) for values in part.values()) else part

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:
        """Load all records that fit their header."""
        tables = []
        for file in self.files:
            own = self._own(file, wanted)
            its_marks = {own[name]: mark for name, mark in (marks or {}).items() if name in own}
            table = file.load(list(own.values()) or file.names[:1], its_marks)
            tables.append(Table(_with_gaps(table.columns, own, wanted), table.left_out, table.first_left_out))
        columns = {name: joined_values([table.columns[name] for table in tables]) for name in dict.fromkeys(wanted)}
        left_out = sum(table.left_out for table in tables)
        return Table(columns, left_out, self.misfit if left_out else "", self.nameless)

    def _own(self, file: TableFile, wanted: Sequence[str]) -> dict[str, str]:
        """Return the file's own spelling of each wanted name that it has."""
        places = places_in(list(dict.fromkeys(wanted)), file.names)
        return {
            name: file.names[place]
            for name, place in zip(dict.fromkeys(wanted), places, strict=True)
            if place is not None
        }


TableSource: TypeAlias = TableFile | Several


def table_file(path: Path, dialect: Dialect, declared: Sequence[str] | None = None) -> TableSource:
    """Open what a path names as one table.

    Args:
        declared: a plan's columns, targets and ids, which are the names of a file that has none; None: no plan
            declares them.
    """
    file = Catalogue.of(path).opened(dialect, declared)
    require_records(file.names)
    return file


def path_of(path: str | os.PathLike[str]) -> Path:
    """Return a path; refuse an empty text, which would name the current folder.

    Example:
        >>> from privstats.intake.table_sources import path_of
        >>> path_of("north.csv").name
        'north.csv'
    """
    if path == "":
        raise DataError("the path is empty; name a file with records, or the current folder as .")
    return Path(path)


def is_table(path: Path) -> bool:
    """Return whether a path names a table, and not arrays, which ``numpy.save`` and ``numpy.savez`` write."""
    named = path.suffix.lower() in (".npy", ".npz")
    try:
        if not path.is_file():
            return path.is_dir() or not named
        with open_plain(path) as file:
            head = file.read(HEAD)
    except OSError:
        raise _unreadable(path) from None
    unknown = not any(kind.fits(path, head) for kind in TABLE_FILES if kind is not Csv)
    return not (ARRAYS.match(head) or (named and unknown))


def stored_at(path: Path) -> Path:
    """Return the file or folder that holds a path's table: for a pattern, the last folder above its first sign."""
    if _is_pattern(path):
        return _folder_above(path)
    named = _in_file(path)
    return path if named is None else named[0]


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder and of its folders, by name, without bookkeeping of other programs."""
    return sorted(path for path in _below(folder) if not _is_bookkeeping(path))


def csv_files(path: Path) -> list[Path]:
    """Return the CSV files that a path names; none where it names another table or no file."""
    if not _is_pattern(path) and _in_file(path) is None and not path.exists():
        return []
    return Catalogue.of(path).csv


def _with_gaps(part: Mapping[str, Any], own: Mapping[str, str], wanted: Iterable[str]) -> dict[str, Any]:
    count = len(next(iter(part.values())))
    gaps = np.full(count, None, object)
    return {name: part[own[name]] if name in own else gaps for name in dict.fromkeys(wanted)}


def _kind_of(path: Path) -> type[TableFile]:
    """Return a file's kind by its first bytes; refuse one that is no table."""
    if not path.is_file():
        raise DataError(f"{path} is not a plain file; name files by a pattern that leaves it out")
    try:
        head, by = head_of(path), compression_of(path)
    except OSError:
        raise _unreadable(path) from None
    kind = next(kind for kind in TABLE_FILES if kind.fits(path, head))
    what = unread_kind(head) if issubclass(kind, TextFile) else ""
    if ARRAYS.match(head):
        what = "numpy's, and no table: name an archive of X and y alone, or the tables by a pattern"
    if what:
        raise DataError(f"cannot read {path}: it is {what}")
    if by and not issubclass(kind, TextFile):
        raise DataError(f"cannot read {path}: it is compressed by {by} and holds no CSV: unpack it")
    return kind


def _unreadable(path: Path) -> DataError:
    return DataError(f"cannot read {path}: pass a file that you may read")


def _table_in(path: Path, table: str) -> Entry:
    kind = _kind_of(path)
    if not kind.has_tables:
        raise DataError(f"{path} is a file of one table, so it has no {table!r}; name the file alone")
    return Entry(path, kind, table)


def _in_file(path: Path) -> tuple[Path, str] | None:
    """Return the file above a path and the name of its table; None for another path."""
    return (path.parent, path.name) if not path.exists() and path.parent.is_file() else None


def _is_pattern(path: Path) -> bool:
    return not path.exists() and not _SIGNS.isdisjoint(str(path)) and _in_file(path) is None


def _folder_above(pattern: Path) -> Path:
    return next(above for above in pattern.parents if above.is_dir())


def _entries_of(path: Path, start: Path) -> Iterator[Path]:
    """Yield every file that a folder and its folders hold, or that a pattern matches."""
    if path.is_dir():
        yield from _below(start)
        return
    _require_reach(path, start)
    for each in start.glob(str(path.relative_to(start))):
        if each.is_dir():
            raise DataError(f"{path} names the folder {each}; name files by a pattern, such as {path}/*")
        yield each


def _require_shown(path: Path, folder: Path) -> None:
    """Refuse a hidden file of a folder: shells and libraries leave it out, and only its holder knows what it is."""
    own = path.relative_to(folder)
    if any(part.startswith((".", "_")) for part in own.parts):
        raise DataError(
            f"{folder} holds {own}, which is hidden: name the files that are records by a pattern, such as "
            f"{folder}/*.csv"
        )


def _below(start: Path) -> Iterator[Path]:
    """Yield every file and every link to a folder, below a folder; refuse a folder that cannot be listed."""

    def refuse(error: OSError) -> None:
        raise _unlisted(Path(error.filename)) from None

    for above, folders, files in os.walk(start, onerror=refuse):
        links = [name for name in folders if Path(above, name).is_symlink()]
        yield from (Path(above, name) for name in (*files, *links))


def _require_reach(pattern: Path, start: Path) -> None:
    """Refuse a pattern that would leave out files without a word: in a folder that cannot be listed, or is linked."""
    own = pattern.relative_to(start)
    if "**" in own.parts:
        for each in _below(start):
            if each.is_dir():
                raise DataError(f"{pattern} does not reach the files of {each}, a link to a folder: name it without **")
    for above in own.parents:
        for folder in start.glob(str(above)) if above.parts else (start,):
            if folder.is_dir():
                _require_listed(folder)


def _require_listed(folder: Path) -> None:
    try:
        os.scandir(folder).close()
    except OSError:
        raise _unlisted(folder) from None


def _unlisted(folder: Path) -> DataError:
    return DataError(f"cannot list the folder {folder}, which may hold records: pass folders that you may read")


def _require_one_name(paths: Iterable[Path]) -> None:
    """Refuse a file that is named twice, such as by a link to the newest one."""
    known = dict[tuple[int, int], Path]()
    for path in paths:
        status = path.stat()
        one = known.setdefault((status.st_dev, status.st_ino), path)
        if one != path and status.st_ino:
            raise DataError(
                f"{path} is the file {one} by another name, so its records would count twice: name files by a pattern "
                "that leaves one of them out"
            )


def _require_no_backup(paths: Iterable[Path]) -> None:
    """Refuse a file whose name is that of another one as editors and scripts name its earlier version."""
    known = dict[tuple[Path, str], Path]()
    named = {path: _BACKUP.fullmatch(path.name) for path in paths}
    for path, backup in sorted(named.items(), key=lambda each: (each[1] is not None, len(each[0].name))):
        of = path.name if backup is None else backup[1] or backup[2]
        for name in (of, path.name, path.stem):
            one = known.setdefault((path.parent, name.casefold()), path)
            if backup is not None and name == of and one != path:
                raise DataError(
                    f"{path} is named as a backup of {one}, and their records would count twice: move it away, or name "
                    "files by a pattern that leaves it out"
                )


def _is_bookkeeping(path: Path) -> bool:
    named = any(fnmatch(path.name, name) for name in _BOOKKEEPING)
    return named or (path.is_file() and path.stat().st_size == 0)


def _log_of(folder: Path) -> str:
    """Return the format of a folder whose table has a log; "" for any other."""
    if _ACID.fullmatch(folder.name):
        return "Hive ACID"
    return next((log for mark, log in _LOGS.items() if any(folder.glob(mark))), "")


def _has_log(path: Path, log: str) -> DataError:
    if log == "Delta":
        return DataError(f"{path} is a Delta table, whose log states which of its files are current; name its folder")
    return DataError(
        f"{path} is a table of {log}, whose log states which of its files are current, and it is not read here: "
        "export its current records as Parquet"
    )


def _require_outside_logs(paths: Sequence[Path]) -> None:
    """Refuse a file, folder or pattern inside a table with a log, where records may be that were withdrawn.

    A link is inside the table that it leads to.
    """
    folders = {path.absolute().parent for path in paths}
    folders |= {path.resolve().parent for path in paths if path.is_symlink()}
    folders |= {folder.resolve() for folder in folders}
    for above in {above for folder in folders for above in (folder, *folder.parents)}:
        if log := _log_of(above):
            raise _has_log(above, log)


def _keys(folders: Path) -> dict[str, str | None]:
    pairs = [folder.split("=", 1) for folder in folders.parts if "=" in folder]
    return {unquote(name): None if text == _NO_KEY else unquote(text) for name, text in pairs}


def _digest_of(path: Path) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    with opened(path) as file:
        while block := file.read(_CHUNK):
            digest.update(block)
    return digest.digest()
