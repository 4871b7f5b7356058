"""Find rivals by name. Their entry points, the library's own and those of other packages, are the only list."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint

from privstats.contrib.sweep.rivals.base import Rival
from privstats.errors import DataError
from privstats.plug_ins import announced, dist_name, loaded
from privstats.tables import by_name

GROUP = "privstats.rivals"


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
    entries = by_name(announced(GROUP), lambda entry: entry.name, "rival")
    for name in names:
        if name not in entries:
            raise DataError(f"baseline must be one of {', '.join(entries)}, got {name!r}; choose one, or omit it")
    makers = [_maker(entries[name]) for name in names]
    return {make().name: make for make in makers}


def _maker(entry: EntryPoint) -> Callable[[], Rival]:
    make: Callable[[], Rival] = loaded(entry, "rival", DataError)
    if not callable(make) or not isinstance(make(), Rival):
        raise DataError(
            f"{dist_name(entry)} announces the rival {entry.name!r} as {entry.value!r}, which makes no Rival when "
            "called; fix or uninstall that package"
        )
    return make
