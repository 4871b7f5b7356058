"""Grouped hazards come near Cox's model on data that lifelines brings, where the cap leaves nearly everybody in."""

from __future__ import annotations

import numpy as np
import pytest

import privstats as ps
from benchmarks.inference import hazards
from privstats.transforms import Centre, ConstantFeature, Scale
from tests.hazard.worlds import played, promise

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


@pytest.fixture(scope="module")
def lung() -> tuple[ps.inference.HazardRatios, np.ndarray]:
    """The table of all of lung, 40 times, and Cox's cumulative hazards at its events."""
    from lifelines import CoxPHFitter
    from lifelines.datasets import load_lung

    found = load_lung()[["time", "status", "sex", "age"]].dropna()
    frame = found.assign(status=(found.status == found.status.max()) * 1, sex=found.sex - 1)
    cox = CoxPHFitter().fit(frame, "time", "status")
    died = frame[frame.status == 1]
    at_events = np.array(
        [
            float(cox.predict_cumulative_hazard(row.to_frame().T, times=[row.time - 1e-9]).iloc[0, 0])
            for _, row in died.iterrows()
        ]
    )
    table = {name: np.tile(frame[name].to_numpy(), 40) for name in frame}
    schema = ps.HazardSchema(
        3,
        3**0.5,
        bins=ps.Bins("time", (0, 150, 300, 450, 600, 800, 1100)),
        event="status",
        feature_names=("sex", "age"),
        transform=(Centre((0.5, 62.0)), Scale((0.5, 25.0)), ConstantFeature(1.0)),
        times="continuous",
    )
    cohort = ps.Cohort(2, 2, 2 * len(table["time"]))
    course = ps.Hazard.start(schema, cohort, promise(30.0), by="sex", rounds=6)
    return ps.inference.hazards(played(course, table, 1)), at_events


def test_lung_as_it_is_says_which_share_of_its_events_counts(lung) -> None:
    """The ratio of sex was .40 where Cox's is .58, and nothing said that it was of the first part of the follow-up."""
    table, at_events = lung
    assert abs(table.events_within - float((at_events <= 1).mean())) < 0.1
    assert 0.6 < table.events_within < 0.75
    text = str(table.summary())
    assert "Hazard ratios up to a cumulative hazard of 1 from" in text.splitlines()[0]
    assert f"{table.events_within:.0%}" in text
    assert f"* {table.events_within:.0%} of the events count" in text
    assert {row["counted"] for row in table.to_rows(0.05)} == {table.events_within}
