"""What a record adds to a round of the module: Opacus's gradients of single records, exact and bounded for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hidden_layer import recipe
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats import optional_dependencies
from privstats.encoding import flatten, layout_of, to_real, unflatten
from privstats.errors import MissingExtraError, SchemaError
from privstats.moments.gradient_map import shortened, unit_rows
from privstats.schema.public_values import Published, Values
from privstats.transforms import UnitNorm
from tests.moments.test_gradients import HOSTILE, C, D, in_ball, records, values_of

H = 4
SCHEMA = ps.GradientSchema(
    D, C, residual_norm=0.3, expected_records=100, course_mu=1.0, transform=(UnitNorm(),), module=f"adapter/{H}"
)
MLP = replace(SCHEMA, module=f"mlp/{H}")
SIZES = {each.module: each.sizes["feature"] for each in (SCHEMA, MLP)}


def published(schema: ps.GradientSchema, seed: int = 0) -> Published:
    rng = np.random.default_rng(seed)
    M, w = rng.normal(size=(D, D)), rng.normal(size=schema.sizes["feature"])
    return Published.of({"M": Values.rounded(M + M.T), "w": Values.rounded(w)})


@pytest.fixture
def opacus() -> None:
    """Skips where the torch extra is not installed."""
    pytest.importorskip("torch")
    pytest.importorskip("opacus")


def in_torch(schema: ps.GradientSchema, X: np.ndarray, y: np.ndarray, said: Published) -> tuple[np.ndarray, float]:
    """The definition, by torch's own gradient of one record after the other, without Opacus and without a grid."""
    import torch

    M, w = (torch.tensor(said.read()[name].real) for name in "Mw")
    network, total, kappa = schema.network, 0.0, 0.0
    (h, d), (c, z) = network.shape(D, C).parts
    V, W = w[: h * d].reshape(h, d).requires_grad_(), w[h * d :].reshape(c, z).requires_grad_()
    for row, label in zip(torch.tensor(X), y, strict=True):
        mapped = row / row.norm() @ M
        u = torch.cat([0.99**0.5 * mapped / mapped.norm(), torch.tensor([0.1], dtype=torch.float64)])
        hidden = torch.tanh(8 * V @ u) / h**0.5
        scores = W @ torch.cat([hidden, u if network.adapter else u[-1:]])
        loss = torch.nn.functional.cross_entropy(scores[None], torch.tensor([label]))
        gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, (V, W))]).numpy()
        q = min(1.0, schema.residual_norm / np.linalg.norm(gradient))
        total, kappa = total + q * gradient, kappa + q * (1 - scores.softmax(0).square().sum().item())
    return total, kappa


@pytest.mark.usefixtures("opacus")
@pytest.mark.parametrize("schema", [SCHEMA, MLP])
def test_the_sums_are_those_of_the_definition_up_to_the_grids(schema: ps.GradientSchema) -> None:
    X, y = records(60)
    real = ps.measure(schema, X, y, published=published(schema)).real()
    g, k = in_torch(schema, X, y, published(schema))
    np.testing.assert_allclose(real.g[0], g, atol=60 * 0.3 * 2**-10)
    assert real.k == pytest.approx(k, rel=2**-9)


@pytest.mark.usefixtures("opacus")
@pytest.mark.parametrize("schema", [SCHEMA, MLP])
def test_what_a_head_is_fitted_by_without_noise_is_what_a_round_sums(schema: ps.GradientSchema) -> None:
    X, y = records(60)
    schema, said = replace(schema, residual_norm=recipe.CLIP), published(schema)
    first, last = schema.network.shape(D, C).parts
    V, W = np.split(said.read()["w"].real, [first[0] * first[1]])
    mapped = X / np.linalg.norm(X, axis=1, keepdims=True) @ said.read()["M"].real
    U = np.hstack([np.sqrt(0.99) * mapped / np.linalg.norm(mapped, axis=1, keepdims=True), np.full((60, 1), 0.1)])
    found = recipe.gradient(U, y, V.reshape(first), W.reshape(last))
    expected = in_torch(schema, X, y, said)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
    assert found[1] == pytest.approx(expected[1])


HOSTILE_MODULE = {name: HOSTILE[name] for name in "XyM"}


