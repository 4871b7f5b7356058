"""``privstats http demo``: a whole study in seconds, and its last answer from a real browser."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from privstats.contrib.http import demo as devices
from tests.browser import browsing, needs_chromium
from tests.webdriver import Driven, firefox, needs_firefox, needs_webkit, webkit


def test_a_demo_ends_in_a_histogram_whose_intervals_hold_the_truth(privstats, tmp_path: Path) -> None:
    done = privstats("http", "demo", cwd=tmp_path, code=0)
    assert "199 people answered" in done.stdout
    assert "95 % interval" in done.stdout
    assert "#1.199." in done.stdout


def made(place: Path) -> Path:
    place.mkdir()
    return place


def by_chromium(profile: Path, link: str) -> None:
    with browsing(profile) as browser:
        tab = browser.tab(link)
        tab.until("document.querySelector('form button')", 30)
        tab.click("form input")
        tab.type("37")
        tab.click("form button")
        tab.until("document.body.innerText.includes('Thank you')", 30)


def by_webdriver(driven: Callable[[Path], AbstractContextManager[Driven]], profile: Path, link: str) -> None:
    with driven(profile) as tab:
        tab.go(link)
        tab.until("document.querySelector('form button')", 30)
        tab.type("form input", "37")
        tab.click("form button")
        tab.until("document.body.innerText.includes('Thank you')", 30)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(by_chromium, marks=needs_chromium),
        pytest.param(partial(by_webdriver, firefox), marks=needs_firefox),
        pytest.param(partial(by_webdriver, webkit), marks=needs_webkit),
    ],
)
@pytest.mark.ci
def test_the_last_answer_comes_from_a_browser(answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed: list[BaseException | str] = []

    def person(link: str) -> None:
        try:
            answer(tmp_path / "profile", link)
            pressed.append("sent")
        except BaseException as error:
            pressed.append(error)

    monkeypatch.setattr(devices.webbrowser, "open", lambda link: Thread(target=person, args=(link,)).start())
    with TemporaryDirectory() as place:  # a socket's path is short, and pytest's are long
        found = devices.run_devices_demo(made(Path(place) / "run"), browser=True, entropy=os.urandom)
    assert (pressed, len(found.release.survivors)) == (["sent"], devices.PEOPLE)
    truth = found.truth.copy()
    truth[1] += 1  # 37
    margin = float((found.counts.high - found.counts.counts).max())
    assert np.abs(found.counts.counts - truth).max() < 3 * margin  # six standard deviations
