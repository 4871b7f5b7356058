"""FisherMix finds the optimum of its samples, which follow what was released."""

import numpy as np
import pytest

from privstats.heads import LDA, FisherMix
from privstats.heads.registry import HEADS, named
from tests.heads.conftest import class_release, quick

pytest.importorskip("torch")


@pytest.mark.ci
def test_fisher_mix_converges_to_the_bayes_boundary_of_its_samples(blobs):
    X, y = blobs(n=4000, spread=1.0)
    head = FisherMix(per_class=5000, dispersion=1.0, pooled_weight=1.0, weight_decay=0.0, max_rounds=60).fit(X, y)
    assert head.convergence_.converged
    lda = LDA().fit(X, y)
    assert (head.predict(X) == lda.predict(X)).mean() > 0.97  # with one covariance LDA is the optimum


@pytest.mark.parametrize("name", sorted(set(named("classes")) - set(named("classes", trained=False))))
def test_a_trained_head_reads_every_letter_of_its_row(name, blobs):
    X, y = blobs()
    told = {
        letters: quick(name).fit_release(class_release(X, y, letters)).decision_function(X)
        for letters in ("NAB", "NABD", "NAD", "NAS")
    }
    for one, other in (("NAB", "NABD"), ("NABD", "NAD"), ("NABD", "NAS")):
        assert not np.allclose(told[one], told[other])
    assert all(HEADS[name].reads(letters) == letters for letters in told)
    assert HEADS[name].reads("NASD") == "NAS"
