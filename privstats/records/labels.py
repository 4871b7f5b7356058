"""Read labels and targets: each label by itself, as an integer or a class name, never shown in a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError, RecordError
from privstats.intake.accepted import ColumnLike, TargetsLike
from privstats.intake.arrays import FileRows, GuardedRows, is_tensor, on_device
from privstats.intake.columns import TRUTHS, Listed, read
from privstats.intake.meaning import listed
from privstats.intake.tables import is_list, rectangle
from privstats.records.code_rows import CodeRows
from privstats.records.containers import Rows, as_rows, real, require_unmasked
from privstats.records.emptied import ListedColumn
from privstats.records.reading import Goal, Labels, Reading, Targets, Unread

if TYPE_CHECKING:
    from torch import Tensor

Goals: TypeAlias = "Rows | ReadLabels | NamedLabels"
"""Labels or targets of an opened container."""
AnyTargets: TypeAlias = "TargetsLike | Goals"
"""Labels or targets in a user's container, or opened before."""

WINDOW_RECORDS = 1 << 17
"""Labels are checked, or sorted by class, this many at a time."""


def goals_of(reading: Reading, y: AnyTargets, *, one_by_one: bool = False) -> Goals:
    """Return labels or targets as an object with a shape, a dtype and slices; opened ones unchanged.

    Args:
        one_by_one: as in ``containers.feature_rows``.
    """
    if one_by_one and is_list(y):
        rows = rectangle(y, reading.width)
        return rows if reading.width > 1 else rows[:, 0]
    return y if one_by_one and isinstance(y, np.ma.MaskedArray) else as_goals(y)


def as_goals(y: AnyTargets) -> Goals:
    """Return the caller's labels or targets as an object with a shape, a dtype and slices."""
    return y if isinstance(y, ReadLabels | NamedLabels) else as_rows(y, "y")


def check_goal(goal: Goal, y: Goals, *, device_labels: bool = False) -> Rows | NamedLabels:
    """Return labels as classes ``(n,)``, targets, or zeros ``(n,)`` where no entry of y is read.

    Args:
        device_labels: return integer labels on an accelerator unchecked.
    """
    if isinstance(y, ReadLabels):
        return y.classes
    if isinstance(y, NamedLabels):
        return y
    match goal:
        case Labels():
            return check_labels(goal, y, device_labels=device_labels)
        case Targets():
            return check_targets(y, goal.width)
        case Unread():
            if not y.shape:
                raise DataError(
                    "y must have one entry per record, got a single value; give one label or target per row"
                )
            return np.zeros(y.shape[0], np.intp)


def check_targets(targets: Rows, width: int) -> Rows:
    """Return real targets ``(n, width)``, or ``(n,)`` for one target."""
    columns = 1 if len(targets.shape) == 1 else targets.shape[1] if len(targets.shape) == 2 else 0
    if columns != width and targets.shape != (0,):
        raise DataError(f"y must have shape (records, {width}) under this schema; reshape it")
    return real("y", targets) if targets.shape[0] else targets


_NAMES = "class_names to the plan's schema, one list for all parties"
_MORE = "raise its classes"


def check_labels(
    goal: Labels, labels: Rows, *, device_labels: bool = False
) -> NDArray[Any] | FileRows | GuardedRows | Tensor | NamedLabels:
    """Return labels ``(n,)`` as integers in 0..C-1; refuse others.

    Args:
        device_labels: return integer labels on an accelerator unchecked.
    """
    require_unmasked("y", labels)
    if isinstance(labels, csr_array | CodeRows) or len(labels.shape) != 1:
        raise DataError(f"y must have shape (records,), got {len(labels.shape)} dimensions; give one class per record")
    classes = goal.classes
    if isinstance(classes, range) and are_integers(labels):
        labels = labels.long() if is_tensor(labels) else labels
        if device_labels and on_device(labels):
            return labels
        for window in _windows(labels):
            if window.min() < 0 or window.max() >= len(classes):
                raise outside_classes(len(classes))
        return labels
    if not isinstance(labels, FileRows | GuardedRows):
        return indices_of(classes, labels)
    result = NamedLabels(classes, labels)
    for _ in _windows(result):  # checks every label before any record is measured
        pass
    return result


