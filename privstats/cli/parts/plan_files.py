"""Write the plan of a course's next session, and the values that it publishes next to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privstats.cli.parts.terminal import writable
from privstats.errors import PlanError
from privstats.files.atomic import atomic_write

if TYPE_CHECKING:
    from privstats.plan import Plan


def values_beside(out: Path) -> Path:
    """Return the file of the values next to a plan's file; refuse a name that is empty or that of such values."""
    from privstats.schema.public_values import values_path

    if not out.name or (values := values_path(out)) == out:
        raise PlanError(f"--out must name a file for the plan, such as plan.toml, got {str(out)!r}")
    return values


def written(plan: Plan, out: Path, values: Path, force: bool) -> str:
    """Write a plan, and the values that it publishes; return what was written as words."""
    files = [out] if plan.published is None else [out, values]
    writable(files, force)
    if plan.published is not None:
        plan.published.save(values)
    atomic_write(out, plan.to_toml().encode())
    return f"wrote {' and '.join(map(str, files))}"
