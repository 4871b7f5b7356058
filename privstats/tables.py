"""Tables whose rows have names: a second row of a taken name is refused, and never replaces the first.

For classes that register themselves where they are defined (attacks, transforms, heads, rules), and for rows that are
listed in one place (kinds, mechanisms, commands).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from privstats.errors import PrivstatsError

__all__ = ["by_name", "register"]

T = TypeVar("T")
Name = TypeVar("Name", bound=str)


def register(table: dict[str, type[T]], name: str, cls: type[T], noun: str, error: type[PrivstatsError]) -> None:
    """Put a class into a table under its name; a class that a reload defines once more keeps its name.

    Args:
        table: the table to change.
        name: of the class in plans, files or messages.
        cls: the class that registers itself.
        noun: what the classes are, for the message.
        error: what is raised.

    Raises:
        PrivstatsError: of the kind ``error``, where another class has the name.

    Example:
        >>> from privstats.errors import DataError
        >>> table: dict[str, type] = {"one": int}
        >>> register(table, "one", str, "number", DataError)
        Traceback (most recent call last):
        ...
        privstats.errors.DataError: the number 'one' is builtins.int; give builtins.str another name
    """
    held = table.get(name)
    if held is not None and _origin(held) != _origin(cls):
        raise error(f"the {noun} {name!r} is {_origin(held)}; give {_origin(cls)} another name")
    table[name] = cls


def by_name(rows: Iterable[T], name: Callable[[T], Name], noun: str) -> dict[Name, T]:
    """Rows by name, in order.

    Args:
        rows: of the table.
        name: from a row to its name.
        noun: what rows are, for the message.

    Raises:
        PrivstatsError: two rows have one name.

    Example:
        >>> by_name([1, 10], str, "number")
        {'1': 1, '10': 10}
    """
    table: dict[Name, T] = {}
    for row in rows:
        own = name(row)
        if own in table:
            raise PrivstatsError(
                f"two {noun}s are called {own!r}, {table[own]!r:.120} and {row!r:.120}; rename or remove one of them"
            )
        table[own] = row
    return table


def _origin(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
