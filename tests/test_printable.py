"""Text of others is shown, and acts on no terminal and forges no line of a log."""

import dataclasses
import html
import io
import logging
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.engines.network.operator_log import HOST, PARTY
from privstats.printable import Printable, at_least, at_most, printable, printable_lines
from privstats.workflows.report import Statement

HOSTILE = "a\x1b]0;owned\x07b\r\n2026-11-23 09:00:00 privstats: all is well\u202e\x9b2J\udcff"


@given(st.text())
def test_what_is_shown_is_printable_and_printable_text_is_shown_as_it_is(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert (shown == text) == text.isprintable()
    assert printable_lines(text).split("\n") == [printable(line) for line in text.split("\n")]


SPECS = st.sampled_from([".2g", ".3g", ".4g", ".6g", ",.4g", ".0f", ".1f", ".4f"])


@given(st.floats(min_value=1e-300, max_value=1e300), SPECS)
def test_a_bound_is_rounded_to_its_own_side_and_by_less_than_a_digit(value: float, spec: str) -> None:
    high, low = (float(text.replace(",", "")) for text in (at_most(value, spec), at_least(value, spec)))
    assert low * (1 - 1e-7) <= value <= high * (1 + 1e-7)
    nearest = float(format(value, spec).replace(",", ""))
    assert nearest in (low, high) or low < nearest < high


def test_a_calibrated_number_and_a_bound_without_end_are_shown_as_they_are() -> None:
    assert [at_most(each) for each in (0.0, 1 + 1e-15, 1e-5, math.inf)] == ["0", "1", "1e-05", "inf"]
    assert [at_least(each) for each in (0.0, 1 - 1e-15, 1e-5, math.inf)] == ["0", "1", "1e-05", "inf"]
    assert at_most(1e-5 + 2.0**-36, ".3g") == "1.01e-05"


_OWN = r"((budget|total|together|stream|guarantee)\.(mu|epsilon|delta)|account\.(mu|spent)|epsilon_at)"
_NEAREST = re.compile(
    rf"\{{[^{{}}:]*(masking\.failure|masking_failure|\b{_OWN}|party_epsilon)[^{{}}:]*:[,.0-9]+[gf]\}}"
)


def test_no_bound_of_a_promise_is_printed_to_the_nearest_digits() -> None:
    """Epsilon 0.91234 printed as 0.9123 is a false promise; ``at_most`` rounds up."""
    room = Path(ps.__file__).parent
    found = [
        f"{file.relative_to(room)}: {line.strip()}"
        for file in sorted(room.rglob("*.py"))
        for line in file.read_text("utf-8").splitlines()
        if _NEAREST.search(line)
    ]
    assert not found


@pytest.fixture(params=["privstats.host", "privstats.party", "flwr"])
def lines(request: pytest.FixtureRequest) -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger with the handler of a program that set up logging by itself."""
    log, out, ours = logging.getLogger(request.param), io.StringIO(), Printable()
    handler = logging.StreamHandler(out)
    log.addHandler(handler)
    if request.param == "flwr":
        log.addFilter(ours)  # as the programs of entrypoint_guard do
    yield log, out
    log.removeHandler(handler)
    log.removeFilter(ours)


def test_attack_a_message_of_the_other_side_forges_no_line_and_moves_no_cursor(lines) -> None:
    log, out = lines
    log.warning("refused: %s", HOSTILE)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.warning("it failed", exc_info=True)
    first, *rest = out.getvalue().split("\n")
    assert first == (r"refused: a\x1b]0;owned\x07b\r\n2026-11-23 09:00:00 privstats: all is well\u202e\x9b2J\udcff")
    assert rest[0] == "it failed"
    assert all(line.isprintable() for line in rest)


def test_both_logs_of_an_operator_are_filtered_for_every_handler() -> None:
    for log in (HOST, PARTY):
        assert any(isinstance(each, Printable) for each in log.filters)


PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
UNIT = (ps.transforms.UnitNorm(),)
MARKUP = ("<script>alert(1)</script>", "b&b")
SCHEMA = ps.ClassSchema(2, 3, "NAB", 1.0, class_names=MARKUP, transform=UNIT)
PLAN = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 2, 100), privacy=PRIVACY)
OPEN = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 2, 100), privacy=ps.NoPrivacy())
GAUSSIAN = ps.Plan(
    schema=ps.GaussianSchema(3, 4.0, shrinkage=0.1, rounds=2), cohort=ps.Cohort(16, 14, 99), privacy=ps.NoPrivacy()
)
RELEASE = dataclasses.replace(ps.simulate(PLAN, [(np.eye(3), np.array(MARKUP)[[0, 1, 0]])] * 3), reproducible=True)

SHOWN = {
    "budget": (PLAN.budget, ["central noise, one record", "epsilon alone", "all together: mu"]),
    "open budget": (OPEN.budget, ["membership advantage"]),
    "plan": (lambda: PLAN, [PLAN.digest, "3, at least 2", "central noise, one record"]),
    "release": (lambda: RELEASE, [RELEASE.digest, PLAN.digest, "3 of 3", "REPRODUCIBLE"]),
    "rounds": (lambda: ps.Rounds(PLAN), ["Rounds", '<td style="text-align: right">4</td>']),
    "stream": (lambda: ps.Stream(PLAN, 4), ["Stream"]),
    "alignment": (lambda: ps.Alignment(GAUSSIAN), ["Alignment"]),
    "single": (lambda: ps.course.Single(PLAN), ["Single", PLAN.digest]),
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
    make, words = SHOWN[name]
    shown, tags = make()._repr_html_(), Tags()
    tags.feed(shown)
    assert tags.open == []
    assert tags.seen <= {"p", "strong", "dl", "dt", "dd", "table", "tr", "th", "td", "br"}
    assert all(word in shown for word in words)


def test_a_text_of_somebody_is_a_text():
    assert "<script>" not in PLAN._repr_html_()
    assert html.escape(MARKUP[0]) in PLAN._repr_html_()


def test_a_page_is_shown_in_a_frame_that_runs_nothing():
    pytest.importorskip("jinja2")
    shown, tags = Statement(PLAN)._repr_html_(), Tags()
    tags.feed(shown)
    assert tags.seen == {"iframe"}
    assert shown.startswith("<iframe sandbox srcdoc=")
    assert "not promised" in html.unescape(shown)
