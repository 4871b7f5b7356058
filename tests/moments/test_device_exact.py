"""A device whose float64 products have fewer than 53 bits is refused, before any sum leaves it."""

import pytest

import privstats as ps
from privstats.moments.tensor_products import wrong_floats
from tests.cards import tensors_elsewhere
from tests.moments.test_gradients import SCHEMA, C, D, published, records

torch = pytest.importorskip("torch", reason="torch is an extra")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402 - needs torch


def of_bits(rows, bits):
    """Return each entry with its highest bits alone, as fixed-point emulation and TF32 keep them."""
    mantissa, exponent = torch.frexp(rows)
    return torch.ldexp(torch.trunc(mantissa * 2.0**bits), exponent - bits)


PRODUCTS = {
    "float32": lambda a, b: (a.float() @ b.float()).double(),
    "sums in float32": lambda a, b: (a @ b).float().double(),
    "TF32": lambda a, b: of_bits(a, 11) @ of_bits(b, 11),
    "19 bits of an entry": lambda a, b: of_bits(a, 19) @ of_bits(b, 19),
    "52 bits of a sum": lambda a, b: of_bits(a @ b, 52),
}
EXACT = {
    "float64": lambda a, b: a @ b,
    "20 bits of an entry": lambda a, b: of_bits(a, 20) @ of_bits(b, 20),  # the grid has no more
}


class Multiplying(TorchDispatchMode):
    """A device that multiplies matrices otherwise."""

    def __init__(self, product):
        super().__init__()
        self.product = product

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name in ("aten::mm", "aten::matmul"):
            return self.product(*args)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("round_", [False, True])
def test_a_device_that_multiplies_with_fewer_bits_is_refused(monkeypatch, product, round_):
    tensors_elsewhere(monkeypatch)
    X, y = map(torch.as_tensor, records(40))
    schema = SCHEMA if round_ else ps.ClassSchema(C, D, "NAB", clip_norm=1.0)
    with (
        Multiplying(PRODUCTS[product]),
        pytest.raises(ps.PrivstatsError, match=r"emulate float64, switch that off, or measure on the host"),
    ):
        ps.measure(schema, X, y, published=published() if round_ else None)


@pytest.mark.parametrize("columns", [1, 7, 600])
def test_products_that_are_exact_on_any_grid_pass_and_others_do_not(columns):
    for product in EXACT.values():
        with Multiplying(product):
            assert wrong_floats(torch, torch.device("cpu"), columns) == 0
    for product in PRODUCTS.values():
        with Multiplying(product):
            assert wrong_floats(torch, torch.device("cpu"), columns) == min(columns, 512) ** 2
