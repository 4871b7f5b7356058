"""Node and a browser against the engine itself: leader and helpers over sockets, and a release to the last integer."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import privstats as ps
from privstats.contrib.http import registrar
from privstats.contrib.http.page import page_of
from privstats.contrib.http.settings import Settings
from privstats.plan.settings import EXACT
from privstats.schema import COUNT_SCALE
from privstats.secagg import Identity
from tests import made
from tests.browser import Tab, browsing, needs_chromium
from tests.contrib.http.desk import Study
from tests.contrib.http.test_serve import Helpers, Server, served
from tests.javascript.node import needs_node
from tests.javascript.study import SCHEMA, serving
from tests.javascript.test_study import ANSWERS, sent_from_node, wanted

PEOPLE = 6


@dataclass
class Mailed:
    """A run that takes answers, and what its people were sent."""

    study: Study
    server: Server
    helpers: Helpers
    links: list[str]

    @property
    def pins(self) -> dict[str, str]:
        """What the registrar gives to the page, at the port that the system chose."""
        told = json.loads((self.study.place / "page" / "study.json").read_text())
        return {**told, "leader": f"http://{self.server.address}"}

    def link(self, index: int) -> str:
        return self.links[index]

    def counts(self) -> list[int]:
        """Return the release's counts, after closing a run in which somebody has not answered."""
        reports = json.loads(self.server.asked("GET", "/status")[1])["reports"]
        # The leader closes the reports itself once everybody has answered. The run may then be over already, and an
        # ended run answers /close with 409.
        if reports < PEOPLE:
            assert self.server.asked("POST", "/close")[0] == 200
        self.helpers.join()
        path = self.study.leader / "release.safetensors"
        end = time.monotonic() + 60
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.05)
        found = ps.Release.load(path, signed_by=self.study.roster.server)
        return (found.vector // COUNT_SCALE).tolist()


@contextmanager
def mailed(place: Path) -> Iterator[Mailed]:
    """Leader, helpers and page, each at an address of its own."""
    pages: list[Mailed] = []

    def page(asked: object) -> tuple[int, dict[str, str], bytes]:
        pins = pages[0].pins
        found = page_of(pins["leader"], pins["run"], pins["study"])
        return 200, found.headers, found.html.encode()

    with serving(page) as site:
        study, links = invited(place, site)
        with served(study) as server:
            pages.append(Mailed(study, server, Helpers(server), links))
            yield pages[0]


def invited(place: Path, site: str) -> tuple[Study, list[str]]:
    """The folders of all parties as the registrar makes them, and everybody's link."""
    trier, *members = (Identity.generate(os.urandom) for _ in range(4))
    devices = ps.plan.Devices(
        organisations=("University of Ulm", "Bonn Clinic", "Data Office Graz"),
        registrar="Study Office Trier",
        registrar_key=trier.public.hex(),
        page="Library of Kiel",
        most_runs=1,
        exact=EXACT,
    )
    cohort, panel = ps.Cohort(PEOPLE, 3, 100, colluders=1), tuple(each.public.hex() for each in members)
    plan = made.plan(SCHEMA, cohort, protocol="split", panel=panel, devices=devices)
    closes = datetime.now(UTC) + timedelta(hours=1)
    settings = Settings("http://127.0.0.1:8765", closes, closes + timedelta(days=20), (site,))
    registrar.write_study(place, plan, settings, f"{site}/")
    run = registrar.write_invitations(place, trier)
    for name, identity in zip(("leader", "helper-1", "helper-2"), members, strict=True):
        identity.save(run.folder / name / "identity.pem")
    links = (place / registrar.LINKS).read_text().splitlines()
    return Study(run.folder, plan, run.roster, (), tuple(members)), links


def ready(run: Mailed) -> None:
    """Wait until every helper has offered its key."""
    end = time.monotonic() + 60
    while run.server.dial().ask("GET", f"/v1/runs/{run.study.run}").status != 200:
        assert time.monotonic() < end
        time.sleep(0.02)


def answer(tab: Tab, heard: str) -> Tab:
    """A person who is 37 and does not smoke."""
    tab.until("document.querySelector('#field-0')")
    tab.click("#field-0")
    tab.type("37")
    tab.click("#field-1-1")
    tab.click("form button")
    tab.until(f"document.querySelector('[role=status]').textContent.includes('{heard}')")
    return tab


@needs_node
@pytest.mark.slow
def test_the_release_counts_what_node_sent_to_the_engine(tmp_path):
    with mailed(tmp_path / "run") as run:
        ready(run)
        sent_from_node(run.pins, run.links, ANSWERS, tmp_path)
        assert run.counts() == wanted(ANSWERS)


@needs_node
@needs_chromium
@pytest.mark.ci
@pytest.mark.slow
def test_the_release_counts_what_a_person_sent_from_a_browser_to_the_engine(tmp_path):
    with mailed(tmp_path / "run") as run, browsing(tmp_path / "profile") as browser:
        ready(run)
        sent_from_node(run.pins, run.links, ANSWERS, tmp_path)
        answer(browser.tab(run.link(0)), "already come")
        tab = answer(browser.tab(run.link(5)), "Thank you")
        assert not tab.said()
        assert run.counts() == wanted([*ANSWERS, (37, "no")])
