"""``privstats http demo``: a whole study in seconds, and its last answer from a real browser."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from privstats.workflows.demo import devices
from tests.browser import browsing, needs_chromium


def test_a_demo_ends_in_a_histogram_whose_intervals_hold_the_truth(privstats, tmp_path: Path) -> None:
    done = privstats("http", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "199 people answered" in done.stdout
    assert "95 % interval" in done.stdout
    assert "#1.199." in done.stdout


def made(place: Path) -> Path:
    place.mkdir()
    return place


@needs_chromium
@pytest.mark.ci
def test_the_last_answer_comes_from_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed: list[BaseException | str] = []

    def person(link: str) -> None:
        try:
            with browsing(tmp_path / "profile") as browser:
                tab = browser.tab(link)
                tab.until("document.querySelector('form button')", 30)
                tab.click("form input")
                tab.type("37")
                tab.click("form button")
                tab.until("document.body.innerText.includes('Thank you')", 30)
                pressed.append("sent")
        except BaseException as error:
            pressed.append(error)

    monkeypatch.setattr(devices.webbrowser, "open", lambda link: Thread(target=person, args=(link,)).start())
    with TemporaryDirectory() as place:  # a socket's path is short, and pytest's are long
        found = devices.run_devices_demo(made(Path(place) / "run"), browser=True, entropy=os.urandom)
    assert pressed == ["sent"]
    assert len(found.release.survivors) == devices.PEOPLE
    truth = found.truth.copy()
    truth[1] += 1  # 37
    margin = float((found.counts.high - found.counts.counts).max())
    assert np.abs(found.counts.counts - truth).max() < 3 * margin  # six standard deviations
