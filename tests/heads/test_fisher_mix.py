"""FisherMix finds the optimum of its samples."""

from __future__ import annotations

import pytest

from privstats.heads import LDA, FisherMix

pytest.importorskip("torch")


def test_fisher_mix_converges_to_the_bayes_boundary_of_its_samples(blobs):
    X, y = blobs(n=4000, spread=1.0)
    head = FisherMix(per_class=5000, dispersion=1.0, pooled_weight=1.0, weight_decay=0.0, max_rounds=60).fit(X, y)
    assert head.convergence_.converged
    lda = LDA().fit(X, y)
    assert (head.predict(X) == lda.predict(X)).mean() > 0.97  # with one covariance LDA is the optimum
