"""Audits and attacks come to the page through a door, and a missing one is a sentence."""

import pytest

from privstats.errors import PrivstatsError
from privstats.workflows.report import Finding, Search, finder
from privstats.workflows.report.further import FINDERS, FurtherFindings, finders
from tests.planted import plant_entries


def made_up(plan, search):
    search.tick()
    return [Finding(title="made up", summary=str(plan))]


LATE, SOON = FurtherFindings("late", "Search long.", made_up), FurtherFindings("soon", "Search.", made_up, order=1)


@pytest.fixture
def brought(monkeypatch):
    plant_entries(monkeypatch, FINDERS.group, {"late": f"{__name__}:LATE", "soon": f"{__name__}:SOON"}, alone=True)


@pytest.mark.usefixtures("brought")
def test_a_finder_is_loaded_by_its_name():
    assert finder("late")("plan", Search())[0].summary == "plan"
    with pytest.raises(PrivstatsError, match="--attack needs the finder 'attack', .*installed: late, soon"):
        finder("attack")


@pytest.mark.usefixtures("brought")
def test_sections_have_the_order_of_their_rows():
    assert finders() == [SOON, LATE]
