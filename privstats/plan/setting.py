"""Define the row of one setting: its values, its meaning for people, and what a promise assumes because of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from privstats.plan.forms import Form

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

Fields: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Fields of a plan, by table."""

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Assumes:
    """An assumption that a setting's value puts on the promise.

    Attributes:
        of: what rests on the assumption: the ``"noise"``, or ``"masks"``, which hide each party's sums.
        clause: returns a clause that follows "while"; empty where the value assumes nothing.
    """

    of: Literal["noise", "masks"]
    clause: Callable[[Plan], str]


@dataclass(frozen=True)
class StatedBy:
    """The clause of another setting states what a promise assumes because of this one."""

    setting: str


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a plan.

    Attributes:
        table: the table of the plan file that holds it.
        name: its key there, and the field of the table's class.
        meaning: what it decides, for people: a phrase in Markdown.
        form: its values.
        condition: what it adds to the conditions of every claim; None: nothing.
        bounds: what the form does not state of its values; Markdown.
        usual: its default in words, where the default itself does not suffice; Markdown.
        omitted: whether the canonical tables omit its default. New settings do, so older plans keep their digests.
        follows: another setting of the table, with which the tables hold this one or omit it.
        new: the value that commands write into new plans, where it is not the default.
        joins: refusals next to another setting of its table: functions of the table's class, as ``"module:name"`` in
            the room of plans.
        fits: refusals next to the rest of the plan: functions of the plan, named likewise.
        example: fields of a plan, by table, with another value than :attr:`around`; fields of ``[aggregation]`` are
            those of the plan itself.
        around: fields of a plan, by table, that the example needs.
    """

    table: str
    name: str
    meaning: str
    form: Form
    condition: Assumes | StatedBy | None
    example: Fields
    around: Fields = field(default_factory=dict)
    bounds: str = ""
    usual: str = ""
    omitted: bool = True
    follows: str = ""
    new: Any = None
    joins: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Table and key."""
        return f"{self.table}.{self.name}"

    @property
    def label(self) -> str:
        """The setting's name in messages: fields of ``Plan`` and ``Privacy`` have no table in front."""
        return self.name if self.table in ("aggregation", "privacy") else self.path

    def default(self, of: Any) -> Any:
        """Return the default in the class ``of``, or in the class of an instance; MISSING if there is none."""
        (own,) = (each for each in fields(of) if each.name == self.name)
        return own.default if own.default_factory is MISSING else own.default_factory()

    @property
    def help(self) -> str:
        """The meaning as a sentence without Markdown."""
        plain = _LINK.sub(r"\1", self.meaning).replace("`", "").replace('"', "").replace("*", "")
        return f"{plain[0].upper()}{plain[1:]}."

    def checked(self, value: Any) -> Any:
        """Return a value as plans store it; raise PlanError if the setting cannot have it."""
        return self.form.checked(self.label, value)

    def is_written(self, part: Any) -> bool:
        """Return whether canonical tables hold this setting of a plan or of its part, if it follows no other one."""
        return not self.omitted or bool(getattr(part, self.name) != self.default(part))
