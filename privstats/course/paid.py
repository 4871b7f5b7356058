"""Find the account that a release is charged to, from what a caller named."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from privstats import dp
from privstats.errors import LedgerError
from privstats.session.charges import Charge, RoundCharge

Paid: TypeAlias = Charge | dp.Ledger | Literal["uncharged"] | None
"""The record of a release's cost: a charge, a ledger (with the name of a data set in it), or ``"uncharged"``."""


def charge_named(ledger: Paid, dataset: str | None) -> Charge | None:
    """Return the charge for a ledger and an account's name; None for ``"uncharged"``."""
    if not isinstance(ledger, dp.Ledger):
        if dataset is not None:
            raise LedgerError("dataset names an account of a Ledger: give ledger=Ledger.open(path) with it")
        if ledger is None:
            raise LedgerError(
                "this release spends privacy, and no ledger is given to record that: give ledger=Charge(ledger, "
                "dataset), or a Ledger with dataset=, or the word ledger='uncharged' where no record is needed"
            )
        if isinstance(ledger, RoundCharge):
            raise LedgerError("a round of a course is charged by private_releases; give a Charge or a Ledger here")
        if isinstance(ledger, Charge):
            return ledger
        if not (isinstance(ledger, str) and ledger == "uncharged"):
            got = f"the text {ledger!r}" if isinstance(ledger, str) else f"a {type(ledger).__name__}"
            raise LedgerError(
                "ledger must be a Ledger with dataset=, a Charge(ledger, dataset) or the word 'uncharged', got "
                f"{got}: open a ledger with privstats.dp.Ledger.open(path)"
            )
        return None
    return Charge(ledger, _account(ledger, dataset))


def charged_by_rows(ledger: Paid, dataset: str | None, times: int) -> Paid:
    """Return the account charged for records in up to ``times`` rows each, or ``"uncharged"``."""
    if isinstance(ledger, dp.Ledger):
        return Charge(ledger, _account(ledger, dataset), multiplicity=times)
    return replace(ledger, multiplicity=ledger.multiplicity * times) if isinstance(ledger, Charge) else ledger


def _account(ledger: dp.Ledger, dataset: str | None) -> str:
    if dataset is not None:
        return dataset
    names = [account.dataset for account in ledger.accounts()]
    if len(names) != 1:
        raise LedgerError(f"the ledger has {len(names)} accounts; say which one to charge with dataset=...")
    return names[0]
