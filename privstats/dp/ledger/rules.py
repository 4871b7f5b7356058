"""Decide what a ledger refuses, and state what an account has left for one more release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privstats.dp.conditions import MAX_CONDITION, is_clause
from privstats.dp.gaussian import compose
from privstats.dp.ledger.accounts import TOLERANCE, Account, Cap, Spend, epsilon_of
from privstats.dp.ledger.price import Cost, Price
from privstats.dp.ledger.records import ApartBy
from privstats.dp.privacy import AVERAGE, Adjacency, Privacy, Unit
from privstats.errors import LedgerError
from privstats.printable import at_least, at_most, delta_text

_ROLES: Mapping[str, str] = {"": "another course", "holding": "a party's records", "parties": "a server's sums"}
_NEGLIGIBLE = 1e-3
"""A share of the cap's mu: calibration leaves less than this of a cap that was spent whole, which is no room."""
_LONGEST_NAME = 200
_LONGEST_RUN = 64
_SHOWN = 3


def cap_of(at: str, unit: Unit, adjacency: Adjacency, epsilon: float, delta: float) -> Cap:
    """Return a cap; PlanError for an epsilon or delta out of bounds."""
    most: Any = {"client": {"max_records_per_client": 1}, "person": {"person_clip": AVERAGE}}.get(unit, {})
    Privacy(model="central", unit=unit, adjacency=adjacency, epsilon=epsilon, delta=delta, **most)
    return Cap(at, unit, adjacency, float(epsilon), float(delta))


def check_change(account: Account, wanted: Cap) -> None:
    """Refuse a cap that earlier releases already exceed, or under which their cost is unknown."""
    exact = [entry for entry in account.counted if entry.exact]
    if any(not entry.waiting for entry in exact):
        raise LedgerError(f"exact sums of {account.dataset!r} have been released: no cap can hold for these data")
    if exact:
        raise LedgerError(f"no cap can hold for {account.dataset!r} now: {_begun(exact)}")
    cap = account.cap
    if cap is None or not account.entries:
        return
    if (cap.unit, cap.adjacency) != (wanted.unit, wanted.adjacency):
        raise LedgerError(
            f"account {account.dataset!r} has spends per {cap.unit} under {cap.adjacency}: "
            "its unit and adjacency can no longer change, only its epsilon and delta"
        )
    if not wanted.admits(account.mu, account.pure):
        raise LedgerError(
            f"account {account.dataset!r} has already spent epsilon {at_most(account.spent_at(wanted.delta))} "
            f"at delta {delta_text(wanted.delta)}: the cap cannot go below"
        )


def same_spend(earlier: Spend, plan: str, cost: Price, apart: ApartBy = "") -> Spend:
    """Return a run's earlier entry; refuse it if anything was sent or differs.

    For a pure spend, epsilon and plan decide: an older privstats wrote a larger mu.
    """
    if earlier.released is not None:
        raise LedgerError(used_up(earlier))
    check_unsent(earlier)
    alike = (earlier.mu, earlier.parts) == (cost.mu, cost.parts) or math.isfinite(cost.pure)
    if (earlier.plan, earlier.pure) != (plan, cost.pure) or not alike:
        remedy = "take a new run name for this one"
        if earlier.nodes > 1:  # earlier versions gave courses other digests, and plans the same
            remedy = f"if an earlier version of privstats began this course, finish it with that version, else {remedy}"
        raise LedgerError(
            f"run {earlier.run.hex()} was spent under another plan, {earlier.plan}: {remedy}; nothing was spent"
        )
    if earlier.apart and earlier.apart != apart:
        raise LedgerError(
            f"run {earlier.run.hex()} was spent for {_ROLES[earlier.apart]}, and this is {_ROLES[apart]}: keep a "
            "ledger for each; nothing was spent"
        )
    return earlier


def check_one_account(accounts: Iterable[Account], dataset: str, run: bytes) -> None:
    """Refuse a run that another account holds: two sessions under one name could be shown to each other."""
    for account in accounts:
        if account.dataset != dataset and account.of_run(run) is not None:
            raise LedgerError(
                f"this run on a random graph was begun for {account.dataset!r}, and such a run is of one data set: "
                f"take the roster of the next number for {dataset!r}; nothing was spent"
            )


def check_apart(costs: Sequence[Cost], apart: ApartBy, nodes: int) -> None:
    """Refuse a price for disjoint rounds, or for too few, without a role that keeps rounds disjoint."""
    cheaper = any(times < 1 for cost in costs for times in cost.multiplicity.values())
    if (len(costs) < nodes or cheaper) and not apart:
        raise LedgerError(
            "rounds that are priced as holding different records need a record registry that keeps those apart: spend "
            "a stream with course.spend, which names it"
        )


def check_mark(entry: Spend, *, sums_only: bool) -> None:
    """Refuse to start a round without the record registry on which its price relies."""
    if entry.apart == "holding":
        raise LedgerError(
            "this spend is priced for records that enter once, and only a registry sees whether they do: take the "
            "charge of every round from RecordRegistry.charge, which notes the records in it"
        )
    if entry.apart and not sums_only:
        raise LedgerError(
            "this spend is of a server that sees sums only, and no records go with it: spend the stream in the "
            "party's own ledger, and take the charge of every round from RecordRegistry.charge"
        )


