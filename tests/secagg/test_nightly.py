"""Coverage-guided fuzzing at length, for a free machine; PRIVSTATS_INPUTS says how many inputs.

The property tests of this folder grow with HYPOTHESIS_PROFILE=nightly by themselves: ten thousand fault schedules,
three hundred examples each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

_INPUTS = int(os.environ.get("PRIVSTATS_INPUTS", "2000000"))


def test_two_million_fuzzed_inputs_find_no_other_exception() -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: it has wheels for few platforms")
    module = "tests.secagg.interactive.fuzz_target"
    command = [sys.executable, "-m", module, f"-runs={_INPUTS}", "-max_len=600", "-seed=2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"Done {_INPUTS} runs" in done.stderr
