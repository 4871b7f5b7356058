"""Infer a rehearsal's public facts from its first file, where a study states them.

Reading them from full columns would leak under a guarantee, so a study contains nothing of this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from privstats.dp import Privacy
from privstats.errors import DataError, SchemaError
from privstats.intake.columns import Readings, read_texts
from privstats.intake.gap_words import is_gap_word
from privstats.intake.meaning import TRUTH_TEXTS, check_distinct, checked_names, meaning_of
from privstats.printable import first_few
from privstats.transforms import Categories, Column, Dates, Numeric, Truth
from privstats.workflows.forms import (
    are_codes,
    bare_numbers,
    date_form,
    gap_words,
    like_excel_days,
    numeric_form,
    other_orders,
    several_dates,
    toml_of,
    why_no_number,
)
from privstats.workflows.identifiers import Question, id_questions
from privstats.workflows.rehearsal.stated import NO_GAPS, StatedGaps

MOST_ROWS = 1
"""Maximum weight of a person's rows at one party, in rows: heads are best with the smallest clip."""
_PAIR = 2


@dataclass(frozen=True)
class RehearsalOptions:
    """Options of a rehearsal; None leaves the default.

    Attributes:
        epsilon, delta, adjacency, model: of the guarantee.
        test: approximate held-out share.
        persons: id column, for a guarantee per person; None: per record.
        gaps: further words that mean a gap, in every column; ``crp=-9`` for a code of one column.
        read: columns that name no person, although their values look like ids.
    """

    target: str
    epsilon: float
    delta: float | None = None
    adjacency: str | None = None
    model: str | None = None
    test: float = 0.25
    drop: tuple[str, ...] = ()
    persons: str | None = None
    gaps: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    def privacy(self, parties: int) -> Privacy:
        """Return the rehearsed guarantee."""
        terms: Any = {name: getattr(self, name) for name in ("delta", "adjacency", "model")}
        words = {name: word for name, (word, _) in words_of(parties).items()}
        chosen = {name: words[name] if value is None else value for name, value in terms.items()}
        if self.persons is not None:
            chosen |= {"max_records_per_person": MOST_ROWS, "person_clip": float(MOST_ROWS)}
        return Privacy(unit="record" if self.persons is None else "person", epsilon=self.epsilon, **chosen)


def words_of(parties: int, *, persons: bool = False) -> Mapping[str, tuple[Any, str]]:
    """Return the options' defaults, each with a study's question."""
    one, protected = "record", "one record is protected; a patient with several is promised less"
    if persons:
        one = "person"
        protected = "all rows of one patient at one party weigh at most one row; a patient in two files weighs two"
    model = ("local", "each party adds all the noise, because with two parties each knows its own part of the sum")
    if parties > _PAIR:
        model = ("distributed", "the parties add it together, and one of them may work with the server")
    return {
        "unit": (one, protected),
        "adjacency": ("add-remove", f"whether a {one} is in the data is hidden, too"),
        "delta": (1e-6, f"the chance of a larger loss, well below 1 / {one}s"),
        "model": model,
    }


_LEVELS = frozenset(("none", "null", "na"))
"""Words for a gap that are levels of ordinary columns, too."""
_VALUES = 12
"""Values of a column that are listed: the most frequent ones; the rest are "other"."""
_FEW = 6
"""Different integers that are still names of categories."""
_NEARLY_ALL, _MOSTLY = 0.95, 0.5
_FREE = 0.5
_LISTED = 0.1
"""Minimum share of a column's values that the listed ones hold; with less, the column is an id."""
_RECURS = 0.9
"""Values count as recurring up to this share of distinct ones, as ids of persons with several rows do."""
_IDS = "names, ids or free text"
_RECURRING = f"{_IDS} that recur"
_WHOSE = "whose a record is"
_WHO = {_RECURRING: f"{_RECURRING}; name it with --persons (in Python persons=) if it shows {_WHOSE}"}
_MOST_CLASSES = 20
_SHOWN = 8
_SIZE = "the size that the protocol plans with"
_FORM = "the data dictionary; a study states it in columns.toml, in these words"
_BOOK = "its code book; here the first file alone: further values in another file count as other"


