"""``privstats http demo``: a complete run on this machine."""

from __future__ import annotations

import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from privstats.contrib.http import registrar
from privstats.contrib.http.admin import ask
from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Dial
from privstats.contrib.http.folders import helper_folder
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.invitations import Invitation
from privstats.contrib.http.page import page_of
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.serve import Address, Serving, serve
from privstats.contrib.http.settings import Settings
from privstats.dp import Ledger, Privacy
from privstats.engines.carriers import free_port
from privstats.errors import PrivstatsError
from privstats.extend.support import from_json
from privstats.inference import Histogram, histogram
from privstats.kinds import CountSchema
from privstats.moments import measure
from privstats.plan import Cohort, Devices, Plan
from privstats.plan.device_rules import min_stated_epsilon
from privstats.release import Release
from privstats.schema import Bins
from privstats.secagg import Identity

PEOPLE = 200
_AGES, _EDGES = "age", (18, 30, 40, 50, 60, 70, 90)
_THREADS = 8
_WAIT_SECONDS, _BROWSER_SECONDS = 60.0, 600.0
_LEADER, _HELPER, _REGISTRAR = 0, 1, 2


@dataclass(frozen=True)
class DevicesDemo:
    """Results of the demo.

    Attributes:
        counts: its histogram with intervals.
        truth: exact counts of Python's answers.
        study: the digest that people compare.
        by_browser: the last answer came from a browser.
    """

    release: Release
    counts: Histogram
    truth: np.ndarray[Any, np.dtype[np.int64]]
    plan: Plan
    study: str
    by_browser: bool
    seconds: float


def run_devices_demo(
    folder: Path,
    *,
    browser: bool,
    entropy: Callable[[int], bytes],
    seed: int = 0,
    link: Callable[[str], None] = lambda _: None,
    sent: Callable[[], None] = lambda: None,
) -> DevicesDemo:
    """Run the demo in an empty folder; raise ``PrivstatsError`` after a minute per step, or ten for the browser.

    Args:
        browser: open the last person's link and wait for that answer; else never send it.
        entropy: source of keys and codes.
        link: called with the last person's link.
    """
    began = time.monotonic()
    ages = np.random.default_rng(seed).normal(48, 16, PEOPLE - 1).clip(18, 89).astype(np.int64)
    identities = [Identity.generate(entropy) for _ in range(3)]
    plan = _plan(identities)
    with ExitStack() as stack:
        page, leader_port = stack.enter_context(_page_server()), free_port()
        run = _study(folder, plan, identities, f"http://127.0.0.1:{leader_port}", page.origin)
        page.show(page_of(f"http://127.0.0.1:{leader_port}", run.roster.run.hex(), run.study))
        stack.enter_context(_leader(run.folder / "leader", leader_port))
        stack.enter_context(_helper(run.folder / "helper-1"))
        links = (folder / "study" / registrar.LINKS).read_text("utf-8").split()
        _answer(f"http://127.0.0.1:{leader_port}", run, links[:-1], ages, sent)
        link(links[-1])
        if browser:
            webbrowser.open(links[-1])
            _wait(lambda: _reports(run.folder / "leader") == PEOPLE, _BROWSER_SECONDS, "the browser's answer")
            sent()
        else:
            _request(run.folder / "leader", "/close")
        path = run.folder / "leader" / "release.safetensors"
        _wait(path.exists, _WAIT_SECONDS, "the release")
        _wait(lambda: ask(run.folder / "leader", "GET", "/release")[0] == 200, _WAIT_SECONDS, "the release")
    release = Release.load(path, signed_by=identities[_LEADER].public)
    truth = np.histogram(ages, _EDGES)[0]
    seconds = time.monotonic() - began
    return DevicesDemo(release, histogram(release, _AGES), truth, plan, run.study, browser, seconds)


