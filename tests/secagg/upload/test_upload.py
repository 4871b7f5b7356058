"""What an honest run gives, with any number of helpers, and what the machines promise their caller."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg.upload import intake, messages
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.leader import Leader
from tests.secagg.upload.cohorts import uploads_of

KEY = b"k" * 32


@pytest.mark.parametrize("helpers", [1, 2, 3, 5])
def test_the_sum_is_exact(helpers: int) -> None:
    run = uploads_of(helpers=helpers)
    run.play_until("check", silent=(2, 5))
    total, survivors = run.finish()
    assert survivors == (0, 1, 3, 4)
    assert np.array_equal(total, run.sum_over(survivors))
    assert run.leader.faults == ()
    assert [helper.step for helper in run.helpers] == ["done"] * helpers
