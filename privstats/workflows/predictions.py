"""Predict the records of a file by a fitted head, and write the predictions as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privstats import optional_dependencies
from privstats.errors import DataError, HeadError
from privstats.files.atomic import atomic_write
from privstats.intake.tables import Codes
from privstats.transforms import Numeric

if TYPE_CHECKING:
    from privstats.moments import RecordFile

PREDICTED = "predicted"
"""The column of predicted classes or numbers."""
_PROBABILITY = "probability of {}"
_ENDINGS = (".csv", ".parquet")


@dataclass(frozen=True)
class Predictions:
    """One row per record of a file, in the file's order.

    Attributes:
        columns: copied columns, the prediction, and one probability per class; None where a record is unreadable.
        unread: number of records without a prediction.
        broken: what the file's reader excluded, one sentence; "" without any.
    """

    columns: Mapping[str, Sequence[Any]]
    unread: int = 0
    broken: str = ""

    def __len__(self) -> int:
        return len(self.columns[PREDICTED])


def require_ending(path: Path) -> None:
    """Refuse an output that is neither CSV nor Parquet, or Parquet without pyarrow.

    Example:
        >>> from pathlib import Path
        >>> from privstats.workflows.predictions import require_ending
        >>> require_ending(Path("new.csv"))
    """
    if path.suffix.lower() not in _ENDINGS:
        raise DataError(f"--out must end in .csv or .parquet, got {path.name!r}")
    if path.suffix.lower() == ".parquet":
        optional_dependencies.require("pyarrow", by="a Parquet file")


def predictions(
    head: Any,
    file: RecordFile,
    keep: Sequence[str] = (),
    *,
    threshold: float | Literal["prevalence"] | None = None,
) -> Predictions:
    """Return a head's predictions for every record of a file.

    An unreadable value of a declared column counts as missing, and an unlisted one as ``other``, as in
    :meth:`~privstats.heads.ClassHead.predict`. A head without declared columns needs a number in each column; a record
    without one has no prediction.

    Args:
        keep: columns of the file to copy, such as an id.
        threshold: of a head of two classes: the second class is predicted from this probability on.

    Raises:
        DataError: the file is unreadable or lacks a column.
        HeadError: an unusable threshold.

    Warns:
        UnreadableRecordsWarning: values that the plan does not list.

    Example:
        >>> from privstats.moments import RecordFile
        >>> from privstats.workflows.predictions import predictions
        >>> X, y = np.array([[0.0], [0.2], [1.0], [1.2]]), np.array(["ash", "ash", "elm", "elm"])
        >>> np.savez("trees.npz", X=X)
        >>> predictions(ps.heads.LDA().fit(X, y), RecordFile("trees.npz")).columns["predicted"]
        ['ash', 'ash', 'elm', 'elm']
    """
    X, copied, known, broken = _rows_of(head, file, keep)
    own: dict[str, Any] = {}
    if threshold is not None:
        if not hasattr(head, "classes_"):
            raise HeadError("--threshold is for a head of two classes, and this one predicts a number: omit it")
        own["threshold"] = threshold
    values: dict[str, Any] = {PREDICTED: head.predict(X, **own) if known.any() else np.empty(0)}
    if hasattr(head, "classes_"):
        shares = head.predict_proba(X) if known.any() else np.empty((0, len(head.classes_)))
        values |= {_PROBABILITY.format(each): shares[:, place] for place, each in enumerate(head.classes_)}
    elif values[PREDICTED].ndim > 1:
        several = values.pop(PREDICTED)
        values |= {PREDICTED if not place else f"{PREDICTED} {place + 1}": each for place, each in enumerate(several.T)}
    if twice := [name for name in copied if name in values]:
        raise DataError(f"{file.path} has a column {twice[0]!r} too, which is one of the predictions: rename it")
    columns = {name: _spread(each, known) for name, each in values.items()}
    return Predictions({**copied, **columns}, int((~known).sum()), broken)


def _spread(values: NDArray[Any], known: NDArray[np.bool_]) -> list[Any]:
    """Return values at the known records, and None elsewhere."""
    held = iter(values.tolist())
    return [next(held) if each else None for each in known.tolist()]


def _rows_of(head: Any, file: RecordFile, keep: Sequence[str]) -> tuple[Any, dict[str, Any], NDArray[np.bool_], str]:
    """Return the readable rows as the head accepts them, the copied columns, which rows these are, and a remark."""
    first = head.preprocessing_ if hasattr(head, "preprocessing_") else head.head.preprocessing_
    if not file.is_table:
        if keep:
            raise DataError(f"--keep names a column of a table, and {file.path} holds arrays: omit it")
        X = np.asarray(file.arrays("X")["X"])
        return _finite(X, {}, "")
    names = list(first.columns or [name for name in file.columns if name not in keep])
    declared = [Numeric(name) for name in names] if first.cells is None else first.cells.columns
    table = file.table([*names, *keep], [each.marks for each in declared])
    copied = {name: _plain(table.values(name)) for name in keep}
    broken = ""
    if table.left_out:
        from privstats.intake.table_parts import misfits  # only files need it

        broken = misfits(table.left_out, table.first_left_out)
    values = {each.name: table.values(each.name) for each in declared}
    if first.cells is not None:
        codes = first.ordered(values)
        return Codes(codes, {}), copied, np.ones(len(codes), np.bool_), broken
    rows = np.column_stack([each.readings(values[each.name]).numbers for each in declared])
    return _finite(rows, copied, broken)


def _finite(
    rows: NDArray[Any], copied: dict[str, Any], broken: str
) -> tuple[Any, dict[str, Any], NDArray[np.bool_], str]:
    known = np.isfinite(rows).all(axis=1)
    return rows[known], copied, known, broken


def _plain(values: Any) -> list[Any]:
    from privstats.intake.columns import values_of

    plain = values_of(values)
    return plain.tolist() if isinstance(plain, np.ndarray) else list(plain)


def write(made: Predictions, path: Path) -> None:
    """Write predictions as CSV or Parquet, by the ending of the name.

    Raises:
        MissingExtraError: Parquet without pyarrow.

    Example:
        >>> from pathlib import Path
        >>> from privstats.workflows.predictions import Predictions, write
        >>> write(Predictions({"id": ["a", "b"], "predicted": ["yes", None]}), Path("new.csv"))
        >>> Path("new.csv").read_text().split()
        ['id,predicted', 'a,yes', 'b,']
    """
    if path.suffix.lower() == ".csv":
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(made.columns)
        rows.writerows(zip(*made.columns.values(), strict=True))
        atomic_write(path, text.getvalue().encode(), shared=True)
        return
    arrow = optional_dependencies.load("pyarrow", by="a Parquet file")
    parquet = optional_dependencies.load("pyarrow.parquet", by="a Parquet file")
    sink = io.BytesIO()
    parquet.write_table(arrow.table({name: list(each) for name, each in made.columns.items()}), sink)
    atomic_write(path, sink.getvalue(), shared=True)
