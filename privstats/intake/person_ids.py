"""Decide which person an id names, each id by itself.

An id is a text or an integer. Two values name one person only if they are:

- equal integers, as numbers of any type or as texts: ``7``, ``7.0``, ``"007"``, ``" +7. "``, ``"0.7e1"``, ``"0x7"``.
  Readers of tables turn these texts into that number.
- texts that are equal after ASCII blanks and zeros (U+0000) at both ends are removed. Bytes without such blanks count
  as their UTF-8 text, a UUID as its text.
- equal bytes that are not valid UTF-8.

Case, inner spaces and invisible characters distinguish persons. Joining two persons, or splitting one, moves the sums
by up to twice the guarantee. An id for which either is possible therefore names **no person**: its rows enter no sum,
which is sound for any row. These ids name no person:

- Missing values, as readers of tables write them.
- Texts with U+FFFD, which replaces bytes lost in decoding.
- Texts with an inner zero, of more than 200 characters, or not in NFC.
- Texts with a non-ASCII blank at an end, which may be a letter in another encoding.
- Bytes that are a text with blanks or zeros at an end. They may be that text, or a binary id.
- Numbers that are no integers, or of magnitude 2**53 or more. Narrower floats have a lower limit: float32 2**24.
- Dates, times and spans. Containers truncate them to microseconds or move them between zones.
- Booleans, which some containers store as numbers. Values of any other type.
- Texts that a reader of tables may convert to one of these (``12.1``, ``inf``, ``True``, ``2020-01-02``, ``12:30``).
  Such a reader uses one type per column, so one such text could change which person other rows name.

The static type of a column is public. A type of narrow floats, complex numbers or several values is refused.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
import unicodedata
from array import array
from collections.abc import Sequence
from decimal import Decimal
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.errors import DataError
from privstats.intake.accepted import ColumnLike
from privstats.intake.columns import array_of, values_of
from privstats.intake.meaning import LOST, UNREADABLE, Meaning, is_decimal, of_number

_NO_IDS = re.compile(
    r"(large_|fixed_size_)?list|struct|map<|array\(|(dense|sparse)_union|torch\.(b?float|complex)", re.I
)
"""Names of static types, in any library, that hold no ids: several values per row, or tensors of floats."""
# Binary digits of a float64: from 2**53 on, several integers round to one float.
_DIGITS = 53
# Registries of streams have the same limit, so that an id names one person everywhere.
_LONGEST_ID = 200
_INTEGER = re.compile(r"[+-]?[0-9]+(\.0*)?")
_NO_UTF8 = re.compile("[\udc80-\udcff]")  # escaped bytes that are not valid UTF-8 (PEP 383)
_GAPS = "#N/A,#N/A N/A,#NA,-1.#IND,-1.#QNAN,-NaN,-nan,1.#IND,1.#QNAN,<NA>,N/A,NA,NULL,NaN,NaT,None,n/a,nan,null"
_NO_ID = frozenset(("", *_GAPS.split(",")))
"""Gaps as readers of tables write them. Case matters: ``Null`` is a surname."""
_BLANKS = " \t\n\v\f\r\0"
_CODED = re.compile("0x[0-9a-f]+|0b[01]+", re.IGNORECASE)
"""Texts that readers of tables convert to numbers; Arrow and DuckDB do so by the prefix."""
_TYPED = re.compile(
    r"""[+-]?(?:inf(?:inity)?|nan|epoch)                           # infinities, and a day of DuckDB
    | true | false | t | f | yes | no | y | n
    | [+-]?[0-9]+([-/.\\ ])[0-9]{1,2}\1[0-9]{1,2}(?:[T ].*)?       # a date, with or without a time of day
    | [0-9]{1,2}([-/.\\ ])[0-9]{1,2}\2[0-9]+(?:[T ].*)?
    | [0-9]{8}T[0-9.]+Z? | [0-9]{1,2}(?::[0-9]{1,2}){1,2}(?:\.[0-9]*)?
    """,
    re.ASCII | re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
"""Texts that pandas, polars, Arrow or DuckDB convert to an infinity, boolean, date or time."""
AMBIGUOUS = ""
"""Result of :func:`identity` for a text that a reader of tables may convert to another value. No id is empty."""
LIKE_ANOTHER = -2
"""The code of a row with an ambiguous id. Other rows without a person have -1."""
RULE = 2
"""Version of this module's rule. A registry of persons stores it, and is opened under no other."""


def identity(value: object) -> Meaning:
    """Return the person that one id names: an integer below 2**53, or a text.

    None if the id names no person; :data:`AMBIGUOUS` if a reader of tables may convert it to another value. The
    module's docstring has the rule.

    Example:
        >>> from privstats.intake.person_ids import identity
        >>> [identity(value) for value in ("007", 7, " anna ", None, "12.1")]
        [7.0, 7.0, 'anna', None, '']
    """
    try:
        return _identity(value)
    except Exception:  # raised by the value's own methods: one value must not stop the reading of others
        return None


