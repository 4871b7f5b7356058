"""Grouped hazards come near Cox's model on data that lifelines brings, where the cap leaves nearly everybody in."""

from __future__ import annotations

import pytest

from benchmarks.inference import hazards

pytest.importorskip("lifelines", reason="compares with lifelines and its data, which are not installed")

ROWS = {(row["data"], row["bins"]): row for row in hazards.beside_cox()}


@pytest.mark.parametrize(("data", "bins"), ROWS)
def test_coefficients_are_within_a_third_of_a_standard_error(data: str, bins: int) -> None:
    row = ROWS[data, bins]
    assert row["standard errors from Cox"] < 0.3
    assert 0.97 < row["least error ratio"] <= row["largest error ratio"] < 1.03


def test_four_data_sets_are_compared() -> None:
    assert len(ROWS) == 8
    assert sum(row["events"] for row in ROWS.values()) > 600