@pytest.mark.nightly
@pytest.mark.usefixtures("opacus")
@settings(max_examples=2000, deadline=None)
@given(**HOSTILE_MODULE, w=values_of((SIZES[SCHEMA.module],), (-8, 64)), bits=st.integers(2, 13))
def test_of_thousands_of_records_and_weights_none_breaks_the_bound(
    X: np.ndarray, y: int, M: Values, w: Values, bits: int
) -> None:
    schema = replace(SCHEMA, grid_bits=bits)
    moments = ps.measure(schema, X, np.array([y]), published=Published.of({"M": M, "w": w}))
    assert in_ball(schema, moments, 1)


@pytest.mark.usefixtures("opacus")
@settings(max_examples=25, deadline=None)
@given(**HOSTILE_MODULE, w=values_of((SIZES[MLP.module],), (-8, 64)), bits=st.sampled_from([2, 12, 13]))
def test_no_record_and_no_weights_break_the_bound(X: np.ndarray, y: int, M: Values, w: Values, bits: int) -> None:
    schema = replace(MLP, grid_bits=bits)
    moments = ps.measure(schema, X, np.array([y]), published=Published.of({"M": M, "w": w}))
    assert in_ball(schema, moments, 1)


@settings(max_examples=30, deadline=None)
@given(rows=HOSTILE["M"], exponent=st.integers(-80, 140), steps=st.sampled_from([16, 1 << 24]))
def test_what_is_shortened_is_no_longer_than_its_steps(rows: Values, exponent: int, steps: int) -> None:
    found, factor = shortened(rows.integers.astype(np.float64), 1 / 0.3, exponent, steps)
    assert (np.square(found).sum(axis=1) <= float(steps) ** 2).all()
    assert ((factor > 0) & (factor <= 1)).all()


@pytest.mark.usefixtures("opacus")
@pytest.mark.parametrize("schema", [SCHEMA, pytest.param(MLP, marks=pytest.mark.ci)])
def test_a_record_adds_the_same_integers_whatever_the_batch_holds_beside_it(schema: ps.GradientSchema) -> None:
    """In a batch alone, with others, in another order, and in a batch of another size."""
    X, y = records(300)
    said = published(schema)
    whole = ps.measure(schema, X, y, published=said)
    order = np.random.default_rng(2).permutation(300)
    assert ps.measure(schema, X[order], y[order], published=said) == whole
    for size in (7, 299):
        batches = ((X[at : at + size], y[at : at + size]) for at in range(0, 300, size))
        assert ps.measure(schema, batches, published=said) == whole
    alone = [ps.measure(schema, X[i : i + 1], y[i : i + 1], published=said) for i in range(20)]
    rest = ps.measure(schema, X[20:], y[20:], published=said)
    assert sum(alone) + rest == whole


@pytest.mark.usefixtures("opacus")
@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_gradients_in_floats_would_change_with_the_order_of_their_sums() -> None:
    """The weakened double: what Opacus gives of the same layer in float32, where a product adds its terms backwards."""
    import torch
    from opacus import GradSampleModule

    def of(rows: torch.Tensor, weights: torch.Tensor) -> np.ndarray:
        model = torch.nn.Sequential(torch.nn.Linear(200, 30, bias=False), torch.nn.Tanh())
        model[0].weight.data = weights
        found = GradSampleModule(model, loss_reduction="sum")
        found(rows).sum().backward()
        return np.trunc(4096 * found._module[0].weight.grad_sample.numpy())

    X = torch.tensor(records(500, 5, 200)[0], dtype=torch.float32)
    weights = torch.tensor(records(30, 6, 200)[0] / 8, dtype=torch.float32)
    assert (of(X, weights) != of(X.flip(1), weights.flip(1))[:, :, ::-1]).any()


@pytest.mark.usefixtures("opacus")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_record_that_is_no_number_counts_as_zero(bad: float) -> None:
    X, y = records(20)
    clean = ps.measure(SCHEMA, X, y, published=published(SCHEMA))
    dirty = ps.measure(SCHEMA, np.vstack([X, [[bad] * D]]), np.append(y, 1), published=published(SCHEMA))
    assert dirty == clean
    assert dirty.records == 20  # those of whom something is added
    assert not ps.measure(SCHEMA, X[:0], y[:0], published=published(SCHEMA)).g.any()