@dataclass(frozen=True, eq=False, repr=False)
class ReadLabels:
    """Labels that were read before, as classes 0..C-1, ``(n,)``: nothing reads them again."""

    classes: NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the labels, ``(n,)``."""
        return self.classes.shape

    def __getitem__(self, where: slice) -> NDArray[np.intp]:
        return self.classes[where]


def places_of(classes: Sequence[object], labels: ColumnLike) -> NDArray[np.intp]:
    """Return each label's index among the classes, ``(n,)``; -1 for others."""
    return listed_classes(tuple(classes)).places_of(read(labels))


@dataclass(frozen=True)
class NamedLabels:
    """Labels in a file, mapped to classes when read."""

    names: tuple[str, ...] | range
    labels: FileRows | GuardedRows

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the labels, ``(n,)``."""
        return self.labels.shape

    def __getitem__(self, where: slice) -> NDArray[np.intp]:
        return indices_of(self.names, self.labels[where], where.start)


def listed_labels(classes: tuple[str, ...] | range, labels: ColumnLike) -> ListedColumn:
    """Return labels as a column of the classes, of which each record holds one or none."""
    return ListedColumn.of(tuple(classes), listed_classes(tuple(classes)), read(labels))


def indices_of(classes: tuple[str, ...] | range, labels: ColumnLike, first: int = 0) -> NDArray[np.intp]:
    """Return each label's index among the classes, ``(n,)``; refuse others."""
    column = read(labels)
    result = listed_classes(tuple(classes)).places_of(column)
    if not result.size or result.min() >= 0:
        return result
    if isinstance(classes, range):
        if (column.numbers % 1 == 0).all():
            raise outside_classes(len(classes))
        raise RecordError(
            f"y must hold integers 0..{len(classes) - 1}, and an entry is no integer; {_remedy(len(classes))}"
        )
    raise RecordError(
        f"y holds a label at position {first + int((result < 0).argmax())} that is not among class_names; "
        f"the classes are {listed(classes)}: correct it if it is misspelt or missing, or exclude its record"
    )


def outside_classes(classes: int) -> RecordError:
    """Return the error about integer labels outside 0..C-1."""
    return RecordError(f"y has labels outside 0..{classes - 1}; {_remedy(classes)}, or {_MORE}")


def _remedy(classes: int) -> str:
    outcomes = "map the outcomes to 0 and 1 by one rule for all parties or, under a schema of classes, "
    return f"{outcomes if classes == 2 else ''}give {_NAMES}"


@lru_cache(maxsize=8)
def listed_classes(classes: tuple[object, ...]) -> Listed:
    """Return the classes in comparable form; two numbered ones also read yes and no."""
    return TRUTHS if classes == (0, 1) else Listed.of(classes)


def are_integers(labels: NDArray[Any] | FileRows | GuardedRows | Tensor) -> bool:
    """Return whether the type of the labels is of integers or booleans."""
    if is_tensor(labels):
        return not (labels.is_floating_point() or labels.is_complex())
    return labels.dtype.kind in "iub"


def _windows(
    labels: NDArray[Any] | FileRows | GuardedRows | Tensor | NamedLabels,
) -> Iterator[NDArray[Any] | Tensor]:
    return (labels[window] for window in in_order(labels.shape[0], WINDOW_RECORDS))


def in_order(count: int, at_once: int) -> Iterator[slice]:
    """Yield slices of ``at_once`` of ``count`` records, in order."""
    return (slice(start, min(start + at_once, count)) for start in range(0, count, at_once))
