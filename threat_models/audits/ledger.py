"""What a ledger says was spent: per account, per statistic and in total, against the cap.

Reads the file and composes; changes nothing.
"""

from __future__ import annotations

from privstats.dp import Account, Ledger, gaussian_epsilon
from privstats.errors import LedgerError
from threat_models.audits.verdict import Report, Value

__all__ = ["audit_ledger"]

_COLUMNS = ("data set", "what", "releases", "mu", "epsilon", "cap", "unfinished")


def audit_ledger(ledger: Ledger, dataset: str | None = None) -> Report:
    """One row per statistic and one for the total of every account, or of one.

    Raises:
        LedgerError: no such account, or the file cannot be read.
    """
    accounts = ledger.accounts() if dataset is None else (ledger.account(dataset),)
    if not accounts:
        raise LedgerError(f"ledger {ledger.path} has no account yet: open one with Ledger.set_cap")
    rows = [row for account in accounts for row in _rows(account)]
    notes = [
        f"{account.dataset}: per {account.unit}, {account.adjacency}, delta {account.delta:g}" for account in accounts
    ]
    notes += [f"{a.dataset}: MORE WAS SPENT THAN THE CAP ADMITS" for a in accounts if a.exceeded]
    return Report("ledger", _COLUMNS, tuple(rows), tuple(notes), any(account.exceeded for account in accounts))


def _rows(account: Account) -> list[tuple[Value, ...]]:
    rows: list[tuple[Value, ...]] = []
    for statistic, mu in account.statistics().items():
        releases = sum(any(part.statistic == statistic for part in entry.parts) for entry in account.entries)
        rows.append((account.dataset, statistic, releases, mu, gaussian_epsilon(mu, account.delta), None, None))
    unfinished = sum(entry.released is None for entry in account.entries)
    total = (account.dataset, "total", len(account.entries), account.mu, account.spent, account.epsilon, unfinished)
    return [*rows, total]
