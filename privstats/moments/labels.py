"""Class labels: whole numbers as they are, texts by the plan's list of names.

The list is part of the plan, so every party maps the same text to the same class; numbering one party's own labels
would not. A label is a data value and is never part of a message; the plan's names may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.arrays import is_tensor, listed
from privstats.moments.files import FileRows, GuardedRows
from privstats.schema import ClassSchema

__all__ = ["NamedLabels", "check_labels", "indices_of", "named_numbers"]

_WINDOW_RECORDS = 1 << 17
_NAMES = "class_names to the plan's schema, one list for all parties"


def check_labels(schema: ClassSchema, labels: Any) -> Any:
    """Labels of shape ``(n,)`` as whole numbers in 0..C-1, in a container with slices.

    Args:
        schema: with ``class_names``, labels are these texts (or whole numbers, where every name is one); without,
            they are whole numbers 0..C-1.
        labels: a container with slices (see ``input_validation``).

    Raises:
        DataError: labels of another shape or type, or not among the classes.
    """
    if len(labels.shape) != 1:
        raise DataError(f"y must have shape (records,), got {len(labels.shape)} dimensions; give one class per record")
    if schema.class_names is not None:
        return _named(schema.class_names, labels)
    count = labels.shape[0]
    whole = not labels.is_floating_point() if is_tensor(labels) else labels.dtype.kind in "iub"
    if count and not whole:
        raise DataError(f"y must hold whole numbers 0..{schema.classes - 1}, got dtype {labels.dtype}; {_how(labels)}")
    if is_tensor(labels):
        labels = labels.long()
    for window in _windows(labels):
        if window.min() < 0 or window.max() >= schema.classes:
            raise DataError(f"y has labels outside 0..{schema.classes - 1}; give {_NAMES}, or raise its classes")
    return labels


@dataclass(frozen=True)
class NamedLabels:
    """Labels in a file, mapped to classes by name when they are read.

    Attributes:
        names: the plan's.
        labels: rows of a file.
    """

    names: tuple[str, ...]
    labels: FileRows | GuardedRows

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the labels, ``(n,)``."""
        return self.labels.shape

    def __getitem__(self, where: slice) -> NDArray[np.intp]:
        """Class indices of some records."""
        return indices_of(self.names, self.labels[where], where.start)


def indices_of(names: tuple[str, ...], labels: Any, first: int = 0) -> NDArray[np.intp]:
    """The index of each label in ``names``, shape ``(n,)``.

    Args:
        names: class names in order.
        labels: texts; or whole numbers or booleans, where every name is the text of a whole number.
        first: position of the first label among all, for the message.

    Raises:
        DataError: a label is not among the names; the message gives the position of the first one and the allowed
            names.
    """
    labels = labels.cpu().numpy() if is_tensor(labels) else np.asarray(labels)
    if labels.size and not _speaks(names, labels):
        raise DataError(
            f"y must hold the texts of class_names, got dtype {labels.dtype}; the classes are {listed(names)}"
        )
    numbers: Mapping[Any, int] = {name: index for index, name in enumerate(names)}
    if labels.size and labels.dtype.kind in "iub":
        numbers = {int(name): index for name, index in numbers.items()}
    found = np.array([_place(numbers, label) for label in labels.tolist()], np.intp)
    if found.size and found.min() < 0:
        raise DataError(
            f"y holds a label at position {first + int((found < 0).argmax())} that is not among class_names; "
            f"the classes are {listed(names)}: correct it if it is misspelt or missing, or leave its record out"
        )
    return found


def named_numbers(classes: NDArray[Any], labels: Any) -> Any:
    """Whole numbers as the texts that name them, where all ``classes`` are such texts; other labels as they are."""
    numbers = np.asarray(labels)
    if classes.dtype.kind != "U" or numbers.dtype.kind not in "iu" or not _speaks(tuple(classes.tolist()), numbers):
        return labels
    return numbers.astype(str)


def _named(names: tuple[str, ...], labels: Any) -> Any:
    if not isinstance(labels, FileRows | GuardedRows):
        return indices_of(names, labels)
    named = NamedLabels(names, labels)
    for _ in _windows(named):  # every label is looked at before any record is measured
        pass
    return named


def _speaks(names: tuple[str, ...], labels: NDArray[Any]) -> bool:
    """Whether labels of this type can be names: texts, or whole numbers where all names are."""
    if labels.dtype.kind in "iub":
        return all(name.isascii() and name.removeprefix("-").isdigit() and name == str(int(name)) for name in names)
    return labels.dtype.kind in "UT" or (
        labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels.tolist())
    )


def _place(numbers: Mapping[Any, int], label: Any) -> int:
    """The class of a label; -1 for a missing one (None, NaN) and for an unknown name."""
    return numbers.get(label, -1) if isinstance(label, str | int) else -1


def _windows(labels: Any) -> Any:
    count = labels.shape[0]
    return (labels[start : min(start + _WINDOW_RECORDS, count)] for start in range(0, count, _WINDOW_RECORDS))


def _how(labels: Any) -> str:
    if is_tensor(labels):
        return "use y.long()"
    return f"use y.astype(int) if they are whole, or give {_NAMES}" if labels.dtype.kind in "fO" else f"give {_NAMES}"
