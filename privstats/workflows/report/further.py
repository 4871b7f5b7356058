"""The rows that packages add to ``privstats report``: findings on its page, and further pages.

The library must not import its attacker: audits and attacks are findings of another package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from privstats.doors import Door, is_row
from privstats.errors import PrivstatsError
from privstats.row_fields import RowError
from privstats.row_options import fault_of_name

if TYPE_CHECKING:
    from privstats.plan import Plan
    from privstats.workflows.report.layout import Finder, Finding, Search
    from privstats.workflows.report.privacy_report import Statement

Text: TypeAlias = "Callable[[Statement], str]"
"""Returns a file's text from a plan, its course and the findings on it."""
Find: TypeAlias = "Callable[[Plan, Search], Sequence[Finding]]"
"""Returns the sections of a search for a plan."""


@dataclass(frozen=True)
class FurtherFindings:
    """Sections of the page that a search makes.

    Attributes:
        name: the option of ``privstats report`` that requests them.
        help: what the search does and how long it takes, one sentence.
        find: returns the sections for a plan.
        order: rank of the sections on the page; a lower one is nearer to the top.
    """

    name: str
    help: str
    find: Find
    order: int = 100


@dataclass(frozen=True)
class AdjacentFile:
    """A file that is written next to a page.

    Attributes:
        name: the file's name.
        what: what the file holds, a phrase.
        text: returns the file's text.
    """

    name: str
    what: str
    text: Text


@dataclass(frozen=True)
class FurtherPage:
    """A page that ``privstats report`` writes into a file of the page's name, in place of :data:`REPORT`.

    Attributes:
        name: the option that requests it.
        help: what it writes, one sentence.
        reads: what it is built from, a phrase.
        page: returns the page as HTML.
        finds: whether it shows findings.
        files: files next to it.
    """

    name: str
    help: str
    reads: str
    page: Text
    finds: bool = False
    files: tuple[AdjacentFile, ...] = ()

    @property
    def file(self) -> str:
        """The page's file name."""
        return f"{self.name}.html"


def _report(statement: Statement) -> str:
    from privstats.workflows.report.privacy_report import page_of

    return page_of(statement)


def _ethics(statement: Statement) -> str:
    from privstats.workflows.report.ethics import ethics_page

    return ethics_page(statement)


REPORT = FurtherPage("report", "", "", _report, finds=True)
"""The page that is written without an option. It shows everything that the command reads."""
_ETHICS = FurtherPage(
    "ethics", "Write ethics.html instead: two printed pages for an ethics board.", "the plan alone", _ethics
)


def _is_page(row: object, name: str) -> bool:
    if name == REPORT.name:
        raise RowError(f"the page {name!r} is written without an option: choose another name")
    return _is_option(FurtherPage, row, name)


def _is_option(cls: type, row: object, name: str) -> bool:
    good = is_row(cls)(row, name)
    if why := fault_of_name(name):
        raise RowError(why)
    return good


FINDERS: Door[FurtherFindings] = Door(
    "privstats.findings", "finder", PrivstatsError, partial(_is_option, FurtherFindings)
)
"""Searches by name, as packages announce them. The group keeps its name from when entries were functions."""
PAGES: Door[FurtherPage] = Door("privstats.pages", "page of a report", PrivstatsError, _is_page, {"ethics": _ETHICS})
"""Further pages by name: that for an ethics board, then those that packages and ``privstats.contrib`` announce."""


def finders() -> list[FurtherFindings]:
    """Return all searches in the order of their sections."""
    return sorted(FINDERS.rows().values(), key=lambda row: row.order)


def finder(name: str) -> Finder:
    """Return the named finder from any installed package.

    Raises:
        PrivstatsError: no installed package offers it, two do, or it cannot be loaded.

    Example:
        >>> from privstats.workflows.report import finder
        >>> callable(finder("audit"))  # the package threat_models announces it
        True
    """
    return FINDERS.needed(name, f"--{name}").find
