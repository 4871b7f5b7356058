"""List a plan's settings, one row each: all that the package states of a setting is read from its row.

From the rows follow: which keys a plan file may have and how it writes them; the canonical tables, and with them the
digest; the refusal of a value, alone and next to other settings; the conditions of every claim; the tables of
docs/plan.md; choices and help of ``plan init``; and the tests of all these.

A setting's default is that of its class, and its effect is where it acts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from privstats.plan import feasibility
from privstats.plan.forms import AsciiName, ClassPairs, Form, Integer, Keys, Words
from privstats.secagg.keys import HYBRID, KEY_AGREEMENTS
from privstats.secagg.protocols import PROTOCOLS
from privstats.tables import by_name

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

Check: TypeAlias = "Callable[[Plan], None]"
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Assumes:
    """What a promise assumes because of a setting's value.

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
        name: its key in the plan file, and the field of its class.
        meaning: what it decides, for people: a phrase in Markdown.
        form: its values.
        condition: what it adds to the conditions of every claim; None: nothing.
        bounds: what the form does not state of its values; Markdown.
        usual: its default in words, where the default itself does not suffice; Markdown.
        omitted: whether the canonical tables omit its default. New settings do, so older plans keep their digests.
        follows: another setting, with which the tables hold this one or omit it.
        new: the value that commands write into new plans, where it is not the default.
        joins: refusals of the setting next to another one.
        example: fields of a plan that has another value than the default; ``"privacy.model"`` is a field of a part.
        example_without: fields of such a plan without that value.
    """

    name: str
    meaning: str
    form: Form
    condition: Assumes | StatedBy | None
    example: Mapping[str, Any]
    example_without: Mapping[str, Any] = field(default_factory=dict)
    bounds: str = ""
    usual: str = ""
    omitted: bool = True
    follows: str = ""
    new: Any = None
    joins: tuple[Check, ...] = ()

    def default(self, of: Any) -> Any:
        """Return the default in the class ``of``, or in the class of an instance; MISSING if there is none."""
        (own,) = (each for each in fields(of) if each.name == self.name)
        return own.default if own.default_factory is MISSING else own.default_factory()

    @property
    def help(self) -> str:
        """The meaning as a sentence without Markdown, with the value of new plans."""
        plain = _LINK.sub(r"\1", self.meaning).replace("`", "").replace('"', "")
        return f"{plain[0].upper()}{plain[1:]}." + (f" Default: {self.new}." if self.new is not None else "")

    def is_written(self, plan: Plan) -> bool:
        """Return whether the canonical tables of a plan hold this setting."""
        if self.follows:
            return AGGREGATION[self.follows].is_written(plan)
        return not self.omitted or bool(getattr(plan, self.name) != self.default(plan))


_PANEL = tuple(character * 64 for character in "ab")

_ROWS = (
    Setting(
        name="min_count",
        meaning="classes with a smaller *noisy* count are dropped; classes only",
        form=Integer(0),
        bounds="at most `max_records`; 0 keeps all",
        omitted=False,
        joins=(feasibility.check_min_count,),
        condition=None,
        example={"min_count": 1},
    ),
    Setting(
        name="merge",
        meaning="for a class that would be dropped, the class that receives its sums instead, for example `{ 3 = 0 }`; "
        "a parent is not itself merged",
        form=ClassPairs(),
        bounds="needs `min_count` above 0",
        usual="nothing is merged",
        joins=(feasibility.check_merge,),
        condition=None,
        example={"min_count": 1, "merge": {2: 0}},
        example_without={"min_count": 1},
    ),
    Setting(
        name="graph",
        meaning="who masks with whom, see below",
        # Each protocol has graphs of its own, and refuses others.
        form=AsciiName("auto"),
        omitted=False,
        condition=StatedBy("protocol"),
        example={"graph": "complete"},
    ),
    Setting(
        name="protocol",
        meaning="how the sum is masked ([Which protocol](which_protocol.md))",
        form=Words(PROTOCOLS),
        joins=(feasibility.check_panel, feasibility.check_noise),
        condition=Assumes("masks", lambda plan: plan.masking.condition),
        example={"protocol": "split", "panel": _PANEL},
    ),
    Setting(
        name="panel",
        meaning="Ed25519 identities of the leader and of each helper, the leader first",
        form=Keys(),
        bounds='2 to 256 with `"split"`, otherwise none',
        usual="none",
        follows="protocol",
        joins=(feasibility.check_panel,),
        condition=StatedBy("protocol"),
        example={"protocol": "split", "panel": _PANEL[::-1]},
        example_without={"protocol": "split", "panel": _PANEL},
    ),
    Setting(
        name="excess_noise",
        meaning="distributed noise: whether the surplus noise is removed when more than `min_survivors` survive "
        "([privacy](privacy.md#who-adds-the-noise))",
        form=Words(feasibility.EXCESS),
        bounds='`"removed"` with `"interactive"` on the complete graph',
        joins=(feasibility.check_excess,),
        condition=None,
        example={"privacy.model": "distributed", "excess_noise": "removed"},
        example_without={"privacy.model": "distributed"},
    ),
    Setting(
        name="key_agreement",
        meaning='how parties agree on keys: with `"mlkem768-x25519"` nobody who records all messages and later breaks '
        'X25519 reads a party\'s sums ([version 4](protocol.md#version-4)); `"x25519"` has shorter messages',
        form=Words(KEY_AGREEMENTS),
        bounds='`"mlkem768-x25519"` needs room for dropouts on a random graph',
        new=HYBRID,
        joins=(feasibility.check_key_agreement,),
        condition=None,
        example={"key_agreement": HYBRID},
    ),
    Setting(
        name="spare_bits",
        meaning="extra bits of the ring, for a central server that weighs the sums of several sessions before it adds "
        "noise",
        form=Integer(0, 32),
        condition=None,
        example={"spare_bits": 1},
    ),
)

AGGREGATION: Mapping[str, Setting] = by_name(_ROWS, lambda row: row.name, "setting")
"""The settings of ``[aggregation]``, which are fields of ``Plan``, by name and in the order of files."""


def rows() -> Iterator[Setting]:
    """Return all settings that have a row."""
    yield from AGGREGATION.values()


def new_plans() -> dict[str, Any]:
    """Return the settings that commands write into new plans."""
    return {row.name: row.new for row in rows() if row.new is not None}


def checked(name: str, value: Any) -> Any:
    """Return a value of a setting of ``[aggregation]`` as plans store it; raise PlanError if it cannot have it."""
    return AGGREGATION[name].form.checked(name, value)


def check_values(plan: Plan) -> None:
    """Refuse a value that a setting cannot have, and store each as its form returns it."""
    for name in AGGREGATION:
        object.__setattr__(plan, name, checked(name, getattr(plan, name)))


def check_joins(plan: Plan) -> None:
    """Refuse settings that contradict each other or another part of the plan."""
    for check in dict.fromkeys(check for row in rows() for check in row.joins):
        check(plan)


def table_of(plan: Plan) -> dict[str, Any]:
    """Return ``[aggregation]`` as plain values, without what the canonical tables omit."""
    return {row.name: row.form.written(getattr(plan, row.name)) for row in AGGREGATION.values() if row.is_written(plan)}


def arguments_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``Plan`` in ``[aggregation]`` of a plan file."""
    return {name: AGGREGATION[name].form.read(name, value) for name, value in table.items()}
