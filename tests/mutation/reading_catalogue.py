"""Deliberate bugs of reading: a container's shortcut lets one record decide what the values of others mean."""

import bz2
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from privstats.intake.columns import Readings, array_of, values_of
from privstats.intake.frames import _Dataset
from privstats.intake.person_ids import _id_of_text, typed_ids
from privstats.intake.splits import Split, coins_of
from privstats.intake.table_files import Csv, Parquet
from privstats.intake.table_sources import Several
from privstats.intake.tables import is_list, of_list, plain_numbers
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import everywhere, member, name_in

_SOURCES = "tests/intake/test_sources.py::test_drawn_sources_are_read_whole_by_every_door"
_SPLITS = "tests/intake/test_splits.py::"
_LAW = "tests/intake/test_containers.py::test_a_table_that_once_broke_the_law_breaks_it_nowhere"


def _by_its_array(_: Any) -> Any:
    """A frame is one array of numbers wherever its library makes one of its values."""

    def numbers(X: Any) -> Any:
        try:
            table = np.asarray(X)
        except Exception:  # the library refuses to mix these types
            return None
        return table if table.ndim == 2 and table.dtype.kind in "fiub" else None

    return numbers


def _of_their_own_width(right: Any) -> Any:
    """Rows of lists have the width that all of them have; one label or target for each record stays."""
    return lambda rows, width: right(rows, width) if width == 1 else of_list(rows)


_PARTS = Several.parts


def _as_the_first_file(self: Several, wanted: Any, **how: Any) -> Iterator[Mapping[str, Any]]:
    from pyarrow import parquet

    if not all(isinstance(file, Parquet) for file in self.files):
        yield from _PARTS(self, wanted, **how)
        return
    table = parquet.ParquetDataset(self.path).read(columns=list(wanted))
    yield {name: array_of(table.column(name)) for name in wanted}


def _of_known_endings(right: Any) -> Any:
    return lambda path, start: [each for each in right(path, start) if each.suffix in (".csv", ".parquet")]


def _by_its_ending(right: Any) -> Any:
    return lambda path: {".csv": Csv, ".parquet": Parquet}.get(path.suffix) or right(path)


def _anything(_: Any) -> Any:
    return lambda paths: None


def _first_streams(right: Any) -> Any:
    return {**right, "bzip2": (right["bzip2"][0], bz2.BZ2File)}


def _as_the_schema(self: _Dataset, names: list[str]) -> Any:
    yield from self.table.to_batches(columns=names)


def _lists_as_arrays(right: Any) -> Any:
    """Rows of lists have the width that they have, and not the plan's."""

    def held(name: str, values: Any) -> Any:
        plain = plain_numbers(values) if is_list(values) else None
        return right(name, values) if plain is None else plain

    return held


def _stripped(_: Any) -> Any:
    return lambda raw: _id_of_text(raw.strip().decode("utf-8", "surrogateescape"))


def _as_bits(right: Any) -> Any:
    """A split takes numbers of arrays as they stand, infinities too."""

    def bits(values: Any) -> Any:
        is_plain = isinstance(values, np.ndarray) and values.dtype.kind in "fiub"
        return Readings.of(values.astype(float)) if is_plain else right[0](values)

    return (bits, *right[1:])


_COPIES, _COINS = Split._copies, coins_of


def _first_copies(_: Any) -> Any:
    """The coin of a record is that of the first of its equals."""
    return lambda words, copies, seed: _COINS(words, np.zeros_like(copies), seed)


def _counted_without_target(self: Split, rows: Any, goals: Any) -> Any:
    return _COPIES(self, rows, goals[:, :0])


def _coins_without_target(_: Any) -> Any:
    return lambda words, copies, seed: _COINS(words[:, :-1], copies, seed)


def _one_seed(_: Any) -> Any:
    return lambda seed, party, *, persons: seed


def _by_its_dtype(right: Any) -> Any:
    """A column with gaps is numbers if numpy makes numbers of all its values, and has no number otherwise."""

    def read(values: Any) -> Any:
        try:
            return right(np.asarray(values, np.float64))
        except (TypeError, ValueError, OverflowError):
            return right([None] * len(values))

    return read


