"""Audits and attacks come to the page through a door, and a missing one is a sentence."""

from importlib.metadata import EntryPoint

import pytest

from privstats import doors
from privstats.errors import PrivstatsError
from privstats.workflows.report import Finding, Search, finder
from privstats.workflows.report.further import FINDERS, FurtherFindings, finders


def made_up(plan, search):
    search.tick()
    return [Finding(title="made up", summary=str(plan))]


LATE, SOON = FurtherFindings("late", "Search long.", made_up), FurtherFindings("soon", "Search.", made_up, order=1)


@pytest.fixture
def brought(monkeypatch):
    rows = [EntryPoint(name.lower(), f"{__name__}:{name}", FINDERS.group) for name in ("LATE", "SOON")]
    monkeypatch.setattr(doors, "announced", lambda group: rows if group == FINDERS.group else [])


@pytest.mark.usefixtures("brought")
def test_a_finder_is_loaded_by_its_name():
    assert finder("late")("plan", Search())[0].summary == "plan"
    with pytest.raises(PrivstatsError, match="--attack needs the finder 'attack', .*installed: late, soon") as refused:
        finder("attack")
    assert refused.value.lacking == "privstats.findings"


@pytest.mark.usefixtures("brought")
def test_sections_have_the_order_of_their_rows():
    assert finders() == [SOON, LATE]
