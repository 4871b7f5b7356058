"""Decide which records a split holds out of every sum: each record by a coin of its own.

Files and arrays of records (``record_files``), rehearsals and suggestions ask this rule before anything is summed.
Folds of a regression have another rule (``moments.record_sums``), because their sums must add up over parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta, timezone
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.errors import DataError
from privstats.intake.columns import Readings, read, read_local, read_texts, values_of
from privstats.intake.split_shares import Shares
from privstats.intake.tables import Codes

if TYPE_CHECKING:
    from privstats.intake.accepted import ColumnLike
    from privstats.intake.meaning import Meaning

Words: TypeAlias = NDArray[np.uint64]

RULE = 2
"""Version of the rule for records. Notes of splits store it: another rule holds out other records.

The seed is no part of the rule. A party's note states the seed of that party's own split (:func:`seed_of_party`).
"""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_GAP = np.float64(np.nan).view(np.uint64)
_TEXT = 0xFFF8 << 48
"""Bits of a NaN that is no gap: with an index they stand for a text."""
_READERS = (read, read_texts, partial(read_local, zone=timezone(timedelta(hours=14))))
"""Every way in which a declared column may read a value of any type. Values are equal if all these readings are."""
_WINDOW_ENTRIES = 1 << 16
_PARTIES_APART = 10**9
"""Difference between the seeds of two parties: larger than seeds that people write, and easy to read."""
# A longer key is stored as its digest, so that memory does not grow with the number of columns.
_MAX_KEY_BYTES = 128


class Split:
    """One pass over the records of a split, all at once or in batches.

    A record r is held out where ``coin(seed, r, j) < share``. Here r is all that is read of the record, its target
    included, and j is the number of equal records before it. The coins of r are the outputs of SplitMix64 (Steele, Lea
    and Flood 2014), started at a hash of seed and r. With ids a person's rows go together, by seed and id alone.

    Args:
        share: expected share of records held out, above 0 and below 1.
        seed: selects the split; public.

    Guarantee:
        One record more moves that record or nothing, in any order and in batches of any size
        (docs/proofs/sensitivity.md, A record of a split). Equality is exact, so nothing is assumed of the hash.

    Raises:
        DataError: the share is out of range.

    Example:
        >>> from privstats.intake.splits import Split
        >>> split, zeros = Split(0.25, seed=1), np.zeros((4000, 2))
        >>> held_out = split.held_out(zeros, np.arange(4000) % 2)  # each of the equal rows has a coin of its own
        >>> bool(900 < held_out.sum() < 1100), split.remark()
        (True, '')
    """

    def __init__(self, share: float, seed: int) -> None:
        if not 0 < share < 1:
            raise empty_part(share)
        self.share, self.seed = share, seed
        self._seen = dict[bytes, int]()
        self._texts = dict[str, int]()
        self._persons: dict[Meaning, float] = {}
        self._shares = Shares()

    def held_out(self, X: Any, y: Any, persons: ColumnLike | None = None) -> NDArray[np.bool_]:
        """Return which of the next records are held out, ``(n,)``.

        Args:
            X: rows ``(n, ...)``, :class:`~privstats.intake.tables.Codes` of declared columns, or a tuple of the
                columns' readings. All batches of a pass have one form.
            y: targets ``(n,)`` or ``(n, targets)``, or a tuple of their readings.
            persons: ids ``(n,)``; the row of no person is not held out.
        """
        X, y = _form(X), _form(y)
        if persons is None:
            held_out = [self._of_records(X, y, where) for where in _windows(X, y)]
            return np.concatenate(held_out) if held_out else np.zeros(0, np.bool_)
        from privstats.intake.person_ids import sides_of  # only needed with ids

        sides = sides_of(persons, self.share, self.seed, self._persons)
        for where in _windows(y, y):
            self._shares.add(*self._read(y, where).labels, sides[where])
        return np.asarray(sides > 0)

    def remark(self) -> str:
        """Return a warning for the data holder if the share held out so far, in all or by class, is off; else ""."""
        return self._shares.remark(self.share, persons=len(self._persons))

    def _of_records(self, X: Any, y: Any, where: slice) -> NDArray[np.bool_]:
        rows, goals = self._read(X, where), self._read(y, where)
        copies = self._copies(rows.exact, goals.exact)
        held_out = coins_of(np.hstack([rows.hashed, goals.hashed]), copies, self.seed) < self.share
        self._shares.add(*goals.labels, held_out.astype(np.int8))
        return np.asarray(held_out)

    def _copies(self, rows: Words, goals: Words) -> Words:
        """Return how many equal records came before each record in this pass, ``(n,)``."""
        seen, copies = self._seen, list[int]()
        for key in _keys(np.hstack([rows, goals])):
            before = seen.get(key, 0)
            seen[key] = before + 1
            copies.append(before)
        return np.array(copies, np.uint64)

    def _read(self, values: Any, where: slice) -> _Read:
        """Return what is read of some records."""
        if isinstance(values, tuple):
            columns = [[column.part(where)] for column in values]
        else:
            columns = [_all_readings(values[where].reshape(-1))]
        size = where.stop - where.start
        pairs = [[self._words(readings) for readings in several] for several in columns]
        none = [np.empty((size, 0), np.uint64)]
        return _Read(
            np.hstack([several[0][0].reshape(size, -1) for several in pairs] or none),
            np.hstack([exact.reshape(size, -1) for several in pairs for _, exact in several] or none),
            columns[-1][0] if columns else None,
        )

    def _words(self, readings: Readings) -> tuple[Words, Words]:
        """Return readings as words ``(n,)``: with a hash for each text, and with its index in this pass."""
        bits = np.where(np.isnan(readings.numbers), _GAP, (readings.numbers + 0.0).view(np.uint64))  # so that -0 is 0
        if not readings.distinct:
            return bits, bits
        hashes = [_hash(text) for text in readings.distinct]
        indices = [_TEXT | self._texts.setdefault(text, len(self._texts)) for text in readings.distinct]
        spoken = readings.places >= 0
        hashed, exact = (np.array([*each, 0], np.uint64)[readings.places] for each in (hashes, indices))
        return np.where(spoken, hashed, bits), np.where(spoken, exact, bits)


def _form(values: Any) -> Any:
    """Return readings as they are, and all else as one array: its type is the same in every window of the pass."""
    if isinstance(values, tuple | np.ndarray):
        return values
    return values.codes if isinstance(values, Codes) else np.asarray(values)


def _all_readings(values: NDArray[Any]) -> list[Readings]:
    plain = values_of(values)
    if isinstance(plain, np.ndarray):
        return [_READERS[0](values)]  # numbers have one reading
    if set(map(type, plain)) != {str}:
        return [reader(values) for reader in _READERS]
    known = {text: place for place, text in enumerate(dict.fromkeys(plain))}  # each different text is read once
    places = np.fromiter(map(known.__getitem__, plain), np.intp, len(plain))
    return [reader(list(known)).take(places) for reader in _READERS]


@dataclass(frozen=True)
class _Read:
    """Readings of some records.

    Attributes:
        hashed: words ``(n, entries)`` that coins follow from; equal texts have equal hashes.
        exact: words ``(n, entries)`` that are equal exactly where two records of the pass are.
        last: readings of the last column.
    """

    hashed: Words
    exact: Words
    last: Readings | None

    @property
    def labels(self) -> tuple[Words | None, Readings | None]:
        """The only column's words and readings; None where there are several."""
        return (self.hashed[:, 0], self.last) if self.hashed.shape[1] == 1 else (None, None)


