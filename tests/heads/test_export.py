"""Exported modules score as the heads do, on the rows that `predict` takes."""

import functools
import io
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import privstats as ps
from privstats import heads, transforms
from privstats.errors import HeadError
from privstats.heads.registry import HEADS, named
from privstats.transforms import (
    Centre,
    CentreRows,
    ConstantFeature,
    GaussianProjection,
    Interactions,
    OrthogonalProjection,
    RandomFourier,
    RandomReLU,
    Scale,
    SparseProjection,
    Transform,
    Transport,
    UnitNorm,
)
from tests.heads.conftest import class_release, quick, ridge_release
from tests.lengths import sized
from tests.made import refused

pytestmark = pytest.mark.filterwarnings("ignore:this release has no constant feature")

torch = pytest.importorskip("torch")
CLOSED = named("classes", trained=False)
FITTED = [*map(quick, named("classes")), *([heads.LowRankQDA(rank=0)] if "LowRankQDA" in HEADS else [])]


@pytest.mark.parametrize("head", FITTED, ids=repr)
@pytest.mark.parametrize("clip_norm", [3.0, None])
def test_modules_score_as_the_head(head, clip_norm, blobs):
    X, y = blobs()
    head.fit_release(class_release(X, y, "NAS", clip_norm=clip_norm))
    module = heads.to_module(head)
    rows = torch.tensor(np.r_[X, 100 * X, np.zeros((1, 6))])
    np.testing.assert_allclose(module(rows).numpy(), head._scores(rows), rtol=1e-8, atol=1e-8)


def exported(module, rows):
    """The module through ``torch.export``, its file and back, for any number of rows."""
    program = torch.export.export(module, (rows,), dynamic_shapes=({0: torch.export.Dim("n")},))
    return reloaded(torch.export.save, torch.export.load, program).module()


def traced(module, rows):
    """The module through ``torch.jit.trace``, its file and back."""
    with warnings.catch_warnings(action="ignore", category=torch.jit.TracerWarning):
        warnings.simplefilter("ignore", DeprecationWarning)  # torch advises its export, which is tested beside it
        return reloaded(torch.jit.save, torch.jit.load, torch.jit.trace(module, (rows,)))


def reloaded(save, load, program):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)


HARD = (1.0, 100.0, 1e-200, 1e-310, 1e200)
"""Sizes of rows at which exact arithmetic scales twice, underflows or is near to overflowing."""


def hard_rows(X):
    return np.r_[*(size * X for size in HARD), np.zeros((1, X.shape[1]))]


def same_scores(scores, head, rows, rtol):
    want = head._scores(rows)
    np.testing.assert_allclose(scores, want, rtol=rtol, atol=rtol * np.abs(want).max())


def test_modules_carry_their_arrays_as_state(blobs):
    head = heads.QDA().fit(*blobs())
    assert set(heads.to_module(head).state_dict()) == set(head.rule_.arrays())


