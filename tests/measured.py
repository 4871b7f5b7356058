"""Coverage as ``.ci/run`` measures it: SlipCover, which takes its probes out of lines that were seen 2,000 times.

A plugin of pytest, to be loaded before SlipCover's own, which knows no threshold: at 50 the searches for what was seen
take as long as importing every instrumented module. ``PYTEST_ADDOPTS="-p tests.measured"`` reaches every worker.
Processes of pytest that a test starts are not measured: nothing reads their coverage, and they load twice as fast.
"""

import os
from typing import Any

import pytest
import slipcover

_ENABLED = "SLIPCOVER_ENABLED"
_removed: dict[str, str] = {}


class _Patient(slipcover.Slipcover):
    def __init__(self, **given: Any) -> None:
        super().__init__(d_miss_threshold=2_000, **given)


slipcover.Slipcover = _Patient  # type: ignore[misc]


def pytest_configure() -> None:
    """Remove the variable that would measure each process of pytest that a test of this worker starts."""
    if "PYTEST_XDIST_WORKER" in os.environ and _ENABLED in os.environ:
        _removed[_ENABLED] = os.environ.pop(_ENABLED)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Restore the variable: only with it SlipCover writes what this worker has measured."""
    os.environ.update(_removed)
