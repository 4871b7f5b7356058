"""Bulk for a free machine: the same schedules and inputs as in the ordinary run, many more of them.

The property tests of this folder grow with HYPOTHESIS_PROFILE=nightly by themselves: ten thousand fault schedules, two
thousand examples each.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.secagg.test_stateful import Session

pytestmark = pytest.mark.nightly

_SCHEDULES = 10_000
_INPUTS = 2_000_000


class TestTenThousandSchedules(Session.TestCase):
    """Whatever the profile: no schedule ends in a wrong sum or an unnamed error."""

    settings = settings(max_examples=_SCHEDULES, deadline=None)


def test_two_million_fuzzed_inputs_find_no_other_exception() -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: it has wheels for few platforms")
    command = [sys.executable, "-m", "tests.secagg.fuzz_target", f"-runs={_INPUTS}", "-max_len=600", "-seed=2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"Done {_INPUTS} runs" in done.stderr
