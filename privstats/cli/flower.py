"""``privstats flower``: a study's folders, its server and its nodes, their status, and the next run."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privstats.cli.parts.options import TABLE, Dialect, Json, Target, Yes, argument, expanded, option, targets_of
from privstats.cli.parts.party_facts import facts_of, show
from privstats.cli.parts.terminal import say
from privstats.errors import PrivstatsError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from privstats.engines.network.records_script import Named


app = typer.Typer(
    help="Run a session, or a whole course of them, between machines, over Flower.",
    no_args_is_help=True,
    rich_help_panel="Run",
)

HostFolder = Annotated[Path, argument("The server's folder.", "HOST")]
PartyFolder = Annotated[Path, argument("The party's folder, or a helper's.", "PARTY")]
MetricsPort = Annotated[int | None, option("Serve Prometheus text at /metrics on this port of 127.0.0.1.", "PORT")]


def _template() -> Traversable:
    return files("privstats.engines").joinpath("flower", "template")


@app.command()
def new(
    plan: Annotated[Path, argument("The plan, or the course.", "PLAN.TOML")],
    study: Annotated[Path, argument("The folder to write; it must not exist.", "STUDY")],
    roster: Annotated[Path, option("The roster of the run.", "ROSTER.TOML")],
) -> None:
    """Write the app that Flower ships, and a folder for the server, for a party and for a helper."""
    from privstats.engines.network.study import write_study

    folders = write_study(plan, roster, study, _template())
    say(f"wrote {', '.join(map(str, folders))}")
    say(
        f"put the server's identity into {study}/host/identity.pem; app and host stay with the coordinator, send the "
        "other folders to the other parties"
    )


@app.command()
def certificates(
    folder: Annotated[Path, argument("The folder to write; it must not exist.", "FOLDER")],
    host: Annotated[
        list[str] | None,
        option(
            "A name or address of the server for parties; repeat for more. Default with --after: those of OLD.", "NAME"
        ),
    ] = None,
    days: Annotated[int, option("Days until they expire.")] = 365,
    after: Annotated[
        Path | None, option("The folder that serve uses now: parties replace theirs one by one, then it.", "OLD")
    ] = None,
) -> None:
    """Write the three files that ``serve`` needs for TLS: ca.pem, server.pem and server.key."""
    from privstats.engines.flower.certificates import write_certificates

    write_certificates(folder, host or (), days=days, after=after)
    say(f"wrote {folder}/ca.pem, server.pem and server.key, which end in {days} days")
    if after is None:
        say(f"give {folder}/ca.pem to every party; keep server.key on this machine")
    else:
        say(f"1. give {folder}/ca.pem to every party; each restarts join with it: it trusts {after}, too")
        say(f"2. when all have, restart serve with --certificates {folder}; keep server.key on this machine")


@app.command()
def register(
    home: HostFolder,
    keys: Annotated[Path, argument("A folder with each party's node key as NAME.pub or NAME/node.pub.", "KEYS")],
) -> None:
    """Register all nodes of a folder of public keys, while ``serve`` runs; repeat it for further keys."""
    from privstats.engines.flower.certificates import register as register_all

    names = register_all(home, keys)
    new = [each.name for each in names if each.new]
    say(f"{len(new)} registered{': ' if new else ''}{', '.join(new)}; {len(names) - len(new)} were registered before")


@app.command("key")
def node_key(path: Annotated[Path, argument("The file to write; it must not exist.", "NODE")] = Path("node")) -> None:
    """Write a node's key and, next to it, the public half that the coordinator registers."""
    from privstats.engines.flower.certificates import write_node_key

    public = write_node_key(path)
    say(f"wrote {path}: keep it here; give {public} to the coordinator")


