"""Exported modules score as the heads do."""

from __future__ import annotations

import numpy as np
import pytest

from privstats import heads
from privstats.errors import HeadError
from tests.heads.conftest import class_release, ridge_release

pytestmark = pytest.mark.filterwarnings("ignore:this release has no constant feature")

torch = pytest.importorskip("torch")
FITTED = [
    heads.LDA(),
    heads.NaiveBayes(),
    heads.QDA(),
    heads.RDA(),
    heads.LowRankQDA(rank=2),
    heads.LowRankQDA(rank=0),
    heads.RidgeClassifier(),
    heads.ProtoHyper(per_class=20, max_rounds=1),
]


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
