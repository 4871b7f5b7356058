"""Select the readable records of any container, for parties under a promise.

A refusal caused by one record would reveal it, because the server sees who is absent. Whether a record is readable
follows from that record and public values alone. Missing columns and wrong shapes, which no single record causes, are
still refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError, SchemaError
from privstats.intake.arrays import is_tensor, repeated_rows
from privstats.intake.columns import Readings, read
from privstats.intake.meaning import MISSING
from privstats.intake.tables import ReadRows, is_list, ordered_columns, rectangle
from privstats.moments.code_rows import cells_of, levels_of
from privstats.moments.input_validation import as_rows, check_shape, classes_of, dense, numbers_in, pairs, places_of
from privstats.schema import ClassSchema, RidgeSchema, Schema
from privstats.transforms import Categories, apply, input_features

if TYPE_CHECKING:
    from privstats.schema.kinds import Kind
    from privstats.schema.public_values import Values

GAP = "hold nothing"
TEXT = "hold a text where a number belongs"
WORD = "hold none of the values that the plan declares"
ARM = "hold an arm that is neither 0 nor 1"
LABEL = "hold none of the plan's labels"
NO_CELL = "hold a value that the plan does not list"

_COLUMNS_SHOWN = 8


@dataclass(frozen=True)
class LeftOut:
    """Unreadable records, which are excluded.

    ``why`` maps (column, reason) to the number of these records; a record may have several reasons.
    """

    records: int = 0
    why: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, fine: NDArray[np.bool_], why: Mapping[tuple[str, str], NDArray[np.bool_]]) -> LeftOut:
        """Count unreadable records, from masks ``(n,)`` of the readable ones and each reason."""
        return cls(int((~fine).sum()), {key: int((each & ~fine).sum()) for key, each in why.items()})

    def __add__(self, other: LeftOut) -> LeftOut:
        both = {key: self.why.get(key, 0) + other.why.get(key, 0) for key in {**self.why, **other.why}}
        return LeftOut(self.records + other.records, both)

    def remark(self, *, none_left: bool, refused: bool = False) -> str:
        """Return the warning for the data holder, or a refusal's message."""
        by_column: dict[str, list[str]] = {column: [] for column, _ in self.why}
        for (column, what), count in self.why.items():
            by_column[column] += [f"{count:,} {what}"] if count else []
        by_column = {column: reasons for column, reasons in by_column.items() if reasons}
        shown = [f"{column}: {', '.join(reasons)}" for column, reasons in list(by_column.items())[:_COLUMNS_SHOWN]]
        more = f"; and {len(by_column) - _COLUMNS_SHOWN} columns more" if len(by_column) > _COLUMNS_SHOWN else ""
        none = "no record remains: " if none_left else ""
        why = f". {'; '.join(shown)}{more}" if shown else ""
        texts = any(what == TEXT and count for (_, what), count in self.why.items())
        code = ", code texts as numbers or have the plan declare them" if texts else ""
        fate = "" if refused else " and are excluded"
        return (
            f"{none}{self.records:,} of the records cannot be read{fate}{why}. Correct the "
            f"file where you can{code}, and do not share these numbers"
        )


def named(names: Sequence[str] | None, columns: int) -> list[str]:
    """Return columns' names or positions."""
    return [repr(name) for name in names] if names is not None else [f"column {j + 1}" for j in range(columns)]


Measured: TypeAlias = "Callable[[Any, Any, Any, Mapping[str, Values], bool], Any]"
Measurement: TypeAlias = "Callable[[Any, Any, Any, Mapping[str, Values], bool], tuple[Any, LeftOut]]"
"""A :data:`Measured` that also returns the unreadable records."""
Noted: TypeAlias = "Callable[[NDArray[np.bool_], Any, NDArray[np.bool_]], None]"
"""Receives which records are readable, the rows (NaN where an entry is unreadable), and which y are readable."""
YKind: TypeAlias = Literal["labels", "targets", "unread"]
"""The kind of y: labels of classes, targets of a regression, or values that are not read."""
_Why: TypeAlias = dict[tuple[str, str], NDArray[np.bool_]]
"""Masks of unreadable entries ``(n,)``, by column and reason."""

_ROWS = 1 << 14
_ENTRIES = 1 << 22  # entries of dense rows at once: one gap must not expand all sparse rows in memory


def of_readable(measured: Measured, y_kind: YKind | None = None, *, noted: Noted = lambda *_: None) -> Measurement:
    """Return a kind's ``measured``, restricted to readable records.

    Args:
        y_kind: the kind of y; None: as the schema's ``rows`` require.
        noted: receives which records are readable.
    """

    def run(schema: Schema, X: Any, y: Any, values: Mapping[str, Values], progress: bool) -> tuple[Any, LeftOut]:
        batches = _Readable(schema, y_kind or _y_kind(schema.rows), noted)  # type: ignore[attr-defined]
        return measured(schema, batches.of(X, y), None, values, progress), batches.left_out

    return run


