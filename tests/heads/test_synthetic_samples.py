"""Samples have the moments that they were drawn from."""

from __future__ import annotations

import numpy as np

from privstats.heads.synthetic import draw


def test_samples_have_the_moments_they_were_drawn_from():
    rng = np.random.default_rng(0)
    means = rng.standard_normal((2, 3)) * 5
    vectors = np.stack([np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2)])
    values = rng.uniform(0.5, 2, (2, 3))
    samples = draw(means, values, vectors, 40_000, 1.5, seed=1)
    for c in range(2):
        rows = samples.rows[samples.labels == c]
        np.testing.assert_allclose(rows.mean(axis=0), means[c], atol=0.05)
        np.testing.assert_allclose(np.cov(rows.T), 1.5**2 * (vectors[c] * values[c]) @ vectors[c].T, atol=0.15)
