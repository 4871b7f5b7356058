"""How often sums of batches wait for a device, launch work there and copy from there: counted on the host."""

from types import SimpleNamespace

import numpy as np
import pytest

import privstats as ps
from privstats.moments import device_tiles, tensor_copy
from privstats.moments.clip_report import NORM_BINS
from privstats.schema.public_values import Published, Values

torch = pytest.importorskip("torch", reason="torch is an extra")
from benchmarks.measuring import results  # noqa: E402 - needs torch
from benchmarks.moments import device, device_counts  # noqa: E402 - needs torch
from benchmarks.moments.device_counts import of_batches, requests  # noqa: E402 - needs torch

SCHEMAS = {
    "NAB": ps.ClassSchema(3, 8, "NAB", clip_norm=2.0),
    "NAS": ps.ClassSchema(3, 8, "NAS", clip_norm=2.0),
    "ridge": ps.RidgeSchema(8, clip_norm=4.0, target_bound=9.0),
    "folds": ps.RidgeSchema(8, clip_norm=4.0, target_bound=9.0, folds=5),
    "mapped": ps.ClassSchema(3, 12, "NAB", clip_norm=2.0, transform=(ps.transforms.RandomReLU(1, 8, 12),)),
}


def batches(name, count, rows=50, *, size=1.0, classes=3, unreadable="refuse", gone=0):
    X = torch.as_tensor(size * np.random.default_rng(0).normal(size=(count * rows, 8)))
    y = X[:, 0].clone() if SCHEMAS[name].predicts == "ridge" else torch.arange(len(X)) % classes
    X[:gone] = np.nan
    return of_batches(SCHEMAS[name], X, y, count, unreadable=unreadable)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_batch_costs_two_copies_on_the_device_and_no_wait(name):
    one, many = batches(name, 1), batches(name, 21)
    assert many.waits == one.waits == {"tolist": 1, "numpy": 1}
    assert many.launches - one.launches == {"copy_": 40}
    assert many.bytes_read == one.bytes_read
    assert many.loads == one.loads


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_full_tile_costs_one_wait(monkeypatch, name):
    monkeypatch.setattr(device_tiles, "tile_rows", lambda *_: 100)
    assert batches(name, 8).waits == {"tolist": 4, "numpy": 1}


@pytest.mark.parametrize("name", SCHEMAS)
def test_readable_records_cost_the_same_where_others_are_left_out(name):
    """As under a promise: each batch was checked at once before, with a wait for rows and two for labels."""
    for count in (1, 21):
        assert batches(name, count, unreadable="leave out") == batches(name, count)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
def test_a_tile_with_unreadable_records_waits_some_times_more_however_many_they_are(name):
    waits = [batches(name, 3, unreadable="leave out", gone=gone).waits for gone in (1, 40)]
    assert waits[0] == waits[1] == {"tolist": 2, "nonzero": 1, "index": 2, "numpy": 3}


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_calibration_copies_all_rows_and_waits_twice_for_each_piece(pieces):
    schema = ps.CalibrationSchema(5, classes=3, expected_records=100, course_mu=1.0)
    values = {name: Values.rounded(np.ones(shape)) for name, shape in schema.needs.items()}
    X, y = torch.ones((pieces * 4_096, 5), dtype=torch.float32), torch.arange(pieces * 4_096) % 3
    found = of_batches(schema, X, y, 1, published=Published.of(values))
    labels_within = 2
    assert found.waits == {"numpy": 2 * pieces, "_local_scalar_dense": labels_within}
    assert found.bytes_read == X.nbytes + y.nbytes + labels_within


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_record_decides_what_is_launched(name):
    """Whether all rows are clipped or none, and whether each class has records or one has all."""
    within, beyond = batches(name, 1, size=0.01, classes=1), batches(name, 1, size=100.0)
    assert within == beyond


@pytest.mark.parametrize("columns", [5, 64, 65, 200])
def test_the_lower_triangle_is_copied_once(columns):
    schema = ps.ClassSchema(3, columns, "NAS", clip_norm=2.0)
    rng = np.random.default_rng(0)
    X, y = torch.as_tensor(rng.normal(size=(60, columns))), torch.as_tensor(rng.integers(0, 3, 60))
    found = of_batches(schema, X, y, 3)
    entries = 5 + NORM_BINS + 3 + 3 * columns  # the report, N and A
    counts = 4 * 8  # unreadable and outside, of rows and of labels, for one tile
    lower = (found.bytes_read - counts - 8 * entries) / (8 * 3)
    assert columns * (columns + 1) / 2 <= lower <= columns * (columns + 64) / 2
    assert lower == columns**2 or columns > 64


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
    with torch.inference_mode(), requests() as found:
        int(torch.ones(3) @ torch.ones(3))
    assert (found.waits, found.bytes_read, found.multiplied) == ({"item": 1}, 4, 3)


class OnCard(torch.Tensor):
    """A tensor that passes for one of a CUDA device."""

    is_cuda = property(lambda self: True)


@pytest.mark.parametrize(("limit", "pinned"), [(1 << 30, True), (8 * (1 + 2 * 9), True), (8 * (1 + 2 * 9) - 1, False)])
def test_sums_of_a_card_are_copied_once_to_pinned_memory_up_to_a_limit(monkeypatch, limit, pinned):
    copies = []

    def empty(size, *, pin_memory=None, **given):
        there = torch.empty(size, **given)
        if pin_memory is None:
            return there.as_subclass(OnCard)
        copies.append((size, pin_memory))
        return there

    monkeypatch.setattr(tensor_copy, "_PINNED_BYTES", limit)
    rng = np.random.default_rng(0)
    square = rng.integers(-9, 9, (2, 3, 3))
    totals = {"k": torch.tensor(5), "S": torch.as_tensor(square + square.swapaxes(1, 2))}
    found = tensor_copy.copied(SimpleNamespace(int64=torch.int64, empty=empty), totals, frozenset("S"))
    assert copies == [(1 + 2 * 9, pinned)]
    assert found["k"] == 5
    assert np.array_equal(found["S"], totals["S"].numpy())


COUNTED = {
    (title, at): (row_of, size)
    for title, row_of, sizes in (
        (device.BATCHES_COUNTED, device_counts.batch_row, device_counts.BATCHES),
        (device.ROUNDS_COUNTED, device_counts.round_row, device_counts.ROUNDS),
    )
    for at, size in enumerate(sizes)
}
SMALL = [key for key, (_, size) in COUNTED.items() if size in (device_counts.BATCHES[-1], device_counts.ROUNDS[-1])]


@pytest.mark.parametrize(
    ("title", "at"),
    [pytest.param(*key, marks=pytest.mark.ci if key in SMALL else pytest.mark.nightly) for key in COUNTED],
)
def test_the_counts_of_the_documentation_are_those_of_today(title, at):
    """``python -m benchmarks.moments.device --counts --save`` stores them; another torch may launch more or fewer."""
    (row_of, size), stored = COUNTED[title, at], results("moments.device")[title][at]
    counted = row_of(*size)
    if stored["torch"] != counted["torch"]:
        stored, counted = ({key: row[key] for key in row if "waits" in key} for row in (stored, counted))
    assert counted == stored


def test_every_stored_count_is_held_against_today():
    assert all(len(results("moments.device")[title]) == sum(of == title for of, _ in COUNTED) for title, _ in COUNTED)
