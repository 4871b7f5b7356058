"""A small crowd from processes of Node, and a leader that is killed while they send: nothing confirmed is lost."""

import time
from pathlib import Path

import numpy as np
import pytest

from tests.contrib.http.crowd import Crowd, crowd_of
from tests.javascript.node import needs_node

pytestmark = [needs_node, pytest.mark.nightly, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="/proc")]


def kills(crowd: Crowd, shares: tuple[float, ...]) -> None:
    """Kill the leader when so many of its reports are on the disk."""
    for share in shares:
        end = time.monotonic() + 120
        while crowd.leading.reports < share * len(crowd.links):
            assert time.monotonic() < end, "the crowd does not come"
            time.sleep(0.005)
        crowd.leading.kill()


def test_a_crowd_is_heard_whole_through_kills(tmp_path: Path) -> None:
    with crowd_of(tmp_path / "study", 400, 272, processes=2, connections=200) as crowd, crowd.sealed() as send:
        outcome = send(lambda: kills(crowd, (0.1, 0.4, 0.7)))
        assert crowd.leading.deaths == 3
        assert (sorted(outcome.sent), dict(outcome.refused)) == (list(range(400)), {})
        total, survivors = crowd.released()
        assert survivors == tuple(range(400))
        assert np.array_equal(total, crowd.total(survivors))


def test_large_uploads_of_many_at_once_stay_within_the_bytes_in_flight(tmp_path: Path) -> None:
    """300 uploads of half a megabyte at once are 160 MB; the leader may hold them, and never several times as much."""
    wide = {"processes": 2, "connections": 300, "max_records": 2_000_000}
    with crowd_of(tmp_path / "study", 300, 12_519, **wide) as crowd, crowd.sealed() as send:
        outcome = send(lambda: None)
        crowd.leading.read()
        assert len(outcome.sent) == 300, outcome.refused
        assert crowd.leading.peak < 500e6
        total, survivors = crowd.released()
        assert np.array_equal(total, crowd.total(survivors))
