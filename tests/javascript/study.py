"""A study over loopback: the library's own machines behind a small server, and its page on another origin.

The machines are real, so a report counts where the library says so, and the sum is looked at. The server is a double of
the engine's resources, in which a test can fail what it likes.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

import privstats as ps
from privstats.contrib.http.invitations import Invitation, study_of
from privstats.contrib.http.page import Page, page_of
from privstats.errors import RemoteProtocolError
from privstats.secagg import HelperKeys, Identity, Panel, Roster
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader

DEVICES = ps.plan.Devices(
    organisations=("University of Ulm", "Bonn Clinic"),
    registrar="Study Office Trier",
    registrar_key=Identity(b"r" * 32).public.hex(),
    page="Library of Kiel",
    most_runs=1,
    stated_epsilon=2.95,
)
PEOPLE = 6
SCHEMA = ps.CountSchema(
    (
        ps.Bins("How old are you?", (0, 20, 40, 60, 120), missing=True, open="none"),
        ps.Categories("Do you smoke?", ("yes", "no"), missing=True),
    ),
    (("How old are you?", "Do you smoke?"),),
)
NUMBERS = ps.CountSchema(
    SCHEMA.variables[1:],
    (),
    numbers=(ps.Number("How many hours?", 0, 80, by=("Do you smoke?",), missing=True), ps.Number("How far?", -1, 3)),
)
Early = Callable[[str, str], tuple[int, dict[str, str], bytes] | None]


def problem(code: str, status: int, *, retry: bool = False, after: int | None = None) -> tuple[int, dict, bytes]:
    """A refusal as the engine writes it."""
    told = {"type": f"urn:privstats:http:{code}", "title": code, "status": status, "code": code, "retry": retry}
    headers = {"Content-Type": "application/problem+json", **({} if after is None else {"Retry-After": str(after)})}
    return status, headers, json.dumps(told).encode()


@dataclass
class Study:
    """Machines, manifest, links, and two servers while it is entered."""

    schema: Any = SCHEMA
    texts: Any = None
    early: Early = lambda method, path: None
    log: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        seats = [Identity(bytes([place]) * 32) for place in (1, 2)]
        privacy = ps.Privacy(
            model="panel", unit="client", adjacency="add-remove", epsilon=1.0, delta=1e-6, max_records_per_client=1
        )
        plan = ps.Plan(
            schema=self.schema,
            cohort=ps.Cohort(clients=PEOPLE, min_survivors=3, max_records=PEOPLE, colluders=1),
            privacy=privacy,
            protocol="split",
            panel=tuple(seat.public.hex() for seat in seats),
            devices=replace(DEVICES, texts=self.texts) if self.texts is not None else DEVICES,
        )
        self.toml = plan.to_toml()
        self.text = msgspec.json.encode(plan.tables, order="deterministic").decode()
        self.parameters = plan.masking
        self.invitations = [Invitation(index, bytes([index]) * 16) for index in range(PEOPLE)]
        people = tuple(each.identity.public for each in self.invitations)
        self.roster = Roster(people, server=seats[0].public, run=b"a run of devices")
        keys = [HelperKeys(seat, place, self.parameters, self.roster) for place, seat in enumerate(seats)]
        self.panel = Panel(tuple(seat.public for seat in seats), tuple(each.offer for each in keys))
        self.machine = Leader(self.parameters, keys=keys[0], roster=self.roster, panel=self.panel)
        quiet = {"noise": lambda seed: self.parameters.ring.zeros()}
        self.helper = Helper(self.parameters, keys=keys[1], roster=self.roster, panel=self.panel, **quiet)
        self.machine.start()
        self.run, self.pin = (
            self.roster.run.hex(),
            study_of(self.roster.run, bytes.fromhex(plan.digest), self.roster.digest),
        )
        self._lock, self._reports = threading.Lock(), {}

    @property
    def manifest(self) -> bytes:
        """As the leader serves it."""
        parameters = self.parameters
        told = {
            "version": 1,
            "run": self.run,
            "plan": self.text,
            "roster": self.roster.digest.hex(),
            "panel": [identity.hex() for identity in self.panel.identities],
            "offers": [offer.encode().hex() for offer in self.panel.offers],
            "clients": parameters.clients,
            "min_survivors": parameters.min_survivors,
            "colluders": parameters.colluders,
            "segments": parameters.ring.segments,
            "noisy_helpers": parameters.noisy_helpers,
            "closes": int(time.time()) + 3600,
            "report_bytes": 1000,
        }
        return json.dumps(told).encode()

    def __enter__(self) -> "Study":
        self._open = ExitStack()
        self.address, self.site = (self._open.enter_context(serving(each)) for each in (self._answer, self._page))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def page(self) -> Page:
        """The documented page."""
        return page_of(self.address, self.run, self.pin)

    def link(self, index: int) -> str:
        """What one person is sent."""
        return self.invitations[index].link(f"{self.site}/")

    @property
    def reports(self) -> dict[int, bytes]:
        """What has arrived, by person."""
        with self._lock:
            return dict(self._reports)

    @property
    def sent(self) -> list[bytes]:
        """The bodies of every PUT, repeats included."""
        return [body for method, _, _, body in self.log if method == "PUT"]

    def counts(self) -> list[int]:
        """The run's counts, in records, after its helper has answered."""
        return [each // 4096 for each in self.total()]

    def total(self) -> list[int]:
        """The run's sum, in wire steps."""
        waiting = self.machine.end_step()
        while self.machine.step != "done":
            for peer, message in waiting:
                ((_, answer),) = self.helper.receive(message)
                self.machine.receive(peer, answer)
            waiting = self.machine.end_step()
        total, _ = self.machine.result
        return total.lift().tolist()

    def _page(self, asked: "_Asked") -> tuple[int, dict[str, str], bytes]:
        self.seen.append(asked.path + asked.headers.get("Sec-Purpose", ""))
        if asked.path.rstrip("?") != "/":
            return 200, {"Content-Type": "text/html"}, b"<!doctype html><title>nothing</title>"
        page = self.page
        return 200, page.headers, page.html.encode()

    def _answer(self, asked: "_Asked") -> tuple[int, dict[str, str], bytes]:
        self.log.append((asked.command, asked.path, dict(asked.headers), asked.body))
        shared = {"Vary": "Origin", "Cache-Control": "no-store"}
        if asked.headers.get("Origin") == self.site:
            shared |= {"Access-Control-Allow-Origin": self.site}
            shared |= {"Access-Control-Expose-Headers": "Date, ETag, Retry-After"}
        if asked.command == "OPTIONS":
            allow = {"Methods": "GET, PUT", "Headers": "content-type, privstats-signature, if-none-match"}
            return 204, {**shared, **{f"Access-Control-Allow-{name}": told for name, told in allow.items()}}, b""
        found = self.early(asked.command, asked.path)
        status, headers, body = found or self._resource(asked)
        return status, {**shared, **headers}, body

    def _resource(self, asked: "_Asked") -> tuple[int, dict[str, str], bytes]:
        if asked.path == f"/v1/runs/{self.run}":
            return 200, {"Content-Type": "application/json"}, self.manifest
        sender = int(asked.path.rsplit("/", 1)[1])
        with self._lock:
            if self._reports.get(sender) == asked.body:
                return 200, {}, b""
            try:
                self.machine.receive(sender, asked.body)
            except RemoteProtocolError as refusal:
                return problem(refusal.code, 409 if refusal.code == "already_here" else 422)
            self._reports[sender] = asked.body
        return 201, {}, b""


class _Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _go(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, headers, body = self.server.answer(self)  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_OPTIONS = _go

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def serving(answer: Callable[[_Asked], tuple[int, dict[str, str], bytes]]) -> Iterator[str]:
    """The origin at which a function answers requests."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Asked)
    server.answer = answer  # type: ignore[attr-defined]
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
