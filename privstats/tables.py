"""Keep tables with named rows: a second row of one name is refused."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import TypeAlias, TypeVar

from privstats.errors import PrivstatsError

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Name = TypeVar("Name", bound=str)


def register(table: dict[str, type[T]], name: str, cls: type[T], noun: str, error: type[PrivstatsError]) -> None:
    """Put a class into a table under its name; a reloaded class keeps its name.

    Args:
        error: raised where another class has the name.
    """
    held = table.get(name)
    if held is not None and _origin(held) != _origin(cls):
        raise error(f"the {noun} {name!r} is {_origin(held)}; give {_origin(cls)} another name")
    table[name] = cls


def by_name(rows: Iterable[T], name: Callable[[T], Name], noun: str) -> dict[Name, T]:
    """Return rows by name, in order; refuse two of one name."""
    table: dict[Name, T] = {}
    for row in rows:
        own = name(row)
        if own in table:
            raise PrivstatsError(
                f"two {noun}s are called {own!r}, {table[own]!r:.120} and {row!r:.120}; rename or remove one of them"
            )
        table[own] = row
    return table


_Makers: TypeAlias = Mapping[Key, Callable[[], T] | str]


class LazyRows(Mapping[Key, T]):
    """Rows by name or by class, each built on first use; keys and length are known before.

    Args:
        makers: by key, a function that returns the row, or the row's place, ``"module:name"``; or a function that
            returns them, called on first use.
    """

    def __init__(self, makers: _Makers[Key, T] | Callable[[], _Makers[Key, T]]) -> None:
        self._given = makers
        self._rows: dict[Key, T] = {}

    @cached_property
    def _makers(self) -> dict[Key, Callable[[], T] | str]:
        return dict(self._given() if callable(self._given) else self._given)

    def __getitem__(self, key: Key) -> T:
        if key not in self._rows:
            make = self._makers[key]
            self._rows[key] = pkgutil.resolve_name(make) if isinstance(make, str) else make()
        return self._rows[key]

    def __contains__(self, key: object) -> bool:
        return key in self._makers

    def __iter__(self) -> Iterator[Key]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def load_all(package: str) -> None:
    """Import every module of a package, so that each class registers itself."""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


def _origin(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
