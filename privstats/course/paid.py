"""The place where one party records its spends: a charge, a ledger with the name of an account in it, or nowhere.

Loaded where something is recorded; ``alone`` and the heads take it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from privstats import dp
from privstats.errors import LedgerError
from privstats.ledger.charges import Charge, RoundCharge

Paid: TypeAlias = Charge | dp.Ledger | Literal["uncharged"] | None
"""The record of a release's cost: a charge, a ledger (with the name of a data set in it), or ``"uncharged"``."""


def charge_named(ledger: Paid, dataset: str | None) -> Charge | None:
    """Return the charge that a ledger and the name of an account stand for; None for ``"uncharged"``.

    Raises:
        LedgerError: ``ledger`` is missing, or neither a ledger nor a charge; or no account is named where there are
            several.
    """
    if not isinstance(ledger, dp.Ledger):
        if dataset is not None:
            raise LedgerError("dataset names an account of a Ledger: give ledger=Ledger.open(path) with it")
        if ledger is None:
            raise LedgerError(
                "this release spends privacy and nothing says where that is recorded: give ledger=Charge(ledger, "
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
    """Return the account charged for records that may each be in ``times`` rows; ``"uncharged"`` stays as it is.

    Raises:
        LedgerError: ``times`` is no number of rows, or no account is named where there are several.
    """
    if isinstance(ledger, dp.Ledger):
        return Charge(ledger, _account(ledger, dataset), multiplicity=times)
    return replace(ledger, multiplicity=ledger.multiplicity * times) if isinstance(ledger, Charge) else ledger


def _account(ledger: dp.Ledger, dataset: str | None) -> str:
    """Return the account that is named, or the only one."""
    if dataset is not None:
        return dataset
    names = [account.dataset for account in ledger.accounts()]
    if len(names) != 1:
        raise LedgerError(f"the ledger has {len(names)} accounts; say which one to charge with dataset=...")
    return names[0]