def terms_of_readable(terms: Measured, y_kind: YKind | None = None) -> Measurement:
    """Return a function for each readable record's contribution."""

    def run(schema: Schema, X: Any, y: Any, values: Mapping[str, Values], progress: bool) -> tuple[Any, LeftOut]:
        readable: list[NDArray[np.bool_]] = []
        note: Noted = lambda fine, *_: readable.append(fine)  # noqa: E731
        batches = _Readable(schema, y_kind or _y_kind(schema.rows), note)  # type: ignore[attr-defined]
        added = terms(schema, batches.of(X, y), None, values, progress)
        return added.among(np.concatenate(readable)), batches.left_out

    return run


def readable_rows(schema: Schema, X: Any) -> tuple[NDArray[Any], LeftOut]:
    """Return the readable rows of a kind without labels, and the excluded records."""
    batches, rows = _Readable(schema, "unread"), _rows(schema, X)
    parts = [part for part, _ in batches.of(rows, np.zeros(rows.shape[0]))]
    return np.concatenate(parts), batches.left_out


def _y_kind(rows: Schema) -> YKind:
    match rows:
        case ClassSchema():
            return "labels"
        case RidgeSchema():
            return "targets"
    raise SchemaError(f"no code selects the readable records of a {type(rows).__name__}; measure another kind")


def readable_of(kind: Kind) -> Measurement:
    """Return the function by which a kind measures records that may be unreadable."""
    return kind.readable or of_readable(kind.measure, kind.beside)


def by_record(kind: Kind) -> Kind | None:
    """Return this kind with ``terms`` as its ``measure``; None without ``terms``."""
    if kind.terms is None:
        return None
    return replace(
        kind, measure=kind.terms, readable=kind.terms_of_readable or terms_of_readable(kind.terms, kind.beside)
    )


