"""What sums a leader's reports is chosen by the options that its row brings."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from privstats.engines.network.summers import SUMMERS, Summer, summer_for
from privstats.errors import PrivstatsError
from privstats.row_options import Option
from tests.planted import plant_entries


@dataclass(frozen=True)
class Given:
    near: Annotated[str | None, Option("A near place.")] = None
    far: Annotated[str | None, Option("A far place.")] = None


@dataclass(frozen=True)
class Further:
    further: Annotated[str | None, Option("A further place.")] = None


FURTHER = Summer("further", Further, lambda options: options.further is not None, lambda options, folder: None)
NEAR = Summer("near", Given, lambda options: options.near is not None, lambda options, folder: options.near)
FAR = Summer("far", Given, lambda options: options.far is not None, lambda options, folder: options.far)


@pytest.fixture(autouse=True)
def brought(monkeypatch):
    plant_entries(monkeypatch, SUMMERS.group, {"near": f"{__name__}:NEAR", "far": f"{__name__}:FAR"}, alone=True)


def test_the_options_choose_a_summer_and_without_them_the_leader_sums():
    assert summer_for(Given()) is None
    assert summer_for(Given(far="there")) is FAR


def test_two_summers_of_one_run_are_refused():
    with pytest.raises(PrivstatsError, match="one run has one summer of its reports, got far and near: omit one"):
        summer_for(Given("here", "there"))


def test_a_summer_whose_options_were_left_out_stops_no_other(monkeypatch):
    """It was asked for an option that the command does not have, and each leader ended."""
    plant_entries(monkeypatch, SUMMERS.group, {"further": f"{__name__}:FURTHER"}, "stranger")
    options = SUMMERS.options("terms").joined()
    assert summer_for(options(far="there")) is FAR
    assert summer_for(options(further="there")) is FURTHER
