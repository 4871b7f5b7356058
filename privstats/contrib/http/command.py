"""``privstats http``: commands for a run of devices."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.party_facts import show
from privstats.cli.parts.verifying import PassphraseFile, identity_of
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.extend.commands import Json, argument, expanded, next_command, option, say, table_of, terminal
from privstats.extend.support import at_most

if TYPE_CHECKING:
    from privstats.contrib.http.demo import DevicesDemo
    from privstats.contrib.http.registrar import Run
    from privstats.contrib.http.run import LeaderRun
    from privstats.contrib.http.serve import Serving

app = typer.Typer(
    help="Run a session of devices: each sends one message over HTTPS, and no device has to wait.",
    no_args_is_help=True,
    rich_help_panel="Run",
)

LeaderFolder = Annotated[Path, argument("The leader's folder.", "LEADER")]
AdminPort = Annotated[
    int | None, option("The administration's port of 127.0.0.1, in place of LEADER/admin.sock.", "PORT")
]


StudyFolder = Annotated[Path, argument("The registrar's folder.", "STUDY")]
IdentityFile = Annotated[Path, option("The registrar's identity.", "IDENTITY.PEM")]
Until = Annotated[str | None, option("When the box keys expire. Default: 30 days after --closes.", "TIME")]
_KEYS_LAST = timedelta(days=30)


@app.command()
def new(
    plan: Annotated[Path, argument("The plan; its table devices names who may send.", "PLAN.TOML")],
    study: Annotated[Path, argument("The folder to write; it must not exist.", "STUDY")],
    address: Annotated[str, option("The leader's address, as devices connect to it.", "https://HOST[:PORT]")],
    page: Annotated[str, option("The page's address, on another party's host.", "https://HOST/PATH")],
    closes: Annotated[str, option("The time after which no answers are accepted, as 2027-03-01T12:00:00Z.", "TIME")],
    until: Until = None,
    origin: Annotated[
        list[str] | None, option("The origin from which browsers may ask, if not that of --page.", "https://HOST")
    ] = None,
    installed: Annotated[
        bool, option("Only installed software answers: accept a plan that every browser refuses.", flag="--installed")
    ] = False,
) -> None:
    """Make the registrar's folder for a plan, with the addresses and the closing time."""
    from privstats.contrib.http.browsers import warnings
    from privstats.contrib.http.registrar import write_study
    from privstats.contrib.http.settings import Settings

    ends = _time("--closes", closes)
    last = ends + _KEYS_LAST if until is None else _time("--until", until)
    origins = tuple(origin or [_origin(page)])
    read = ps.Plan.read(plan)
    write_study(study, read, Settings(address, ends, last, origins), page, browsers=not installed)
    for line in warnings(read):
        say(line)
    say(f"wrote {study}; draw the codes, once: {next_command('http', 'invite', study, identity='IDENTITY.PEM')}")


