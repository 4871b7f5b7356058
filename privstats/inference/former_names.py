"""Keep earlier names of attributes readable for one version after they changed."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar

T = TypeVar("T")


def formerly(**names: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator that lets a class answer to earlier names of its attributes.

    Args:
        names: the present name of each earlier one.

    Example:
        >>> from privstats.inference.former_names import formerly
        >>> @formerly(size="length")
        ... class Rod:
        ...     length = 3
        >>> Rod().size
        3
    """

    def decorated(result: type[T]) -> type[T]:
        for earlier, name in names.items():
            setattr(result, earlier, property(attrgetter(name)))
        return result

    return decorated
