"""``privstats http``: who is invited to a run of devices, its leader and its helpers, how they stand, and its close."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privstats.cli.parts import inviting
from privstats.cli.parts.folder_status import show
from privstats.cli.parts.terminal import say
from privstats.errors import PrivstatsError

if TYPE_CHECKING:
    from privstats.engines.http.run import LeaderRun
    from privstats.engines.http.serve import Serving

__all__ = ["app"]

app = typer.Typer(
    help="Run a session of devices: each sends one message over HTTPS and is gone.",
    no_args_is_help=True,
    rich_help_panel="Run",
)

for _command in (inviting.new, inviting.invite, inviting.renew):
    app.command()(_command)

LeaderFolder = Annotated[Path, typer.Argument(help="The leader's folder.", metavar="LEADER")]
AdminPort = Annotated[
    int | None,
    typer.Option(help="The administration's port of 127.0.0.1, in place of LEADER/admin.sock.", metavar="PORT"),
]


@app.command()
def lead(
    home: LeaderFolder,
    address: Annotated[str, typer.Option(help="Where to listen.", metavar="HOST:PORT")] = "127.0.0.1:8443",
    certificate: Annotated[
        Path | None, typer.Option(help="A folder with server.pem and server.key.", metavar="FOLDER")
    ] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy on the way ends TLS.")] = False,
    admin_port: AdminPort = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="A Dask scheduler of the leader's own, which sums reports up.", metavar="tls://HOST:PORT"),
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Where the cluster's workers find them: a URL of fsspec.", metavar="URL")
    ] = None,
) -> None:
    """Take devices' reports and lead the run to its release, until Ctrl-C; another start goes on from the disk.

    It listens on this machine alone unless --address names an address that devices reach; then it needs --certificate,
    or --behind-proxy. With --cluster and --store other machines sum the reports up, which are the leader's own.
    """
    from privstats.engines.network.operator_log import configure
    from privstats.files.outside import require_state_folder
    from privstats.optional_dependencies import require

    require("uvicorn", "httptools", by="privstats http lead")
    from privstats.engines.http.part_sums import Cluster
    from privstats.engines.http.run import LeaderRun
    from privstats.engines.http.serve import Address, serve

    if (cluster is None) != (store is None):
        raise PrivstatsError("--cluster and --store go together: workers read the reports from the store")
    host, port = _host_and_port(address)
    listening = Address(host, port, certificate, behind_proxy)
    configure()
    require_state_folder()
    run = LeaderRun.open(home, defers=cluster is not None)
    summing = None if cluster is None or store is None else Cluster.at(cluster, store, run.folder)
    named: dict[str, Any] = {"admin_port": admin_port, "cluster": summing}
    code = serve(run, listening, started=lambda serving: _started(run, serving, tls=listening.tls is not None), **named)
    if code:
        raise typer.Exit(code)


@app.command("help")
def serve_helper(
    home: Annotated[Path, typer.Argument(help="The helper's folder.", metavar="HELPER")],
    root_certificates: Annotated[
        Path | None,
        typer.Option(
            help="The certificate authority of the leader's certificate, if not a public one.", metavar="CA.PEM"
        ),
    ] = None,
) -> None:
    """Serve a run as a helper until its end: it dials the leader, opens no port, and may be away for days."""
    from privstats.engines.http.folders import helper_folder
    from privstats.engines.http.helper import Dialler
    from privstats.engines.http.settings import Settings
    from privstats.engines.network.operator_log import PARTY, configure
    from privstats.engines.network.supervision import supervised
    from privstats.files.outside import require_state_folder

    configure()
    require_state_folder()
    folder, settings = helper_folder(home), Settings.read(home)
    root = None if root_certificates is None else str(root_certificates)
    with supervised(folder.base, "joined", settings.address) as connected:
        PARTY.info(Dialler(folder, settings, root, connected=connected).run())


@app.command()
def close(home: LeaderFolder, admin_port: AdminPort = None) -> None:
    """Take no further reports, if enough are here; without it reports are taken until the time in http.toml."""
    say(_told(home, "/close", admin_port, lambda run: run.close_reports()) or "reports are closed")


@app.command("give-up")
def give_up(
    home: LeaderFolder,
    admin_port: AdminPort = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """End the run without a sum, for good: helpers then sign that they answered nothing, and codes may be mailed anew.

    A run that helpers have answered in part ends without a sum too; a new one needs a new run name.
    """
    from privstats.engines.http.folders import leader_folder
    from privstats.engines.network.folder import Folder

    leader_folder(Folder.open(home))
    if not yes:
        typer.confirm("End this run for good? Its run name cannot be used again", abort=True)
    say(_told(home, "/give-up", admin_port, lambda run: run.give_up()))


@app.command()
def status(
    home: Annotated[Path, typer.Argument(help="The leader's folder, or a helper's.", metavar="FOLDER")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    healthy: Annotated[bool, typer.Option("--healthy", help="Exit with 1 unless lead, or help, runs here.")] = False,
    ready: Annotated[
        bool, typer.Option("--ready", help="Exit with 1 unless devices can send, or the helper reaches the leader.")
    ] = False,
    admin_port: AdminPort = None,
) -> None:
    """Print at which step a run is, how many have reported, and how long each helper has been silent.

    It reads files, takes no lock for longer than a moment, and changes nothing.
    """
    from privstats.engines.http.standing import facts_of
    from privstats.engines.network.folder_documents import FolderDocuments
    from privstats.engines.network.folder_status import status_of

    documents = FolderDocuments.read(home)
    if documents.identity.public != documents.roster.server:
        found = status_of(home)
        show(found.facts(), as_json=as_json)
        alive, open_now = found.alive, found.ready
    else:
        facts, held = facts_of(documents.home, documents.roster.run.hex())
        show(facts, as_json=as_json)
        alive = held is not None
        open_now = alive and ready and _is_ready(home, admin_port)
    if (healthy and not alive) or (ready and not open_now):
        raise typer.Exit(1)


@app.command()
def page(
    study: Annotated[Path, typer.Argument(help="The file that names leader, run and study.", metavar="STUDY.JSON")],
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist.", metavar="FOLDER")],
) -> None:
    """Write the page on which people answer, as one file, and the headers that its server must send with it.

    It is served by a party of its own: never by the leader or a helper, because who serves it can read every answer.
    """
    from privstats.engines.http.page_folder import write_page

    written = write_page(study, out)
    say(f"wrote {out}/index.html, headers.json and nginx-headers.conf")
    say(f"the script's hash is {written.integrity}: the same for every study of this release")


@app.command()
def demo(
    browser: Annotated[
        bool, typer.Option("--browser", help="Open the last person's page in a browser, and wait for that answer.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Fixes the ages that the demo's people have.")] = 0,
) -> None:
    """Run a whole study on this machine: registrar, leader, helper, page, and 200 people who say their age."""
    import os
    from tempfile import TemporaryDirectory

    from privstats.cli.parts.devices_demo import show_demo
    from privstats.optional_dependencies import require
    from privstats.progress import progress_bar

    require("uvicorn", "httptools", by="privstats http demo")
    from privstats.workflows.demo.devices import PEOPLE, run_devices_demo

    def told(link: str) -> None:
        say(f"the last person's link, which {'opens now' if browser else 'nobody follows'}: {link}")

    with TemporaryDirectory() as place, progress_bar("people answer", PEOPLE) as advance:
        found = run_devices_demo(
            Path(place), browser=browser, entropy=os.urandom, seed=seed, link=told, sent=lambda: advance(1)
        )
    show_demo(found)


def _started(run: LeaderRun, serving: Serving, *, tls: bool) -> None:
    from privstats.engines.network.key_agreement import offered

    run.say(f"the leader serves {serving.address}, run {run.folder.roster.run.hex()}")
    if tls:
        run.say(f"TLS agrees on keys by {offered()}")


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise PrivstatsError(f"--address must be HOST:PORT, got {address!r}; for example 127.0.0.1:8443")
    return host, int(port)


def _told(home: Path, path: str, admin_port: int | None, act: Any) -> str:
    """What a running leader says to a request that changes something; done here where none runs."""
    from privstats.engines.http.asking import ask
    from privstats.engines.http.run import LeaderRun
    from privstats.engines.network.supervision import supervision

    if supervision(home.absolute(), "served") is None:
        run = LeaderRun.open(home)
        try:
            return act(run) or ""
        finally:
            run.close()
    status, body = ask(home, "POST", path, admin_port)
    text = body.decode(errors="replace").strip()
    if status != 200:
        raise PrivstatsError(text)
    return text


def _is_ready(home: Path, admin_port: int | None) -> bool:
    from privstats.engines.http.asking import ask

    return ask(home, "GET", "/readyz", admin_port)[0] == 200
