"""A notebook shows plans, budgets, releases, courses and pages as tables, and runs nothing that stands in them."""

from __future__ import annotations

import dataclasses
import html
from html.parser import HTMLParser

import numpy as np
import pytest

import privstats as ps
from privstats.workflows.report import Statement

PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
UNIT = (ps.transforms.UnitNorm(),)
HOSTILE = ("<script>alert(1)</script>", "b&b")
SCHEMA = ps.ClassSchema(2, 3, "NAB", 1.0, class_names=HOSTILE, transform=UNIT)
PLAN = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 2, 100), privacy=PRIVACY)
OPEN = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 2, 100), privacy=ps.NoPrivacy())
GAUSSIAN = ps.Plan(
    schema=ps.GaussianSchema(3, 4.0, shrinkage=0.1, rounds=2), cohort=ps.Cohort(16, 14, 99), privacy=ps.NoPrivacy()
)
RELEASE = dataclasses.replace(ps.simulate(PLAN, [(np.eye(3), np.array(HOSTILE)[[0, 1, 0]])] * 3), reproducible=True)

SHOWN = {
    "budget": (PLAN.budget(), ["central noise, one record", "epsilon alone", "all together: mu"]),
    "open budget": (OPEN.budget(), ["membership advantage"]),
    "plan": (PLAN, [PLAN.digest, "3, at least 2", "central noise, one record"]),
    "release": (RELEASE, [RELEASE.digest, PLAN.digest, "3 of 3", "REPRODUCIBLE"]),
    "rounds": (ps.Rounds(PLAN), ["Rounds", '<td style="text-align: right">4</td>']),
    "stream": (ps.Stream(PLAN, 4), ["Stream"]),
    "alignment": (ps.Alignment(GAUSSIAN), ["Alignment"]),
    "single": (ps.course.Single(PLAN), ["Single", PLAN.digest]),
}


class Tags(HTMLParser):
    """Opens and closes tags, and remembers which."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_whole_html_with_what_the_value_says(name):
    value, words = SHOWN[name]
    shown, tags = value._repr_html_(), Tags()
    tags.feed(shown)
    assert tags.open == []
    assert tags.seen <= {"p", "strong", "dl", "dt", "dd", "table", "tr", "th", "td", "br"}
    assert all(word in shown for word in words)


def test_a_text_of_somebody_is_a_text():
    assert "<script>" not in PLAN._repr_html_()
    assert html.escape(HOSTILE[0]) in PLAN._repr_html_()


def test_a_page_is_shown_in_a_frame_that_runs_nothing():
    pytest.importorskip("jinja2")
    shown, tags = Statement(PLAN)._repr_html_(), Tags()
    tags.feed(shown)
    assert tags.seen == {"iframe"}
    assert shown.startswith("<iframe sandbox srcdoc=")
    assert "not promised" in html.unescape(shown)
