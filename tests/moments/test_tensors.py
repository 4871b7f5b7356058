"""Tensors and data loaders give the bits that numpy gives; accelerators are tested where they are."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import RecordError
from privstats.moments import device_tiles
from privstats.moments.device_sums import DeviceAccumulator
from privstats.moments.device_tiles import tile_rows
from privstats.moments.grid import Grid, exact_rows
from privstats.moments.measurement import noted_moments
from privstats.transforms import GaussianProjection, OrthogonalProjection, RandomFourier, RandomReLU, UnitNorm
from tests.cards import DEVICES, NEEDS_CARD, tensors_elsewhere
from tests.made import refused

torch = pytest.importorskip("torch", reason="torch is an extra")
SCHEMA = ps.ClassSchema(4, 6, "NABD", clip_norm=3.0, grid_bits=10)


def _data(dtype="float32"):
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(500, 6)), dtype=getattr(torch, dtype))
    return X, torch.as_tensor(rng.integers(0, 4, 500))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_tensors_give_the_same_bits_as_arrays(dtype):
    X, y = _data(dtype)
    assert ps.measure(SCHEMA, X, y) == ps.measure(SCHEMA, X.double().numpy(), y.numpy())


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
def test_the_device_meter_gives_the_same_bits_and_report_as_the_host(device, data):
    schema = data.draw(st.one_of(ps.testing.class_schemas(statistics="NABSDTF"), ps.testing.ridge_schemas()))
    X, y = data.draw(ps.testing.records(schema, min_records=1, max_records=40))
    size = data.draw(st.sampled_from([1, 3, 16, 64]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(device_tiles, "tile_rows", lambda *given: min(size, tile_rows(*given)))
        meter = DeviceAccumulator(schema)
        for piece in data.draw(ps.testing.chunkings(len(X))):
            meter.add(torch.as_tensor(X[piece], device=device), torch.as_tensor(y[piece], device=device))
        moments = meter.moments()
    assert moments == ps.measure(schema, X, y)
    assert moments.clip_report == ps.measure(schema, X, y).clip_report


@pytest.mark.parametrize("device", DEVICES)
def test_sums_beyond_2_to_53_stay_exact_on_the_device(device):
    """On the finest grid a part holds 8192 rows, which three folds do not divide."""
    schema = ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0, grid_bits=20, folds=3)
    X = np.random.default_rng(0).normal(size=(20_000, 3)) + 10.0
    meter = DeviceAccumulator(schema)
    meter.add(torch.as_tensor(X, device=device), torch.as_tensor(X[:, 0], device=device))
    moments = meter.moments()
    assert moments.q > 2**53
    assert moments == ps.measure(schema, X, X[:, 0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "transform",
    [
        (UnitNorm(), GaussianProjection(1, 20, 8)),
        (OrthogonalProjection(2, 20, 8), UnitNorm()),
        (RandomReLU(3, 20, 8),),
        (RandomFourier(4, 20, 8, bandwidth=3.0),),
    ],
)
def test_transforms_on_the_device_give_the_same_bits(device, transform):
    schema = ps.ClassSchema(3, 8, "NAS", clip_norm=1.0, grid_bits=16, transform=transform)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 20)), rng.integers(0, 3, 300)
    meter = DeviceAccumulator(schema)
    meter.add(torch.as_tensor(X, device=device), torch.as_tensor(y, device=device))
    assert meter.moments() == ps.measure(schema, X, y)


@NEEDS_CARD
def test_a_tensor_on_an_accelerator_is_measured_there():
    X, y = _data()
    whole = ps.measure(SCHEMA, X, y)
    assert ps.measure(SCHEMA, X.cuda(), y.cuda()) == ps.measure(SCHEMA, X.cuda(), y.numpy()) == whole
    assert ps.measure(SCHEMA, [(X[:100].cuda(), y[:100].cuda()), (X[100:], y[100:])]) == whole


def test_tensors_elsewhere_and_arrays_here_add_up(monkeypatch):
    """The way to the device meter without an accelerator: tensors in host memory pass for tensors elsewhere."""
    tensors_elsewhere(monkeypatch)
    X, y = _data()
    for schema in (SCHEMA, ps.RidgeSchema(6, clip_norm=3.0, target_bound=3.0, folds=3)):
        whole = ps.measure(schema, X.numpy(), y.numpy())
        assert ps.measure(schema, X, y) == ps.measure(schema, X, y.numpy()) == whole
        assert ps.measure(schema, [(X[:100], y[:100]), (X[100:].numpy(), y[100:].numpy())]) == whole
    refused(ps.DataError, "outside 0..3", ps.measure, SCHEMA, X, y + 1)


def test_data_loaders_are_batches():
    X, y = _data()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=64, shuffle=True)
    assert ps.measure(SCHEMA, loader) == ps.measure(SCHEMA, X, y)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_batches_of_a_generator_that_holds_a_mode_of_torch_are_summed(monkeypatch, mode):
    """The mode ends with the generator, before the last tile is summed."""
    tensors_elsewhere(monkeypatch)
    X, y = _data()

    def encoded():
        with mode():
            for start in range(0, 500, 100):
                yield X[start : start + 100] * 1.0, y[start : start + 100]

    assert ps.measure(SCHEMA, encoded()) == ps.measure(SCHEMA, X.numpy(), y.numpy())


def added(schema, X, y):
    meter = DeviceAccumulator(schema)
    meter.add(X, y)
    return meter.moments()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_record_that_no_sum_may_hold_is_refused_as_on_the_host(device, bad):
    X, y = torch.zeros(4, 6, dtype=torch.float64, device=device), torch.zeros(4, dtype=torch.int64, device=device)
    ridge = ps.RidgeSchema(6, clip_norm=1.0, target_bound=1.0)
    mapped = ps.ClassSchema(4, 8, "NA", clip_norm=1.0, nonnegative=True, transform=(RandomReLU(3, 6, 8),))
    wrong = X.clone()
    wrong[1, 1] = bad
    for schema in (SCHEMA, ridge, mapped):
        refused(RecordError, "X holds NaN", added, schema, wrong, y)
    refused(RecordError, "y holds NaN", added, ridge, X, wrong[:, 1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("label", [-1, 4, 2**62, -(2**62)])
def test_a_label_on_a_device_is_checked_before_it_indexes_a_sum(monkeypatch, device, label):
    tensors_elsewhere(monkeypatch)
    X, y = (each.to(device) for each in _data())
    wrong = y.clone()
    wrong[77] = label
    for schema in (SCHEMA, ps.ClassSchema(4, 6, "NAS", clip_norm=3.0)):
        with pytest.raises(RecordError, match=r"y has labels outside 0\.\.3") as on_device:
            ps.measure(schema, [(X[:50], y[:50]), (X[50:], wrong[50:])])
        with pytest.raises(RecordError) as on_host:
            ps.measure(schema, X.cpu().numpy(), wrong.cpu().numpy())
        assert str(on_device.value) == str(on_host.value)


def test_labels_of_a_device_beside_rows_of_the_host_are_checked_at_once(monkeypatch):
    """The sums of the host read them, and expect classes."""
    X, y = _data()
    tensors_elsewhere(monkeypatch, lambda array: array is y)
    with pytest.raises(RecordError, match=r"outside 0\.\.2"):
        ps.measure(ps.ClassSchema(3, 6, "NA", clip_norm=3.0), X.numpy(), y)


def test_a_clipped_vector_outside_the_ball_is_never_in_a_sum(monkeypatch):
    def longer(grid, rows):
        return rows * grid.scale, rows.new_full((len(rows),), np.nan), rows.new_ones(len(rows))

    monkeypatch.setattr(Grid, "shortened", longer)
    refused(ps.PrivstatsError, "left the clip ball", added, SCHEMA, 100 * _data()[0].double(), _data()[1])


@given(data=st.data())
def test_records_left_out_of_batches_on_a_device_are_the_hosts(data):
    """The sums, their report and the warning, whatever the batches and tiles."""
    schema = data.draw(st.one_of(ps.testing.class_schemas(statistics="NABSDTF"), ps.testing.ridge_schemas()))
    X, y = (np.array(each) for each in data.draw(ps.testing.records(schema, min_records=2, max_records=40)))
    X = X.astype(np.float64)
    rows = st.integers(0, len(X) - 1)
    for row, bad in data.draw(st.lists(st.tuples(rows, st.sampled_from([np.nan, np.inf, -np.inf])), max_size=5)):
        X[row, data.draw(st.integers(0, X.shape[1] - 1))] = bad
    bad_goals = [-1, schema.classes, 2**62] if isinstance(schema, ps.ClassSchema) else [np.nan, np.inf]
    y = y.astype(np.int64 if isinstance(schema, ps.ClassSchema) else np.float64)
    for row, bad in data.draw(st.lists(st.tuples(rows, st.sampled_from(bad_goals)), max_size=3)):
        y[row] = bad
    at = data.draw(st.integers(1, len(X) - 1))
    batches = [(torch.as_tensor(X[part]), torch.as_tensor(y[part])) for part in (slice(at), slice(at, None))]
    size = data.draw(st.integers(1, 50))
    with pytest.MonkeyPatch.context() as patched:
        tensors_elsewhere(patched)
        patched.setattr(device_tiles, "tile_rows", lambda *_: size)
        there, notes = noted_moments(schema, batches, unreadable="leave out")
    host, same = noted_moments(schema, X, y, unreadable="leave out")
    assert (there, there.clip_report, notes.left_out.why) == (host, host.clip_report, same.left_out.why)
    assert (notes.left_out.records, notes.left_out.read) == (same.left_out.records, len(X))


def test_tiles_have_a_size_that_no_record_decides():
    assert tile_rows(SCHEMA.bound, 6) == device_tiles._TILE_BYTES // 48
    assert tile_rows(SCHEMA.bound, 12) == device_tiles._TILE_BYTES // 96
    fine = ps.ClassSchema(4, 6, "NAF", clip_norm=3.0, grid_bits=12)
    assert tile_rows(fine.bound, 6) == exact_rows(fine.bound) == 32


def test_work_on_another_stream_follows_the_earlier_work(monkeypatch):
    """A generator may leave another stream current than the one on which a tile was filled before."""
    waited = []
    streams = {name: SimpleNamespace(name=name, wait_stream=waited.append) for name in "ab"}
    X, y = _data()
    meter = DeviceAccumulator(SCHEMA)
    for name in "aabb":
        monkeypatch.setattr(device_tiles, "_stream", lambda *_, name=name: streams[name])
        meter.add(X, y)
    assert waited == [streams["a"]]
    monkeypatch.setattr(device_tiles, "_stream", lambda *_: streams["a"])
    meter.moments()
    assert waited == [streams["a"], streams["b"]]


def test_a_device_without_float64_is_refused():
    class Somewhere:
        device = type("Device", (), {"type": "mps"})

    refused(ps.DataError, "64-bit floats", DeviceAccumulator(SCHEMA).add, Somewhere(), np.zeros(1))


def test_tensors_with_gradients_sparse_tensors_and_tensors_without_values_are_refused():
    X, y = _data()
    refused(ps.DataError, r"X.detach\(\)", ps.measure, SCHEMA, X.requires_grad_(), y)
    for records, field in (((X.to("meta"), y), "X"), ((_data()[0], y.to("meta")), "y")):
        sentence = f"^{field} is a meta tensor, which has a shape and no values; compute {field} on a device"
        refused(ps.DataError, sentence, ps.measure, SCHEMA, *records)
        refused(ps.DataError, sentence, ps.heads.LDA().fit, *records)
    refused(ps.DataError, "sparse tensor", ps.measure, SCHEMA, _data()[0].to_sparse(), y)
    refused(ps.DataError, "real numbers", ps.measure, SCHEMA, _data()[0] + 1j, y)
    refused(ps.DataError, "integers", ps.measure, SCHEMA, _data()[0], y + 0.5)
