"""``privstats ledger open | cap | show | skip | restored``."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.next_command import next_command
from privstats.cli.parts.options import Yes, argument, option
from privstats.cli.parts.party_facts import standing
from privstats.cli.parts.terminal import escape, new_table, say, terminal
from privstats.errors import LedgerError
from privstats.files.text import json_text
from privstats.printable import at_most, delta_text

if TYPE_CHECKING:
    from rich.table import Table

    from privstats.dp import Account, Cap, Spend

app = typer.Typer(
    help="Record what was spent on each data set, against its cap.", no_args_is_help=True, rich_help_panel="Keep"
)

LedgerFile = Annotated[Path, argument("The ledger file.", "LEDGER.DB")]
_DAY, _SHORT = 10, 8
_SQUARES = (
    "Epsilons of the rows do not add up; the squares of their mu do. Every epsilon here is at the cap's delta, so it "
    "differs from a plan's own epsilon at another delta."
)


@app.command("open")
def open_(path: LedgerFile) -> None:
    """Make a new ledger without accounts; an existing empty one is accepted, and none is ever replaced."""
    try:
        ledger, done = ps.dp.Ledger.create(path), "wrote"
    except LedgerError:
        if not path.is_file() or not path.stat().st_size:  # an empty one was made a moment ago, and is no ledger yet
            raise
        ledger, done = _without_accounts(path), "found an empty ledger at"
    say(f"{done} {path}; open an account: {_account(path)}", err=True)
    say("its head, to be stored elsewhere:", err=True)
    say(ledger.head)


def _account(path: Path) -> str:
    terms = {name: name.upper() for name in ("unit", "adjacency", "epsilon", "delta")}
    return next_command("ledger", "cap", path, "DATASET", **terms)


def _without_accounts(path: Path) -> ps.dp.Ledger:
    """An existing ledger without accounts is accepted: ``privstats flower`` makes one in a party's folder."""
    ledger = ps.dp.Ledger.open(path)
    names = ", ".join(repr(account.dataset) for account in ledger.accounts())
    if names:
        raise LedgerError(
            f"{path} is a ledger already, with accounts for {names}: go on with privstats ledger show, or cap"
        )
    return ledger


