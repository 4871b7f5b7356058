"""Find rivals by name. Their entry points, the library's own and those of other packages, are the only list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privstats.contrib.sweep.rivals.base import Rival
from privstats.errors import DataError
from privstats.extend.doors import Door, RowError


def _makes_rival(make: Any, _: str) -> bool:
    if not callable(make):
        raise RowError("it must be a function without parameters, or a class, that makes a Rival")
    if not isinstance(made := make(), Rival):
        raise RowError(f"it makes an object of {type(made).__name__}, and must make a Rival")
    return True


RIVALS: Door[Callable[[], Rival]] = Door("privstats.rivals", "rival", DataError, _makes_rival)
"""What makes a rival when called, by name."""
GROUP = RIVALS.group
"""The entry points that announce a rival."""


def rivals(*names: str) -> dict[str, Callable[[], Rival]]:
    """Return factories of the rivals with these names, by row name.

    Args:
        names: of entry points, such as ``"dp-sgd"`` or ``"fedavg"``.

    Raises:
        DataError: an unknown name, or an entry point that makes no :class:`Rival`.

    Example:
        >>> from privstats.contrib.sweep.rivals import rivals
        >>> list(rivals("fedavg", "ensemble"))
        ['FedAvg, 50 rounds', 'one-shot ensemble']
    """
    for name in names:
        if name not in RIVALS:
            raise DataError(f"baseline must be one of {', '.join(RIVALS)}, got {name!r}; choose one, or omit it")
    makers = [RIVALS[name] for name in names]
    return {make().name: make for make in makers}