@app.command()
@expanded
def records(
    home: PartyFolder,
    dialect: Dialect,
    file: Annotated[Path, argument(f"This party's records: {TABLE}; or an npz file with X and y.", "FILE")],
    target: Target = None,
    split: Annotated[
        float | None, option("The share of the records to keep out of every sum, to score on, 0 to 1.")
    ] = None,
    seed: Annotated[
        int | None,
        option(
            "The seed of the split. By default the one that a note next to the file states for these sums, or for the "
            "head that they score; without a note one of this party's own, from its number on the roster, or with "
            "--persons 0."
        ),
    ] = None,
    kept_out: Annotated[
        bool,
        option(
            "For a plan that scores a head: use exactly the records that the split held out of its sums.",
            flag="--kept-out",
        ),
    ] = False,
    persons: Annotated[
        str | None, option("The column of patient ids, if the promise or the split is per patient.", "COLUMN")
    ] = None,
) -> None:
    """Check the file of this party's records against the plan, and write records.py, which names it."""
    from privstats.course.kinds import file_of
    from privstats.engines.network.party import Party
    from privstats.engines.network.records_script import name_file

    template = _template().joinpath("party", "records.py").read_bytes()
    folder = Party.open(home).folder
    goal = targets_of(folder.course, target)
    source = dialect.file(file, goal, split=split, seed=seed or 0, kept_out=kept_out, persons=persons)
    named = name_file(folder, file_of(folder.course, source), template, seeded=seed is not None or split is None)
    _say_named(named, file, kept_out=kept_out)
    if folder.course.first.schema.scores_head and not kept_out:
        say("the head must not be fitted on the records that score it: --split SHARE --kept-out selects these")
    for remark in named.remarks:
        say(remark)
    if not named.summed:  # a warning names the reason
        raise typer.Exit(1)


@app.command()
def check(home: PartyFolder, as_json: Json = False) -> None:
    """Measure the records, and print what would be sent to which party and charged to which account; send nothing.

    Exit code 1 if the ledger would refuse the charge.
    """
    from privstats.engines.network.party import Party
    from privstats.files.outside import require_state_folder

    party = Party.open(home)
    require_state_folder()
    facts = facts_of(party, party.prepare(anew=True))
    show(facts, as_json=as_json)
    if facts.get("refused"):
        raise typer.Exit(1)
    if not as_json:
        say("nothing was sent; compare plan and fingerprint with the others on the telephone")


@app.command()
def join(
    home: PartyFolder,
    superlink: Annotated[str, option("The SuperLink that the coordinator runs.", "HOST:PORT")],
    root_certificates: Annotated[Path, option("The certificate authority that signed its certificate.", "CA.PEM")],
    key: Annotated[Path, option("This node's private key, whose public half is registered there.")],
    metrics_port: MetricsPort = None,
    idle_seconds: Annotated[float, option("The longest time between two polls of a node without messages.")] = 3.0,
) -> None:
    """Measure if necessary, and keep this party's node connected until Ctrl-C, running installed code only."""
    from privstats.engines.flower import launch
    from privstats.engines.network.folder_documents import check_not_simulated
    from privstats.engines.network.operator_log import configure_log
    from privstats.engines.network.party import Party
    from privstats.files.outside import require_state_folder

    configure_log()
    require_state_folder()
    party = Party.open(home)
    check_not_simulated(party.folder.roster)
    party.prepare()
    where: Any = {"superlink": superlink, "root_certificates": root_certificates, "key": key}
    _ended(launch.join(home, **where, metrics_port=metrics_port, idle_seconds=idle_seconds, say=say))


@app.command()
def serve(
    home: HostFolder,
    certificates: Annotated[Path, option("A folder with ca.pem, server.pem and server.key.", "FOLDER")],
    address: Annotated[str, option("Where parties reach the fleet interface.", "HOST:PORT")] = "127.0.0.1:8000",
    control_port: Annotated[int, option("The port of 127.0.0.1 for the command flwr.", "PORT")] = 8001,
    metrics_port: MetricsPort = None,
) -> None:
    """Run the SuperLink that parties connect to, until Ctrl-C, running installed code only.

    It listens on this machine alone unless --address names an address that parties reach.
    """
    from privstats.engines.flower import launch
    from privstats.engines.network.host import Host
    from privstats.engines.network.operator_log import configure_log
    from privstats.files.outside import require_state_folder

    configure_log()
    require_state_folder()
    Host.open(home)
    code = launch.serve(
        home, certificates=certificates, address=address, control_port=control_port, metrics_port=metrics_port, say=say
    )
    _ended(code)