def _identity(value: Any) -> Meaning:
    match value:
        case str():
            return _id_of_text(str.__str__(value))
        case bytes() | bytearray():
            return _id_of_bytes(bytes(value))
        case None | bool() | np.datetime64() | np.timedelta64():  # a span is an integer to numpy
            return None
        case np.number() | np.bool_():
            return _id_of_number(value, first_unsure(value.dtype))
        case Number() | Decimal():
            return _id_of_number(value, 2.0**_DIGITS)
        case UUID():
            return _id_of_text(str(value))
        case np.generic():  # bytes of no type
            return identity(value.item())
        case np.ndarray():
            return None if value is np.ma.masked or value.ndim else identity(value[()])
    if hasattr(value, "as_py"):  # a scalar of Arrow
        result = value.as_py()
        narrow = isinstance(result, float)
        return (
            _id_of_number(result, first_unsure(np.dtype(f"f{value.type.bit_width // 8}")))
            if narrow
            else identity(result)
        )
    torch_scalar = hasattr(value, "detach") and not value.ndim
    return identity(value.detach().cpu().numpy()) if torch_scalar else None


def first_unsure(kind: np.dtype[Any]) -> float:
    """Return the bound below which a type's integers are exact, at most 2**53; 0 for booleans."""
    if kind.kind == "b":
        return 0.0
    return 2.0 ** (min(np.finfo(kind).nmant + 1, _DIGITS) if kind.kind in "fc" else _DIGITS)


def _id_of_number(value: Any, limit: float) -> float | None:
    value = value.real if getattr(value, "imag", 0) == 0 else math.nan
    number = of_number(value)
    return None if number is None or number != value else _integer(number, limit)


def _id_of_bytes(raw: bytes) -> Meaning:
    text = raw.decode("utf-8", "surrogateescape")  # so that bytes that are no text stay what they are
    return _id_of_text(text) if text == text.strip(_BLANKS) or _NO_UTF8.search(text) else None


def _id_of_text(value: str) -> Meaning:
    if _NO_UTF8.search(value):
        return value if len(value) <= _LONGEST_ID and LOST not in value else None
    text = value.strip(_BLANKS)  # numpy's texts lose what is 0 at their end
    if len(text) > _LONGEST_ID or text in _NO_ID or text == UNREADABLE or LOST in text or "\0" in text:
        return None
    if text != text.strip() or not unicodedata.is_normalized("NFC", text):
        return None
    if _INTEGER.fullmatch(text):
        return _integer(float(text), 2.0**_DIGITS)
    if is_decimal(text) or _CODED.fullmatch(text):
        number = _integer(float(int(text, 0) if _CODED.fullmatch(text) else text), 2.0**_DIGITS)
        return AMBIGUOUS if number is None else number
    return AMBIGUOUS if _TYPED.fullmatch(text) else text


def _integer(number: float, limit: float) -> float | None:
    return number + 0.0 if abs(number) < limit and number == round(number) else None


def persons_of(ids: ColumnLike) -> NDArray[np.intp]:
    """Return each row's person as a code from 0 on, ``(n,)``; -1 or :data:`LIKE_ANOTHER` where an id names no person.

    Large numbers name no person in any container, because in some a gap in the column turns integers into floats.

    Raises:
        DataError: ids not of shape ``(n,)``, or of a type that does not distinguish persons.
    """
    if len(shape := getattr(ids, "shape", (0,))) != 1:
        raise DataError(
            f"persons must be one id for each row, (n,), got an array of {len(shape)} axes; pass one column"
        )
    plain = typed_ids(ids)
    codes = np.full(len(plain), -1, np.intp)
    if isinstance(plain, np.ndarray):
        numbers, places = _integers(plain)
        codes[places] = np.unique(numbers[places], return_inverse=True)[1]
        return codes
    known: dict[float | str, int] = {}
    for place, value in enumerate(plain):
        result = identity(value)
        if result is not None:
            codes[place] = LIKE_ANOTHER if result == AMBIGUOUS else known.setdefault(result, len(known))
    return codes


