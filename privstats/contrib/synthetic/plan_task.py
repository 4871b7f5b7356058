"""The row of synthetic rows as a task of ``privstats plan init``, which loads their columns on use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from privstats.errors import PlanError
from privstats.extend.commands import next_command
from privstats.extend.plans import PlanTask

if TYPE_CHECKING:
    from privstats.plan import Plan


@dataclass(frozen=True)
class RowsDeclaration:
    """The columns of a plan for synthetic rows, as tables of a file; nothing is predicted."""

    path: Path
    tables: tuple[Any, ...]
    answers: ClassVar[dict[str, Any]] = {}

    def fields(self, answers: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return the declared columns."""
        return {"columns": self.tables}

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [str(each.get("name")) for each in self.tables]

    def next_step(self, path: Path) -> str:
        """Return how the plan's promise is divided."""
        divided = next_command("course", "init", "study.toml", plan=path, synthetic=True, columns=self.path)
        return f"its promise is for several sessions: divide it with: {divided}"


def _declared(public: Path | None, others: Sequence[str]) -> RowsDeclaration:
    from privstats.cli.parts.declared_columns import tables_in

    if public is None:
        raise PlanError("synthetic rows need declared columns: pass --public columns.toml")
    if others:
        raise PlanError(f"synthetic rows have no target and hold every declared column: omit {', '.join(others)}")
    return RowsDeclaration(public, tuple(tables_in(public)))


def _plan(_: Mapping[str, Any], fields: Mapping[str, Any], terms: Mapping[str, Any]) -> Plan:
    from privstats.contrib.synthetic.course import Synthetic

    if not fields:
        raise PlanError("synthetic rows need declared columns: run it again with --task rows --public columns.toml")
    return Synthetic.full_plan(schema=fields["columns"], **terms)


ROWS = PlanTask("rows", "synthetic rows of a table", _plan, _declared)
