"""Check what another package announces as a kind: which class is one, and what it leaves as it is."""

from __future__ import annotations

import re
from inspect import getattr_static, isabstract
from typing import Any

from privstats.errors import SchemaError
from privstats.kinds.base import Kind, reserved
from privstats.kinds.clipped_rows import OF_DATACLASSES, ClippedRows, is_clipped, overridden, require_open, sealed
from privstats.row_fields import RowError, shown
from privstats.schema.base import Schema

_TASK = re.compile("[a-z][a-z0-9-]{0,31}")
"""A task of another package, which claims print."""


def is_kind(row: Any, task: str) -> bool:
    """Return True for a kind of this task, and refuse any other object with the reason.

    Its class derives from ``Kind``, and from no kind of ours: code that reads ours would take its sums for theirs.
    """
    # By identity: an abstract class may count others among its subclasses, and a metaclass may define ==.
    if not isinstance(row, type) or not any(each is Kind for each in row.__mro__):
        raise RowError(f"it is {shown(row)}, and must be a class over ClippedRows or Kind")
    ours = (each for each in row.__mro__[1:] if "task" in vars(each) and each.__module__.startswith("privstats."))
    if (base := next(ours, None)) is not None:
        raise RowError(f"it derives from {base.__name__}, a kind of privstats: derive it from ClippedRows or Kind")
    own = getattr_static(row, "task", None)
    if type(own) is not str or own != task:
        raise RowError(f"its task is {shown(own)}, and must be {task!r}, the name of the entry point")
    if _TASK.fullmatch(task) is None:
        raise RowError(
            f"its task is {task!r:.80}, and must be 1 to 32 lower-case letters, digits and '-', a letter first"
        )
    if isabstract(row):
        own = row.__dict__["__abstractmethods__"]
        raise RowError(f"it lacks {', '.join(sorted(own))}")
    if is_clipped(row):
        require_open(row, {*overridden(row), *_changed(row, ClippedRows, sealed() | OF_DATACLASSES)})
    else:
        _check_stated(row)
    return True


def _changed(row: type, base: type, closed: set[str]) -> set[str]:
    """Return what fields of mixins, and options of ``dataclass``, change below a base.

    A field stands before a class attribute of that name; and equal schemas, of which one may be used for another, must
    have equal fields.
    """
    ours: dict[str, Any] = vars(base).get("__dataclass_fields__", {})
    his: dict[str, Any] = getattr_static(row, "__dataclass_fields__", {})
    changed = (his.keys() - ours.keys()) & closed | {name for name in ours if his.get(name) is not ours[name]}
    for class_ in row.__mro__[: row.__mro__.index(base)]:
        options = vars(class_).get("__dataclass_params__")
        if options is None:
            changed |= vars(class_).keys() & OF_DATACLASSES
        elif not (options.frozen and options.eq and options.init):
            changed.add("options (dataclass has frozen=True alone)")
    return changed


_LEFT = ("nearer", "longest", "move_of_client", "statements", "party_is_record", "scores_head", "suppressible",
    "follows", "followed", "among", "terms_of", "refuses_persons", "refuses_parts", "plain_fields", "unstated",
    "clipping", "unsigned")  # fmt: skip
"""A promise or a page depends on these attributes and on ``move``. Kinds of other packages do not define these."""


def _check_stated(row: Any) -> None:
    """Refuse a kind of another package that states more than one record's bound: a claim's clause covers no more."""
    changed = {name for name in _LEFT if getattr_static(row, name) is not getattr_static(Kind, name)}
    changed |= _changed(row, Kind, reserved() | OF_DATACLASSES)
    if changed:
        raise SchemaError(
            f"{row.__name__} defines {', '.join(sorted(changed))}, which kinds of other packages do not; omit them"
        )
    why: Any = getattr_static(row, "no_persons")
    if type(why) is not str or why in ("", Schema.no_persons) or row.move is Kind.move:
        raise SchemaError(
            f"{row.__name__} must state move, and why it bounds no person as no_persons; ClippedRows bounds persons"
        )
