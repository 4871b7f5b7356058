"""Text of others is shown, and acts on no terminal and forges no line of a log."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.engines.network.operator_log import HOST, PARTY
from privstats.printable import Printable, printable, printable_lines

HOSTILE = "a\x1b]0;owned\x07b\r\n2026-11-23 09:00:00 privstats: all is well\u202e\x9b2J\udcff"


@given(st.text())
def test_what_is_shown_is_printable_and_printable_text_is_shown_as_it_is(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert (shown == text) == text.isprintable()
    assert printable_lines(text).split("\n") == [printable(line) for line in text.split("\n")]


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