@pytest.mark.parametrize(
    "head",
    [
        heads.LDA(),
        heads.RidgeClassifier(),
        *([heads.FisherMix(per_class=20, max_rounds=1)] if "FisherMix" in HEADS else []),
    ],
)
def test_linear_heads_become_linear_layers(head, blobs):
    X, y = blobs()
    layer = heads.to_linear(head.fit(X, y))
    assert isinstance(layer, torch.nn.Linear)
    scores = layer(torch.tensor(X, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(scores, head._scores(X), rtol=1e-4, atol=1e-3)


def test_ridge_becomes_a_linear_layer(blobs):
    X, _ = blobs()
    head = heads.Ridge(penalty=1.0).fit_release(ridge_release(X, X[:, :2]))
    rows = torch.tensor(X, dtype=torch.float32)
    np.testing.assert_allclose(heads.to_linear(head)(rows).detach().numpy(), head.predict(X), atol=1e-4)


def test_quadratic_heads_are_not_linear(blobs):
    refused(HeadError, "not linear", heads.to_linear, heads.QDA().fit(*blobs()))


CHAINS = [
    (Centre((1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),),
    (Scale((1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),),
    (CentreRows(),),
    (UnitNorm(),),
    (ConstantFeature(2.0),),
    (GaussianProjection(1, 6, 4),),
    (SparseProjection(1, 6, 5),),
    (OrthogonalProjection(1, 6, 5),),
    (RandomReLU(1, 6, 8),),
    (RandomReLU(1, 6, 8, keep_inputs=True),),
    (RandomFourier(1, 6, 12, bandwidth=3.0),),
    (Transport(6, "ab" * 32, 0.4).bound(np.ones(6), np.zeros(6), np.eye(6) + 0.1),),
    (CentreRows(), UnitNorm()),
    (CentreRows(), OrthogonalProjection(2, 6, 8), Centre(tuple(range(8))), ConstantFeature(1.0)),
    (CentreRows(), RandomReLU(3, 6, 8), UnitNorm(), ConstantFeature(0.5)),
]


def behind(transform, X, y):
    """A real release of records that a plan transforms."""
    features = transforms.output_features(transform, X.shape[1])
    schema = ps.ClassSchema(4, features, "NAS", 20.0, transform=transform)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=ps.NoPrivacy())
    return ps.simulate(plan, [(X[k::2], y[k::2]) for k in range(2)])


@functools.cache
def released_behind(transform):
    """A release behind a transform, and its records: made once for all tests of it."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    X = rng.normal(size=(200, 6)) + 2 * np.eye(4, 6)[y]
    return behind(transform, X, y), X


def kinds(transform):
    return "+".join(step.kind for step in transform)


@pytest.mark.parametrize("name", ["LDA", "QDA", "NaiveBayes", "LowRankQDA"])
@pytest.mark.parametrize("transform", CHAINS, ids=kinds)
def test_modules_carry_the_public_transform(transform, name, blobs):
    X, y = blobs()
    head = getattr(heads, name)().fit_release(behind(transform, X, y))
    raw = np.r_[X, 100 * X, np.zeros((1, 6))]
    scores = heads.to_module(head)(torch.tensor(raw)).numpy()
    np.testing.assert_array_equal(head.classes_[scores.argmax(axis=1)], head.predict(raw))
    np.testing.assert_allclose(scores, head._scores(raw), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("transform", CHAINS, ids=kinds)
def test_every_transform_is_traced_reloaded_and_scores_the_same(transform):
    release, X = released_behind(transform)
    head = heads.LDA().fit_release(release)
    served = traced(heads.to_module(head), torch.tensor(X[:3]))
    rows = hard_rows(X[:40])
    same_scores(served(torch.tensor(rows)).numpy(), head, rows, 1e-9)


@pytest.mark.ci
def test_what_the_default_plan_does_is_exported_reloaded_and_scores_the_same():
    release, X = released_behind((CentreRows(), UnitNorm()))
    head, rows = heads.QDA().fit_release(release), hard_rows(X[:40])
    served = exported(heads.to_module(head), torch.tensor(X[:3]))
    same_scores(served(torch.tensor(rows)).numpy(), head, rows, 1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("transform", "name"),
    [
        pytest.param(transform, name, id=f"{kinds(transform)}-{name}")
        for place, transform in enumerate(CHAINS)
        for name in CLOSED[place % 3 :: sized(3, 1)]
    ],
)
def test_every_head_behind_every_transform_is_exported_and_traced(transform, name):
    release, X = released_behind(transform)
    head, rows = quick(name).fit_release(release), hard_rows(X[:40])
    module = heads.to_module(head)
    for served in (exported(module, torch.tensor(X[:3])), traced(module, torch.tensor(X[:3]))):
        same_scores(served(torch.tensor(rows)).numpy(), head, rows, 1e-8)


@pytest.mark.parametrize("transform", CHAINS, ids=kinds)
def test_a_module_of_float32_holds_no_other_number(transform):
    release, X = released_behind(transform)
    head, rows = heads.QDA().fit_release(release), np.r_[X, 100 * X, 1e-30 * X, np.zeros((1, 6))]
    module = heads.to_module(head, precision="float32")
    scores = module(torch.tensor(rows))
    assert (scores.dtype, {buffer.dtype for buffer in module.buffers()}) == (torch.float32, {torch.float32})
    assert np.isfinite(scores.numpy()).all()
    usual = slice(0, 400)
    same_scores(scores[usual].numpy(), head, rows[usual], 3e-5)
    assert np.mean(head.classes_[scores.argmax(1).numpy()][usual] == head.predict(rows[usual])) > 0.995


def test_a_precision_that_there_is_not_is_refused(blobs):
    head = heads.LDA().fit(*blobs())
    with pytest.raises(HeadError, match="precision must be one of 'float64', 'float32', got 'float16'"):
        heads.to_module(head, precision="float16")


@pytest.mark.parametrize("name", CLOSED)
def test_a_rule_of_arrays_scores_in_its_graph_as_it_scores(name, blobs):
    """The one sequence of operations that every export records, run on numpy arrays."""
    X, y = blobs()
    rule = quick(name).fit(X, y).rule_
    np.testing.assert_allclose(rule.in_graph(SimpleNamespace(**rule.arrays()), X), rule.scores(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("transform", [(), (RandomFourier(3, 4, 4),)], ids=["plain", "mapped"])
def test_modules_cut_negative_entries_where_the_release_did(transform):
    schema = ps.ClassSchema(3, 4, "NAS", 1.0, nonnegative=True, transform=transform)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 90), privacy=ps.NoPrivacy())
    X, y = np.random.default_rng(0).normal(size=(90, 4)), np.arange(90) % 3
    release = ps.session.aggregate_unmasked(plan, [ps.measure(schema, X[k::2], y[k::2]) for k in range(2)])
    head = heads.QDA().fit_release(release)
    scores = heads.to_module(head)(torch.tensor(X)).numpy()
    np.testing.assert_allclose(scores, head.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("transform", CHAINS, ids=kinds)
def test_linear_layers_compose_affine_transforms_and_refuse_others(transform, blobs):
    X, y = blobs()
    head = heads.LDA().fit_release(behind(transform, X, y))
    if {step.kind for step in transform} & {"unit-norm", "random-relu", "random-fourier"}:
        with pytest.raises(HeadError, match=r"stands behind the transform '[a-z-]+', which no linear layer can hold"):
            heads.to_linear(head)
        return
    inside = X[np.linalg.norm(transforms.apply(transform, X), axis=1) <= 20.0]
    scores = heads.to_linear(head)(torch.tensor(inside, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(scores, head._scores(inside), rtol=1e-3, atol=1e-2)
    assert (head.classes_[scores.argmax(axis=1)] == head.predict(inside)).all()


def test_products_of_columns_are_exported_and_are_no_linear_layer():
    release, X = released_behind((Interactions(((0, 1), (5, 2))),))
    head = heads.LDA().fit_release(release)
    served = traced(heads.to_module(head), torch.tensor(X[:3]))
    np.testing.assert_allclose(served(torch.tensor(X[:40])).numpy(), head._scores(X[:40]), atol=1e-9)
    with pytest.raises(HeadError, match="stands behind the transform 'interactions'"):
        heads.to_linear(head)


def test_every_kind_of_transform_is_among_the_chains():
    public = [value for name in transforms.__all__ if isinstance(value := getattr(transforms, name), type)]
    maps = {each for each in public if issubclass(each, Transform)} - {Transform}
    # of codes, arms, texts, and products, which overflow on hard rows: tests of their own
    elsewhere = {transforms.Cells, transforms.ByArm, transforms.Levels, Interactions}
    assert {type(step) for chain in CHAINS for step in chain} == maps - elsewhere
    for chain in CHAINS:
        assert transforms.input_features(chain, transforms.output_features(chain, 6)) == 6


def test_a_ridge_module_predicts_from_raw_rows(blobs):
    X, _ = blobs()
    schema = ps.RidgeSchema(7, clip_norm=30.0, target_bound=20.0, transform=(CentreRows(), ConstantFeature(1.0)))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=ps.NoPrivacy())
    head = heads.Ridge(penalty=1.0).fit_release(ps.simulate(plan, [(X[k::2], X[k::2, 0]) for k in range(2)]))
    module, layer = heads.to_module(head), heads.to_linear(head)
    np.testing.assert_allclose(module(torch.tensor(X))[:, 0].numpy(), head.predict(X), atol=1e-9)
    rows = torch.tensor(X, dtype=torch.float32)
    np.testing.assert_allclose(layer(rows)[:, 0].detach().numpy(), head.predict(X), atol=1e-3)


class Doubled(Transform):
    """A map of somebody else that gives numpy arrays whatever comes in."""

    kind = "doubled-for-a-test"

    def apply(self, rows):
        return 2.0 * np.asarray(rows)

    def outputs(self, inputs):
        return inputs


class Halved(Doubled):
    """A map of somebody else that stumbles over tensors."""

    kind = "halved-for-a-test"

    def apply(self, rows):
        return rows.astype(np.float64) / 2


@pytest.mark.parametrize("step", [Doubled(), Halved()], ids=lambda step: step.kind)
def test_a_map_that_takes_no_tensors_is_refused(step, blobs):
    X, y = blobs()
    head = heads.LDA().fit_release(class_release(X, y, transform=(step,)))
    refused(HeadError, f"'{step.kind}' does not take torch tensors.*serve the head itself", heads.to_module, head)


@pytest.mark.parametrize("export", [heads.to_module, heads.to_linear])
def test_what_is_no_head_is_refused(export):
    refused(HeadError, "takes a fitted head of privstats.heads, got LinearRegression", export, LinearRegression())