def used_up(entry: Spend) -> str:
    """Return the error for a second upload under one run name."""
    return (
        f"what was released under run {entry.run.hex()} left at {entry.released}: a retry is a second release, so "
        "agree on a new run name for it; nothing was spent"
    )


def check_unsent(entry: Spend) -> None:
    """Refuse to send or start anything under a withdrawn session."""
    if entry.withdrawn is not None:
        raise LedgerError(
            f"run {entry.run.hex()} was withdrawn at {entry.withdrawn}, so nothing may leave under it: agree on a new "
            "run name; nothing was spent"
        )


def check_waiting(entry: Spend) -> None:
    """Refuse to withdraw a course, a sent session, or an entry without a run name."""
    if entry.nodes != 1 or entry.begun:
        raise LedgerError("this spend pays for a course, whose rounds draw noise as they begin: it is not withdrawn")
    if entry.released is not None:
        raise LedgerError(
            f"what was released under run {entry.run.hex()} left at {entry.released}, and the server may have counted "
            "it: only proof that it is in no sum gives it back (session.free)"
        )
    if not entry.run:
        raise LedgerError("this spend is of an older privstats and has no run name, so it is not withdrawn")


def check_name_unused(accounts: Iterable[Account], run: bytes) -> None:
    """Refuse a run's name once an upload was sent under it or it was withdrawn, in any data set."""
    for entry in (entry for account in accounts for entry in account.entries if entry.run == run):
        check_unsent(entry)
        if entry.released is not None:
            raise LedgerError(used_up(entry))


def check_first_exact(account: Account, allowed: bool) -> None:
    """Refuse exact sums after exact sums, under any run name, unless the charge allows their difference to be seen.

    A session that has sent nothing still may, so it counts until it is withdrawn.
    """
    if account.counted and not allowed:
        if len(account.waiting) == len(account.counted):
            raise LedgerError(
                f"nothing of {account.dataset!r} was released, but it could be: {_begun(account.waiting)}; nothing was "
                "spent"
            )
        raise LedgerError(
            f"exact sums of {account.dataset!r} were released before: with one client absent the difference is that "
            "client's exact vector, so give the plan a Privacy, or say allow_second_exact_release=True"
        )


def check_freed(entry: Spend, upload: bytes) -> None:
    """Refuse to free a course, an upload never sent, or another upload than the one sent."""
    if entry.nodes != 1 or entry.begun:
        raise LedgerError("this spend pays for a course, whose other rounds may have been released: it is not freed")
    check_unsent(entry)
    if entry.released is None:
        raise LedgerError(
            f"nothing has left under run {entry.run.hex()}: begin it again under its name, which costs nothing"
        )
    if not upload or entry.upload != upload:
        raise LedgerError(f"what left under run {entry.run.hex()} is another upload than the one this proof is about")


def check_node(entry: Spend, node: object) -> None:
    """Refuse a round that the spend does not pay for, that has started, or of a spend whose upload was sent."""
    check_unsent(entry)
    if entry.released is not None:
        raise LedgerError(used_up(entry))
    if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < entry.nodes:
        raise LedgerError(f"this spend pays for rounds 0 to {entry.nodes - 1}, got {node!r}: spend anew for others")
    if node in entry.begun:
        raise LedgerError(
            f"round {node} of this course has begun before, and a round that began is spent, with or without a sum: go "
            "on with the next round"
        )


def check_upload(upload: object) -> None:
    """Refuse a value that identifies no upload."""
    if not isinstance(upload, bytes):
        raise LedgerError(f"upload must be bytes that identify an upload, got {type(upload).__name__}: give a digest")


def same_upload(sent: bytes, upload: bytes) -> bool:
    """Return whether both digests name one upload; an empty one names none."""
    return bool(upload) and sent == upload


def check_unmarked(entry: Spend) -> None:
    """Refuse one upload for all of a spend of which a round has begun: each round's mark pays for its own upload."""
    if entry.begun:
        raise LedgerError(
            f"round {entry.begun[-1]} of this spend has begun, and its mark pays for the round's upload alone: record "
            "that one with finish_round; nothing was sent"
        )


def check_round_begun(entry: Spend, node: int, upload: bytes) -> bool:
    """Return whether a begun round has sent nothing yet; refuse a round without a mark, and a second upload."""
    if node not in entry.begun:
        raise LedgerError(
            f"round {node} of this course has no mark in the ledger; give the ledger that the round began with"
        )
    if entry.apart == "holding":
        raise LedgerError(
            "the uploads of this spend are recorded with the records in them: finish the charge of the round that "
            "RecordRegistry.charge returned; nothing was sent"
        )
    if not upload:
        raise LedgerError("upload is empty, and must identify the round's upload: give its SHA-256; nothing was sent")
    if entry.released is not None:
        raise LedgerError(used_up(entry))
    sent = dict(entry.uploads).get(node)
    if sent is not None and sent != upload.hex():
        raise LedgerError(
            f"round {node} of this course has sent another upload, and one mark pays for one upload: a second sum of "
            "the round would be a second release; nothing was sent, so go on with the next round"
        )
    return sent is None