class Sentence(NamedTuple):
    """One fact treated as public."""

    what: str
    assumed: str
    elsewhere: str


@dataclass(frozen=True)
class Assumed:
    """Facts that a rehearsal treats as public.

    Attributes:
        left_out: excluded columns, with reasons.
        records, persons: numbers summed, over all files.
        gaps: by column, words read as gaps that may be values.
        orders: by column, other date formats that fit the first file as well.
    """

    columns: tuple[Column, ...]
    left_out: Mapping[str, str]
    target: str
    classes: tuple[str, ...]
    records: int
    persons: int | None = None
    gaps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """Each fact, its value, and its place in a study."""
        named = {kind: [each.name for each in self.columns if isinstance(each, kind)] for kind in _COLUMN_WORDS}
        kinds = "; ".join(
            f"{word}: {first_few(named[kind], _SHOWN)}" for kind, word in _COLUMN_WORDS.items() if named[kind]
        )
        lists = [each for each in self.columns if isinstance(each, Categories)]
        sentences = [
            Sentence(
                "columns",
                first_few([each.name for each in self.columns], _SHOWN),
                "the data dictionary that all parties use",
            ),
            Sentence("their kinds", kinds, "the same data dictionary"),
            *(
                Sentence(f"values of {each.name}", ", ".join(map(str, each.values)) or "any text", _BOOK)
                for each in lists
            ),
            Sentence(f"classes of {self.target}", ", ".join(self.classes), "the protocol's definition of the outcome"),
            *(Sentence(f"form of {each.name}", form, _FORM) for each in self.columns if (form := toml_of(each))),
            *(Sentence(f"number of {what}", f"{size:,}", _SIZE) for what, size in self._sizes.items()),
        ]
        dropped = "; ".join(f"{name}: {', '.join(words)}" for name, words in self.gaps.items())
        if dropped:
            sentences.append(Sentence("texts read as gaps", dropped, "its code book: list among values what is one"))
        excluded = "; ".join(f"{name}: {why}" for name, why in self.left_out.items())
        return (*sentences, Sentence("not read", excluded, "your own choice")) if excluded else tuple(sentences)

    @property
    def questions(self) -> tuple[str, ...]:
        """A question for each column that is not read because it may name persons or records."""
        asked = {name: why for name, why in self.left_out.items() if isinstance(why, Question)}
        return tuple(
            f"{name}: {why}; it is not read. Does it name persons or records? Then pass --persons {quote(name)} or "
            f"--drop {quote(name)} (in Python persons=, drop=); else pass --read {quote(name)} (in Python read=)"
            for name, why in asked.items()
        )

    @property
    def _sizes(self) -> dict[str, int]:
        sizes = {"persons": self.persons, "records": self.records}
        return {what: size for what, size in sizes.items() if size is not None}


_COLUMN_WORDS: Mapping[type, str] = {Numeric: "numbers", Dates: "dates", Truth: "yes or no", Categories: "categories"}