@app.command()
def cap(
    path: LedgerFile,
    dataset: Annotated[str, argument("The data set's name in this ledger.", "DATASET")],
    unit: Annotated[str, option("record, person or client.")],
    adjacency: Annotated[str, option("add-remove or replace-one.")],
    epsilon: Annotated[float, option("The bound on all releases together.")],
    delta: Annotated[float, option("At most 0.1; with 0 only releases whose delta is 0 are allowed.")],
) -> None:
    """Open the account of a data set, or change its epsilon and delta; every change stays on record."""
    ledger = ps.dp.Ledger.open(path)
    before = {account.dataset: account.cap for account in ledger.accounts()}
    ledger.set_cap(dataset, unit=unit, adjacency=adjacency, epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    say(f"{dataset}: at most epsilon {epsilon:g} at delta {delta_text(delta)} for everything, {adjacency}, per {unit}")
    earlier = before.pop(dataset, None)
    if earlier is not None:
        other = (
            ""
            if (earlier.unit, earlier.adjacency) == (unit, adjacency)
            else f", {earlier.adjacency}, per {earlier.unit}"
        )
        say(f"{dataset}: was epsilon {earlier.epsilon:g} at delta {delta_text(earlier.delta)}{other}")
    elif before:
        say(f"{dataset} is a new account, with nothing spent; this ledger also has: {', '.join(before)}")


@app.command()
def show(
    path: LedgerFile,
    dataset: Annotated[str | None, option("Show this account only.")] = None,
    expected_head: Annotated[str | None, option("A stored ledger head: refuse an older copy.")] = None,
    as_json: Annotated[bool, option("Print JSON instead of tables.", flag="--json")] = False,
) -> None:
    """Print accounts, caps and their history, and every release with its plan, its run and its dates."""
    from privstats.dp.ledger.rules import room

    ledger = ps.dp.Ledger.open(path, expected_head=expected_head)
    accounts = ledger.accounts() if dataset is None else (ledger.account(dataset),)
    if as_json:
        typer.echo(json_text({"head": ledger.head, "accounts": [_document(account) for account in accounts]}))
        return
    console = terminal()
    if not accounts:
        say(f"no account yet; open one: {_account(path)}")
    for account in accounts:
        console.print(history(account))
        console.print(standing(account), markup=False)
        if account.cap is not None:
            console.print(room(account), markup=False)
    if any(account.counted and math.isinf(account.pure) for account in accounts):
        console.print(f"\n{_SQUARES}", markup=False)
    console.print(f"\nhead, to be stored elsewhere: {ledger.head}", soft_wrap=True)


@app.command()
def skip(
    path: LedgerFile, roster: Annotated[Path, argument("The roster of the run to continue with.", "ROSTER.TOML")]
) -> None:
    """Record that this party missed the runs before this roster's; the record is permanent.

    On a random graph, whoever names the run to continue with chooses among the graphs of all runs that it skips.
    """
    coming = ps.secagg.Roster.load(roster)
    if coming.counter is None:
        raise LedgerError(f"the run of {roster} has no number, so none can have been missed: nothing to skip")
    ps.dp.Ledger.open(path).skip_to_counter(coming.members, coming.counter)
    say(f"run number {coming.counter} of {coming.label!r} is the next one that this ledger admits")


@app.command()
def restored(path: LedgerFile, yes: Yes = False) -> None:
    """Continue with an older copy of a ledger, restored with its folder; every other use refuses it.

    The ledger forgets every spend after the copy. If anything was sent under such a spend, releases of these data may
    together exceed the cap by these spends, a session may be answered a second time, and differences of the sums reveal
    single vectors. Bring the newest copy back wherever there is one.
    """
    ledger = ps.dp.Ledger(path)
    if not yes:
        typer.confirm("Was nothing sent since this copy was made? The ledger forgets later spends", abort=True)
    missing = ledger.accept_restored()
    say(f"{path} is now the newest copy; {missing} later records are forgotten" if missing else f"{path} is the newest")
    say(ledger.head)


def history(account: Account) -> Table:
    """List every cap and spend, in the order of their records, not of the clock."""
    table = new_table(escape(account.dataset))
    for name in ("date", "event", "plan", "run", "epsilon", "sent on"):
        table.add_column(name, no_wrap=name != "event")
    events: list[Cap | Spend] = sorted((*account.caps, *account.entries), key=lambda event: event.id)
    for event in events:
        table.add_row(event.at[:_DAY], *map(escape, _row(event, account.quoted_delta)))
    return table


def _row(event: Cap | Spend, delta: float) -> tuple[str, ...]:
    if isinstance(event, ps.dp.Cap):
        what = f"cap at delta {delta_text(event.delta)}, {event.adjacency}, per {event.unit}"
        return what, "", "", f"{event.epsilon:g}", ""
    rounds = f"{len(event.begun)} rounds" if event.begun else "not yet"
    finished = rounds if event.released is None else event.released[:_DAY]
    finished = "never" if event.withdrawn else finished
    epsilon = at_most(event.epsilon_at(delta))
    what = f"{event.what}, {event.model}" + (f", in no sum: freed {event.freed[:_DAY]}" if event.freed else "")
    what += f", nothing was sent: withdrawn {event.withdrawn[:_DAY]}" if event.withdrawn else ""
    return what, event.plan[:_SHORT], event.run.hex()[:_SHORT], epsilon, finished


def _document(account: Account) -> dict[str, Any]:
    delta, entries = account.quoted_delta, account.entries
    return {
        "dataset": account.dataset,
        "mu": account.mu,
        "epsilon": account.spent,
        "delta": account.total_delta,
        "masking_failure": account.masking_failure,
        "conditions": account.conditions,
        "exceeded": account.exceeded,
        "caps": [asdict(cap) for cap in account.caps],
        "releases": [{**_plain(entry), "epsilon": entry.epsilon_at(delta)} for entry in entries],
    }


def _plain(entry: Spend) -> dict[str, Any]:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(entry).items()}
