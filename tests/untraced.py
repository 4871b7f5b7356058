"""The environment of a process whose lines nobody counts: tools, benchmarks, and tests that others measure already.

Coverage follows every Python process that a test starts, and costs it a third of its time and more.
"""

from __future__ import annotations

import os

__all__ = ["untraced"]


def untraced(**more: str) -> dict[str, str]:
    """This process's environment with ``more``, and without what would start coverage in a child."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")} | more
