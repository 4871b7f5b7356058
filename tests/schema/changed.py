"""One wrong fact of a kind, as if its source were changed: the only place that knows how a kind holds its facts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from privstats.kinds import KINDS


def changed_kind(task: str, **bugs: Callable[[Any], Any]) -> Any:
    """This kind with other facts; each bug makes the wrong one out of the right one."""
    right = KINDS[task]
    return replace(right, **{name: bug(getattr(right, name)) for name, bug in bugs.items()})


def change_kind(monkeypatch: pytest.MonkeyPatch, task: str, **bugs: Callable[[Any], Any]) -> None:
    """Give a kind other facts for the rest of a test."""
    monkeypatch.setitem(KINDS, task, changed_kind(task, **bugs))  # type: ignore[arg-type]