def assumed_of(
    table: Mapping[str, Readings],
    target: str,
    records: int,
    *,
    persons: str | None = None,
    raw: Mapping[str, Sequence[Any]] | None = None,
    stated: StatedGaps = NO_GAPS,
    affixed: Mapping[str, Readings] | None = None,
    trusted: Collection[str] = (),
) -> Assumed:
    """Infer column declarations from one file's values; ``records`` counts all files.

    Args:
        raw, affixed, trusted: as for :func:`kinds_of`.
        stated: gaps that a person stated; the table lacks values of their codes.

    Raises:
        DataError: the target has one value or too many, or no usable column remains.
    """
    kinds = kinds_of({name: values for name, values in table.items() if name != target}, raw, stated, affixed, trusted)
    columns = tuple(each for each in kinds.values() if not isinstance(each, str))
    if not columns:
        raise DataError(
            "no column other than the target holds what a model could read: dates, numbers, or repeated texts"
        )
    excluded = {name: why for name, why in kinds.items() if isinstance(why, str)}
    if persons is None:
        excluded = {name: _WHO.get(why, why) for name, why in excluded.items()}
    else:
        excluded[persons] = _WHOSE
    gaps: dict[str, Sequence[str]] = {
        each.name: words
        for each in columns
        if (words := sorted({word for word in table[each.name].words.values() if word in _LEVELS} - each.words))
    }
    of_target = gap_words(Counter(table[target].texts.values()), stated.words)
    if of_target := (*of_target, *stated.codes.get(target, ())):
        gaps[target] = of_target
    orders = {
        each.name: others
        for each in columns
        if isinstance(each, Dates) and (others := other_orders(each, Counter(table[each.name].texts.values())))
    }
    classes = _classes(target, table[target], stated.words)
    return Assumed(columns, excluded, target, classes, records, None, gaps, orders)


def kinds_of(
    table: Mapping[str, Readings],
    raw: Mapping[str, Sequence[Any]] | None = None,
    stated: StatedGaps = NO_GAPS,
    affixed: Mapping[str, Readings] | None = None,
    trusted: Collection[str] = (),
) -> dict[str, Column | str]:
    """Return columns' declarations, or reasons for exclusion.

    Args:
        raw: columns whose values are texts as a file has them, which show what a number would lose.
        affixed: the same columns with their decimal marks read in values such as ``39,9%``, too; ``table`` if omitted.
        stated: gaps that a person stated; the table lacks values of their codes.
        trusted: columns that name no person, whatever their values look like.
    """
    kinds = {
        name: _accepted(name, values, (affixed or {}).get(name, values), (raw or {}).get(name, ()), stated)
        for name, values in table.items()
    }
    codes = {name: read_texts((raw or {})[name]) for name, kind in kinds.items() if getattr(kind, "as_text", False)}
    judged = {name: kind for name, kind in kinds.items() if name not in trusted}
    return kinds | id_questions({**table, **codes}, judged)


def _accepted(name: str, readings: Readings, affixed: Readings, raw: Sequence[Any], stated: StatedGaps) -> Column | str:
    texts = dict.fromkeys((*(each for each in raw if isinstance(each, str)), *stated.codes.get(name, ())))
    try:
        codes = len(raw) and are_codes(texts)
        if codes:
            written = read_texts(raw)
            kind = _of_levels(name, written.counted(~written.missing), as_text=True)
        else:
            kind = _kind_of(name, readings, affixed, stated.words)
        return kind if isinstance(kind, str) else stated.declared(kind)
    except SchemaError:
        return "a plan cannot list its name or values"


