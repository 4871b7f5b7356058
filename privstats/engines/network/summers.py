"""The rows of what sums a leader's settled reports on other machines, with their options of the leader's command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from privstats.doors import Door, is_row
from privstats.errors import PrivstatsError
from privstats.row_options import given, left_out

if TYPE_CHECKING:
    from privstats.engines.network.folder import RoundFolder

At: TypeAlias = "Callable[[Any, RoundFolder], Any]"
"""Returns what sums the reports of a run, from the options and the leader's folder."""


@dataclass(frozen=True)
class Summer:
    """Machines that sum in the leader's place.

    Attributes:
        name: the summer's name.
        terms: a frozen dataclass of the command's options.
        is_requested: whether the options request it; raises PrivstatsError where only some of them are given.
        at: returns it for a run.

    Example:
        >>> from privstats.engines.carriers import SUMMERS
        >>> SUMMERS["dask"].name
        'dask'
    """

    name: str
    terms: type[Any]
    is_requested: Callable[[Any], bool]
    at: At


SUMMERS: Door[Summer] = Door("privstats.summers", "summer of reports", PrivstatsError, is_row(Summer, options="terms"))
"""The summers by name, as packages and ``privstats.contrib`` announce them."""


def _is_requested(row: Summer, options: Any) -> bool:
    with SUMMERS.using(row.name):
        return row.is_requested(options)


def _names(row: Summer) -> set[str]:
    return {each.name for each in fields(row.terms)}


def summer_for(options: Any) -> Summer | None:
    """Return the summer that a leader's options request, if any.

    A summer of another package is asked only where an option is given that no summer of privstats has.

    Args:
        options: an instance of the options of all summers, ``SUMMERS.options("terms").joined()``.

    Raises:
        PrivstatsError: they request two.

    Example:
        >>> from privstats.engines.carriers import SUMMERS, summer_for
        >>> options = SUMMERS.options("terms").joined()
        >>> summer_for(options()) is None  # no option is given
        True
    """
    rows = {name: row for name, row in SUMMERS.rows().items() if name not in left_out(options)}
    ours = {each for name, row in rows.items() if not SUMMERS.origin(name) for each in _names(row)}
    own = {name for name, row in rows.items() if not SUMMERS.origin(name) or _names(row) & given(options).keys() - ours}
    asked = [row for name, row in rows.items() if name in own and _is_requested(row, options)]
    if len(asked) > 1:
        raise PrivstatsError(
            f"one run has one summer of its reports, got {asked[0].name} and {asked[1].name}: omit one"
        )
    return asked[0] if asked else None
