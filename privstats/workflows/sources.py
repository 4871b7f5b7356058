"""The rows of sources of a study, from which ``privstats plan init`` declares columns and writes a view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from privstats.doors import Door, is_row
from privstats.errors import PrivstatsError
from privstats.row_fields import RowError

if TYPE_CHECKING:
    from privstats.intake.declared.columns import Column, Truth


@dataclass(frozen=True)
class Study:
    """A study's view with one row per person, and the declaration of its columns.

    Attributes:
        name: the view's name.
        view: the statements that create the view.
        columns: the columns that a plan reads, without the outcome.
        where: where a party runs ``view``.
        warning: limit of the source's follow-up, which every party must know; empty for none.
        outcome: 1 where the outcome is the first in time, 0 where none is, NULL where the follow-up is too short.
    """

    name: str
    view: str
    columns: tuple[Column, ...]
    outcome: Truth
    where: str = "in the data base"
    warning: str = ""


@dataclass(frozen=True)
class StudySource:
    """A source of studies, such as a common data model.

    Attributes:
        name: its option of ``plan init`` that, if given, means this source.
        terms: its options: a frozen dataclass with an ``Option`` on each field. One of them is ``name``, with
            underscores for hyphens, and its default is None.
        study: builds the study from the options' values.
    """

    name: str
    terms: type[Any]
    study: Callable[[Any], Study]

    @property
    def field(self) -> str:
        """The field of :attr:`terms` that means this source."""
        return self.name.replace("-", "_")


def _is_source(row: Any, name: str) -> bool:
    good = is_row(StudySource, options="terms")(row, name)
    if not any(each.name == row.field and each.default is None for each in fields(row.terms)):
        raise RowError(f"its terms has no option {row.field!r} with the default None, which means this source: add it")
    SOURCES.require_own(name, row.field, "name", "terms")
    return good


SOURCES: Door[StudySource] = Door("privstats.sources", "source of a study", PrivstatsError, _is_source)
"""The sources by name, as packages and ``privstats.contrib`` announce them."""
