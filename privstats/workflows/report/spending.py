"""Report the ledger's spending, and what a release is worth together with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from privstats.dp import Account, Guarantee, NoPrivacy, Spend, compose
from privstats.dp.ledger.rules import room
from privstats.plan import Plan
from privstats.printable import at_most, delta_text
from privstats.workflows.report import explanations
from privstats.workflows.report.layout import Cell, Table, Text


@dataclass(frozen=True)
class Together:
    """Guarantee of a release together with one account's spends.

    Attributes:
        guarantee: under the account's unit and adjacency; mu is infinite with exact sums.
        statement: in words.
    """

    guarantee: Guarantee
    statement: str


def together(plan: Plan, kept: Guarantee, digests: Sequence[str], accounts: Sequence[Account]) -> list[Together]:
    """Return one value per account charged for this release and more; if none was, per account with spends.

    Args:
        kept: guarantee of the release, or of all the course's sessions.
        digests: under which a ledger charges it.

    Guarantee:
        Releases of mu_i under one unit and adjacency are together sqrt(sum mu_i^2)-GDP (Dong, Roth and Su 2022,
        corollary 2), under those of the account; pure epsilons add up. Freed and withdrawn spends count nothing. No mu
        holds failures of masking (``Account.masking_failure``), which are part of delta (``Account.total_delta``).
    """
    charged = [account for account in accounts if any(entry.plan in digests for entry in account.counted)]
    if charged:
        rows = [_row(account, _spent(account), f"with {_releases(account)}") for account in charged]
        return [row for row in rows if _adds(row.guarantee, kept)]
    return [_with_this(plan, kept, account) for account in accounts if account.counted]


def _adds(spent: Guarantee, kept: Guarantee) -> bool:
    """Return whether an account states another limit than the release alone."""
    return math.isinf(spent.mu) or explanations.hits(spent) != explanations.hits(kept)


def headline(plan: Plan, kept: Guarantee, totals: Sequence[Together]) -> str:
    """State the guarantee's worth, alone and with earlier spends."""
    alone = explanations.headline(plan, kept)
    if not totals or math.isinf(kept.mu):
        return alone
    return f"This release alone: {alone[:1].lower()}{alone[1:]} {' '.join(each.statement for each in totals)}"


def accounts_table(accounts: Sequence[Account]) -> Table:
    """Return the ledger's data sets, spent against caps."""
    header: tuple[Text, ...] = (
        Cell("data set"),
        Cell("protects", ("whom, against what change",)),
        Cell("releases", ("of it, in all",)),
        Cell("spent", ("epsilon of all releases together",)),
        Cell("cap", ("epsilon that may be spent in all",)),
        Cell("delta", ("at which both are counted",)),
    )
    rows = []
    for account in accounts:
        cap = account.cap
        whom = "exact sums: no cap can hold" if cap is None else f"one {cap.unit}, {cap.adjacency}"
        numbers = [at_most(account.spent), at_most(account.epsilon), delta_text(account.total_delta)]
        rows.append((account.dataset, whom, str(len(account.counted)), *numbers))
    return Table("ledger", header, rows)


def rooms(accounts: Sequence[Account]) -> list[str]:
    """Explain each account's remaining cap, and the masking's part of its delta."""
    out = [f"{account.dataset}: {room(account)}." for account in accounts if account.cap is not None]
    out += [
        f"{account.dataset}: {at_most(account.masking_failure, '.2g')} of its delta is for the masking, by all runs "
        "that were begun on a random graph, withdrawn ones too."
        for account in accounts
        if account.masking_failure
    ]
    if any(len(account.counted) > 1 and math.isinf(account.pure) for account in accounts):
        out.append("Epsilons of releases do not add up; the squares of their mu do, and epsilon follows from the sum.")
    return out


def charges(digests: Sequence[str], accounts: Sequence[Account]) -> Iterator[str]:
    """Yield a sentence for each charged account."""
    for account in accounts:
        for entry in account.entries:
            if entry.plan in digests:
                yield f"This plan was charged to {account.dataset!r} on {entry.at[:10]}{_ending(entry)}."


def _ending(entry: Spend) -> str:
    if entry.withdrawn:
        return f", and withdrawn on {entry.withdrawn[:10]}: nothing was sent"
    if entry.nodes == 1 and not entry.begun:
        return "" if entry.sent else "; whether anything was sent is not known"
    begun = f"; {len(entry.begun)} of at most {entry.nodes} sessions have begun"
    unsent = sorted({*entry.begun} - {place for place, _ in entry.uploads})
    return begun + (f", and whether anything was sent in {', '.join(map(str, unsent))} is not known" if unsent else "")


def _spent(account: Account) -> Guarantee:
    return Guarantee(account.mu, account.pure)


def _with_this(plan: Plan, guarantee: Guarantee, account: Account) -> Together:
    """Return this release's guarantee with an account not charged for it, as if of equal records."""
    where, cap, privacy = f"If it is of the same records, with {_releases(account)}", account.cap, plan.privacy
    if cap is None or isinstance(privacy, NoPrivacy):
        return _row(account, Guarantee(math.inf), where)
    if (cap.unit, cap.adjacency) == (privacy.unit, privacy.adjacency):
        total = Guarantee(compose((account.mu, guarantee.mu)), account.pure + guarantee.pure)
        return _row(account, total, where)
    row = _row(account, _spent(account), f"{_releases(account)[4:]} alone")
    return Together(row.guarantee, f"{row.statement} If it is of the same records, this release adds to that.")


def _row(account: Account, kept: Guarantee, where: str) -> Together:
    start, cap = f"{where[:1].upper()}{where[1:]}", account.cap
    if cap is None or math.isinf(kept.mu):
        return Together(Guarantee(math.inf), f"{start}: nothing bounds what is found, because they hold exact sums.")
    return Together(kept, f"{start}: at most {explanations.hits(kept):g} of 100 {explanations.WHOM[cap.unit]}.")


def _releases(account: Account) -> str:
    count = len(account.counted)
    return f"the {count} release{'' if count == 1 else 's'} charged to {account.dataset!r}"
