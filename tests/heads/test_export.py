"""Exported modules score as the heads do, on the rows that `predict` takes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import privstats as ps
from privstats import heads, transforms
from privstats.errors import HeadError
from privstats.heads.registry import named
from privstats.transforms import (
    Centre,
    CentreRows,
    ConstantFeature,
    GaussianProjection,
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

pytestmark = pytest.mark.filterwarnings("ignore:this release has no constant feature")

torch = pytest.importorskip("torch")
FITTED = [*map(quick, named("classes")), heads.LowRankQDA(rank=0)]


@pytest.mark.parametrize("head", FITTED, ids=repr)
@pytest.mark.parametrize("clip_norm", [3.0, None])
def test_modules_score_as_the_head(head, clip_norm, blobs):
    X, y = blobs()
    head.fit_release(class_release(X, y, "NAS", clip_norm=clip_norm))
    module = heads.to_module(head)
    rows = torch.tensor(np.r_[X, 100 * X, np.zeros((1, 6))])
    np.testing.assert_allclose(module(rows).numpy(), head._scores(rows), rtol=1e-8, atol=1e-8)


def test_modules_carry_their_arrays_as_state(blobs):
    head = heads.QDA().fit(*blobs())
    assert set(heads.to_module(head).state_dict()) == set(head.rule_.arrays())


@pytest.mark.parametrize("head", [heads.LDA(), heads.RidgeClassifier(), heads.FisherMix(per_class=20, max_rounds=1)])
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
    with pytest.raises(HeadError, match="not linear"):
        heads.to_linear(heads.QDA().fit(*blobs()))


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


def test_every_kind_of_transform_is_among_the_chains():
    public = [value for name in transforms.__all__ if isinstance(value := getattr(transforms, name), type)]
    assert {type(step) for chain in CHAINS for step in chain} == set(public) - {Transform}
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
    with pytest.raises(HeadError, match=f"'{step.kind}' does not take torch tensors.*serve the head itself"):
        heads.to_module(head)


@pytest.mark.parametrize("export", [heads.to_module, heads.to_linear])
def test_what_is_no_head_is_refused(export):
    with pytest.raises(HeadError, match="takes a fitted head of privstats.heads, got LinearRegression"):
        export(LinearRegression())
