"""Check what another package announces as a kind: which class is one, and what it leaves as it is."""

from __future__ import annotations

import re
from inspect import getattr_static, isabstract
from typing import Any

from privstats.errors import SchemaError
from privstats.kinds.base import Kind
from privstats.kinds.clipped_rows import is_clipped, overridden

_TASK = re.compile("[a-z][a-z0-9-]{0,31}")
"""A task of another package, which claims print."""


def is_kind(row: Any, task: str) -> bool:
    """Return whether an object is a kind of this task.

    Its class derives from ``Kind``, and from no kind of ours: code that reads ours would take its sums for theirs.
    """
    # By identity: an abstract class may count others among its subclasses, and a metaclass may define ==.
    if not isinstance(row, type) or not any(each is Kind for each in row.__mro__):
        return False
    if any("task" in vars(each) and each.__module__.startswith("privstats.") for each in row.__mro__[1:]):
        return False
    own = getattr_static(row, "task", None)
    named = type(own) is str and own == task and _TASK.fullmatch(task) is not None
    if not named or isabstract(row) or overridden(row):
        return False
    if not is_clipped(row):
        _check_stated(row)
    return True


_LEFT = ("nearer", "longest", "move_of_client", "statements", "party_is_record", "scores_head", "suppressible",
    "follows", "followed", "among", "terms_of", "refuses_persons", "refuses_parts", "plain_fields", "unstated",
    "clipping")  # fmt: skip
"""What a promise or a page rests on beside ``move``, and a kind of another package leaves as it is."""


def _check_stated(row: Any) -> None:
    """Refuse a kind of another package that states more than one record's bound: a claim's clause covers no more."""
    if changed := [name for name in _LEFT if getattr_static(row, name) is not getattr_static(Kind, name)]:
        raise SchemaError(
            f"{row.__name__} defines {', '.join(changed)}, which kinds of other packages do not; omit them"
        )
    if not row.no_persons or row.move is Kind.move:
        raise SchemaError(
            f"{row.__name__} must state move, and why it bounds no person as no_persons; ClippedRows bounds persons"
        )
