"""Describe a table's rows: what is estimated, how many records count, and the law of the P values.

A reader makes one :class:`Description`. Head, columns, foot, data and the Methods paragraph are printed from it, so
that none of them describes another computation than the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privstats.inference.summary import count_of

_FALL = (
    "df can fall with a larger epsilon: noise of known size needs none, and an estimated variance does. They rise "
    "again where little of the variance is noise."
)
_INVERTED = (
    "An interval holds every value that its test does not reject, with the noise at that value, so it need not be "
    "symmetric about the estimate."
)
_NOISY = "Numbers of records and events are noisy, by the standard error beside them, and need not add up."
_DIGITS_FROM = 1_000


@dataclass(frozen=True)
class Count:
    """A number of records or events, as every form of a table prints it.

    Attributes:
        name: such as ``"records"`` or ``"events"``.
        value: None where the release does not hold it.
        sigma: standard error of the noise in it; 0 for an exact number.
        absent: what is printed in place of the number where the release does not hold it.

    Example:
        >>> from privstats.inference.description import Count
        >>> Count("records", 1566.2, 12.34).text, Count("events", 12.0).text
        ('1,566 (noisy, standard error 12.3)', '12')
    """

    name: str
    value: float | None
    sigma: float = 0.0
    absent: str = ""

    @property
    def text(self) -> str:
        """The number with its noise."""
        if self.value is None:
            return self.absent
        return count_of(self.value) + (f" (noisy, standard error {self.sigma:,.1f})" if self.sigma else "")

    @property
    def short(self) -> str:
        """The number with its noise, for a cell."""
        if self.value is None or math.isnan(self.value):
            return "-"
        return count_of(self.value) + (f" (SE {self.sigma:,.1f})" if self.sigma else "")

    def to_row(self) -> dict[str, object]:
        """Return the number as data; None where the release does not hold it."""
        return {"count": self.name, "n": self.value, "n_std_error": self.sigma}


@dataclass(frozen=True)
class Law:
    """The law by which P values and intervals are computed.

    Attributes:
        degrees: of freedom of Student's t, by row; infinite for the normal law, NaN for a row without a test.
        reason: where the degrees come from, such as ``"20 folds less 1"``.
        stated: degrees that the head states for all rows.
        estimated: whether degrees are Satterthwaite's, of a variance that is in part noise of known size.
        inverted: whether intervals are by test inversion, with a variance that depends on the tested value.

    Example:
        >>> from privstats.inference.description import Law
        >>> law = Law((19.0, 19.0), "20 folds less 1", stated=4141.0)
        >>> law.heading, law.columns, law.cells(0), law.sentences[0]
        ('P>|t|', ('df',), ('19',), "P values and intervals are Student's t with the row's df: 20 folds less 1.")
        >>> Law((float("inf"),)).heading
        'P>|z|'
    """

    degrees: tuple[float, ...]
    reason: str = ""
    stated: float = math.inf
    estimated: bool = False
    inverted: bool = False

    @classmethod
    def of(cls, degrees: Iterable[float], reason: str = "", **more: Any) -> Law:
        """Return the law of these degrees."""
        return cls(tuple(map(float, degrees)), reason, **more)

    @property
    def is_normal(self) -> bool:
        """Whether every tested row has the normal law."""
        return not any(map(math.isfinite, self.degrees))

    @property
    def letter(self) -> str:
        """The statistic's letter."""
        return "z" if self.is_normal else "t"

    @property
    def heading(self) -> str:
        """Heading of P values."""
        return f"P>|{self.letter}|"

    @property
    def columns(self) -> tuple[str, ...]:
        """Heading of the degrees, where rows have others than the head states."""
        tested = [each for each in self.degrees if not math.isnan(each)]
        return () if self.is_normal or all(each == self.stated for each in tested) else ("df",)

    def cells(self, place: int) -> tuple[str, ...]:
        """Return a row's degrees as cells of :attr:`columns`."""
        return (degrees_text(self.degrees[place]),) if self.columns else ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a table states of its P values."""
        if self.is_normal:
            law = "of the normal law"
        elif self.columns:
            law = f"Student's t with the row's df{f': {self.reason}' if self.reason else ''}"
        else:
            law = f"Student's t with {degrees_text(self.stated)} degrees of freedom"
        return (
            f"P values and intervals are {law}.",
            *((_FALL,) if self.estimated else ()),
            *((_INVERTED,) if self.inverted else ()),
        )


@dataclass(frozen=True)
class Description:
    """What the rows of a table are.

    Attributes:
        estimand: heading and value of a line of the head, such as ``("effect", "risk of death: arm drug less arm
            placebo")``; empty where the columns state it.
        facts: further lines of the head, such as the variable of times.
        counts: records and events, and how noisy each number is.
        law: of P values and intervals; None for a table without tests.
        noisy_rows: whether cells of the rows are noisy counts as well.
        notes: further sentences on rows.

    Example:
        >>> from privstats.inference.description import Count, Description
        >>> about = Description(counts=(Count("records", 1566.2, 12.3), Count("events", 310.0, 8.0)))
        >>> about.head[1], about.methods
        (('events', '310 (noisy, standard error 8.0)'), 'Counted were records: 1,566 (noisy, standard error 12.3); \
events: 310 (noisy, standard error 8.0).')
    """

    estimand: tuple[str, str] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    counts: tuple[Count, ...] = ()
    law: Law | None = None
    noisy_rows: bool = False
    notes: tuple[str, ...] = ()

    @property
    def head(self) -> tuple[tuple[str, str], ...]:
        """Lines above the rows."""
        first = () if self.estimand is None else (self.estimand,)
        return (*first, *self.facts, *((each.name, each.text) for each in self.counts))

    @property
    def foot(self) -> tuple[str, ...]:
        """Sentences below the rows."""
        noisy = sum(each.sigma > 0 for each in self.counts) > 1 or self.noisy_rows
        return (*((_NOISY,) if noisy else ()), *self.notes, *(() if self.law is None else self.law.sentences))

    @property
    def methods(self) -> str:
        """Sentences of the Methods paragraph."""
        known = "; ".join(f"{each.name}: {each.text}" for each in self.counts)
        estimated = "" if self.estimand is None else f"Estimated is the {': '.join(self.estimand)}."
        counted = f"Counted were {known}." if known else ""
        law = "" if self.law is None else self.law.sentences[0]
        return " ".join(filter(None, (estimated, counted, law)))

    @property
    def data(self) -> dict[str, object]:
        """The same as data."""
        law = None if self.law is None else " ".join(self.law.sentences)
        facts = [*(() if self.estimand is None else (self.estimand,)), *self.facts]
        return {"facts": [list(each) for each in facts], "counts": [each.to_row() for each in self.counts], "law": law}


def degrees_text(degrees: float) -> str:
    """Return degrees of freedom as printed: whole from 1,000 on, four digits below.

    Example:
        >>> from privstats.inference.description import degrees_text
        >>> degrees_text(4.0312), degrees_text(19.0), degrees_text(4141.3)
        ('4.031', '19', '4,141')
    """
    if math.isnan(degrees) or degrees <= 0:
        return "-"
    if math.isinf(degrees):
        return "inf"
    return f"{degrees:,.0f}" if degrees >= _DIGITS_FROM else f"{degrees:.4g}"


def level_labels(levels: Any) -> dict[str, tuple[str, str]]:
    """Return the text that each column of declared texts counts, and the text it is compared with, by term.

    Example:
        >>> from privstats.inference.description import level_labels
        >>> level_labels(ps.transforms.Levels((ps.Categories("hiv", ("negative", "positive")),)))
        {'hiv': ('positive', 'negative')}
    """
    found: dict[str, tuple[str, str]] = {}
    for column in () if levels is None else levels.columns:
        first, *others = map(str, column.values)
        for text in others:
            found[column.name if len(others) == 1 else f"{column.name}: {text}"] = text, first
    return found


def labelled(term: str, labels: dict[str, tuple[str, str]]) -> str:
    """Return a term as printed: a column of two texts with the text that counts as 1, also inside a product.

    Example:
        >>> from privstats.inference.description import labelled
        >>> labelled("hiv x age", {"hiv": ("positive", "negative")})
        'hiv: positive x age'
    """
    parts = term.split(" x ") if term not in labels else [term]
    return " x ".join(f"{each}: {labels[each][0]}" if each in labels and ": " not in each else each for each in parts)


def numbers_of(counts: Sequence[Count]) -> dict[str, object]:
    """Return the first numbers of records and of events as columns of a row; NaN where the release holds none.

    Example:
        >>> from privstats.inference.description import Count, numbers_of
        >>> numbers_of((Count("records", 12.0, 1.5),))
        {'n': 12.0, 'n_std_error': 1.5}
    """
    row: dict[str, object] = {}
    for name, what in (("n", "records"), ("n_event", "events")):
        if (each := next((one for one in counts if one.name.startswith(what)), None)) is not None:
            row |= {name: math.nan if each.value is None else each.value, f"{name}_std_error": each.sigma}
    return row


def counts_of_groups(groups: Sequence[str], values: Any, sigma: Any, what: str = "records") -> tuple[Count, ...]:
    """Return a number per group; ``sigma`` is one for all or one per group.

    Example:
        >>> from privstats.inference.description import counts_of_groups
        >>> [each.name for each in counts_of_groups(("", "drug"), (3.0, 4.0), 0.0)]
        ['records', 'records, drug']
    """
    numbers = np.broadcast_to(np.asarray(sigma, np.float64), (len(groups),))
    return tuple(
        Count(f"{what}, {group}" if group else what, float(value), float(each))
        for group, value, each in zip(groups, values, numbers, strict=True)
    )
