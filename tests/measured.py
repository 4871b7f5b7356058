"""Coverage as ``.ci/run`` measures it: SlipCover, which takes its probes out of lines that were seen 2,000 times.

A plugin of pytest, to be loaded before SlipCover's own, which knows no threshold: at 50 the searches for what was seen
take as long as importing every instrumented module. ``PYTEST_ADDOPTS="-p tests.measured"`` reaches every worker.
"""

from typing import Any

import slipcover


class _Patient(slipcover.Slipcover):
    def __init__(self, **given: Any) -> None:
        super().__init__(d_miss_threshold=2_000, **given)


slipcover.Slipcover = _Patient  # type: ignore[misc]
