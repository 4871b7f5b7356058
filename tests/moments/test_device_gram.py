"""Products of 8-bit limbs are the integers that float64 products are, and are taken where they are faster."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments import device_sums, tensor_products
from privstats.moments.device_sums import DeviceAccumulator
from privstats.moments.tensor_products import Products, block_rows, in_blocks, prefers_limbs
from tests.cards import DEVICES

torch = pytest.importorskip("torch", reason="torch is an extra")


def gram(rows, *, limbs):
    products = Products(torch, rows.device, limbs=limbs)
    found = products.gram(rows)
    assert products.wrong == 0
    return found


@pytest.mark.parametrize("device", DEVICES)
@given(
    rows=st.integers(0, 40),
    columns=st.integers(1, 40),
    most=st.sampled_from([1, 63, 64, 65, 127, 128, 8128, 8191, 8192]),
    seed=st.integers(0, 2**16),
)
def test_limbs_give_the_integers_of_float64(device, rows, columns, most, seed):
    rng = np.random.default_rng(seed)
    whole = rng.choice([-most, most, 0, int(rng.integers(-most, most + 1))], size=(rows, columns)).astype(float)
    found = gram(torch.as_tensor(whole, device=device), limbs=True)
    assert found.dtype == torch.int64
    assert np.array_equal(found.cpu().numpy(), whole.astype(np.int64).T @ whole.astype(np.int64))


@pytest.mark.parametrize("device", DEVICES)
def test_rows_beyond_one_product_are_cut(monkeypatch, device):
    """At the largest entries a product of two limbs holds 2**18 rows below 2**31."""
    assert tensor_products._ROWS * 64 * 64 < 2**31
    monkeypatch.setattr(tensor_products, "_ROWS", 16)
    rows = torch.as_tensor(np.random.default_rng(0).integers(-8192, 8193, (100, 5)).astype(float), device=device)
    assert torch.equal(gram(rows, limbs=True), gram(rows, limbs=False))


def test_a_default_type_of_half_precision_changes_nothing():
    rows = torch.as_tensor(np.random.default_rng(0).integers(-8192, 8193, (50, 6)).astype(float))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert torch.equal(gram(rows, limbs=True), gram(rows, limbs=False))
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("wrong", ["one entry", "every entry", "two products exchanged", "int32 in 24 bits"])
def test_a_device_that_multiplies_wrongly_is_found(monkeypatch, wrong):
    """pytorch/pytorch#106840 tells of such devices."""
    product = torch._int_mm

    def off(a, b):
        right = product(a, b)
        if wrong == "one entry":
            right[3, 2] += 1
        elif wrong == "every entry":
            right += 7
        elif wrong == "two products exchanged":
            right[[0, 1]] = right[[1, 0]]
        else:
            right = right & 0xFFFFFF
        return right

    monkeypatch.setattr(torch, "_int_mm", off)
    rows = torch.as_tensor(np.random.default_rng(0).integers(-4000, 4000, (60, 256)).astype(float))
    products = Products(torch, rows.device, limbs=True)
    products.gram(rows)
    assert products.wrong > 0
    monkeypatch.setattr(device_sums, "prefers_limbs", lambda *_: True)
    for statistics in ("NAB", "NAS"):
        meter = DeviceAccumulator(ps.ClassSchema(2, 256, statistics, clip_norm=2.0**20))
        meter.add(rows, np.zeros(len(rows), int))
        with pytest.raises(ps.PrivstatsError, match="measure on the host"):
            meter.moments()


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
def test_measuring_by_limbs_is_measuring(device, data):
    schema = data.draw(st.one_of(ps.testing.class_schemas(statistics="NABSDTF"), ps.testing.ridge_schemas()))
    X, y = data.draw(ps.testing.records(schema, min_records=1, max_records=40))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(device_sums, "prefers_limbs", lambda _, __, grid_bits: grid_bits <= tensor_products._FINEST)
        meter = DeviceAccumulator(schema)
        meter.add(torch.as_tensor(X, device=device), torch.as_tensor(y, device=device))
    assert meter.moments() == ps.measure(schema, X, y)


@pytest.mark.parametrize(
    ("capability", "grid_bits", "kind", "prefers"),
    [
        ((8, 6), 12, "cuda", True),
        ((12, 0), 13, "cuda", True),
        ((8, 6), 14, "cuda", False),  # h would not fit 8 bits
        ((9, 0), 12, "cuda", False),  # float64 is fast
        ((7, 0), 12, "cuda", False),
        ((6, 1), 12, "cuda", False),  # no 8-bit products
        ((8, 6), 12, "cpu", False),
        ((8, 6), 12, "xpu", False),
    ],
)
def test_limbs_are_for_devices_of_slow_float64(capability, grid_bits, kind, prefers):
    fake = SimpleNamespace(_int_mm=None, cuda=SimpleNamespace(get_device_capability=lambda _: capability))
    assert prefers_limbs(fake, SimpleNamespace(type=kind), grid_bits) is prefers
    del fake._int_mm
    assert not prefers_limbs(fake, SimpleNamespace(type=kind), grid_bits)


@given(
    labels=st.integers(1, 7).flatmap(
        lambda classes: st.tuples(st.just(classes), st.lists(st.integers(0, classes - 1), min_size=1, max_size=60))
    ),
    most=st.integers(1, 9),
)
def test_blocks_have_one_class_each_and_a_shape_that_no_label_decides(labels, most):
    classes, each = labels
    y = torch.tensor(each)
    rows = torch.arange(1, len(y) + 1, dtype=torch.float64)[:, None] * torch.tensor([1.0, -1.0])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tensor_products, "_BLOCK_ROWS", most)
        of_blocks, (blocks,) = in_blocks(torch, y, classes, rows)
        size = block_rows(len(y), classes)
    assert blocks.shape == ((1, len(y), 2) if classes == 1 else (len(y) // size + classes, size, 2))
    found = sorted(
        (int(of), float(row[0])) for of, block in zip(of_blocks, blocks, strict=True) for row in block if row.any()
    )
    assert found == sorted(zip(each, rows[:, 0].tolist(), strict=True))


def test_products_of_few_blocks_at_once_are_the_same(monkeypatch):
    schema = ps.ClassSchema(4, 6, "NAS", clip_norm=3.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 6)), rng.integers(0, 3, 90)
    monkeypatch.setattr(tensor_products, "_BLOCK_BYTES", 3 * 8 * 36)
    meter = DeviceAccumulator(schema)
    meter.add(torch.as_tensor(X), torch.as_tensor(y))
    assert meter.moments() == ps.measure(schema, X, y)
