"""Lists of clients that a party signed in the first sums of alignments; later rounds must name the same clients.

One file in the party's folder, beside its ledger, for sessions that are run one by one; a course keeps its own. The
first list stays, so that no server can replace it later. ``folder`` uses it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from privstats.dp import NoPrivacy
from privstats.errors import LocalProtocolError
from privstats.files.atomic import atomic_write, read_whole
from privstats.plan import Plan
from privstats.secagg import Roster

__all__ = ["keep", "kept"]

_FILE = "agreed"


def kept(home: Path, plan: Plan, roster: Roster) -> tuple[int, ...] | None:
    """The list that this party signed in the sum before a round; None where there was none.

    A list holds places on a roster, so it is valid for these clients in this order only.

    Args:
        home: the party's folder.
        plan: the round's.
        roster: the round's.

    Raises:
        LocalProtocolError: the file is damaged.
    """
    earlier = plan.schema.follows
    if earlier is None:
        return None
    first = replace(plan, schema=earlier, published=None)
    return _lists(home).get(_name(first, roster))


def keep(home: Path, plan: Plan, roster: Roster, agreed: tuple[int, ...]) -> None:
    """Keep the list of an alignment's first sum without noise, unless there is one; on disk when this returns."""
    if plan.schema.followed and isinstance(plan.privacy, NoPrivacy):
        lists, name = _lists(home), _name(plan, roster)
        if name not in lists:
            atomic_write(home / _FILE, msgspec.json.encode({**lists, name: agreed}))


def _name(first: Plan, roster: Roster) -> str:
    return f"{first.digest} {roster.members.hex()}"


def _lists(home: Path) -> dict[str, tuple[int, ...]]:
    """Key of a list: digest of the first plan, and of the clients on its roster."""
    path = home / _FILE
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(
            read_whole(path, LocalProtocolError, "privstats flower"), type=dict[str, tuple[int, ...]]
        )
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise LocalProtocolError(f"{path} is damaged: bring it back, or this party's rounds cannot begin") from None
