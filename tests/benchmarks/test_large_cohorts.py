"""The scale simulator: real sessions over the sparse graph, and an extrapolation that matches what larger ones cost."""

import pytest

from benchmarks.secagg.large_cohorts import ElementCost, measure_elements, measure_scale
from privstats.errors import AggregationError, PlanError


@pytest.mark.nightly
def test_a_sparse_session_of_more_clients_than_a_byte_can_name_is_exact() -> None:
    """The simulator compares with the plaintext sum itself; holders are numbered within a neighbourhood."""
    calls: list[tuple[str, int, int]] = []
    report = measure_scale(280, size=8, dropouts=8, colluders=2, progress=lambda *call: calls.append(call))
    assert report.survivors == 272
    assert report.parameters.neighbours < 256 < report.parameters.clients
    assert ("mask", 280, 280) in calls
    assert report.client_bytes_sent > report.parameters.neighbours * 80
    assert report.server_state_bytes > 280 * 200


@pytest.mark.ci
def test_extrapolation_adds_the_element_cost_of_each_partys_masks() -> None:
    report = measure_scale(60, size=10, dropouts=2, colluders=1)
    cost = ElementCost(mask=1e-9, upload=2e-9, lane_bytes=4)
    estimate = report.at(1_000_010, cost)
    assert estimate.client_bytes_sent == report.client_bytes_sent + 4_000_000
    assert estimate.client_cpu == pytest.approx(report.client_cpu + 1e-3 * (report.parameters.neighbours + 1))
    masks = 58 + 2 * report.parameters.neighbours * 58 // 60
    assert estimate.server_cpu == pytest.approx(report.server_cpu + 1e-3 * masks + 2e-3 * 58)


def test_element_costs_are_positive_and_nanoseconds() -> None:
    cost = measure_elements(size=100_000, masks=3, repeats=2)
    assert 0 < cost.mask < 1e-6
    assert 0 < cost.upload < 1e-6
    assert cost.lane_bytes == 4


@pytest.mark.ci
def test_a_wrong_sum_would_not_go_unnoticed(monkeypatch) -> None:
    monkeypatch.setattr("benchmarks.secagg.large_cohorts.np.array_equal", lambda *_: False)
    with pytest.raises(AggregationError, match="differs from the plaintext sum"):
        measure_scale(60, size=2, dropouts=2, colluders=1)


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(PlanError, match="repeats"):
        measure_elements(repeats=0)
