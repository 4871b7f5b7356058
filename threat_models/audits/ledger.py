"""A ledger's spends: per account against its cap, and every entry in order.

Reads the file and composes; changes nothing.
"""

from __future__ import annotations

from privstats.dp import Account, Cap, Ledger, Spend
from privstats.dp.ledger.accounts import epsilon_of
from privstats.dp.ledger.rules import room
from privstats.errors import LedgerError
from privstats.printable import at_most, delta_text
from threat_models.audits.verdict import Report, Value

_TOTALS = ("data set", "what", "releases", "mu", "epsilon", "cap", "unfinished", "delta", "cap epsilon", "cap delta")
_TOTALS_BOUNDS = ("mu", "epsilon", "cap")
_TOTALS_JSON = ("delta", "cap epsilon", "cap delta")
_HISTORY = (
    *("data set", "date", "event", "plan", "run", "model", "epsilon", "delta"),
    *("time", "what", "plan digest", "run name", "mu", "released", "unit", "adjacency"),
)
_HISTORY_TABLE = ("date", "plan", "run")
_HISTORY_JSON = _HISTORY[8:]
_DAY, _SHORT = 10, 8


def audit_ledger(ledger: Ledger, dataset: str | None = None) -> Report:
    """One row per statistic and one for the total of every account, or of one.

    Totals are quoted at the smallest delta that the account's cap has ever had, and the cap in force is turned into
    epsilon at the same delta: a cap that moved to a larger delta does not make what was spent look smaller.

    Raises:
        LedgerError: no such account, or the file cannot be read, was edited, or is older than what is known of it.
    """
    accounts = _accounts(ledger, dataset)
    rows = [row for account in accounts for row in _rows(account)]
    notes = [_note(account) for account in accounts]
    notes += [
        f"{a.dataset}: totals hold at delta {delta_text(a.total_delta)}, {at_most(a.masking_failure, '.2g')} of it for "
        "the masking"
        for a in accounts
        if a.masking_failure
    ]
    notes += [f"{a.dataset}: {_claim(a)} while {'; and '.join(a.conditions)}" for a in accounts if a.conditions]
    notes += [f"{a.dataset}: {room(a)}" for a in accounts if a.cap is not None]
    notes += [f"{a.dataset}: MORE WAS SPENT THAN THE CAP ADMITS" for a in accounts if a.exceeded]
    notes += ["The head, to be kept elsewhere; as --expected-head it tells any older copy:", ledger.head]
    violated = any(account.exceeded for account in accounts)
    return Report("ledger", _TOTALS, tuple(rows), tuple(notes), violated, json_only=_TOTALS_JSON, bounds=_TOTALS_BOUNDS)


def _claim(account: Account) -> str:
    return "masks hide each party's sums" if account.cap is None else "this holds"


def audit_history(ledger: Ledger, dataset: str | None = None) -> Report:
    """One row per cap and per spend of every account, or of one, in the order in which they were written.

    Raises:
        LedgerError: as for :func:`audit_ledger`.
    """
    rows = [row for account in _accounts(ledger, dataset) for row in _events(account)]
    notes = (
        "begun: spent, and nothing is known to have left; left: the upload or the release has",
        "freed: it is proven that what left is in no sum, so it costs nothing",
    )
    return Report("ledger history", _HISTORY, tuple(rows), notes, False, _HISTORY_TABLE, _HISTORY_JSON, ("epsilon",))


def _accounts(ledger: Ledger, dataset: str | None) -> tuple[Account, ...]:
    accounts = ledger.accounts() if dataset is None else (ledger.account(dataset),)
    if not accounts:
        raise LedgerError(f"ledger {ledger.path} has no account yet: open one with Ledger.set_cap")
    return accounts


def _note(account: Account) -> str:
    cap = account.cap
    if cap is None:
        return f"{account.dataset}: exact sums were released and no cap can hold"
    quoted = delta_text(account.quoted_delta)
    note = f"{account.dataset}: per {cap.unit}, {cap.adjacency}, totals and cap at delta {quoted}"
    if cap.delta == account.quoted_delta:
        return note
    return f"{note}; the cap is epsilon {cap.epsilon:g} at delta {delta_text(cap.delta)}"


def _rows(account: Account) -> list[tuple[Value, ...]]:
    delta, rows = account.quoted_delta, list[tuple[Value, ...]]()
    for statistic, mu in account.statistics().items():
        releases = sum(any(part.statistic == statistic for part in entry.parts) for entry in account.counted)
        epsilon = epsilon_of(mu, delta) if delta else None  # a pure epsilon is kept of the release, not of its parts
        rows.append((account.dataset, statistic, releases, mu, epsilon, None, None, delta, None, None))
    cap = account.epsilon if account.delta == delta else epsilon_of(account.mu_cap, delta)
    total = (account.dataset, "total", len(account.counted), account.mu, account.spent, cap, len(account.unfinished))
    return [*rows, (*total, delta, account.epsilon, account.delta)]


def _events(account: Account) -> list[tuple[Value, ...]]:
    """Every cap and spend in the order in which they were written, independent of the clock."""
    events: list[Cap | Spend] = sorted((*account.caps, *account.entries), key=lambda event: event.id)
    return [(account.dataset, *(_cap_row(e) if isinstance(e, Cap) else _entry_row(e, account))) for e in events]


def _cap_row(cap: Cap) -> tuple[Value, ...]:
    shown = (cap.at[:_DAY], "cap", None, None, None, cap.epsilon, cap.delta)
    return (*shown, cap.at, None, None, None, cap.mu, None, cap.unit, cap.adjacency)


def _entry_row(entry: Spend, account: Account) -> tuple[Value, ...]:
    delta, run = account.quoted_delta, entry.run.hex() or None
    event = (
        "withdrawn" if entry.withdrawn else "begun" if entry.released is None else "freed" if entry.freed else "left"
    )
    shown = (entry.at[:_DAY], event, entry.plan[:_SHORT], run and run[:_SHORT], entry.model)
    row = (entry.at, entry.what, entry.plan, run, entry.mu, entry.released, None, None)
    return (*shown, entry.epsilon_at(delta), delta, *row)