def _plan(identities: Sequence[Identity]) -> Plan:
    privacy = Privacy(
        model="panel", unit="client", adjacency="add-remove", epsilon=3.0, delta=1e-6, max_records_per_client=1
    )
    plan = Plan(
        schema=CountSchema(variables=(Bins(_AGES, _EDGES),), tables=((_AGES,),)),
        cohort=Cohort(PEOPLE, PEOPLE // 2, PEOPLE),
        privacy=privacy,
        protocol="split",
        panel=tuple(identity.public.hex() for identity in identities[:_REGISTRAR]),
    )
    assert plan.noise is not None  # noqa: S101  the panel's
    devices = Devices(
        organisations=("the demo's leader", "the demo's helper"),
        registrar="the demo's registrar",
        registrar_key=identities[_REGISTRAR].public.hex(),
        page="the demo's page",
        most_runs=1,
        stated_epsilon=round(min_stated_epsilon(plan.schema, privacy, plan.noise, 1) + 0.005, 2),
    )
    return replace(plan, devices=devices)


def _study(folder: Path, plan: Plan, identities: Sequence[Identity], address: str, page: str) -> registrar.Run:
    closes = datetime.now(UTC) + timedelta(days=1)
    settings = Settings(address, closes, closes + timedelta(days=15), (page,))
    registrar.write_study(folder / "study", plan, settings, f"{page}/")
    run = registrar.write_invitations(folder / "study", identities[_REGISTRAR])
    for name, number in (("leader", _LEADER), ("helper-1", _HELPER)):
        identities[number].save(run.folder / name / "identity.pem")
    privacy = plan.privacy
    assert isinstance(privacy, Privacy)  # noqa: S101  as _plan made it
    ledger = Ledger.create(run.folder / "leader" / "ledger")
    cap = {"epsilon": 2 * privacy.epsilon, "delta": privacy.delta}
    ledger.set_cap("ages", unit=privacy.unit, adjacency=privacy.adjacency, **cap)
    return run


def _answer(
    address: str,
    run: registrar.Run,
    links: Sequence[str],
    ages: np.ndarray[Any, np.dtype[np.int64]],
    sent: Callable[[], None],
) -> None:
    with Dial(address) as dial:
        path = f"/v1/runs/{run.roster.run.hex()}"
        _wait(lambda: dial.ask("GET", path).status == 200, _WAIT_SECONDS, "the panel")

    def some(places: range) -> None:
        with Dial(address) as dial:
            opened = DeviceRun.open(dial, run.roster.run.hex(), run.study)
            for place in places:
                person = Invitation.read(links[place].partition("#")[2])
                moments = measure(opened.plan.schema, {_AGES: [int(ages[place])]})
                report = opened.report(moments, person.index, person.identity)
                opened.send(dial, person.index, report)
                sent()

    with ThreadPoolExecutor(_THREADS) as pool:
        for done in [pool.submit(some, range(first, len(links), _THREADS)) for first in range(_THREADS)]:
            done.result()


@contextmanager
def _leader(home: Path, port: int) -> Iterator[None]:
    here, serving = threading.Event(), list[Serving]()

    def started(server: Serving) -> None:
        serving.append(server)
        here.set()

    def work() -> None:
        serve(LeaderRun.open(home, say=lambda _: None), Address(port=port), started=started, signals=False)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    if not here.wait(_WAIT_SECONDS):
        raise PrivstatsError("the demo's leader did not begin to serve: its error is above")
    try:
        yield
    finally:
        serving[0].stop()
        thread.join(_WAIT_SECONDS)


@contextmanager
def _helper(home: Path) -> Iterator[None]:
    dialler = Dialler(helper_folder(home), Settings.read(home), say=lambda _: None, pause=0.1)
    thread = threading.Thread(target=dialler.run, daemon=True)
    thread.start()
    yield
    thread.join(_WAIT_SECONDS)


class _PageServer(ThreadingHTTPServer):
    daemon_threads = True
    page: Any = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def show(self, page: Any) -> None:
        self.page = page


class _PageHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = self.server.page if self.path == "/" else None  # type: ignore[attr-defined]
        body = b"" if page is None else page.html.encode()
        self.send_response(404 if page is None else 200)
        for name, value in ({} if page is None else page.headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log no request."""


@contextmanager
def _page_server() -> Iterator[_PageServer]:
    with _PageServer(("127.0.0.1", 0), _PageHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def _reports(home: Path) -> int:

    return int(from_json(ask(home, "GET", "/status")[1], dict)["reports"])


def _request(home: Path, path: str) -> None:
    status, body = ask(home, "POST", path)
    if status != 200:
        raise PrivstatsError(body.decode(errors="replace").strip())


def _wait(ready: Callable[[], bool], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise PrivstatsError(f"{what} did not come in {seconds:.0f} seconds: start the demo again")
        time.sleep(0.05)
