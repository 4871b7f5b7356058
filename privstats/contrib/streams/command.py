"""``privstats stream``: its commands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.errors import PlanError
from privstats.extend.commands import Force, Json, argument, next_command, option, say, table_of, terminal, writable
from privstats.extend.support import at_most, json_text

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    help="Sum records that enter and leave, with a release every epoch.", no_args_is_help=True, rich_help_panel="Run"
)

StreamFolder = Annotated[Path, argument("The stream's folder.", "FOLDER")]
PlanFile = Annotated[Path, option("What all epochs together may spend.", "PLAN.TOML", flag="--plan")]
Epochs = Annotated[int, option("How many epochs there will be.")]
Mechanism = Annotated[str, option("increments, tree or square-root.")]
Deletions = Annotated[bool, option("Records may be deleted again.", flag="--deletions")]
Repeats = Annotated[int, option("How often records may be sent again without proof.")]
Disclosing = Annotated[
    bool, option("Allow deletions without noise, which disclose who left.", flag="--allow-disclosing-leavers")
]


@app.command()
def init(
    path: Annotated[Path, argument("The file to write.", "STREAM.TOML")],
    plan: PlanFile,
    epochs: Epochs,
    mechanism: Mechanism = "increments",
    deletions: Deletions = False,
    repeats: Repeats = 0,
    allow_disclosing_leavers: Disclosing = False,
    force: Force = False,
) -> None:
    """Write a stream's file for parties on separate machines; `privstats flower new` takes it like a plan."""
    stream = _new_stream(plan, epochs, mechanism, deletions, repeats, allow_disclosing_leavers)
    writable((path, path.with_suffix(f".plan{path.suffix}")), force)
    beside = ps.course.write(path, stream)
    then = next_command("flower", "new", path, "STUDY", without=("plan",))
    say(f"wrote {path} and {beside}; {_cost(stream)}; run: {then}")


@app.command()
def new(
    path: StreamFolder,
    plan: PlanFile,
    epochs: Epochs,
    mechanism: Mechanism = "increments",
    deletions: Deletions = False,
    repeats: Repeats = 0,
    allow_disclosing_leavers: Disclosing = False,
) -> None:
    """Make a folder for all parties on this machine: a ledger for each, with the whole stream spent on it."""
    from privstats.contrib.streams.local_stream import new_stream

    stream = _new_stream(plan, epochs, mechanism, deletions, repeats, allow_disclosing_leavers)
    new_stream(path, stream)
    say(f"wrote {path}; {_cost(stream)}; run: {next_command('stream', 'epoch', path, 'CHANGES')}")


@app.command()
def bring(
    home: Annotated[Path, argument("The party's folder.", "PARTY")],
    changes: Annotated[Path, argument("ids, persons if any, X, y and leave, as np.savez writes them.", "FILE.npz")],
) -> None:
    """Queue records that enter and leave in a party's folder; they go with the next epoch that it takes part in."""
    from privstats.contrib.streams.party import inbox_of, waiting
    from privstats.contrib.streams.stream import Stream
    from privstats.engines.carriers import COURSE
    from privstats.engines.network.party import Party

    if not (home / COURSE).exists():
        raise PlanError(
            f"{home} is no party's folder of a stream between machines, which `privstats flower new` writes; "
            "a folder of `privstats stream new` takes records with `privstats stream epoch`"
        )
    folder = Party.open(home).folder
    if not isinstance(folder.course, Stream):
        raise PlanError(f"{home} holds another course; its records come from records.py")
    inbox = inbox_of(folder)
    batch = inbox.bring(changes, partial(waiting, folder))
    rows = f" with {len(batch.ids)} rows" if batch.unit == "person" else ""
    say(f"queued for the next epoch: {len(batch.names)} that enter{rows}, {len(batch.leave)} that leave")
    for remark in inbox.remarks(batch):
        say(remark)


@app.command()
def epoch(
    path: StreamFolder,
    changes: Annotated[
        Path, argument("A folder with <party>.npz for parties with changes, as `bring` reads it.", "CHANGES")
    ],
    away: Annotated[list[int] | None, option("A party whose machine is off; repeat for more.")] = None,
    as_json: Json = False,
) -> None:
    """Release the next epoch of a folder that `new` made; after a crash, the same command continues it."""
    from privstats.contrib.streams.local_stream import run_epoch, server_folder

    outcome = run_epoch(path, changes, away or ())
    folder, stream = server_folder(path)
    first = len(folder.releases_so_far()) - len(outcome)
    rows = [_node(stream, first + place, release) for place, release in enumerate(outcome)]
    if as_json:
        typer.echo(json_text({"nodes": rows}))
        return
    terminal().print(_table(rows))


@app.command()
def show(path: StreamFolder, as_json: Json = False) -> None:
    """Print a stream, the clients in its sums, and the noise so far: of a folder that `new` made, or a server's."""
    from privstats.contrib.streams.local_stream import server_folder

    folder, stream = server_folder(path)
    releases = folder.releases_so_far()
    rows = [_node(stream, place, release) for place, release in enumerate(releases)]
    noise = dict(stream.total(releases).sigma) if any(release is not None for release in releases) else {}
    if as_json:
        facts = {"digest": stream.digest, "mechanism": stream.mechanism, "epochs": stream.epochs, "nodes": rows}
        typer.echo(json_text({**facts, "mu": stream.mu, "sigma": noise}))
        return
    console = terminal()
    console.print(_table(rows))
    place = f"{stream.mechanism}, {len(releases)} of {stream.most} nodes"
    console.print(f"{place}; {_cost(stream)}", soft_wrap=True)
    noises = ", ".join(f"{name} {sigma:.4g}" for name, sigma in noise.items())
    console.print(f"noise in the total: {noises or 'no sum yet'}\ndigest: {stream.digest}", soft_wrap=True)


def _new_stream(plan: Path, epochs: int, mechanism: str, deletions: bool, repeats: int, disclosing: bool) -> ps.Stream:
    return ps.Stream(ps.Plan.read(plan), epochs, mechanism, deletions, repeats, disclosing)  # type: ignore[arg-type]


def _cost(stream: ps.Stream) -> str:
    from privstats.extend.courses import total_of

    claim = total_of(stream).claim
    if stream.first.noise is None:
        return f"exact sums, {claim}"
    return f"all epochs together: mu {at_most(stream.mu)}, {claim}"


def _node(stream: ps.Stream, place: int, release: ps.Release | None) -> dict[str, Any]:
    at = stream.nodes[place]
    survivors = None if release is None else len(release.survivors)
    return {"node": place, "epoch": at.epoch, "level": at.level, "since": at.since, "survivors": survivors}


def _table(rows: list[dict[str, Any]]) -> Table:
    cells = []
    for row in rows:
        span = f"{row['since']}-{row['epoch']}" if row["since"] != row["epoch"] else str(row["epoch"])
        survivors = "no sum" if row["survivors"] is None else str(row["survivors"])
        cells.append((str(row["node"]), span, str(row["level"]), survivors))
    return table_of(("node", "epochs", "level", "clients in the sum"), cells, left=())