READING_MUTANTS: dict[str, Mutant] = {
    "frames by their array": bug("a gap or a word in one column decides whether another one holds dates or numbers",
        name_in("privstats.intake.tables", "_as_numbers", _by_its_array), _LAW),
    "rows of their own width": bug("a row of another length has all rows of lists refused",
        name_in("privstats.records.containers", "rectangle", _of_their_own_width), _LAW),
    "a folder as its first file": bug("the types of the first file of a folder are those of all others",
        member(Several, "parts", _as_the_first_file), _LAW),
    "a file of another ending": bug("a file of a folder whose name has no known ending is in no sum",
        name_in("privstats.intake.table_sources", "_entries_of", _of_known_endings), _SOURCES),
    "kinds by ending": bug("a file is what its name says, and not what its bytes are",
        name_in("privstats.intake.table_sources", "_kind_of", _by_its_ending), _SOURCES),
    "a copy without a word": bug("two files with equal bytes count twice, and nobody is told",
        member(Several, "copies", property(lambda self: iter(()))),
        "tests/intake/test_sources.py::test_equal_bytes_are_said_where_they_hold_a_record"),
    "a file by two names": bug("a link to a file of the same folder counts its records twice",
        name_in("privstats.intake.table_sources", "_require_one_name", _anything),
        "tests/intake/test_sources.py::test_a_file_is_read_once_whatever_names_it"),
    "withdrawn records by a link": bug("a pattern or a link into a table with a log reads withdrawn records",
        name_in("privstats.intake.table_sources", "_require_outside_logs", _anything),
        "tests/intake/test_sources.py::test_a_file_inside_a_table_with_a_log_is_refused"),
    "bytes behind a stream": bug("records behind the first stream of a file are in no sum where a byte is lost",
        name_in("privstats.intake.file_kinds", "_COMPRESSED", _first_streams),
        "tests/intake/test_sources.py::test_streams_one_behind_another_are_all_read_or_the_file_is_refused"),
    "a dataset as its schema": bug("the types of the first file of a dataset are those of all others",
        member(_Dataset, "batches", _as_the_schema), _LAW),
    "lists as arrays": bug("rows of persons have the width of their lists, so rows that are all broken are refused",
        name_in("privstats.contrib.streams.person_rows", "_held", _lists_as_arrays), _LAW),
    "gaps by their array": bug("a text in a column with gaps makes gaps of all its values",
        name_in("privstats.contrib.imputation.gaps", "read", _by_its_dtype),
        "tests/contrib/imputation/test_gaps.py::test_an_odd_record_changes_no_other_record"),
    "ids of narrow types": bug("ids of a float32 column are persons, of whom a wider type makes others",
        everywhere(typed_ids, values_of), _LAW, plan="persons"),
    "binary ids stripped": bug("ids of bytes that differ in a last blank are one person",
        name_in("privstats.intake.person_ids", "_id_of_bytes", _stripped), _LAW, plan="persons"),
    "ids of guessed types": bug("ids that readers take for times are nobody's as times and persons as texts",
        name_in("privstats.intake.person_ids", "_TYPED", lambda right: re.compile("(?!)")), _LAW, plan="persons"),
    "a split by bits": bug("rows that are not finite change sides of a split beside a word in another record",
        name_in("privstats.intake.splits", "_READERS", _as_bits), _LAW),
    "a split of distinct records": bug("equal records have one coin, so few distinct ones are held out in lumps",
        name_in("privstats.intake.splits", "coins_of", _first_copies),
        _SPLITS + "test_a_split_is_a_random_sample_in_all_and_by_class"),
    "a split that counts rows without targets": bug(
        "equal rows of two classes are counted together, so one record more moves others across a split",
        member(Split, "_copies", _counted_without_target),
        _SPLITS + "test_one_record_more_moves_that_record_or_nothing", _LAW),
    "a split with one coin for all targets": bug(
        "equal rows of two classes are dealt alike, so a score of coin labels is above one half",
        name_in("privstats.intake.splits", "coins_of", _coins_without_target),
        _SPLITS + "test_equal_rows_of_two_classes_have_coins_of_their_own"),
    "a split with one seed for all parties": bug(
        "equal records of two files have one coin, so many small parties hold out lumps",
        name_in("privstats.intake.splits", "seed_of_party", _one_seed),
        _SPLITS + "test_many_small_parties_hold_out_a_random_sample_together"),
}  # fmt: skip
