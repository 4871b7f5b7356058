"""One wrong fact of a kind, as if its source were changed: the only place that knows how a kind holds its facts."""

from collections.abc import Callable
from typing import Any

import pytest

from privstats.kinds import KINDS


def changed_fact(task: str, name: str, bug: Callable[[Any], Any]) -> tuple[Any, str, Any]:
    """The class of a kind, the name of one of its facts, and the wrong fact that ``bug`` makes out of the right one."""
    kind = KINDS[task]
    return kind, name, bug(getattr(kind, name))


def change_kind(monkeypatch: pytest.MonkeyPatch, task: str, **bugs: Callable[[Any], Any]) -> None:
    """Give a kind other facts for the rest of a test."""
    for name, bug in bugs.items():
        monkeypatch.setattr(*changed_fact(task, name, bug))
