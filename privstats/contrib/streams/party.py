"""A party's part in a stream between machines: send pending changes, settle sent ones, and report its progress."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privstats import domains, session
from privstats.contrib.streams.inbox import PersonInbox, RecordInbox
from privstats.contrib.streams.record_registry import Pending, PersonRegistry, RecordRegistry
from privstats.contrib.streams.stream import Stream
from privstats.engines.carriers import Folder, RoundFolder
from privstats.engines.network.roles import require_role
from privstats.engines.network.transport import Declined
from privstats.errors import DataError, LedgerError, LocalProtocolError
from privstats.extend.courses import total_of
from privstats.moments import Moments
from privstats.release import Release
from privstats.session import RoundCharge


class ChangesPart:
    """Records that entered or left since the last upload."""

    def __init__(self, folder: RoundFolder) -> None:
        self._folder, self._above, self._at = folder, folder.above, folder.place

    def prepare(self, *, anew: bool) -> None:  # noqa: ARG002  measured as brought
        """Read the batches in the inbox."""
        inbox_of(self._above).batches()

    def contribution(self) -> tuple[Moments, RoundCharge]:
        """Measure this round's pending changes."""
        registry = registry_of(self._above)
        inbox = inbox_of(self._above)
        inbox.register(registry)
        pending = inbox.pending(registry, self._at)
        if pending.missing:
            raise DataError(
                f"{pending.missing} records that are due are in no file of {self._above.home.name}/records: restore "
                "the files that were moved away"
            )
        return inbox.change(registry, pending), self._charged(registry, pending)

    def on_upload(self) -> Callable[[bytes], None]:
        """Return a function that opens the registry only at the upload: most messages need none."""
        plan, roster, pending = self._folder.plan, self._folder.roster, Pending(self._at, (), ())
        return lambda upload: session.on_upload(plan, roster, self._charged(registry_of(self._above), pending))(upload)

    def settle(self, beside: bytes) -> None:
        """Take back records never sent or proven in no sum."""
        if beside:
            with suppress(LedgerError):  # nothing was sent, or it was taken back already
                take_back(self._folder, beside)
        if self._folder.begun:
            with suppress(LedgerError):  # it was sent, so it stays sent
                registry_of(self._above).withdraw(self._at)

    def _charged(self, registry: RecordRegistry, pending: Pending) -> RoundCharge:
        return registry.charge(self._folder.plan, [None] * self._at, pending)


class Changes:
    """A party's rounds of a stream: unsent changes join the next round; sent ones are repeated only with proof."""

    def part(self, folder: RoundFolder) -> ChangesPart:
        """Return a round's pending changes."""
        return ChangesPart(folder)

    def settle(self, folder: Folder, ended: Mapping[int, bytes], say: Callable[[str], None]) -> None:
        """Take back records that are in no sum.

        Args:
            ended: encoded statements by ended round, signed by other parties; each is verified.
        """
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
                    f"round {place}: our upload may be in no sum, and there is no room for its records next to those "
                    "queued since: they are excluded for now"
                )
            elif release is not None and central:
                _listed(registry, place, release, index, say)
            else:
                _proven(folder, place, ended[place], say)

    def obsolete_rounds(self, folder: Folder, place: int) -> Collection[int]:
        """Return unsent rounds, and the last: its answers are no longer requested."""
        last = [each for each in folder.rounds if each < place][-1:]
        unsent = registry_of(folder).begun if _is_client(folder) and _spent(folder) else ()
        return tuple(each for each in {*unsent, *last} if each != place)


@dataclass(frozen=True)
class Standing:
    """A party's progress in a stream.

    Attributes:
        begun: number of rounds begun here.
        inside, gone: records in the stream, and records that left.
        entering, leaving: records that the next round will carry.
    """

    account: str
    begun: int
    inside: int
    gone: int
    entering: int
    leaving: int


def standing(folder: Folder) -> Standing:
    """Return a party's progress; spends and marks nothing."""
    inbox = inbox_of(folder)
    account = folder.store(0, folder.course.first).server_account()
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


