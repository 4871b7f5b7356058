"""``privstats roster make | show | renew``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import privstats as ps
from privstats.cli.parts.options import Force, Json, argument, option
from privstats.cli.parts.terminal import say, table_of, terminal, writable
from privstats.cli.parts.verifying import party_key
from privstats.errors import LocalProtocolError
from privstats.files.text import json_text

app = typer.Typer(
    help="Write, show and renew the list of who takes part.", no_args_is_help=True, rich_help_panel="Keep"
)

RosterFile = Annotated[Path, argument("The roster.", "ROSTER.TOML")]
PlanFile = Annotated[Path | None, option("Refuse a roster that does not fit this plan.", "PLAN.TOML")]


@app.command()
def make(
    path: RosterFile,
    clients: Annotated[
        list[str],
        argument("NAME=KEY for each client, in order; KEY in hex or a file. Or one folder of NAME.pub.", "NAME=KEY..."),
    ],
    server: Annotated[str, option("The server's public key, in hex or a file.", "KEY")],
    label: Annotated[
        str,
        option(
            "The subject of these parties' runs; runs are numbered from 0. Beyond 256 clients the label decides the "
            "random graph: take it last, from a source that no party controls."
        ),
    ],
    plan: PlanFile = None,
    by_key: Annotated[
        bool,
        option(
            "Sort the clients by key. Do so beyond 256 clients: an order that is free decides the graph.",
            flag="--by-key",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Write the roster of a first run from the public keys of all parties."""
    writable([path], force)
    folder = Path(clients[0])
    named = [_client(each) for each in clients] if len(clients) > 1 or not folder.is_dir() else _of_folder(folder)
    if by_key:
        named.sort(key=lambda each: each[1])
    names, keys = zip(*named, strict=True)
    roster = ps.secagg.Roster.numbered(keys, server=party_key(server), label=label, counter=0, names=names)
    if plan is not None:
        _check_fits(roster, ps.Plan.read(plan))
    roster.save(path)
    _print(roster, f"wrote {path}; send it to all parties, and compare the fingerprint on the telephone:")


@app.command()
def show(path: RosterFile, plan: PlanFile = None, as_json: Json = False) -> None:
    """Print the parties, the run, and the digits to compare on the telephone."""
    roster = ps.secagg.Roster.load(path)
    if plan is not None:
        _check_fits(roster, ps.Plan.read(plan))
    if as_json:
        typer.echo(json_text(_document(roster)))
        return
    console = terminal()
    rows = [(str(at), roster.names[at] if roster.names else "", key.hex()) for at, key in enumerate(roster.publics)]
    console.print(table_of(("client", "name", "public key"), rows, overflow="fold"))
    order = "by key" if list(roster.publics) == sorted(roster.publics) else "not by key"
    facts = ("server", roster.server.hex()), ("run", _run(roster)), ("order", order), ("digest", roster.digest.hex())
    for what, value in facts:
        console.print(f"{what:<12} {value}", markup=False, soft_wrap=True)
    console.print(f"{'fingerprint':<12} {roster.fingerprint}")


@app.command()
def renew(
    path: RosterFile, out: Annotated[Path | None, option("Write here and keep the old file.", "ROSTER.TOML")] = None
) -> None:
    """Write the roster of the same parties' next run; every session needs a run name that was never used."""
    roster = ps.secagg.Roster.load(path).renewed()
    target = path if out is None else out
    if out is not None and out.exists():
        raise LocalProtocolError(f"{out} exists; name another file")
    roster.save(target)
    _print(roster, f"wrote {target} ({_run(roster)}); send it to all parties, and compare the fingerprint again:")


def _print(roster: ps.secagg.Roster, sentence: str) -> None:
    say(sentence, err=True)
    say(roster.fingerprint)


def _client(words: str) -> tuple[str, bytes]:
    name, _, key = words.partition("=")
    if not name or not key:
        raise LocalProtocolError(
            "name each client as NAME=KEY with its public key, for example Bonn=bonn.pub; or name one folder of "
            "NAME.pub files"
        )
    return name, party_key(key)


def _of_folder(folder: Path) -> list[tuple[str, bytes]]:
    keys = [(path.stem, party_key(str(path))) for path in sorted(folder.glob("*.pub"))]
    if not keys:
        raise LocalProtocolError(f"{folder} holds no public key: put each party's NAME.pub there")
    return keys


def _check_fits(roster: ps.secagg.Roster, plan: ps.Plan) -> None:
    from privstats.secagg.protocols import protocol_of

    if len(roster) != plan.cohort.clients:
        raise LocalProtocolError(
            f"the roster has {len(roster)} clients and the plan {plan.cohort.clients}: cohort.clients must be the same"
        )
    panel = tuple(bytes.fromhex(key) for key in plan.panel)
    if protocol_of(plan.masking).has_panel and panel[0] != roster.server:
        raise LocalProtocolError("the roster's server must be the leader of the plan's panel, its first identity")
    if set(panel) & set(roster.publics):
        raise LocalProtocolError("a member of the plan's panel must not be a client: make it an identity of its own")


def _run(roster: ps.secagg.Roster) -> str:
    if roster.counter is None:
        return roster.run.hex() or "no name"
    return f"{roster.label!r}, number {roster.counter}"


def _document(roster: ps.secagg.Roster) -> dict[str, object]:
    return {
        "clients": [
            {"name": roster.names[place] if roster.names else None, "key": key.hex()}
            for place, key in enumerate(roster.publics)
        ],
        "server": roster.server.hex(),
        "run": roster.run.hex(),
        "label": roster.label or None,
        "counter": roster.counter,
        "digest": roster.digest.hex(),
        "fingerprint": roster.fingerprint,
    }
