"""What sums a leader's reports is chosen by the options that its row brings."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from privstats import doors
from privstats.engines.network.summers import SUMMERS, Summer, summer_for
from privstats.errors import PrivstatsError


@dataclass(frozen=True)
class Given:
    near: str | None = None
    far: str | None = None


NEAR = Summer("near", Given, lambda options: options.near is not None, lambda options, folder: options.near)
FAR = Summer("far", Given, lambda options: options.far is not None, lambda options, folder: options.far)


@pytest.fixture(autouse=True)
def brought(monkeypatch):
    rows = [EntryPoint(name.lower(), f"{__name__}:{name}", SUMMERS.group) for name in ("NEAR", "FAR")]
    monkeypatch.setattr(doors, "announced", lambda group: rows if group == SUMMERS.group else [])


def test_the_options_choose_a_summer_and_without_them_the_leader_sums():
    assert summer_for(Given()) is None
    assert summer_for(Given(far="there")) is FAR


def test_two_summers_of_one_run_are_refused():
    with pytest.raises(PrivstatsError, match="one run has one summer of its reports, got near and far: omit one"):
        summer_for(Given("here", "there"))