@app.command()
def invite(
    study: StudyFolder,
    identity: IdentityFile,
    paper: Annotated[
        bool, option("Short codes to type from a printed letter, which no mail filter reads.", flag="--paper")
    ] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Draw a code for each person, write the links, sign the roster, and write a folder for every party: once."""
    from privstats.contrib.http.registrar import LINKS, write_invitations

    run = write_invitations(study, identity_of(identity, passphrase_file), paper=paper)
    say(
        f"wrote {study}/{LINKS}: one line for each of {len(run.roster)} people. Whoever reads it can answer for all of "
        "them: send each line to one person, and destroy the file, and your list of names, when the mailing ends"
    )
    _handed_out(run)


@app.command()
def renew(
    study: StudyFolder,
    identity: IdentityFile,
    closes: Annotated[str | None, option("When the next run closes.", "TIME")] = None,
    until: Until = None,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Write the next run for the same codes, after a failed run or for another question. Each counts."""
    from dataclasses import replace

    from privstats.contrib.http.registrar import renew as next_run
    from privstats.contrib.http.settings import Settings

    settings = Settings.read(study)
    if closes is not None:
        ends = _time("--closes", closes)
        settings = replace(settings, closes=ends, until=ends + _KEYS_LAST if until is None else _time("--until", until))
    elif until is not None:
        raise LocalProtocolError("--until without --closes: give both, or neither for the days of the folder")
    _handed_out(next_run(study, identity_of(identity, passphrase_file), settings))


def _summing() -> Any:
    from privstats.engines.carriers import SUMMERS

    return SUMMERS.options("terms")


@app.command()
@expanded
def lead(
    home: LeaderFolder,
    *,
    address: Annotated[str, option("Where to listen.", "HOST:PORT")] = "127.0.0.1:8443",
    certificate: Annotated[Path | None, option("A folder with server.pem and server.key.", "FOLDER")] = None,
    behind_proxy: Annotated[bool, option("A proxy before the leader ends TLS.", flag="--behind-proxy")] = False,
    admin_port: AdminPort = None,
    summing: Annotated[Any, _summing],
) -> None:
    """Take devices' reports and lead the run to its release, until Ctrl-C; another start resumes from the disk.

    It listens on this machine alone unless --address names an address that devices reach; then it needs --certificate,
    or --behind-proxy. Further machines of the leader may sum the reports.
    """
    from privstats.engines.carriers import configure_log, summer_for
    from privstats.extend.support import optional_dependencies
    from privstats.files.outside import require_state_folder

    optional_dependencies.require("uvicorn", "httptools", by="privstats http lead")
    from privstats.contrib.http.run import LeaderRun
    from privstats.contrib.http.serve import Address, serve

    summer = summer_for(summing)
    listening = Address(*_host_and_port(address), certificate, behind_proxy)
    configure_log()
    require_state_folder()
    run = LeaderRun.open(home, defers=summer is not None)
    cluster = None if summer is None else summer.at(summing, run.folder)
    started = partial(_started, run, tls=listening.tls is not None)
    if code := serve(run, listening, started=started, admin_port=admin_port, cluster=cluster):
        raise typer.Exit(code)


@app.command("help")
def serve_helper(
    home: Annotated[Path, argument("The helper's folder.", "HELPER")],
    root_certificates: Annotated[
        Path | None, option("The certificate authority of the leader's certificate, if not a public one.", "CA.PEM")
    ] = None,
) -> None:
    """Serve a run as a helper until its end: it connects to the leader, opens no port, and may be off for days."""
    from privstats.contrib.http.folders import helper_folder
    from privstats.contrib.http.helper import Dialler
    from privstats.contrib.http.settings import Settings
    from privstats.engines.carriers import PARTY, configure_log, supervised
    from privstats.files.outside import require_state_folder

    configure_log()
    require_state_folder()
    folder, settings = helper_folder(home), Settings.read(home)
    root = None if root_certificates is None else str(root_certificates)
    with supervised(folder.base, "joined", settings.address) as connected:
        PARTY.info(Dialler(folder, settings, root, connected=connected).run())


@app.command()
def close(home: LeaderFolder, admin_port: AdminPort = None) -> None:
    """Take no further reports, if enough are here; without it reports are taken until the time in http.toml."""
    say(_request(home, "/close", admin_port, lambda run: run.close_reports()) or "reports are closed")


@app.command("give-up")
def give_up(
    home: LeaderFolder, admin_port: AdminPort = None, yes: Annotated[bool, option("Do not ask.", flag="--yes")] = False
) -> None:
    """End the run without a sum, for good: helpers then sign that they answered nothing, and codes may be mailed anew.

    A run that helpers have answered in part ends without a sum too; a new one needs a new run name.
    """
    from privstats.contrib.http.folders import leader_folder
    from privstats.engines.carriers import Folder

    leader_folder(Folder.open(home))
    if not yes:
        typer.confirm("End this run for good? Its run name cannot be used again", abort=True)
    say(_request(home, "/give-up", admin_port, lambda run: run.give_up()))


@app.command()
def status(
    home: Annotated[Path, argument("The leader's folder, or a helper's.", "FOLDER")],
    as_json: Json = False,
    healthy: Annotated[bool, option("Exit with 1 unless lead, or help, runs here.", flag="--healthy")] = False,
    ready: Annotated[
        bool, option("Exit with 1 unless devices can send, or the helper reaches the leader.", flag="--ready")
    ] = False,
    admin_port: AdminPort = None,
) -> None:
    """Print a run's step, the number of reports, and how long each helper has been silent.

    It reads files, takes no lock for longer than a moment, and changes nothing.
    """
    from privstats.contrib.http.standing import facts_of
    from privstats.engines.carriers import Folder, status_of

    documents = Folder.read(home)
    if documents.identity.public != documents.roster.server:
        status = status_of(home)
        show(status.facts(), as_json=as_json)
        alive, open_now = status.alive, status.ready
    else:
        facts, held = facts_of(documents.home, documents.roster.run.hex())
        show(facts, as_json=as_json)
        alive = held is not None
        open_now = alive and ready and _is_ready(home, admin_port)
    if (healthy and not alive) or (ready and not open_now):
        raise typer.Exit(1)


@app.command()
def page(
    study: Annotated[Path, argument("The file that names leader, run and study.", "STUDY.JSON")],
    out: Annotated[Path, argument("The folder to write; it must not exist.", "FOLDER")],
) -> None:
    """Write the page on which people answer, as one file, and the headers that its server must send with it.

    A separate party must serve it, because its server can read every answer.
    """
    from privstats.contrib.http.page import write_page

    written = write_page(study, out)
    say(f"wrote {out}/index.html, headers.json and nginx-headers.conf")
    say(f"the script's hash is {written.integrity}: the same for every study of this release")


@app.command()
def demo(
    browser: Annotated[
        bool, option("Open the last person's page in a browser, and wait for that answer.", flag="--browser")
    ] = False,
    seed: Annotated[int, option("Fixes the simulated ages.")] = 0,
) -> None:
    """Run a whole study on this machine: registrar, leader, helper, page, and 200 simulated people with an age."""
    import os
    from tempfile import TemporaryDirectory

    from privstats.extend.support import optional_dependencies, progress_bar

    optional_dependencies.require("uvicorn", "httptools", by="privstats http demo")
    from privstats.contrib.http.demo import PEOPLE, run_devices_demo

    def show_link(link: str) -> None:
        say(f"the last person's link, which {'opens now' if browser else 'nobody follows'}: {link}")

    with TemporaryDirectory() as place, progress_bar("people answer", PEOPLE) as advance:
        result = run_devices_demo(
            Path(place), browser=browser, entropy=os.urandom, seed=seed, link=show_link, sent=lambda: advance(1)
        )
    show_demo(result)


def _started(run: LeaderRun, serving: Serving, *, tls: bool) -> None:
    from privstats.engines.carriers import key_agreement

    run.say(f"the leader serves {serving.address}, run {run.folder.roster.run.hex()}")
    if tls:
        run.say(f"TLS agrees on keys by {key_agreement()}")


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise PrivstatsError(f"--address must be HOST:PORT, got {address!r}; for example 127.0.0.1:8443")
    return host, int(port)


def _request(home: Path, path: str, admin_port: int | None, act: Any) -> str:
    """Send a changing request to the running leader; carry it out here where none runs."""
    from privstats.contrib.http.admin import ask
    from privstats.contrib.http.run import LeaderRun
    from privstats.engines.carriers import supervision

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
    from privstats.contrib.http.admin import ask

    return ask(home, "GET", "/readyz", admin_port)[0] == 200


def _handed_out(run: Run) -> None:
    folders = sorted(path.name for path in run.folder.iterdir() if path.is_dir() and path.name != "page")
    say(f"send {run.folder}/{{{','.join(folders)}}} to their owners, each of whom adds identity.pem")
    say(
        f"send {run.folder}/page/study.json to the party that serves the page, and print its digest where people "
        "compare it:"
    )
    say(run.study)


def _time(option: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise LocalProtocolError(f"{option} must be a time with an offset, like 2027-03-01T12:00:00Z") from None


def _origin(page: str) -> str:
    return "/".join(page.split("/")[:3])


_WIDTH = 30


def show_demo(demo: DevicesDemo) -> None:
    """Print the released counts next to the true ones."""
    counts, most = demo.counts, max(float(demo.counts.shown.max()), 1.0)
    rows = []
    for row, cell in enumerate(counts.cells[0]):
        bar = "\u2588" * round(_WIDTH * float(counts.shown[row]) / most)
        interval = f"{counts.low[row]:.0f} to {counts.high[row]:.0f}"
        truth = str(int(demo.truth[row])) if row < len(demo.truth) else "0"
        rows.append((cell, bar, f"{counts.counts[row]:.0f}", interval, truth))
    headings = ("age", "", "released", "95 % interval", "truth")
    terminal().print(table_of(headings, rows, title="How old are you?", left=("age", "")))
    people = len(demo.release.survivors)
    say(
        f"{people} people answered{', the last one in a browser: it is in no truth' if demo.by_browser else ''}; "
        f"leader and helper each added noise of epsilon {at_most(demo.plan.budget().epsilon, '.2g')}"
    )
    say(f"what people compare: {demo.study}")
    say(f"{demo.seconds:.1f} seconds from the first folder to the signed release")
