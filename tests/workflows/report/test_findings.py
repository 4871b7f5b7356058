"""Audits and attacks come to the page through an entry point, and a missing one is a sentence."""

from importlib.metadata import EntryPoint

import pytest

from privstats.errors import MissingExtraError
from privstats.workflows.report import Finding, Search, finder
from privstats.workflows.report import layout as findings


def made_up(plan, search):
    search.tick()
    return [Finding(title="made up", summary=str(plan))]


def test_a_finder_is_loaded_by_its_name(monkeypatch):
    entry = EntryPoint("audit", f"{__name__}:made_up", findings.GROUP)
    monkeypatch.setattr(findings, "announced", lambda group: [entry])
    assert finder("audit")("plan", Search())[0].summary == "plan"
    with pytest.raises(MissingExtraError, match="--attack needs a package that offers 'attack'"):
        finder("attack")
