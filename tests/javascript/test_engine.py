"""Node and a browser against the engine itself: leader and helpers over sockets, and a release to the last integer."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import privstats as ps
from privstats.engines.http.invitations import Invitation
from privstats.engines.http.page import page_of
from privstats.plan.devices import EXACT
from privstats.schema import COUNT_SCALE
from tests.browser import Tab, browsing, needs_chromium
from tests.engines.http.desk import Study, study_of_devices
from tests.engines.http.test_serve import Helpers, Server, served
from tests.javascript.node import needs_node, node
from tests.javascript.study import SCHEMA, serving
from tests.javascript.test_study import _SCRIPT, ANSWERS

PEOPLE = 6
ORGANISATIONS = ("University of Ulm", "Bonn Clinic", "Data Office Graz")
DEVICES = ps.plan.Devices(
    organisations=ORGANISATIONS,
    registrar="Study Office Trier",
    registrar_key=ps.secagg.Identity(b"r" * 32).public.hex(),
    page="Library of Kiel",
    most_runs=1,
    exact=EXACT,
)


@dataclass
class Mailed:
    """A run that takes answers, and what its people were sent."""

    study: Study
    server: Server
    helpers: Helpers
    site: str

    @property
    def pins(self) -> dict[str, str]:
        return {"leader": f"http://{self.server.address}", "run": self.study.run, "study": self.study.pin}

    def link(self, index: int) -> str:
        return Invitation(index, bytes([index]) * 16).link(f"{self.site}/")

    def counts(self) -> list[int]:
        """The release's counts after the close."""
        assert self.server.asked("POST", "/close")[0] < 300
        self.helpers.join()
        path = self.study.leader / "release.safetensors"
        end = time.monotonic() + 20
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

    people = tuple(Invitation(index, bytes([index]) * 16).identity for index in range(PEOPLE))
    with serving(page) as site:
        cohort = ps.Cohort(PEOPLE, 3, 100, colluders=1)
        shape = {"schema": SCHEMA, "cohort": cohort, "devices": DEVICES}
        study = study_of_devices(place, PEOPLE, people=people, origin=site, **shape)
        with served(study) as server:
            pages.append(Mailed(study, server, Helpers(server), site))
            yield pages[0]


def wanted(answers: list[tuple[float | None, str | None]]) -> list[int]:
    ages = {19: 0, 20: 1, 37: 1, 59.5: 2, None: 4, 120: 3}
    smoking = {"yes": 0, "no": 1, None: 2}
    counted = Counter(3 * ages[age] + smoking[smokes] for age, smokes in answers)
    return [counted[cell] for cell in range(15)]


def from_node(run: Mailed, place: Path) -> None:
    """Five answers from one process of node."""
    told = {
        "pins": run.pins,
        "links": [run.link(index) for index in range(PEOPLE)],
        "answers": [{"How old are you?": [age], "Do you smoke?": [smokes]} for age, smokes in ANSWERS],
    }
    (place / "told.json").write_text(json.dumps(told))
    done = node("--input-type=module", "--eval", _SCRIPT, str(place / "told.json"))
    assert done.stdout.split() == ["sent"] * 5, done.stderr


def ready(run: Mailed) -> None:
    """Wait until every helper has offered its key."""
    end = time.monotonic() + 20
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
        from_node(run, tmp_path)
        assert run.counts() == wanted(ANSWERS)


@needs_node
@needs_chromium
@pytest.mark.ci
@pytest.mark.slow
def test_the_release_counts_what_a_person_sent_from_a_browser_to_the_engine(tmp_path):
    with mailed(tmp_path / "run") as run, browsing(tmp_path / "profile") as browser:
        ready(run)
        from_node(run, tmp_path)
        answer(browser.tab(run.link(0)), "already come")
        tab = answer(browser.tab(run.link(5)), "Thank you")
        assert not tab.said()
        assert run.counts() == wanted([*ANSWERS, (37, "no")])
