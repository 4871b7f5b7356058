"""Write the plan of a course's next session, and the values that it publishes next to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privstats.cli.parts.terminal import writable
from privstats.errors import PlanError
from privstats.files.atomic import atomic_write

if TYPE_CHECKING:
    from privstats.plan import Plan


@dataclass(frozen=True)
class PlanFiles:
    """A plan's file to be written, with its values' file next to it.

    Raises:
        PlanError: the name is empty, or that of such values.
    """

    out: Path

    def __post_init__(self) -> None:
        if not self.out.name or self._values == self.out:
            raise PlanError(f"--out must name a file for the plan, such as plan.toml, got {str(self.out)!r}")

    @property
    def _values(self) -> Path:
        from privstats.schema.public_values import values_path

        return values_path(self.out)

    def write(self, plan: Plan, force: bool) -> str:
        """Write a plan, and the values that it publishes; return what was written as words."""
        files = [self.out] if plan.published is None else [self.out, self._values]
        writable(files, force)
        if plan.published is not None:
            plan.published.save(self._values)
        atomic_write(self.out, plan.to_toml().encode())
        return f"wrote {' and '.join(map(str, files))}"
