"""Rounds over tensors on a device: the host's integers, one wait for each tile, and the sums alone are copied."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import privstats as ps
from privstats.errors import RecordError
from privstats.moments import device_tiles, gradient_map
from privstats.moments.device_tiles import tile_rows
from privstats.moments.grid import Grid
from privstats.moments.measurement import noted_moments
from privstats.records.reading import Labels
from privstats.schema.public_values import Published, Values
from tests.cards import DEVICES, tensors_elsewhere

torch = pytest.importorskip("torch", reason="torch is an extra")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402 - needs torch

from benchmarks.moments.device_counts import of_batches  # noqa: E402 - needs torch

D, C = 6, 3
ROUND = partial(ps.GradientSchema, expected_records=100, course_mu=1.0)
SCHEMAS = {
    "softmax": ROUND(D, C, residual_norm=0.3, transform=(ps.transforms.UnitNorm(),)),
    "no transform": ROUND(D, C, residual_norm=0.3, grid_bits=20),
    "nonnegative": ROUND(D, C, residual_norm=0.3, nonnegative=True),
    "regression": ROUND(D, residual_norm=1.0, clip_norm=2.0, target_bound=3.0),
    "logistic": ps.ScoreSchema(D, clip_norm=2.0),
    "fine": ps.ScoreSchema(D, clip_norm=2.0, errors="model", grid_bits=20),
    "poisson": ps.ScoreSchema(
        D + 1, 2.0, family="poisson", target_bound=7.0, transform=(ps.transforms.ConstantFeature(0.5),)
    ),
    "dispersed": ps.ScoreSchema(D, 2.0, family="poisson", target_bound=7.0, overdispersion="estimated"),
    "weighed": ps.ScoreSchema(D, 2.0, family="poisson", target_bound=7.0, negative_binomial=1.5),
}
EXPONENTS = {"M": (-64, 128)}


def classes_of(schema):
    """Return the number of classes; None: y holds targets."""
    return len(schema.goal.classes) if isinstance(schema.goal, Labels) else None


def published(schema, seed=0, size=3.0):
    rng = np.random.default_rng(seed)
    values = {name: Values.rounded(size * rng.normal(size=shape)) for name, shape in schema.needs.items()}
    return Published.of(values | ({"c": Values.rounded(0.8)} if "c" in values else {}))


def records(schema, n, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, schema.reading.inputs))
    classes = classes_of(schema)
    return X, X[:, 0] + rng.normal(size=n) if classes is None else rng.integers(0, classes, n)


def hostile(schema):
    """Return any admitted published values."""
    integers = st.one_of(st.sampled_from([0, 1, -1, 2**19 - 1, 1 - 2**19]), st.integers(1 - 2**19, 2**19 - 1))
    drawn = {
        name: st.builds(
            Values,
            arrays.arrays(np.int64, shape, elements=st.integers(1, 2**19 - 1) if name == "c" else integers),
            st.integers(*EXPONENTS.get(name, (-8, 64))),
        )
        for name, shape in schema.needs.items()
    }
    return st.fixed_dictionaries(drawn).map(Published.of)


@pytest.fixture
def elsewhere(monkeypatch):
    """Tensors in host memory pass for tensors elsewhere."""
    tensors_elsewhere(monkeypatch)


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
def test_a_round_has_the_hosts_integers_for_any_records_and_published_values(device, data):
    schema = data.draw(st.sampled_from(list(SCHEMAS.values())))
    values = data.draw(hostile(schema))
    n = data.draw(st.integers(1, 20))
    anything = st.floats(allow_nan=True, allow_infinity=True)
    X = data.draw(arrays.arrays(np.float64, (n, D), elements=anything))
    classes = classes_of(schema)
    goals = anything if classes is None else st.integers(0, classes - 1)
    y = data.draw(arrays.arrays(np.float64 if classes is None else np.int64, n, elements=goals))
    size = data.draw(st.sampled_from([1, 3, 16, 64]))
    batches = [
        tuple(torch.as_tensor(each[piece], device=device) for each in (X, y))
        for piece in data.draw(ps.testing.chunkings(n))
    ]
    with pytest.MonkeyPatch.context() as patched:
        tensors_elsewhere(patched)
        patched.setattr(device_tiles, "tile_rows", lambda *given: min(size, tile_rows(*given)))
        there = ps.measure(schema, batches, published=values)
    host = ps.measure(schema, X, y, published=values)
    assert there == host
    assert (there.records, there.published) == (host.records, host.published)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.usefixtures("elsewhere")
def test_usual_records_of_any_type_have_the_hosts_integers(name, dtype):
    schema, values = SCHEMAS[name], published(SCHEMAS[name])
    X, y = records(schema, 5_000)
    rows, goals = torch.as_tensor(X).to(getattr(torch, dtype)), torch.as_tensor(y)
    host = ps.measure(schema, rows.double().numpy(), y, published=values)
    assert ps.measure(schema, rows, goals, published=values) == host
    assert ps.measure(schema, rows, y, published=values) == host
    mixed = [(rows[:100], goals[:100]), (rows[100:].double().numpy(), y[100:])]
    assert ps.measure(schema, mixed, published=values) == host
    assert host.records == 5_000


@pytest.mark.parametrize("device", DEVICES)
def test_many_classes_and_columns_have_the_hosts_integers(monkeypatch, device):
    tensors_elsewhere(monkeypatch)
    schema = ROUND(200, 300, residual_norm=0.5, transform=(ps.transforms.UnitNorm(),))
    X, y = records(schema, 3_000)
    host = ps.measure(schema, X, y, published=published(schema))
    tensors = (torch.as_tensor(each, device=device) for each in (X, y))
    assert ps.measure(schema, *tensors, published=published(schema)) == host


@pytest.mark.usefixtures("elsewhere")
def test_sums_beyond_2_to_53_stay_exact():
    schema = replace(SCHEMAS["no transform"], features=2)
    # Rows differ, so that sums are odd, too.
    X, y = np.random.default_rng(0).uniform([2.0, 0.0], [3.0, 1.0], (40_000, 2)), np.zeros(40_000, int)
    values = Published.of({"M": Values.rounded(np.eye(2)), "W": Values.rounded(np.full((C, 3), 1e-6))})
    tensors = torch.as_tensor(X), torch.as_tensor(y)
    moments = ps.measure(schema, *tensors, published=values)
    assert np.abs(moments.g).max() > 2**53
    assert moments == ps.measure(schema, X, y, published=values)


@pytest.mark.parametrize("name", ["softmax", "regression", "logistic", "poisson"])
@given(data=st.data())
def test_records_left_out_are_the_hosts(name, data):
    """The sums and the warning, whatever the batches and tiles."""
    schema, values = SCHEMAS[name], published(SCHEMAS[name])
    X, y = records(schema, 12)
    bad = st.sampled_from([np.nan, np.inf, -np.inf])
    for row, column, value in data.draw(st.lists(st.tuples(st.integers(0, 11), st.integers(0, D - 1), bad))):
        X[row, column] = value
    for row, value in data.draw(st.lists(st.tuples(st.integers(0, 11), bad), max_size=3)):
        y[row] = value if classes_of(schema) is None else data.draw(st.sampled_from([-1, C, 2**62]))
    at, size = data.draw(st.integers(0, 12)), data.draw(st.integers(1, 20))
    tensors = torch.as_tensor(X), torch.as_tensor(y)
    parts = [tuple(each[part] for each in tensors) for part in (slice(at), slice(at, None))]
    measured = partial(noted_moments, schema, published=values, unreadable="leave out")
    with pytest.MonkeyPatch.context() as patched:
        tensors_elsewhere(patched)
        patched.setattr(device_tiles, "tile_rows", lambda *_: size)
        several = [measured(parts), measured(*tensors)]
    host, notes = measured(X, y)
    for there, found in several:
        assert (there, there.records) == (host, host.records)
        assert (found.left_out.records, found.left_out.why) == (notes.left_out.records, notes.left_out.why)


@pytest.mark.usefixtures("elsewhere")
def test_a_label_outside_the_classes_is_refused_as_on_the_host():
    schema, values = SCHEMAS["softmax"], published(SCHEMAS["softmax"])
    X, y = records(schema, 50)
    y[7] = C
    with pytest.raises(RecordError) as there:
        ps.measure(schema, torch.as_tensor(X), torch.as_tensor(y), published=values)
    with pytest.raises(RecordError) as host:
        ps.measure(schema, X, y, published=values)
    assert str(there.value) == str(host.value)


@pytest.mark.usefixtures("elsewhere")
def test_a_clipped_vector_outside_the_ball_is_never_in_a_sum(monkeypatch):
    def longer(grid, rows):
        return rows * grid.scale, rows.new_full((len(rows),), np.nan), rows.new_ones(len(rows))

    monkeypatch.setattr(Grid, "shortened", longer)
    schema = SCHEMAS["no transform"]
    X, y = map(torch.as_tensor, records(schema, 20))
    with pytest.raises(ps.PrivstatsError, match="left the clip ball"):
        ps.measure(schema, 100 * X, y, published=published(schema))


@pytest.mark.usefixtures("elsewhere")
def test_a_contribution_beyond_its_norm_counts_as_zero(monkeypatch):
    """The check of the arithmetic holds on a device too."""
    schema, right = SCHEMAS["no transform"], gradient_map.unit_rows
    monkeypatch.setattr(gradient_map, "unit_rows", lambda *given: 2 * right(*given))
    X, y = map(torch.as_tensor, records(schema, 20))
    moments = ps.measure(schema, X, y, published=published(schema))
    assert not moments.g.any()
    assert moments.k == 0


def requests(name, count, *, rows=50, size=1.0, classes=C, **given):
    schema = SCHEMAS[name]
    X, y = records(schema, count * rows)
    tensors = torch.as_tensor(size * X), torch.as_tensor(y if classes_of(schema) is None else y % classes)
    return of_batches(schema, *tensors, count, published=published(schema), **given)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("unreadable", ["refuse", "leave out"])
def test_a_batch_costs_two_copies_on_the_device_and_no_wait(name, unreadable):
    one, many = (requests(name, count, unreadable=unreadable) for count in (1, 21))
    assert many.waits == one.waits == {"tolist": 1, "numpy": 1}
    assert many.launches - one.launches == {"copy_": 40}
    assert many.loads == one.loads
    counts, facts = 5, 3
    moments = ps.measure(SCHEMAS[name], *records(SCHEMAS[name], 1), published=published(SCHEMAS[name]))
    sums = sum(np.size(each) for each in moments.wire().values())
    assert many.bytes_read == one.bytes_read == 8 * (counts + facts + sums)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_full_tile_costs_one_wait(monkeypatch, name):
    monkeypatch.setattr(device_tiles, "tile_rows", lambda *_: 100)
    assert requests(name, 8).waits == {"tolist": 4, "numpy": 1}


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_record_decides_what_is_launched(name):
    within, beyond = requests(name, 1, size=0.01, classes=1), requests(name, 1, size=100.0)
    assert within == beyond


# Operations that are exact, correctly rounded in any IEEE arithmetic, or on integers below 2**53. None fuses two
# roundings into one, and no other operation may be in a round: its last bit could depend on the device.
EXACT = {
    *("abs", "add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "div", "div_", "reciprocal", "sqrt", "neg"),
    *("trunc", "floor", "round", "round_", "clamp", "clamp_", "clip", "amax", "where", "frexp", "__lshift__"),
    *("eq", "ne", "ge", "gt", "le", "lt", "bitwise_not", "__and__", "__iand__", "isfinite", "all"),
    *("matmul", "linalg_vecdot", "sum", "cat", "stack", "hstack", "pad", "argsort", "index", "index_put_", "arange"),
    *("copy_", "fill_", "detach_", "full", "full_like", "zeros", "zeros_like", "ones"),
}


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names, self.divisors = set(), set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        aliases = [each.alias_info for each in func._schema.returns]
        if not any(each is not None and not each.is_write for each in aliases):
            self.names.add(name)
        if name in ("div", "div_") and not isinstance(args[1], torch.Tensor):
            self.divisors.add(abs(math.frexp(args[1])[0]))
        assert name not in ("add", "sub", "add_", "sub_") or not (kwargs or {}).get("alpha"), func
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.usefixtures("elsewhere")
def test_a_round_is_of_operations_that_have_equal_bits_on_all_devices(name):
    """Some devices divide by a number of the host as they multiply by its reciprocal, exact for powers of two alone."""
    schema = SCHEMAS[name]
    X, y = map(torch.as_tensor, records(schema, 100))
    with Operations() as found:
        ps.measure(schema, 10 * X, y, published=published(schema))
    assert {each for each in found.names if not each.startswith("empty")} <= EXACT
    assert found.divisors <= {0.5}