def _kind_of(name: str, readings: Readings, affixed: Readings, stated: Collection[str]) -> Column | str:
    texts, values = Counter(readings.texts.values()), readings.counted(~readings.missing)
    gaps = gap_words(texts, stated)
    if not values:
        return "empty"
    if len(values) == 1:
        words = set(readings.words.values())
        if len(words) == 1 and words <= _LEVELS:  # one of two levels is not a gap
            return Categories(name, tuple(sorted({*words, *values})))
        return "one value alone" if not readings.missing.any() else Categories(name, ())
    numbers = readings.numbers[~np.isnan(readings.numbers)]
    rest = {text: count for text, count in texts.items() if text not in gaps}
    given = len(numbers) + sum(rest.values())
    if len(numbers) and rest and set(numbers.tolist()) <= {0.0, 1.0} and rest.keys() <= TRUTH_TEXTS.keys():
        return Truth(name, gaps=gaps)
    if len(numbers) >= _NEARLY_ALL * given > 0:
        kind = _of_numbers(name, numbers)
        if rest and isinstance(kind, Categories | Truth):
            kind = _of_levels(name, Counter(rest) + readings.counted(~np.isnan(readings.numbers)))
        return kind if isinstance(kind, str) else replace(kind, gaps=gaps)
    many = len(values) > _VALUES
    if (dates := date_form(name, numbers, texts, stated, _MOSTLY if many else _NEARLY_ALL)) is not None:
        return dates
    serials = len(numbers) if like_excel_days(numbers) else 0
    if (why := several_dates(len(numbers), rest, serials=serials)) is not None:
        return why
    signed = Counter(affixed.texts.values())
    numeric = numeric_form(name, int(np.isfinite(affixed.numbers).sum()), signed, stated)
    if numeric is not None and many:
        return numeric
    own = tuple(word for word in gaps if word in stated)
    levels = _of_levels(name, Counter({value: count for value, count in values.items() if value not in own}))
    if not isinstance(levels, str):
        return replace(levels, gaps=own)
    return why_no_number(len(numbers), texts) or why_no_number(len(numbers), bare_numbers(signed)) or levels


def _of_numbers(name: str, numbers: Any) -> Column | str:
    different = np.unique(numbers)
    if not (different % 1 == 0).all():
        return Numeric(name)
    if set(different.tolist()) == {0.0, 1.0}:
        return Truth(name)
    if len(different) <= _FEW:
        return _first_accepted(lambda: Categories(name, tuple(map(int, different.tolist()))), lambda: Numeric(name))
    return Numeric(name)


def _of_levels(name: str, counts: Counter[str], *, as_text: bool = False) -> Column | str:
    """List the commonest values, numbers and texts alike; or return why they are none of categories.

    Args:
        counts: the number of records with each value, as it is read.
    """
    given = counts.total()
    listed = sum(count for _, count in counts.most_common(_VALUES))
    if len(counts) > max(_VALUES, _FREE * given) or listed < _LISTED * given:
        return _RECURRING if len(counts) <= _RECURS * given else _IDS
    common = (value for value, _ in sorted(counts.items(), key=_by_count) if _is_listable(value, as_text))
    frequent = tuple(sorted(islice(common, _VALUES), key=None if as_text else _in_order))
    return Categories(name, frequent if len(frequent) > 1 else (), as_text=as_text)


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _in_order(value: str) -> tuple[float, str]:
    """Order numbers by size, and texts behind them."""
    number = meaning_of(value)
    return number if isinstance(number, float) else np.inf, value


def _is_listable(value: str, as_text: bool) -> bool:
    """Return whether a plan may list a value, by itself."""
    try:
        checked_names("a value", (value,))
        check_distinct("a value", (value,), texts=as_text)
    except SchemaError:
        return False
    return True


def _first_accepted(make: Callable[[], Column], less: Callable[[], Column]) -> Column:
    try:
        return make()
    except SchemaError:
        return less()


def has_one_class(readings: Readings, stated: Collection[str]) -> bool:
    """Return whether a target has fewer than two values, so that a further file must show the classes."""
    return len(_values_of(readings, stated)) < _PAIR


def _values_of(readings: Readings, stated: Collection[str]) -> tuple[str, ...]:
    numbers = np.unique(readings.numbers[~np.isnan(readings.numbers)])
    texts = sorted(text for text in set(readings.texts.values()) if text not in stated and not is_gap_word(text))
    return (*(f"{each:.15g}" for each in numbers.tolist()), *texts)


def _classes(target: str, readings: Readings, stated: Collection[str]) -> tuple[str, ...]:
    classes = _values_of(readings, stated)
    if not 2 <= len(classes) <= _MOST_CLASSES:
        many = "one value" if len(classes) < 2 else f"more than {_MOST_CLASSES} different values"
        raise DataError(
            f"{target} has {many}, and a rehearsal predicts one of a few classes: name another column with --target"
        )
    return classes
