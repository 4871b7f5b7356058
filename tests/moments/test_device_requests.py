"""How often sums of batches wait for a device, launch work there and copy from there: counted on the host."""

import numpy as np
import pytest

import privstats as ps

torch = pytest.importorskip("torch", reason="torch is an extra")
from benchmarks.moments.device_counts import of_batches, requests  # noqa: E402 - needs torch

SCHEMAS = {
    "NAB": ps.ClassSchema(3, 8, "NAB", clip_norm=2.0),
    "NAS": ps.ClassSchema(3, 8, "NAS", clip_norm=2.0),
    "folds": ps.RidgeSchema(8, clip_norm=4.0, target_bound=9.0, folds=5),
}
# Waits and launches per batch, today's.
PER_BATCH = {"NAB": (10, 85), "NAS": (13, 100), "folds": (24, 234)}


def batches(name, count, rows=50):
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(count * rows, 8)))
    return of_batches(SCHEMAS[name], X, X[:, 0] if name == "folds" else torch.arange(len(X)) % 3, count)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_batch_requests_no_more_than_it_did(name):
    one, many = batches(name, 1), batches(name, 21)
    waits, launches = PER_BATCH[name]
    assert many.waits.total() - one.waits.total() <= 20 * waits, many.waits
    assert many.launches.total() - one.launches.total() <= 20 * launches, many.launches


def test_reads_launches_and_views_are_distinguished():
    rows = torch.ones(4, 3)
    with requests() as found:
        rows.T[:2].reshape(-1)
        torch.empty(3)
    assert (found.waits.total(), found.launches["clone"], found.launches.total()) == (0, 1, 1)
    with requests() as found:
        bool((rows > 2).any())
        rows[rows > 2]
        rows.sum(dim=0).tolist()
        torch.as_tensor(np.ones(3))
    assert found.waits == {"_local_scalar_dense": 1, "index": 1, "tolist": 1}
    assert (found.bytes_read, found.loads) == (1 + 12, 1)
