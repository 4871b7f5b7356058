"""The plan that a command is given: one door from a path to a Plan, with one sentence for each way it can fail."""

from __future__ import annotations

from pathlib import Path

from privstats.errors import PlanError
from privstats.plan import Plan

__all__ = ["read_plan"]


def read_plan(path: Path) -> Plan:
    """Read a plan file.

    Raises:
        PlanError: the file cannot be read, or the plan does not hold together.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PlanError(f"cannot read {path}: {reason}") from None
    return Plan.from_toml(text)