def coins_of(words: Words, copies: Words, seed: int) -> NDArray[np.float64]:
    """Return the coins of records in [0, 1), ``(n,)``.

    Args:
        words: ``(n, entries)``, equal for equal records.
        copies: number of equal records before each, ``(n,)``.

    With M the finaliser of SplitMix64, a bijection, and keys k_i that BLAKE2b derives from the seed, the start of a
    record is sum_i M(w_i + k_i) mod 2**64, and its coin is M(start + (j + 1) golden) / 2**64. So no record, zeros
    included, has one coin under all seeds, and the coins of equal records are one stream of SplitMix64.

    Example:
        >>> from privstats.intake.splits import coins_of
        >>> coins_of(np.zeros((3, 2), np.uint64), np.arange(3, dtype=np.uint64), seed=0).round(3).tolist()
        [0.171, 0.315, 0.935]
    """
    starts = _mixed(words + _keys_of(seed, words.shape[1])).sum(axis=1, dtype=np.uint64)
    outputs = _mixed(starts + (copies + np.uint64(1)) * _GOLDEN)
    return np.asarray((outputs >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def seed_of_party(seed: int, party: int, *, persons: bool) -> int:
    """Return the seed of one party's split, in a study whose parties share a seed.

    Under one seed equal records of two parties have equal coins, so many small parties of few distinct records hold
    out too many records all together, or too few. With ids the seed stays: a person's rows at all parties are then on
    one side.

    Args:
        seed: of the study, public.
        party: number of the party, from 0: its index on the roster, or of its file in a command. Public.
        persons: whether a person's rows stay together.

    Example:
        >>> from privstats.intake.splits import seed_of_party
        >>> [seed_of_party(7, party, persons=False) for party in range(3)]
        [7, 1000000007, 2000000007]
        >>> seed_of_party(7, 2, persons=True)
        7
    """
    return seed if persons else seed + party * _PARTIES_APART


@lru_cache(maxsize=16)
def _keys_of(seed: int, entries: int) -> Words:
    first = blake2b(domains.SPLIT_RECORDS + str(seed).encode(), digest_size=8).digest()
    return _mixed(np.uint64(int.from_bytes(first, "big")) + np.arange(1, entries + 1, dtype=np.uint64) * _GOLDEN)


def _mixed(values: Words) -> Words:
    """Mix every bit into every other: the finaliser of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


@lru_cache(maxsize=1 << 12)
def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def _keys(exact: Words) -> Sequence[bytes]:
    """Return a key for each row, equal exactly for equal rows; BLAKE2b of 256 bits stands for a long one."""
    rows = np.ascontiguousarray(exact)
    if rows.itemsize * rows.shape[1] > _MAX_KEY_BYTES:
        return [blake2b(row, digest_size=32).digest() for row in rows]
    keys: list[bytes] = rows.view(f"V{rows.itemsize * rows.shape[1]}").reshape(-1).tolist()
    return keys


def _windows(X: Any, y: Any) -> Iterator[slice]:
    """Yield slices of the records, of a size at which work stays in the processor's cache."""
    records = len(y[-1].numbers) if isinstance(y, tuple) else len(y)
    entries = len(X) if isinstance(X, tuple) else math.prod(X.shape[1:])
    at_once = max(1, _WINDOW_ENTRIES // max(1, entries))
    return (slice(start, min(start + at_once, records)) for start in range(0, records, at_once))


def empty_part(share: float, records: str = "") -> DataError:
    """Return the refusal of a share that leaves one part without a record.

    Example:
        >>> from privstats.intake.splits import empty_part
        >>> str(empty_part(1.5))
        'a split of 1.5 leaves one part empty; pass a share nearer 0.5, above 0 and below 1'
    """
    return DataError(
        f"a split of {share:g} leaves one part{records} empty; pass a share nearer 0.5, above 0 and below 1"
    )
