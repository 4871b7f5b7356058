"""Tensors and data loaders give the bits that numpy gives; accelerators are tested where they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments.device_sums import DeviceAccumulator
from privstats.moments.grid import feature_grid
from privstats.moments.tensor_grid import quantize_tensor
from privstats.records import input_validation
from privstats.transforms import GaussianProjection, OrthogonalProjection, RandomFourier, RandomReLU, UnitNorm
from tests.made import refused

torch = pytest.importorskip("torch", reason="torch is an extra")
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
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


@pytest.mark.skipif("cuda" not in DEVICES, reason="no CUDA device here")
def test_a_tensor_on_an_accelerator_is_measured_there():
    X, y = _data()
    whole = ps.measure(SCHEMA, X, y)
    assert ps.measure(SCHEMA, X.cuda(), y.cuda()) == ps.measure(SCHEMA, X.cuda(), y.numpy()) == whole
    assert ps.measure(SCHEMA, [(X[:100].cuda(), y[:100].cuda()), (X[100:], y[100:])]) == whole


def test_tensors_elsewhere_and_arrays_here_add_up(monkeypatch):
    """The way to the device meter without an accelerator: tensors in host memory pass for tensors elsewhere."""
    monkeypatch.setattr(input_validation, "on_device", input_validation.is_tensor)
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


@pytest.mark.parametrize("device", DEVICES)
def test_nan_on_a_device_is_refused(device):
    X = torch.zeros(4, 6, dtype=torch.float64, device=device)
    X[1, 1] = np.nan
    refused(ps.DataError, "NaN", quantize_tensor, torch, feature_grid(SCHEMA), X)


def test_a_device_without_float64_is_refused():
    class Somewhere:
        device = type("Device", (), {"type": "mps"})

    refused(ps.DataError, "64-bit floats", DeviceAccumulator(SCHEMA).add, Somewhere(), np.zeros(1))


def test_tensors_with_gradients_and_sparse_tensors_are_refused():
    X, y = _data()
    refused(ps.DataError, r"X.detach\(\)", ps.measure, SCHEMA, X.requires_grad_(), y)
    refused(ps.DataError, "sparse tensor", ps.measure, SCHEMA, _data()[0].to_sparse(), y)
    refused(ps.DataError, "real numbers", ps.measure, SCHEMA, _data()[0] + 1j, y)
    refused(ps.DataError, "integers", ps.measure, SCHEMA, _data()[0], y + 0.5)