def facts_of(folder: Folder) -> dict[str, Any]:
    """Return facts of a party's folder of a stream, for the party."""
    stream, here = stream_of(folder), standing(folder)
    epochs = len({place.epoch for place in stream.nodes[: here.begun]})
    repeats = f", {1 + stream.repeats} times at most" if stream.repeats else ""
    unit = "record" if stream.plan.person_clip is None else "person, with all rows,"
    leave = " and leaves once" if stream.deletions else " and never leaves"
    return {
        "stream": f"{stream.epochs} epochs by {stream.mechanism}: a {unit} enters once{repeats}{leave}",
        "epochs_begun": epochs,
        "records": here.inside,
        "gone": here.gone,
        "goes_next": f"{here.entering} that enter, {here.leaving} that leave",
        "spends": f"once, for all epochs together: {total_of(stream).claim}",
        "account": here.account,
    }


def waiting(folder: Folder, leave: Collection[str] = ()) -> int:
    """Return the number of entering and leaving records that the next round already carries; the maximum over levels.

    A batch must fit into every level's next node: a refusal there would exclude the party from that sum, visibly to
    all.

    Args:
        leave: records about to leave; those not yet added at a level are no longer due there.
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
    first: dict[int, int] = {}
    for place in range(min(begun + 1, stream.most - 1), stream.most):
        first.setdefault(stream.nodes[place].level, place)
    return first.values()


def _fits(folder: Folder, registry: RecordRegistry, place: int) -> bool:
    """Exclude records that do not fit, because they would exclude the party from every later sum."""
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


def _listed(registry: RecordRegistry, place: int, release: Release, index: int, say: Callable[[str], None]) -> None:
    try:
        registry.excluded_centrally(place, release, index)
    except LedgerError as error:
        say(f"round {place}: the server's list does not prove that our records are in no sum: {error}")


def _proven(folder: Folder, place: int, statements: bytes, say: Callable[[str], None]) -> None:
    ended = folder.round(place)
    try:
        require_role(ended).session_ended()  # removes all but the receipt
        take_back(ended, statements)
    except (Declined, LedgerError, LocalProtocolError) as error:
        say(f"round {place}: the signed statements do not prove that our records are in no sum: {error}")
    else:
        say(f"round {place}: our upload is in no sum, by proof: its records go with the next round")


def stream_of(folder: Folder) -> Stream:
    """Return the stream in a folder."""
    assert isinstance(folder.course, Stream)  # noqa: S101  callers check the kind first
    return folder.course


def inbox_of(folder: Folder) -> RecordInbox:
    """Return an inbox of records or persons."""
    return inbox(folder.home, stream_of(folder))


def inbox(home: Path, stream: Stream) -> RecordInbox:
    """Return the inbox for the plan's unit."""
    return (RecordInbox if stream.plan.person_clip is None else PersonInbox)(home, stream)


def registry_of(folder: Folder) -> RecordRegistry:
    """Return a party's registry; the first opening spends the complete stream."""
    run, digest = folder.roster.run, folder.course.digest
    known = (account.of_run(run) for account in folder.ledger.accounts())
    entry = next((each for each in known if each is not None and each.plan == digest), None)
    if entry is None:
        entry = folder.entry(folder.store(0, folder.course.first).server_account())
    secret = hmac.digest(folder.key, domains.REGISTRY_SECRET, "sha256")
    stream = stream_of(folder)
    kind: type[RecordRegistry] = RecordRegistry if stream.plan.person_clip is None else PersonRegistry
    return kind.open(stream, folder.ledger, entry, secret)


def take_back(folder: RoundFolder, statements: bytes) -> None:
    """Verify encoded statements about a round against this party's receipt, and free its records.

    Raises:
        Declined: the bytes are no statements.
        LocalProtocolError, LedgerError: as for ``RecordRegistry.excluded``.
    """
    registry_of(folder.above).excluded(folder.place, **folder.exclusion(statements))