class _Readable:
    def __init__(self, schema: Schema, y_kind: YKind, noted: Noted = lambda *_: None) -> None:
        self._schema, self._y_kind, self._noted = schema, y_kind, noted
        self.left_out = LeftOut()

    def of(self, X: Any, y: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        for rows, rest in pairs(X) if y is None else ((X, y),):
            yield from self._windows(_rows(self._schema, rows), _rest(self._schema, rest))

    # Yield readable records, window by window; all at once where every entry is certainly readable.
    def _windows(self, rows: Any, rest: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        if not rest.shape or rows.shape[0] != rest.shape[0]:
            raise DataError(f"X has {rows.shape[0]} rows and y has shape {tuple(rest.shape)}; give one for each row")
        if self._is_plain(rows, rest):
            self._noted(np.ones(rows.shape[0], np.bool_), rows, np.ones(rows.shape[0], np.bool_))
            yield rows, rest
            return
        step = max(1, min(_ROWS, _ENTRIES // max(rows.shape[1], 1)))
        for start in range(0, max(rows.shape[0], 1), step):  # runs once without records
            at = slice(start, min(start + step, rows.shape[0]))
            X, fine, why = _features(self._schema, rows[at])
            y, readable, y_why = self._read(rest[at])
            fine &= readable
            self.left_out += LeftOut.of(fine, {**why, **y_why})
            self._noted(fine.copy(), X, readable)
            yield X[fine], y[fine]

    def _is_plain(self, rows: Any, rest: Any) -> bool:
        if self._schema.transform or not (_is_finite(rows) and _is_finite(rest)):
            return False
        match self._y_kind:
            case "labels":
                classes = classes_of(getattr(self._schema, "rows", self._schema))
                plain = isinstance(classes, range) and len(rest.shape) == 1 and not _is_real(rest)
                return plain and (not rest.shape[0] or bool(rest.min() >= 0 and rest.max() < len(classes)))
            case "targets" | "unread":
                return True

    def _read(self, rest: Any) -> tuple[NDArray[Any], NDArray[np.bool_], _Why]:
        match self._y_kind:
            case "labels":
                if len(rest.shape) != 1:
                    raise DataError(f"y must have shape (records,), got {len(rest.shape)} dimensions")
                classes = classes_of(getattr(self._schema, "rows", self._schema))
                places = places_of(classes, rest)
                labels = places if isinstance(classes, range) else np.asarray(classes)[places]
                return labels, places >= 0, {("the label", LABEL): places < 0}
            case "targets":
                levels = levels_of(self._schema)
                declared = levels.outcomes if levels is not None else ()
                columns = rest if len(rest.shape) > 1 else rest.reshape(-1, 1)
                numbers, why = _parsed(columns, _of_targets(columns.shape[1], declared), declared)
                readable = np.isfinite(numbers).all(axis=1)
                if getattr(getattr(self._schema, "rows", self._schema), "missing", None):
                    gaps = [key for key in why if key[1] == GAP]
                    readable |= np.logical_or.reduce([why.pop(key) for key in gaps])
                return numbers.reshape(rest.shape), np.asarray(readable), why
            case "unread":
                return np.zeros(rest.shape[0], np.intp), np.ones(rest.shape[0], np.bool_), {}


def _rows(schema: Schema, X: Any) -> Any:
    X = ordered_columns(X, schema.feature_names, gaps=True)
    if is_list(X):
        X = rectangle(X, input_features(schema.transform, schema.features - schema.appended))
    return check_shape(schema, X if isinstance(X, np.ma.MaskedArray | ReadRows) else as_rows(X, "X"))


def _rest(schema: Schema, y: Any) -> Any:
    if not is_list(y):
        return y if isinstance(y, np.ma.MaskedArray) else as_rows(y, "y")
    width = getattr(getattr(schema, "rows", schema), "targets", 1)
    result = rectangle(y, width)
    return result if width > 1 else result[:, 0]


def _is_finite(rows: Any) -> bool:
    if is_tensor(rows):
        return not rows.is_complex() and bool(rows.isfinite().all())
    if isinstance(rows, csr_array):
        return rows.dtype.kind in "fiub" and rows.has_canonical_format and bool(np.isfinite(rows.data).all())
    return (
        type(rows) is np.ndarray and rows.dtype.kind in "fiub" and rows.itemsize <= 8 and bool(np.isfinite(rows).all())
    )


def _is_real(rest: Any) -> bool:
    return bool(rest.is_floating_point()) if is_tensor(rest) else rest.dtype.kind == "f"


def _features(schema: Schema, tile: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_], _Why]:
    declared = cells_of(schema) is not None  # every value has a cell; a later map may still make it infinite
    levels, names = levels_of(schema), schema.feature_names
    of = () if levels is None else tuple(map(levels.of, names or ()))
    X, why = (numbers_in(_dense(tile))[0], {}) if declared else _parsed(tile, named(names, tile.shape[1]), of)
    fine = np.ones(len(X), np.bool_) if declared else np.asarray(np.isfinite(X).all(axis=1))
    if len(schema.transform) > declared:
        mapped = np.isfinite(apply(schema.transform, np.where(fine[:, None], X, 0.0))).all(axis=1)
        if getattr(last := schema.transform[-1], "kind", "") == "by-arm":
            arm = named(names, X.shape[1])[last.column]  # type: ignore[attr-defined]
            why[arm, ARM] = fine & ~mapped
        fine &= mapped
    return X, fine, why


def _parsed(tile: Any, names: Sequence[str], declared: Sequence[Any]) -> tuple[NDArray[np.float64], _Why]:
    """Return entries as float64, NaN where unreadable; and, by column and reason, which records are unreadable."""
    columns = tile.readings if isinstance(tile, ReadRows) else None
    raw = _dense(tile) if columns is None else tile
    if raw.dtype.kind in "biuf" and not declared:
        X = numbers_in(raw)[0]
        return X, {(name, GAP): np.isnan(column) for name, column in zip(names, X.T, strict=True)}
    X, why = np.empty(raw.shape), {}
    for j, (name, column) in enumerate(zip(names, declared or [None] * len(names), strict=True)):
        result, words = read(raw[:, j]) if columns is None else columns[j], getattr(column, "values", ())
        codes = result.numbers if column is None else column.codes(result)[0]
        # Code len(words) marks an unlisted text.
        X[:, j] = np.where(codes == (len(words) or np.nan), np.nan, codes)
        why[name, GAP] = gone = result.missing if column is None else column.decide(result).gaps
        why[name, WORD if words else TEXT] = np.isnan(X[:, j]) & ~gone
        why |= spelled(name, column, result)
    return X, why


def spelled(name: str, column: Any, readings: Readings) -> _Why:
    """Return which values are words for a gap, or a declared text in another case, of a column of declared texts.

    Only public texts are named: the words of ``intake.meaning.MISSING``, and the plan's own.
    """
    if not isinstance(column, Categories):
        return {}
    decided, why = column.decide(readings), _Why()
    listed = {str(value).casefold(): value for value in column.values}
    for place, text in enumerate(readings.distinct):
        here = (readings.places == place) & (decided.places < 0)
        if here.any() and text in MISSING:
            why[name, f"hold {text!r}, which means a gap where the plan does not declare it"] = here & decided.gaps
        elif here.any() and (value := listed.get(text.casefold())) is not None:
            key = (name, f"hold {value!r} in another case")
            why[key] = why.get(key, False) | (here & ~decided.gaps)
    return why


def _of_targets(targets: int, declared: Sequence[Any]) -> list[str]:
    if declared:
        return [repr(each.name) for each in declared]
    return ["the outcome"] if targets == 1 else [f"outcome {place + 1}" for place in range(targets)]


def _dense(tile: Any) -> NDArray[Any]:
    """Return a tile as an array; a sparse row in which one entry occurs twice becomes NaN."""
    if not isinstance(tile, csr_array):
        return dense(tile)
    rows: NDArray[Any] = tile.toarray()
    if len(repeated := repeated_rows(tile)):
        rows = rows.astype(np.float64)
        rows[repeated] = np.nan
    return rows
