"""AIM and MST of one curator draw rows whose pairs are the records' without noise."""

import numpy as np
import pytest

from benchmarks.synthetic.one_curator import aim, mst


def _chain(records: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, records)
    second = np.where(rng.random(records) < 0.8, first, rng.integers(0, 3, records))
    third = np.where(rng.random(records) < 0.8, second, rng.integers(0, 3, records))
    return np.column_stack([first, second, third, rng.integers(0, 4, records)])


@pytest.mark.parametrize("mechanism", [aim, mst])
def test_rows_follow_the_records_where_there_is_little_noise(mechanism):
    codes, sizes = _chain(2_000), (3, 3, 3, 5)
    rows = mechanism(codes, sizes, 50.0, np.random.default_rng(2))
    assert rows.shape == codes.shape
    for pair in ((0, 1), (1, 2)):
        tables = [np.histogram2d(each[:, pair[0]], each[:, pair[1]], bins=3)[0] for each in (rows, codes)]
        assert np.abs(tables[0] - tables[1]).sum() < 0.04 * len(codes)
