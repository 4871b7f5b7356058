"""Class labels: each read by itself, as a whole number or by the plan's list of names.

The list is part of the plan, so every party maps the same text to the same class; numbering one party's own labels
would not. A label is a data value and is never part of a message; the plan's names may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, RecordError
from privstats.moments.arrays import host_rows, is_list, is_tensor, listed
from privstats.moments.files import FileRows, GuardedRows
from privstats.schema import ClassSchema, Schema
from privstats.transforms.reading import Listed, array_of, read

__all__ = ["NamedLabels", "check_labels", "classes_of", "indices_of", "named_numbers", "places_of"]

_WINDOW_RECORDS = 1 << 17
_NAMES = "class_names to the plan's schema, one list for all parties"
_MORE = "raise its classes"


def check_labels(schema: ClassSchema, labels: Any) -> Any:
    """Labels of shape ``(n,)`` as whole numbers in 0..C-1, in a container with slices.

    Each label is read by itself (:mod:`privstats.transforms.one_value`), whatever type the container gives all of them.

    Args:
        schema: with ``class_names``, labels are these; without, they are whole numbers 0..C-1.
        labels: a container with slices (see ``input_validation``).

    Raises:
        DataError: labels of another shape.
        RecordError: a label is not among the classes.
    """
    if len(labels.shape) != 1:
        raise DataError(f"y must have shape (records,), got {len(labels.shape)} dimensions; give one class per record")
    if schema.class_names is None and _are_whole(labels):
        labels = labels.long() if is_tensor(labels) else labels
        for window in _windows(labels):
            if window.min() < 0 or window.max() >= schema.classes:
                raise RecordError(
                    f"y has labels outside 0..{schema.classes - 1}; {_remedy(schema.classes)}, or {_MORE}"
                )
        return labels
    if not isinstance(labels, FileRows | GuardedRows):
        return indices_of(classes_of(schema), labels)
    found = NamedLabels(classes_of(schema), labels)
    for _ in _windows(found):  # every label is looked at before any record is measured
        pass
    return found


def classes_of(schema: Schema) -> tuple[str, ...] | range:
    """What labels are: the names of the classes, or the numbers 0..C-1."""
    return range(schema.classes) if schema.class_names is None else schema.class_names  # type: ignore[attr-defined]


def places_of(classes: Sequence[Any], labels: Any) -> NDArray[np.intp]:
    """The place of each label among the classes, ``(n,)``; -1 for what is none of them.

    Args:
        classes: texts or numbers, no two of which are read alike.
        labels: an array, tensor or list of labels.
    """
    return _listed(tuple(classes)).places_of(read(_on_host(labels)))


@dataclass(frozen=True)
class NamedLabels:
    """Labels in a file, mapped to classes when they are read.

    Attributes:
        names: the plan's, or the numbers 0..C-1.
        labels: rows of a file.
    """

    names: tuple[str, ...] | range
    labels: FileRows | GuardedRows

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the labels, ``(n,)``."""
        return self.labels.shape

    def __getitem__(self, where: slice) -> NDArray[np.intp]:
        """Class indices of some records."""
        return indices_of(self.names, self.labels[where], where.start)


def indices_of(classes: tuple[str, ...] | range, labels: Any, first: int = 0) -> NDArray[np.intp]:
    """The index of each label among the classes, shape ``(n,)``.

    Args:
        classes: their names in order, or the numbers 0..C-1.
        labels: an array, tensor or list of labels.
        first: position of the first label among all, for the message.

    Raises:
        RecordError: a label is not among them; the message gives the position of the first one and the classes.
    """
    column = read(_on_host(labels))
    found = _listed(tuple(classes)).places_of(column)
    if not found.size or found.min() >= 0:
        return found
    if isinstance(classes, range):
        last = len(classes) - 1
        if (column.numbers % 1 == 0).all():
            raise RecordError(f"y has labels outside 0..{last}; {_remedy(len(classes))}, or {_MORE}")
        raise RecordError(f"y must hold whole numbers 0..{last}, and one is none; {_remedy(len(classes))}")
    raise RecordError(
        f"y holds a label at position {first + int((found < 0).argmax())} that is not among class_names; "
        f"the classes are {listed(classes)}: correct it if it is misspelt or missing, or leave its record out"
    )


def named_numbers(classes: NDArray[Any], labels: Any) -> Any:
    """Labels that are no texts as those of ``classes`` that they are read as, where classes are texts; for scores."""
    given = np.asarray(labels)
    if classes.dtype.kind != "U" or given.dtype.kind == "U":
        return labels
    found = places_of(classes.tolist(), given)
    return labels if (found < 0).all() else np.where(found < 0, given.astype(str), classes[found])


def _remedy(classes: int) -> str:
    """What helps without names; of two classes some are the outcomes of a schema that has no ``class_names``."""
    outcomes = "map the outcomes to 0 and 1 by one rule for all parties, or, if it is a schema of classes, "
    return f"{outcomes if classes == 2 else ''}give {_NAMES}"


@lru_cache(maxsize=8)
def _listed(classes: tuple[Any, ...]) -> Listed:
    return Listed.of(classes)


def _on_host(labels: Any) -> Any:
    if isinstance(labels, np.ma.MaskedArray) or is_list(labels):
        return labels
    return host_rows(labels.cpu()) if is_tensor(labels) else array_of(labels)


def _are_whole(labels: Any) -> bool:
    """Whether every label is a whole number already: a shortcut, which the reading of each would not change."""
    return not labels.is_floating_point() if is_tensor(labels) else labels.dtype.kind in "iub"


def _windows(labels: Any) -> Any:
    count = labels.shape[0]
    return (labels[start : min(start + _WINDOW_RECORDS, count)] for start in range(0, count, _WINDOW_RECORDS))
