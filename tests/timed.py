"""The processor seconds of each file of the night, its processes' included, kept for the slices.

A plugin of pytest: ``-p tests.timed``. Wall seconds would be those of whatever else the machine does; of processes that
are still running when a test ends nothing is known.
"""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.night import keep

_seconds: Counter[str] = Counter()


def _spent() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    began = _spent()
    result = yield
    if item.get_closest_marker("nightly"):
        _seconds[item.nodeid.partition("::")[0]] += _spent() - began
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker has measured."""
    _seconds.update(node.workeroutput.get("seconds", {}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["seconds"] = dict(_seconds)
    else:
        keep(_seconds)
