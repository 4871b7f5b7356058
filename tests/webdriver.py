"""A real Firefox and a real WebKit, headless, by the commands of WebDriver: nothing to install beside the browser.

Firefox takes them on a socket, each a length and JSON (Marionette); WebKitGTK's driver over HTTP, with a display of
Xvfb. A click and a key from here are a person's to the page.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from privstats.engines.door.ports import free_port

FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
WEBKIT = next(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"), None)
HERE = all(map(shutil.which, ("WebKitWebDriver", "Xvfb", "dbus-run-session"))) and WEBKIT is not None
needs_firefox = pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox on this machine")
needs_webkit = pytest.mark.skipif(not HERE, reason="there is no WebKitGTK with driver, Xvfb and dbus on this machine")
PATIENCE = 60.0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PATHS = {
    "Navigate": "/url",
    "ExecuteAsyncScript": "/execute/async",
    "FindElement": "/element",
    "ElementClick": "/element/{id}/click",
    "ElementSendKeys": "/element/{id}/value",
}
T = TypeVar("T")


class Driven(ABC):
    """One tab of one browser."""

    @abstractmethod
    def ask(self, method: str, **params: Any) -> Any:
        """Send a command and wait for its answer."""

    def go(self, url: str) -> None:
        """Load an address, to its end."""
        self.ask("Navigate", url=url)

    def value(self, script: str) -> Any:
        """What a script gives, awaited."""
        whole = f"const [done] = arguments; Promise.resolve({script}).then((found) => done([found]))"
        return self.ask("ExecuteAsyncScript", script=whole, args=[])["value"][0]

    def until(self, script: str, seconds: float = PATIENCE) -> None:
        """Wait until a script gives something true."""
        end = time.monotonic() + seconds
        while not self.value(f"!!({script})"):
            assert time.monotonic() < end, f"never: {script}; the page says {self.value('document.body.innerText')!r}"
            time.sleep(0.05)

    def _found(self, selector: str) -> str:
        return str(self.ask("FindElement", using="css selector", value=selector)["value"][ELEMENT])

    def click(self, selector: str) -> None:
        """A click of a person's on an element."""
        self.ask("ElementClick", id=self._found(selector))

    def type(self, selector: str, text: str) -> None:
        """A person's keys, into an element."""
        self.ask("ElementSendKeys", id=self._found(selector), text=text)


class Firefox(Driven):
    """Firefox by Marionette."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire, self._number = wire.makefile("rwb"), 0
        self._read()  # its greeting
        self.ask("NewSession")

    def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        told = json.dumps([0, self._number, f"WebDriver:{method}", params]).encode()
        self._wire.write(b"%d:%s" % (len(told), told))
        self._wire.flush()
        _, number, error, found = self._read()
        assert (number, error) == (self._number, None), (method, error)
        return found

    def _read(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self._wire.read(1)
        return json.loads(self._wire.read(int(size[:-1])))


class WebKit(Driven):
    """WebKitGTK's small browser by its driver."""

    def __init__(self, port: int) -> None:
        self._at = f"http://127.0.0.1:{port}/session"
        options = {"binary": str(WEBKIT), "args": ["--automation"]}
        wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
        self._at += f"/{self._post('', wanted)['value']['sessionId']}"

    def ask(self, method: str, **params: Any) -> Any:
        path = PATHS[method].format(**params)
        return self._post(path, {name: told for name, told in params.items() if name != "id"})

    def _post(self, path: str, told: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._at + path, json.dumps(told).encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())


@contextmanager
def firefox(profile: Path, **preferences: str | int | bool) -> Iterator[Driven]:
    """A Firefox for as long as it is needed, with a profile of its own."""
    profile.mkdir(exist_ok=True)
    port = free_port()
    settings = {"marionette.port": port, "datareporting.policy.dataSubmissionEnabled": False, **preferences}
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items())
    (profile / "user.js").write_text("".join(lines))
    command = [FIREFOX, "--headless", "--no-remote", "--marionette", "--profile", profile, "about:blank"]
    with _running(command), closing(_once(lambda: socket.create_connection(("127.0.0.1", port), PATIENCE))) as wire:
        yield Firefox(wire)


@contextmanager
def webkit(home: Path) -> Iterator[Driven]:
    """A WebKit for as long as it is needed, with a home of its own."""
    home.mkdir(exist_ok=True)
    port, told = free_port(), home / "display"
    with told.open("wb") as number, _running(["Xvfb", "-displayfd", "1", "-nolisten", "tcp"], stdout=number):
        display = _once(lambda: str(int(told.read_text())))
        # the browser's own sandbox needs rights that a container has not
        here = {"HOME": str(home), "DISPLAY": f":{display}", "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
        driver = ["dbus-run-session", "--", "WebKitWebDriver", f"--port={port}"]
        with _running(driver, env={**os.environ, **here}):
            yield _once(lambda: WebKit(port))


@contextmanager
def _running(command: list[Any], **how: Any) -> Iterator[None]:
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*map(str, command)], **{**silent, **how})
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _once(work: Callable[[], T]) -> T:
    """What some work gives, as soon as the other side is ready for it."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except (ConnectionRefusedError, urllib.error.URLError, ValueError) as error:
            assert time.monotonic() < end, error
            time.sleep(0.1)
