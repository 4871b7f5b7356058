"""A party's work between two rounds of a course, and its progress in a stream.

A row per ``part`` of a course kind: a party that sends all its records gives up every other round; a party that sends
changes settles the fate of those already sent. Built on ``roles``, called by ``party``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from privstats.course import Pending, RecordRegistry, Stream
from privstats.engines.network.folder import Folder, account_of
from privstats.engines.network.parts import REMEDY, inbox_of, registry_of, take_back
from privstats.engines.network.roles import require_role
from privstats.engines.network.status_codes import Declined
from privstats.errors import LedgerError, LocalProtocolError

__all__ = ["BETWEEN_ROUNDS", "BetweenRounds", "Standing", "standing", "waiting"]


class BetweenRounds(Protocol):
    """A party's work before it takes part in another round."""

    def settle(self, folder: Folder, ended: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Verify statements that other parties signed about rounds that have ended.

        Args:
            folder: the party's.
            ended: :class:`EndStatements` by round, encoded; each is verified on its own.
            say: called with a line about the result.
        """
        ...

    def left_over(self, folder: Folder, place: int) -> Collection[int]:
        """The rounds that are given up when the one at ``place`` begins."""
        ...


class _Records:
    """A course that is spent as a whole: nothing is refunded, and a round that has ended is given up."""

    def settle(self, folder: Folder, ended: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Do nothing."""

    def left_over(self, folder: Folder, place: int) -> Collection[int]:
        """All others."""
        return [each for each in folder.rounds if each != place]


class _Changes:
    """A stream: changes that never left go with the next round; changes that left are sent again only with proof."""

    def settle(self, folder: Folder, ended: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Take back records that are in no sum, by statements that prove it."""
        if not _is_client(folder) or not _spent(folder):
            return
        registry, index = registry_of(folder), folder.roster.publics.index(folder.identity.public)
        noise = folder.course.first.noise
        central = noise is not None and noise.trust.drawn_by == "server"
        for place in registry.outstanding:
            release = folder.release(place) if folder.has_outcome(place) else None
            if release is not None and index in release.survivors:
                continue
            if not ((release is not None and central) or place in ended):
                continue
            if not _fits(folder, registry, place):
                say(
                    f"round {place}: our upload may be in no sum, and there is no room for its records beside those "
                    "that were brought since: they stay out for now"
                )
            elif release is not None and central:
                registry.left_out(place, release, index)
            else:
                _proven(folder, place, ended[place], say)

    def left_over(self, folder: Folder, place: int) -> Collection[int]:
        """Rounds from which nothing was sent, and the last one, whose answers the server no longer requests."""
        last = [each for each in folder.rounds if each < place][-1:]
        taken = registry_of(folder).taken if _is_client(folder) and _spent(folder) else ()
        return tuple(each for each in {*taken, *last} if each != place)


BETWEEN_ROUNDS: Mapping[str, BetweenRounds] = {"records": _Records(), "changes": _Changes()}
"""The work between rounds, by the ``part`` of the course's kind."""


@dataclass(frozen=True)
class Standing:
    """A party's progress in a stream.

    Attributes:
        account: the account to which the stream is charged.
        begun: rounds up to the last that began here.
        inside, gone: records in the stream, and records that have left it.
        entering, leaving: records that the next round will carry, as known now.
    """

    account: str
    begun: int
    inside: int
    gone: int
    entering: int
    leaving: int


def standing(folder: Folder) -> Standing:
    """A party's progress in a stream; reading it spends and marks nothing.

    Raises:
        PrivstatsError: a file cannot be read, or the ledger refuses.
    """
    inbox = inbox_of(folder)
    account = account_of(folder.keep(0, folder.course.first), remedy=REMEDY)
    if not _spent(folder):
        batches = inbox.batches().values()
        gone = {record for each in batches for record in each.leave}
        inside = sum(len(each.names) for each in batches) - len(gone)
        return Standing(account, 0, inside, len(gone), inside, 0)
    registry = registry_of(folder)
    inbox.register(registry)
    begun, counts = max(registry.entry.begun, default=-1) + 1, registry.records()
    pending = inbox.pending(registry, begun) if begun < folder.course.most else Pending(begun, (), ())
    return Standing(account, begun, counts["in"], counts["gone"], len(pending.entering), len(pending.leaving))


def waiting(folder: Folder, leave: Collection[str] = ()) -> int:
    """Records that the next round of a stream already carries, entering and leaving together; the most at any level.

    A node of a tree holds all records of the epochs under it, so what is brought must fit into every level's next node:
    refused there, the party would be missing from that sum, and everybody would see it.

    Args:
        folder: the party's.
        leave: records that are about to leave: each that a node had to add and has not is no longer due there, and
            does not have to be subtracted.

    Raises:
        PrivstatsError: a file cannot be read, or the ledger refuses.
    """
    inbox = inbox_of(folder)
    if not _spent(folder):
        batches = inbox.batches().values()
        return sum(inbox.weigh(each.names) - inbox.weigh(each.leave) for each in batches) - 2 * inbox.weigh(leave)
    registry = registry_of(folder)
    inbox.register(registry)
    ahead = _ahead(inbox.stream, max(registry.entry.begun, default=-1))
    return max(inbox.due(registry, at) - 2 * inbox.weigh(registry.pending(at, leave).entering) for at in ahead)


def _ahead(stream: Stream, begun: int) -> Collection[int]:
    """Of every level the first node after this one; at the end the last node."""
    first: dict[int, int] = {}
    for place in range(min(begun + 1, stream.most - 1), stream.most):
        first.setdefault(stream.nodes[place].level, place)
    return first.values()


def _fits(folder: Folder, registry: RecordRegistry, place: int) -> bool:
    """Whether a round's records can be sent again beside what is due; without a promise the excess waits by itself.

    Where they cannot they stay out: taken back, they would keep the party out of every later sum.
    """
    inbox = inbox_of(folder)
    if not inbox.promised:
        return True
    inbox.register(registry)
    return inbox.carried(registry, place) + inbox.due(registry, place) <= inbox.room


def _is_client(folder: Folder) -> bool:
    return folder.identity.public in folder.roster.publics


def _spent(folder: Folder) -> bool:
    run = folder.roster.run
    return any(account.of_run(run) is not None for account in folder.ledger.accounts())


def _proven(folder: Folder, place: int, said: bytes, say: Callable[[str], None]) -> None:
    ended = folder.round(place)
    try:
        require_role(ended).session_ended()  # which leaves the receipt, and nothing that could answer
        take_back(ended, said)
    except (Declined, LedgerError, LocalProtocolError) as error:
        say(f"round {place}: the signed statements do not prove that our records are in no sum: {error}")
    else:
        say(f"round {place}: our upload is in no sum, by proof: its records go with the next round")
