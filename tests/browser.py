"""A real Chromium, headless, over its own protocol on two pipes: no driver, no socket, nothing to install.

A click and a key from here are a person's to the page (``isTrusted``, user activation).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
QUIET = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")
PATIENCE = 30.0


class Browser:
    """One browser process with a profile of its own."""

    def __init__(self, profile: Path, *flags: str) -> None:
        self.profile, self._flags = profile, flags
        self._number, self._buffer, self.events = 0, b"", []
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        line = [CHROMIUM, *FLAGS, *QUIET, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        command = f"exec {shlex.join(map(str, line))} 3<&{read} 4>&{write}"
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(["bash", "-c", command], pass_fds=(read, write), **silent)
        os.close(read)
        os.close(write)
        self.ask("Browser.getVersion")

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; what happens meanwhile goes to ``events``."""
        self._number += 1
        told = {"id": self._number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._to, json.dumps(told).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = self._next(end - time.monotonic())
            if found.get("id") == told["id"]:
                assert "error" not in found, (method, found["error"])
                return found["result"]
        raise AssertionError(f"no answer to {method}")

    def _next(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0, seconds))[0]:
                return {}
            more = os.read(self._from, 1 << 16)
            assert more, "the browser has ended"
            self._buffer += more
        message, self._buffer = self._buffer.split(b"\0", 1)
        found = json.loads(message)
        if "method" in found:
            self.events.append(found)
        return found

    def tab(self, url: str = "about:blank", **params: Any) -> Tab:
        """A new tab, as wide as a phone."""
        target = self.ask("Target.createTarget", url="about:blank", **params)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, target, session)
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            tab.ask(f"{domain}.enable")
        tab.wide(375)
        if url != "about:blank":
            tab.go(url)
        return tab

    def kill(self) -> None:
        """End the process at once, as a power cut does."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait(PATIENCE)
        for end in (self._to, self._from):
            os.close(end)


class Tab:
    """One page."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self.browser, self.target, self.session = browser, target, session

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A command to this page."""
        return self.browser.ask(method, self.session, **params)

    def wide(self, width: int, height: int = 800) -> None:
        """Give the window this size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=True)

    def go(self, url: str) -> None:
        """Load an address, to its end."""
        self.ask("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """What a script gives, awaited."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, seconds: float = PATIENCE) -> None:
        """Wait until a script gives something true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(f"!!({script})"):
                return
            time.sleep(0.02)
        raise AssertionError(f"never true: {script}; the page says {self.value('document.body.innerText')!r}")

    def click(self, selector: str) -> None:
        """A click of a person's on the middle of an element."""
        place = self.value(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)}); found.scrollIntoView("
            "{block: 'center'}); const box = found.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        at = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, **at)

    def type(self, text: str) -> None:
        """A person's keys, into what has the focus."""
        for letter in text:
            self.key(letter, text=letter)

    def key(self, key: str, **more: Any) -> None:
        """One key, down and up."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40}
        told = {"key": key, **({"windowsVirtualKeyCode": codes[key]} if key in codes else {}), **more}
        if key == "Enter":
            told["text"] = "\r"
        if key == " ":
            told["text"] = " "
        self.ask("Input.dispatchKeyEvent", type="keyDown", **told)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in told.items() if k != "text"})

    def offline(self, gone: bool) -> None:
        """Take the network away from this page, or give it back."""
        self.ask(
            "Network.emulateNetworkConditions", offline=gone, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A picture of the whole page, or of what is seen of it."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def said(self) -> list[str]:
        """What the page's console and the browser's log say."""
        mine = [event for event in self.browser.events if event.get("sessionId") == self.session]
        logged = [e["params"]["entry"]["text"] for e in mine if e["method"] == "Log.entryAdded"]
        console = [json.dumps(e["params"]["args"]) for e in mine if e["method"] == "Runtime.consoleAPICalled"]
        return logged + console + [str(e["params"]) for e in mine if e["method"] == "Runtime.exceptionThrown"]

    def close(self) -> None:
        """Close the tab."""
        self.browser.ask("Target.closeTarget", targetId=self.target)


@contextmanager
def browsing(profile: Path, *flags: str) -> Iterator[Browser]:
    """A browser for as long as it is needed."""
    browser = Browser(profile, *flags)
    try:
        yield browser
    finally:
        if browser._process.poll() is None:
            browser.close()
