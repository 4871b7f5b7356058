"""Each check of a printed sentence can fail: past the assumption's edge, and for a table that is printed wrongly."""

import math
from typing import Any

import pytest

from benchmarks.measuring import results
from tests.inference import test_descriptions as described
from tests.inference.planted_tables import CHECKS, WRONG, Changed, same
from tests.inference.planted_worlds import CHEAP, COURSE_RUNS, COURSES, EXACT_RUNS, Planted, misses, refuted
from tests.inference.test_printed_sentences import EDGE, ROWS, WORLDS

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning"),
]


def _is_kept_at_the_edge_and_refuted_past_it(planted: Planted, runs: int) -> None:
    assert not refuted(misses(planted, broken=False, runs=runs), runs)
    assert refuted(misses(planted, broken=True, runs=runs), runs), "the bar cannot see that the assumption is broken"


@pytest.mark.ci
@pytest.mark.parametrize("sentence", CHEAP)
def test_a_broken_assumption_is_seen(sentence: str) -> None:
    _is_kept_at_the_edge_and_refuted_past_it(CHEAP[sentence], EXACT_RUNS)


@pytest.mark.nightly
@pytest.mark.parametrize("sentence", COURSES)
def test_a_broken_assumption_of_a_course_is_seen(sentence: str) -> None:
    _is_kept_at_the_edge_and_refuted_past_it(COURSES[sentence], COURSE_RUNS)


def test_worlds_are_planted_for_sentences_that_tables_print() -> None:
    assert set(CHEAP) | set(COURSES) <= set(WORLDS)
    assert not set(CHEAP) & set(COURSES)


@pytest.mark.parametrize("runs", [EXACT_RUNS, COURSE_RUNS])
def test_the_bar_counts_a_refutation(runs: int) -> None:
    assert refuted(runs, runs)
    assert refuted(runs // 4, runs)
    assert not refuted(round(0.05 * runs), runs)


HIDES = {"cells for gaps, 10 %, by coin", "cells for gaps, 30 %, by coin"}
"""Stored worlds of declared columns in which the claim is that gaps are seen, so that no row is reported."""


def _stored(holder: str) -> list[dict[str, Any]]:
    benchmark, title = "inference.stretched", holder.removeprefix(EDGE)
    if holder.startswith(ROWS):
        benchmark, _, title = holder.removeprefix(ROWS).partition(": ")
    rows: list[dict[str, Any]] = results(benchmark)[title]
    return rows


@pytest.mark.parametrize("holder", sorted({each for each in WORLDS.values() if each.startswith((EDGE, ROWS))}))
def test_a_stored_world_reports_enough_to_be_refuted(holder: str) -> None:
    """A world that reports nothing misses nothing: a bar over it passes whatever the reader does."""
    for row in _stored(holder):
        shares = [share for name, share in row.items() if name.endswith("reported")] or [1.0]
        if holder == f"{EDGE}gaps of declared columns" and row["world"] in HIDES:
            assert shares == [0.0], "gaps that are seen hide every row"
            continue
        assert any(refuted(round(share * row["runs"]), row["runs"]) for share in shares), "no misses refute this row"


@pytest.mark.parametrize("wrong", WRONG)
def test_a_table_that_is_printed_wrongly_is_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, maker, world, rows, summary = WRONG[wrong]
    check(maker, world)
    right = described.table_in(maker, world)
    monkeypatch.setattr(described, "_made", lambda *_: Changed(right, rows, summary))
    with pytest.raises(AssertionError):
        check(maker, world)


def test_a_changed_table_without_a_change_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = described.table_in("line", "exact")
    monkeypatch.setattr(described, "_made", lambda *_: Changed(right, same))
    for check in CHECKS:
        check("line", "exact")
    assert not math.isnan(Changed(right, same).to_rows()[0]["df"])