def check_masking(account: Account, added: float) -> None:
    """Refuse a run on a random graph if masking would then add more than the cap's delta to it.

    Every run begun counts, withdrawn or not: a server that ends runs sees the graph of each, and can let the run with a
    suitable graph finish. Releases on a complete graph add nothing and stay possible.
    """
    total = account.masking_failure + added
    if account.cap is None or not added or total <= account.delta * (1 + TOLERANCE):
        return
    raise LedgerError(
        f"masking of account {account.dataset!r} would fail with probability {at_most(total, '.3g')}, maximum the "
        f"cap's delta {delta_text(account.delta)}: every run begun on a random graph counts, withdrawn ones too; use "
        "a complete graph, of at most 256 clients, or raise the cap's delta; nothing was spent"
    )


def check_room(account: Account, cost: Price) -> None:
    """Refuse a release that would exceed the cap in force."""
    mu, pure = compose((account.mu, cost.mu)), account.pure + cost.pure
    if account.cap is None or account.cap.admits(mu, pure):
        return
    reached = at_most(min(pure, epsilon_of(mu, account.delta)))
    room = remaining_room(account) or "nothing"
    raise LedgerError(
        f"account {account.dataset!r} would reach epsilon {reached} with a cap of "
        f"{account.epsilon:.4g} at delta {delta_text(account.delta)}: {room} is left for one more release; "
        "nothing was spent" + (f"; {_begun(account.waiting)}" if account.waiting else "")
    )


def _begun(waiting: Sequence[Spend]) -> str:
    runs = ", ".join(entry.run.hex() for entry in waiting[:_SHOWN]) + (", ..." if len(waiting) > _SHOWN else "")
    several = len(waiting) > 1
    return (
        f"nothing has left under {'runs' if several else 'run'} {runs}, which began: let {'them' if several else 'it'} "
        "end, or give up here what will not go on (`privstats flower withdraw`, session.withdraw_run)"
    )


def check_name(name: object) -> None:
    """Refuse a value that is no printable name."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise LedgerError(f"a name in the ledger has 1 to {_LONGEST_NAME} printable characters: choose such a one")


def check_condition(condition: object) -> None:
    """Refuse a value that is no sentence's clause."""
    if not is_clause(condition):
        raise LedgerError(
            f"condition must be at most {MAX_CONDITION:,} printable characters, or empty; give plan.condition"
        )


def check_digest(plan: object) -> None:
    """Refuse a value that is no plan's digest."""
    if not isinstance(plan, str) or len(plan) > _LONGEST_NAME or not plan.isascii():
        raise LedgerError(f"plan must be the digest of a plan in hex, got {type(plan).__name__}; give plan.digest")


def check_counter(members: object, counter: object) -> None:
    """Refuse values that are no digest of members or no run number."""
    if not isinstance(members, bytes):
        raise LedgerError(f"members must be the digest of the parties, got {type(members).__name__}: Roster.members")
    if isinstance(counter, bool) or not isinstance(counter, int):
        raise LedgerError(f"the number of a run must be an integer, got {type(counter).__name__}")


def check_run(run: object) -> None:
    """Refuse a value that is no run name."""
    if not isinstance(run, bytes) or not 0 < len(run) <= _LONGEST_RUN:
        raise LedgerError(
            f"a spend needs a run name of 1 to {_LONGEST_RUN} bytes, agreed by all parties and used once: give the "
            "roster's"
        )


def remaining_room(account: Account) -> str:
    """Return the largest promise of one more release under the cap in force; empty without room or cap.

    At the cap's delta this is the epsilon of mu = sqrt(mu_cap^2 - mu^2). At delta 0, where all releases are pure, it is
    the remaining sum of epsilons; a pure release of small mu may promise more. Values are rounded down to four digits.
    """
    if account.cap is None:
        return ""
    mu = math.sqrt(max(0.0, account.mu_cap**2 - account.mu**2))
    if mu < _NEGLIGIBLE * account.mu_cap:
        mu = 0.0
    halves = [(epsilon_of(mu, account.delta), account.delta)] if account.delta else []
    if account.counted or not halves:  # before the first release both are the cap's epsilon
        halves.append((account.epsilon - account.pure, 0.0))
    parts = [
        f"epsilon {at_least(most)} at delta {delta_text(delta)}"
        for most, delta in halves
        if most > TOLERANCE * account.epsilon
    ]
    return f"at most {', or '.join(parts)}" if parts else ""


def room(account: Account) -> str:
    """Return the remaining room as one line."""
    largest = remaining_room(account)
    line = f"room for one more release of {largest}" if largest else "no room for another release"
    full = account.cap is not None and 0 < account.delta * (1 - TOLERANCE) <= account.masking_failure
    return f"{line}; masking has used the cap's delta, so on a complete graph only" if full and largest else line
