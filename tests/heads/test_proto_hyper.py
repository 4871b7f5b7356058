"""ProtoHyper learns from its teacher, whatever base and teacher are."""

from __future__ import annotations

import numpy as np
import pytest

from privstats.heads import ProtoHyper

pytest.importorskip("torch")


def test_distillation_moves_a_weak_base_toward_its_teacher(blobs):
    X, y = blobs(n=4000, d=8, classes=5, spread=1.0)
    base = ProtoHyper(base="nb", max_rounds=1, rank=4)
    taught = ProtoHyper(base="nb", teacher="rda", max_rounds=20, rank=4, per_class=1000)
    assert np.abs(taught.fit(X, y).residual_).max() > 0.01
    assert np.linalg.matrix_rank(taught.residual_, tol=1e-6) <= 4
    assert taught.score(X, y) >= base.fit(X, y).score(X, y) - 0.02


@pytest.mark.parametrize("teacher", ["rda", "lda", "blend"])
@pytest.mark.parametrize("base", ["rda", "lda", "nb"])
def test_every_base_learns_from_every_teacher(base, teacher, blobs):
    X, y = blobs()
    head = ProtoHyper(base=base, teacher=teacher, per_class=100, max_rounds=2).fit(X, y)
    assert head.score(X, y) > 0.7