@app.command()
def status(
    home: Annotated[Path, argument("The server's folder, a party's, or a helper's.", "FOLDER")],
    as_json: Json = False,
    healthy: Annotated[bool, option("Exit with 1 unless serve, or join, runs here.", flag="--healthy")] = False,
    ready: Annotated[
        bool, option("Exit with 1 unless parties can connect, or the node is connected.", flag="--ready")
    ] = False,
) -> None:
    """Print which step of which session a folder is at, who is missing since when, and where it resumes.

    It reads public files and the folder's own status.json, takes no lock for longer than a moment, and changes nothing.
    """
    from privstats.engines.network.folder_status import status_of

    status = status_of(home)
    show(status.facts(), as_json=as_json)
    if (healthy and not status.alive) or (ready and not status.ready):
        raise typer.Exit(1)


@app.command("give-up")
def give_up(home: HostFolder, yes: Yes = False) -> None:
    """End a session without a sum, for good; what parties have uploaded counts as spent.

    In a course this ends the session of the current round; the next run continues with the round after it.

    With helpers the next run asks them to sign that they never answered; once all have signed, ledgers get it back.
    """
    from privstats.engines.network.host import Host

    host = Host.open(home)
    if not yes:
        typer.confirm("End this session for good? Its run name cannot be used again", abort=True)
    say(host.give_up())


@app.command()
def withdraw(
    home: PartyFolder,
    roster: Annotated[
        Path | None, option("The session's roster, if the folder has a newer one.", "ROSTER.TOML")
    ] = None,
    plan: Annotated[Path | None, option("The session's plan, if the folder has another one.", "PLAN.TOML")] = None,
    yes: Yes = False,
) -> None:
    """Leave a session for good and get back its cost, if this party has sent nothing.

    For a party that did not receive the session's end; one that receives it does this by itself. An upload stays spent.
    """
    from privstats.engines.network.party import Party

    party = Party.open(home).of(plan, roster)
    if not yes:
        typer.confirm("Leave this session for good? This party cannot take part in it any more", abort=True)
    accounts = party.withdraw()
    run = party.folder.roster.run.hex()
    say(
        f"run {run} is withdrawn: {', '.join(accounts)} has its cost back"
        if accounts
        else f"run {run} is left; it cost nothing here"
    )


@app.command()
def renew(
    old: Annotated[Path, argument("Your folder of the run that has ended.", "OLD")],
    new: Annotated[Path, argument("Your folder of the next run, as it was sent to you.", "NEW")],
    yes: Annotated[
        bool, option("Leave the old session, although this party has not received its end.", flag="--yes")
    ] = False,
) -> None:
    """Move what outlives a run into the folder of the next one: identity, ledger and its head, records.

    The session and its release stay in OLD. The coordinator moves the host folder in the same way, and nodes
    stay registered.
    """
    from privstats.engines.network.renewal import renew as move

    template = _template().joinpath("party", "records.py").read_bytes()
    moved = move(old, new, untouched=template, unfinished=yes)
    say(f"moved to {new}: {', '.join(moved.moved)}")
    if moved.script_stays:
        say(f"{new}/records.py existed and is unchanged; the one of {old} was not moved")


def _say_named(named: Named, file: Path, *, kept_out: bool) -> None:
    others = "excluded: the head may be fitted on them" if kept_out else "held out"
    note = f", {named.held_out:,} {others}" if named.held_out else ""
    say(f"wrote {named.script}: {named.summed:,} records of {file}{note}")


def _ended(code: int) -> None:
    if code != 0:
        raise PrivstatsError(f"Flower's program ended with code {code}; its output is above")
