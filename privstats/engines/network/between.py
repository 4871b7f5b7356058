"""What a party does between two nodes of a course, and how far it has come in a stream.

A row per word of a course kind's ``part``: whoever brings all its records gives every other node up, whoever brings
changes settles what became of those that it sent. Over ``roles``, under ``course_party``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from privstats.course import Pending
from privstats.engines.network.course_folder import CourseFolder
from privstats.engines.network.folder import account_of
from privstats.engines.network.parts import REMEDY, inbox_of, registry_of, take_back
from privstats.engines.network.roles import require_role
from privstats.engines.network.status_codes import Declined
from privstats.errors import LedgerError, LocalProtocolError

__all__ = ["BETWEEN", "Between", "Standing", "standing", "waiting"]


class Between(Protocol):
    """What a party does before it takes part in another node."""

    def settle(self, folder: CourseFolder, words: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Read what others signed of nodes that have ended.

        Args:
            folder: the party's.
            words: :class:`EndStatements` by node, encoded; each stands for itself.
            say: told what came of it.
        """
        ...

    def left_over(self, folder: CourseFolder, place: int) -> Collection[int]:
        """The nodes that are given up when the one at ``place`` begins."""
        ...


class _Records:
    """A course that is spent as a whole: nothing comes back, and a node that is over is given up."""

    def settle(self, folder: CourseFolder, words: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Do nothing."""

    def left_over(self, folder: CourseFolder, place: int) -> Collection[int]:
        """All others."""
        return [each for each in folder.nodes if each != place]


class _Changes:
    """A stream: what never left goes with the next node, what left goes again by proof alone."""

    def settle(self, folder: CourseFolder, words: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Take records back of which others say, so that it is proof, that they are in no sum."""
        if not _is_client(folder) or not _spent(folder):
            return
        registry, index = registry_of(folder), folder.roster.publics.index(folder.identity.public)
        noise = folder.course.first.noise
        central = noise is not None and noise.trust.drawn_by == "server"
        for place in registry.outstanding:
            release = folder.release(place) if folder.told(place) else None
            if release is not None and index in release.survivors:
                continue
            if release is not None and central:
                registry.left_out(place, release, index)
            elif place in words:
                _proven(folder, place, words[place], say)

    def left_over(self, folder: CourseFolder, place: int) -> Collection[int]:
        """Those of which nothing was sent, and the last one, whose answers nobody asks for any more."""
        last = [each for each in folder.nodes if each < place][-1:]
        taken = registry_of(folder).taken if _is_client(folder) and _spent(folder) else ()
        return tuple(each for each in {*taken, *last} if each != place)


BETWEEN: Mapping[str, Between] = {"records": _Records(), "changes": _Changes()}
"""What is done between nodes, by the ``part`` of the course's kind."""


@dataclass(frozen=True)
class Standing:
    """How far a party has come in a stream.

    Attributes:
        account: what the stream is charged to.
        begun: nodes up to the last that began here.
        inside, gone: records in the stream, and records that have left it.
        entering, leaving: what the next node carries, as far as is known now.
    """

    account: str
    begun: int
    inside: int
    gone: int
    entering: int
    leaving: int


def standing(folder: CourseFolder) -> Standing:
    """How far a party has come in a stream: nothing is spent and nothing marked by asking.

    Raises:
        PrivstatsError: a file cannot be read, or the ledger refuses.
    """
    inbox = inbox_of(folder)
    account = account_of(folder.keep(0, folder.course.first), remedy=REMEDY)
    if not _spent(folder):
        batches = inbox.batches().values()
        gone = {record for each in batches for record in each.leave}
        inside = sum(len(each.ids) for each in batches) - len(gone)
        return Standing(account, 0, inside, len(gone), inside, 0)
    registry = registry_of(folder)
    inbox.register(registry)
    begun, counts = max(registry.entry.begun, default=-1) + 1, registry.records()
    pending = inbox.pending(registry, begun) if begun < folder.course.most else Pending(begun, (), ())
    return Standing(account, begun, counts["in"], counts["gone"], len(pending.entering), len(pending.leaving))


def waiting(folder: CourseFolder) -> int:
    """Records that the next node of a stream carries already, both ways counted.

    Raises:
        PrivstatsError: a file cannot be read, or the ledger refuses.
    """
    inbox, most = inbox_of(folder), folder.course.most
    if not _spent(folder):
        return sum(len(each.ids) - len(each.leave) for each in inbox.batches().values())
    registry = registry_of(folder)
    inbox.register(registry)
    pending = inbox.pending(registry, min(max(registry.entry.begun, default=-1) + 1, most - 1))
    return len(pending.entering) + len(pending.leaving)


def _is_client(folder: CourseFolder) -> bool:
    return folder.identity.public in folder.roster.publics


def _spent(folder: CourseFolder) -> bool:
    run = folder.roster.run
    return any(account.of_run(run) is not None for account in folder.ledger.accounts())


def _proven(folder: CourseFolder, place: int, said: bytes, say: Callable[[str], None]) -> None:
    node = folder.node(place)
    try:
        require_role(node).session_ended()  # which leaves the receipt, and nothing that could answer
        take_back(node, said)
    except (Declined, LedgerError, LocalProtocolError) as error:
        say(f"node {place}: what others signed is no proof that our records are in no sum: {error}")
    else:
        say(f"node {place}: our upload is in no sum, by proof: its records go with the next node")
