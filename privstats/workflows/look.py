"""Compare a hospital's own file with its columns' declaration, for the person at its screen.

Results are exact facts of private records and belong on that screen only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privstats.intake.accepted import ColumnLike
from privstats.intake.columns import Readings, read
from privstats.intake.meaning import UNREADABLE, has_decimal_comma, meaning_of, word_of
from privstats.intake.person_ids import names_of
from privstats.kinds import HazardSchema
from privstats.printable import first_few
from privstats.transforms import Categories, Column, Dates, Numeric, Truth
from privstats.workflows.forms import GAP_CODES, declared_remedy, zone_remark

_FEW = 0.01
_REPEATED, _TAIL, _SPREAD = 3, 0.01, 5
"""Records of a rare gap code, the quantiles between which a column's values spread, and the fewest of them."""
_WITH_UNIT = re.compile(r"[<>≤≥~]\s*[+-]?[0-9.,]+.*|[+-]?[0-9]+[.,]?[0-9]*\s*[^0-9\s].*")
_OTHER_DATE = re.compile(r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}.*|[0-9]{8}")
_SHOWN = 3
_SPELLINGS = 12


@dataclass(frozen=True, repr=False)
class Looked:
    """Facts about one column.

    Attributes:
        values: quartiles, or each value's share.
        missing: gap codes included.
        unreadable: by the declaration.
        other: with an unlisted value.
        outermost: beyond the outer cut points, or None.
        oddities: questions for the person.
        codes: number of records with each number that may be a gap code.
    """

    name: str
    kind: str
    unit: str
    values: str
    records: int
    missing: int
    unreadable: int
    other: int
    outermost: int | None
    oddities: tuple[str, ...]
    codes: Mapping[float, int] = field(default_factory=dict)

    @property
    def remarks(self) -> tuple[str, ...]:
        """All questions for the person, of gap codes too."""
        return (*self.oddities, *(_question(code, count, self.records) for code, count in self.codes.items()))


@dataclass(frozen=True, repr=False)
class Keys:
    """Distinct ``keys``, ``records`` with one, the largest number of records per key, and records without one."""

    keys: int
    records: int
    most: int
    nameless: int = 0

    @property
    def repeated(self) -> bool:
        """Whether a key has several records."""
        return self.most > 1


def looked(column: Column, values: ColumnLike | Readings) -> Looked:
    """Compute one column's facts."""
    readings = values if isinstance(values, Readings) else column.readings(values)
    codes, unread = column.codes_and_unread(readings)
    gone = column.decide(readings).gaps
    other = int((codes == len(column.values)).sum()) if isinstance(column, Categories) and not column.is_scale else 0
    known = codes[~np.isnan(codes)]
    return Looked(
        name=column.name,
        kind=column.kind,
        unit=getattr(column, "unit", ""),
        values=_quartiles(column, known) if isinstance(column, Numeric | Dates) else _shares(column, codes),
        records=len(codes),
        missing=int(gone.sum()),
        unreadable=unread,
        other=other,
        outermost=_outermost(column, known),
        oddities=tuple(_oddities(column, readings, codes, unread, other)),
        codes=_gap_codes(known, len(codes)) if isinstance(column, Numeric) else {},
    )


def keys_of(values: ColumnLike) -> Keys:
    """Count the records per key, read as persons' ids."""
    names = list(names_of(values))
    counts = Counter(name for name in names if name is not None)
    return Keys(len(counts), counts.total(), max(counts.values(), default=0), len(names) - counts.total())


def times_remark(schema: HazardSchema, values: ColumnLike) -> str:
    """Return a question where all times are integers but the plan treats them as exact.

    A person censored in integer units was observed half a unit longer on average, which ``time_unit`` adds.
    """
    numbers = (values if isinstance(values, Readings) else read(values)).numbers
    known = numbers[np.isfinite(numbers)]
    if schema.times != "continuous" or schema.time_unit is not None or not len(known) or (known % 1).any():
        return ""
    after = "before" if schema.bins.closed == "right" else "after"
    at_edges = int(np.isin(known, schema.bins.edges[1:]).sum())
    return (
        f"{schema.bins.name}: all are integers; if they are rounded down, set time_unit = 1 in the plan. "
        f"{at_edges / len(known):.0%} are at the edge of a bin, and count in the bin {after} it"
    )


def _quartiles(column: Numeric | Dates, known: NDArray[np.float64]) -> str:
    if not len(known):
        return "none"
    places = np.quantile(known, [0.25, 0.5, 0.75], method="inverted_cdf")
    if isinstance(column, Dates):
        places = np.floor(places)
    return " | ".join(column.edge_text(float(each)) for each in places)


def _shares(column: Column, codes: NDArray[np.float64]) -> str:
    if not isinstance(column, Categories | Truth):
        return f"{len(np.unique(codes[~np.isnan(codes)])):,} buckets in use"
    values = [str(each) for each in column.values] or ["false", "true"] * isinstance(column, Truth)
    counts = [(int((codes == place).sum()), value) for place, value in enumerate(values)]
    rows = max(len(codes), 1)
    return ", ".join(f"{value} {count / rows:.0%}" for count, value in counts) or "any text"


def _outermost(column: Column, known: NDArray[np.float64]) -> int | None:
    edges = getattr(column, "edges", None)
    return None if not edges else int(((known < edges[0]) | (known >= edges[-1])).sum())


