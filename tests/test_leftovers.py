"""What a test leaves behind is found, named and taken away."""

import os
import threading
from pathlib import Path

import pytest

from tests import leftovers
from tests.leftovers import ProcessState, left_behind


def test_a_folder_a_variable_and_a_thread_are_named_and_the_first_two_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_GRACE_SECONDS", 0.01)
    monkeypatch.setenv("CHANGED", "before")
    before, stop = ProcessState.now(), threading.Event()
    assert left_behind(before) == []
    thread = threading.Thread(target=stop.wait, args=[60], name="a worker")
    thread.start()
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    os.environ["CHANGED"] = "after"
    os.environ["NEW"] = "1"
    try:
        assert left_behind(before) == [
            f"the working directory is a folder that was removed, not {before.folder}",
            "environment variables changed: CHANGED, NEW",
            "threads still run: a worker",
        ]
    finally:
        stop.set()
        thread.join()
        before.restore()
    assert left_behind(before) == []


def test_a_thread_that_ends_soon_and_a_daemon_are_nothing() -> None:
    before, stop = ProcessState.now(), threading.Event()
    daemon = threading.Thread(target=stop.wait, args=[60], daemon=True)
    short = threading.Thread(target=stop.wait, args=[0.05])
    daemon.start()
    short.start()
    assert left_behind(before) == []
    stop.set()
    daemon.join()
