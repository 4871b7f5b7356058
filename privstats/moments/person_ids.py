"""Whose a row is: an id as one person, each read by itself and no two read as one that differ.

More narrow than ``transforms.one_value``, for which ``1e5`` and ``10e4`` are one value: two persons who are taken for
one move the sums by twice the promise.
"""

from __future__ import annotations

import hashlib
import re
import struct
import unicodedata
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.transforms.one_value import UNREADABLE, Reading, reading
from privstats.transforms.reading import values_of

__all__ = ["names_of", "persons_held_out", "persons_of"]

_SPLIT = b"privstats/split/persons\0"
_LARGEST = 2.0**53  # above it a float stands for several whole numbers
_LONGEST = 200  # as registries of streams take them: who is one person in one place is so in all
_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
_NAMED = "#N/A,#N/A N/A,#NA,-1.#IND,-1.#QNAN,-NaN,-nan,1.#IND,1.#QNAN,<NA>,N/A,NA,NULL,NaN,NaT,None,n/a,nan,null"
_MISSING = frozenset(("", *_NAMED.split(",")))
"""As readers of tables write a gap, letter by letter: ``Null`` and ``Nan`` are names of people."""


def persons_of(ids: Any) -> NDArray[np.intp]:
    """A number for each person, ``(n,)``; -1 where an id is missing, or a number that is not whole or from 2**53 on.

    Such numbers are left out in every container, because a gap beside them makes whole numbers floats in some.

    Raises:
        DataError: ids of another shape than ``(n,)``.
    """
    if len(shape := getattr(ids, "shape", (0,))) != 1:
        raise DataError(
            f"persons must be one id for each row, (n,), got an array of {len(shape)} axes; give one column"
        )
    plain = values_of(ids)
    codes = np.full(len(plain), -1, np.intp)
    if isinstance(plain, np.ndarray):
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = plain.astype(np.float64)
            whole = np.flatnonzero((numbers == plain) & (numbers == np.rint(numbers)) & (np.abs(numbers) < _LARGEST))
        codes[whole] = np.unique(numbers[whole], return_inverse=True)[1]
        return codes
    known: dict[float | str, int] = {}
    for place, value in enumerate(plain):
        found = _person(value)
        if found is not None:
            codes[place] = known.setdefault(found, len(known))
    return codes


def names_of(ids: Any) -> list[str | None]:
    """The text by which each person is known wherever the id is kept: ``7`` for 007 and 7.0; None where no person is
    said. Two ids have one name exactly where :func:`persons_of` takes them for one person.

    Example:
        >>> from privstats.moments.person_ids import names_of
        >>> names_of(["007", " anna ", "n/a"]), names_of(np.array([7.0, np.nan]))
        (['7', 'anna', None], ['7', None])
    """
    found = [_person(value) for value in values_of(ids)]
    return [str(int(each)) if isinstance(each, float) else each for each in found]


def persons_held_out(ids: Any, share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows a split holds out, ``(n,)``: all of a person or none, by the seed and that person's id alone.

    A row without an id is in no sum and is not held out either.

    Args:
        ids: as for :func:`persons_of`, however they are written.
        share: about how many persons are held out.
        seed: fixes which.
    """
    codes, plain = persons_of(ids), values_of(ids)
    found, firsts = np.unique(codes, return_index=True)
    told = [
        code >= 0 and _number(_person(plain[first]), seed) < share for code, first in zip(found, firsts, strict=True)
    ]
    return np.asarray(told, bool)[np.searchsorted(found, codes)]


def _number(person: Reading, seed: int) -> float:
    """A number in [0, 1) that follows from a person and the seed."""
    said = (
        b"n" + struct.pack(">d", person)
        if isinstance(person, float)
        else b"t" + str(person).encode(errors="surrogatepass")
    )
    digest = hashlib.sha256(_SPLIT + str(seed).encode() + b"\0" + said).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) * 2.0**-53


def _person(value: Any) -> Reading:
    """A whole number below 2**53, a text, or None where no person is said."""
    try:
        return _read(value)
    except Exception:  # of its own methods: no value may stop the reading of others
        return None


def _read(value: Any) -> Reading:
    if isinstance(value, str):
        return _of_text(str.__str__(value))
    if isinstance(value, bytes | bytearray):
        return _of_text(value.decode("utf-8", "surrogateescape"))  # bytes that are no text differ as texts do
    if isinstance(value, Number | Decimal | np.bool_) and not isinstance(value, np.timedelta64):
        found = reading(value)
        return _whole(found) if isinstance(found, float) and found == value else None
    for name in ("as_py", "item"):  # a scalar of Arrow, or of torch
        if (
            hasattr(value, name)
            and getattr(value, "ndim", 0) == 0
            and not isinstance(value, np.datetime64 | np.timedelta64)
        ):
            return _person(getattr(value, name)())
    found = reading(value)
    if isinstance(found, float):  # of an object that writes itself as a number
        return _of_text(str(value))
    return None if found == UNREADABLE else found


def _of_text(text: str) -> Reading:
    text = text.rstrip("\0").strip()  # numpy's texts lose what is 0 at their end
    if len(text) > _LONGEST:
        return None
    text = unicodedata.normalize("NFC", text).strip()
    if len(text) > _LONGEST:  # a few characters are several in NFC
        return None
    if _WHOLE.fullmatch(text):
        return _whole(float(text))
    return None if text in _MISSING or text == UNREADABLE else text


def _whole(number: float) -> float | None:
    return number + 0.0 if abs(number) < _LARGEST and number == round(number) else None
