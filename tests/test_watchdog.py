"""What tests start ends with them, whatever ended them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import watchdog
from tests.threads import until

ROOT = Path(__file__).parents[1]
STARTED = """
import signal, subprocess, sys, time
from tests.watchdog import watch
signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest ends at it; a shell's background ignores it
waiting = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"]
starting = f"import subprocess, time; subprocess.Popen({waiting!r}, start_new_session=True); time.sleep(600)"
token = watch()
assert watch() == token
subprocess.Popen([sys.executable, "-c", starting], start_new_session=True)
print(token, flush=True)
time.sleep(600)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc here")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_a_process_has_started_ends_with_it_whatever_ended_it(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTED], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        token = process.stdout.readline().strip()
        until(lambda: len(watchdog.started(token)) == 2)
        process.send_signal(number)
        until(lambda: not watchdog.started(token))
    assert process.returncode == -number or number == signal.SIGINT


def test_tests_are_watched() -> None:
    silent = subprocess.run(
        [sys.executable, "-c", f"from tests import watchdog; print(watchdog.started('{os.environ[watchdog.TOKEN]}'))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert silent.stdout != "[]\n"