def _oddities(column: Column, readings: Readings, codes: NDArray[np.float64], unread: int, other: int) -> Iterator[str]:
    words = Counter(word for word in readings.words.values() if word not in column.words)
    declared = {word_of(gap) for gap in column.gaps}
    if dropped := sorted(set(words) - declared):
        shown = ", ".join(f"{word} ({words[word]:,})" for word in dropped[:_SHOWN])
        yield f"read as a gap, as everywhere: {shown}; list it among the values if it is one, or in gaps if it is none"
    if unread:
        yield from _of_unreadable(column, readings, codes, unread)
    if isinstance(column, Dates) and (question := zone_remark(readings.texts.values())):
        yield question
    if isinstance(column, Categories) and (other or unread) and column.values:
        yield _of_others(column, readings, other or unread)


def _of_unreadable(column: Column, readings: Readings, codes: NDArray[np.float64], unread: int) -> Iterator[str]:
    wrong = np.isnan(codes) & ~column.decide(readings).gaps
    texts = [text for place, text in readings.texts.items() if wrong[place]]
    values = readings.counted(wrong)
    remedy = declared_remedy(column, values)
    for guess, fits in _GUESSES.get(type(column), {}).items():
        if sum(map(fits, texts)) > unread / 2:
            yield f"{unread:,} unreadable: {guess} {remedy}".rstrip()
            return
    if not isinstance(column, Categories):
        frequent = ", ".join(_NO_FORM if value == UNREADABLE else value for value, _ in values.most_common(_SHOWN))
        said = f"{unread:,} are {column.unread}, such as {frequent}: correct it, or they count as missing"
        yield f"{said}. {remedy}" if remedy else said


_NO_FORM = "a value that this file's decimal mark or type does not allow"


def _gap_codes(known: NDArray[np.float64], records: int) -> dict[float, int]:
    """Count the numbers that may be gap codes: a frequent one at an end, or a repeated one far from all others."""
    values, counts = np.unique(known, return_counts=True)
    if len(values) <= 2:
        return {}
    of_value = dict(zip(values.tolist(), counts.tolist(), strict=True))
    frequent = [value for value in (values[0], values[-1]) if of_value[value] >= _FEW * records and value in GAP_CODES]
    far = [value for value in _far_codes(values, counts) if of_value[value] >= _REPEATED]
    return {float(value): of_value[value] for value in sorted({*frequent, *far})}


def _far_codes(values: NDArray[np.float64], counts: NDArray[np.intp]) -> list[float]:
    """Return the codes beyond all other values, by more than these spread, or by their sign alone."""
    usual = ~np.isin(values, list(GAP_CODES))
    if usual.sum() < _SPREAD:
        return []
    rest = values[usual]
    low, high = np.quantile(np.repeat(rest, counts[usual]), (_TAIL, 1 - _TAIL))
    far = (values < rest[0] - (high - low)) | (values > rest[-1] + (high - low)) | ((values < 0) & (rest[0] >= 0))
    found: list[float] = values[far & ~usual].tolist()
    return found


def _question(code: float, count: int, records: int) -> str:
    return (
        f"{code:g} is in {count / records:.1%}: a gap code? Then state gaps = [{code:.15g}] in columns.toml, or empty "
        "these fields where the plan has no columns.toml, as that of an effect"
    )


def _of_others(column: Categories, readings: Readings, count: int) -> str:
    rest = unlisted(column, readings)
    many = f"all {count:,}" if count == int((~column.decide(readings).gaps).sum()) else f"{count:,}"
    frequent = [value for value, _ in rest.most_common(_SHOWN)]
    codes = [value for value in frequent if _is_code(value)]
    guess = "a gap code?" if len(codes) == len(frequent) else "another spelling?"
    if 0 < len(codes) < len(frequent):
        guess = f"another spelling, and {', '.join(codes)} a gap code?"
    return f"{many} are not listed, such as {', '.join(frequent)}: {guess}{spelled_apart(column.values, rest)}"


def _is_code(value: str) -> bool:
    number = meaning_of(value)
    return isinstance(number, float) and number in GAP_CODES


def unlisted(column: Categories, readings: Readings) -> Counter[str]:
    """Count each unlisted value."""
    decided = column.decide(readings)
    return readings.counted((decided.places < 0) & ~decided.gaps)


def spelled_apart(values: Iterable[object], rest: Counter[str]) -> str:
    """Name the unlisted values that differ from a listed one by case alone; empty if none does."""
    pairs = [f"{value} for {listed}" for value, listed in spellings(values, rest).items()]
    return f" By case alone differs {first_few(pairs, _SPELLINGS)}" if pairs else ""


def spellings(values: Iterable[object], rest: Counter[str]) -> dict[str, str]:
    """Map unlisted values to listed ones of other case."""
    listed = {str(value).casefold(): str(value) for value in values}
    return {value: listed[value.casefold()] for value, _ in rest.most_common() if value.casefold() in listed}


_GUESSES: Mapping[type, Mapping[str, Callable[[str], bool]]] = {
    Numeric: {
        "decimal comma?": has_decimal_comma,
        "units or signs in the cells?": lambda text: _WITH_UNIT.fullmatch(text) is not None,
    },
    Dates: {"dates not written as 2020-01-31?": lambda text: _OTHER_DATE.fullmatch(text) is not None},
}