@pytest.mark.usefixtures("opacus")
def test_a_script_that_turns_gradients_off_changes_nothing() -> None:
    """Scripts that embed images do, in the process that measures afterwards."""
    torch = pytest.importorskip("torch")
    X, y = records(20)
    sums = ps.measure(SCHEMA, X, y, published=published(SCHEMA))
    for without in (torch.no_grad, torch.inference_mode):
        with without():
            assert ps.measure(SCHEMA, X, y, published=published(SCHEMA)) == sums


@pytest.mark.usefixtures("opacus")
@pytest.mark.parametrize("norm", [0.3, recipe.CLIP])
def test_two_records_at_full_length_oppose_each_other(norm: float) -> None:
    """V = 0 and long opposed rows of W: the gradients of two labels are opposite, and as long as W makes them."""
    schema = replace(MLP, classes=2, residual_norm=norm)
    w = np.zeros(schema.sizes["feature"])
    W = w[H * (D + 1) :].reshape(2, -1)
    W[:, :H] = [[1e3], [-1e3]]
    said = Published.of({"M": Values.rounded(np.eye(D)), "w": Values.rounded(w)})
    one, other = (ps.measure(schema, np.ones((1, D)), [label], published=said) for label in (0, 1))
    full = ps.dp.grid_sensitivity(schema, "g", "add-remove")
    assert np.linalg.norm(one.g) == pytest.approx(full, rel=1e-5)
    assert np.linalg.norm(one.g - other.g) == pytest.approx(2 * full, rel=1e-5)
    assert np.linalg.norm(one.g - other.g) <= ps.dp.grid_sensitivity(schema, "g", "replace-one")


@pytest.mark.usefixtures("opacus")
def test_moments_travel_like_all_others() -> None:
    moments = ps.measure(SCHEMA, *records(30), published=published(SCHEMA))
    vector = flatten(moments)
    assert vector.size == layout_of(SCHEMA).size == H * (D + 1) + C * (H + D + 1) + 1
    assert unflatten(SCHEMA, vector) == moments
    assert to_real(SCHEMA, vector) == moments.real()


def test_without_torch_plans_stand_and_no_record_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def untouched() -> Any:
        raise AssertionError("a record was looked at")
        yield

    found = optional_dependencies.importlib.util.find_spec
    monkeypatch.setattr(
        optional_dependencies.importlib.util, "find_spec", lambda name: None if name == "torch" else found(name)
    )
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(4, 3, 100), privacy=privacy, published=published(SCHEMA))
    assert ps.Plan.from_toml(plan.to_toml()).digest == plan.digest
    with pytest.raises(MissingExtraError, match=r"measuring a round of adapter/4 needs torch; .*privstats\[torch\]"):
        ps.measure(SCHEMA, untouched(), published=plan.published)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"module": "mlp"}, "module must be KIND/SIZE, such as 'mlp/64', got 'mlp'"),
        (
            {"module": "cnn/64"},
            "module = 'cnn/64' needs the module 'cnn', which no installed package announces",
        ),
        ({"module": "mlp/0"}, "mlp/WIDTH takes a WIDTH from 1 to 4096, got '0'"),
        ({"module": "mlp/5000"}, "from 1 to 4096, got '5000'"),
        ({"module": "mlp/064"}, "got '064'"),
        ({"module": "mlp/00000000199999"}, "got '00000000199999'"),
        ({"module": "mlp/1" + "9" * 5000}, "must be KIND/SIZE, .* got 'mlp/1999"),
        ({"module": "mlp/-4"}, "got '-4'"),
        ({"module": "mlp/²"}, "got 'mlp/²'"),
        ({"module": 64}, "got 64"),
        ({"module": "mlp/4096", "features": 2000}, "takes at most 4,194,304: narrow it"),
        ({"grid_bits": 14}, "grid_bits of a module must be at most 13"),
        ({"classes": None, "target_bound": 1.0}, "distinguish classes: set classes, or omit module"),
    ],
)
def test_schemas_say_what_does_not_fit(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        replace(SCHEMA, **changes)


def test_rows_are_those_of_a_softmax() -> None:
    M = published(SCHEMA).read()["M"]
    whole = np.rint(records(5)[0] * 1000)
    np.testing.assert_array_equal(unit_rows(SCHEMA, whole, M), unit_rows(replace(SCHEMA, module=None), whole, M))