def _integers(plain: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return an array of numbers as float64, and the places of those that name a person."""
    with np.errstate(over="ignore", invalid="ignore"):
        numbers, limit = plain.astype(np.float64), first_unsure(plain.dtype)
        fine = (numbers == plain) & (numbers == np.rint(numbers)) & (np.abs(numbers) < limit)
    return numbers, np.flatnonzero(fine)


def fingerprints_by_row(ids: ColumnLike) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return 64 bits of the person of each row that has one, and these rows' indices, both ``(m,)``.

    The bits are an integer's own, or eight bytes of a text's hash. Equal bits mean one person, except that two texts
    collide with probability 2**-64.

    Args:
        ids: see :func:`persons_of`.

    Example:
        >>> from privstats.intake.person_ids import fingerprints_by_row
        >>> bits, rows = fingerprints_by_row(["007", None, 7, "anna"])
        >>> bool(bits[0] == bits[1]), rows.tolist()
        (True, [0, 2, 3])
    """
    plain = typed_ids(ids)
    if isinstance(plain, np.ndarray):
        numbers, places = _integers(plain)
        return (numbers[places] + 0.0).view(np.uint64), places
    persons = {place: each for place, value in enumerate(plain) if (each := identity(value)) not in (None, AMBIGUOUS)}
    bits = {each: _bits_of(each) for each in set(persons.values())}
    return np.array([bits[each] for each in persons.values()], np.uint64), np.array([*persons], np.intp)


def _bits_of(person: Meaning) -> int:
    if isinstance(person, float):
        return int(np.float64(person).view(np.uint64))
    text = str(person).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def typed_ids(ids: ColumnLike) -> NDArray[Any] | Sequence[object]:
    """Return the values of a column of ids, see ``columns.values_of``. Only the static type is checked.

    Raises:
        DataError: the type holds narrow floats, complex numbers or several values, so two persons could share an id.
    """
    kind = getattr(ids, "dtype", getattr(ids, "type", None))
    if hasattr(ids, "__array__") or isinstance(ids, array | memoryview):
        if _NO_IDS.match(str(kind)):
            raise _alike(kind)
        ids = ids if isinstance(ids, np.ndarray) else array_of(ids)
        narrow = ids.dtype.kind == "f" and ids.dtype.itemsize < 8 and str(kind) != "Null"  # of polars
        if narrow or ids.dtype.names or ids.dtype.kind == "c":
            raise _alike(ids.dtype)
    return values_of(ids)


def _alike(kind: object) -> DataError:
    return DataError(f"ids of type {kind} do not distinguish persons: pass texts, or integers of 64 bits")


def names_of(ids: ColumnLike) -> list[str | None]:
    """Return each id's text for storage: ``7`` for 007 and 7.0; None for an id that names no person.

    Two ids have equal texts exactly where :func:`persons_of` gives them one code.

    Args:
        ids: see :func:`persons_of`.

    Example:
        >>> from privstats.intake.person_ids import names_of
        >>> names_of(["007", " anna ", "n/a", "1.5"]), names_of(np.array([7.0, np.nan]))
        (['7', 'anna', None, None], ['7', None])
    """
    result = [identity(value) for value in typed_ids(ids)]
    return [str(int(each)) if isinstance(each, float) else each or None for each in result]


def persons_held_out(ids: ColumnLike, share: float, seed: int) -> NDArray[np.bool_]:
    """Return which rows a split holds out, ``(n,)``: all rows of a person or none.

    The seed and that person's id alone decide. A row whose id names no person is not held out.

    Args:
        ids: see :func:`persons_of`.
        share: expected share of persons held out, in [0, 1].
        seed: selects the split.
    """
    return np.asarray(sides_of(ids, share, seed, {}) > 0)


def sides_of(ids: ColumnLike, share: float, seed: int, coins: dict[Meaning, float]) -> NDArray[np.int8]:
    """Return each row's side of a split, ``(n,)``: 1 held out, 0 summed, -1 for the row of no person.

    Args:
        ids, share, seed: as in :func:`persons_held_out`.
        coins: each known person's coin; new persons are added.

    Example:
        >>> from privstats.intake.person_ids import sides_of
        >>> coins = {}
        >>> sides_of(["anna", "ben", "anna", None], 0.5, 3, coins).tolist(), len(coins)
        ([1, 1, 1, -1], 2)
    """
    codes, plain = persons_of(ids), typed_ids(ids)
    result, firsts = np.unique(codes, return_index=True)
    sides = np.full(len(result), -1, np.int8)
    for place, first in enumerate(firsts.tolist()):
        if result[place] >= 0:
            person = identity(plain[first])
            if person not in coins:
                coins[person] = _number(person, seed)
            sides[place] = coins[person] < share
    return sides[np.searchsorted(result, codes)]


def _number(person: Meaning, seed: int) -> float:
    """Return a hash of the person and the seed in [0, 1)."""
    number = isinstance(person, float)
    encoded = b"n" + struct.pack(">d", person) if number else b"t" + str(person).encode(errors="surrogatepass")
    digest = hashlib.sha256(domains.SPLIT_PERSONS + str(seed).encode() + b"\0" + encoded).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) * 2.0**-53
