"""Tables that are printed wrongly, each with the check of ``test_descriptions`` that must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from tests.inference import test_descriptions as described

__all__ = ["CHECKS", "WRONG", "Changed", "same"]


class Changed:
    """A reader's table with other rows or another printed form."""

    def __init__(self, table: Any, rows: Callable[[dict[str, Any]], dict[str, Any]], summary: Any = None) -> None:
        self._table, self._rows, self._summary = table, rows, summary

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def to_rows(self) -> list[dict[str, Any]]:
        return [self._rows(dict(row)) for row in self._table.to_rows()]

    def summary(self) -> Any:
        return self._table.summary() if self._summary is None else self._summary(self._table.summary())


def _times(name: str, factor: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {**row, name: row[name] * factor}


def _set(name: str, value: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {**row, name: value}


def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def _other_digits(summary: Any) -> Any:
    rows = tuple((name, *("9.876543" if "." in cell else cell for cell in cells)) for name, *cells in summary.rows)
    return replace(summary, rows=rows)


def _exactly(summary: Any) -> Any:
    about = summary.about
    return replace(summary, about=replace(about, counts=tuple(replace(each, sigma=0.0) for each in about.counts)))


def _without_law(summary: Any) -> Any:
    return replace(summary, foot=tuple(each for each in summary.foot if not each.startswith("P values")))


def _without_degrees(summary: Any) -> Any:
    return replace(summary, columns=tuple("" if each == "df" else each for each in summary.columns))


def _without_records(summary: Any) -> Any:
    return replace(summary, head=tuple(line for line in summary.head if not line[0].startswith("records")))


LAW, FOLLOWS = (
    described.test_each_p_value_has_degrees_or_a_named_law,
    (described.test_p_value_and_interval_follow_from_the_printed_row),
)
DIGITS, RECORDS = (
    described.test_printed_numbers_are_those_of_the_data,
    described.test_every_form_has_the_number_of_records,
)


@wraps(described.test_medians_of_bins_are_the_bins_and_their_columns_have_a_denominator)
def _medians(_: str, world: str) -> None:
    described.test_medians_of_bins_are_the_bins_and_their_columns_have_a_denominator(world)


NOISY = described.test_a_count_says_that_it_is_noisy_exactly_where_it_is

CHECKS = (LAW, FOLLOWS, DIGITS, RECORDS, NOISY)
"""Checks of every reader's table."""

WRONG: dict[str, tuple[Any, str, str, Any, Any]] = {
    "the head's degrees for those of folds": (FOLLOWS, "line, 20 folds", "exact", _times("df", 200.0), None),
    "a P value that is too small": (FOLLOWS, "line", "exact", _set("p_value", 0.06), None),
    "an interval that is too narrow": (FOLLOWS, "odds", "epsilon 8", _times("std_error", 2.0), None),
    "an interval that excludes the estimate": (FOLLOWS, "line", "exact", _times("estimate", 9.0), None),
    "degrees of none": (LAW, "line, 20 folds", "epsilon 8", _set("df", 0.0), None),
    "a law that no sentence names": (LAW, "line", "epsilon 8", same, _without_law),
    "degrees without a column": (LAW, "line, 20 folds", "epsilon 8", same, _without_degrees),
    "other digits than the data": (DIGITS, "line", "exact", same, _other_digits),
    "no number of records": (RECORDS, "line", "exact", same, _without_records),
    "a noisy number that is called exact": (NOISY, "line", "epsilon 8", same, _exactly),
    "a median that is outside its bins": (_medians, "table one of counts", "exact", _set("conf_high", 20.0), None),
    "an exact number that has noise": (NOISY, "effects in subgroups", "epsilon 8", _set("n_std_error", 0.0), None),
}
"""Tables that are printed wrongly: the check that must see it, the reader, its world, and what is wrong."""
