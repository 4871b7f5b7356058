"""From a plan's promise to the released integers: the noise is all there, in its place, and decides before anything."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.dp import draw_central, draw_share, gaussian_mu, joint_mu
from privstats.encoding import flatten
from privstats.randomness import seeded
from tests import made

SCHEMA = ps.ClassSchema(3, 8, "NAB", 1.0)
RNG = np.random.default_rng(3)
MOMENTS = ps.measure(SCHEMA, RNG.normal(size=(60, 8)), RNG.integers(0, 3, 60))


def plan(model="central", schema=SCHEMA, min_count=0, **change):
    privacy = made.promise(model, **{"delta": 1e-6, **change})
    return made.plan(schema, ps.Cohort(8, 5, 2000, colluders=1), privacy, min_count=min_count)


def total_of(subject, moments=MOMENTS):
    return subject.ring.encode(flatten(moments))


def released(subject, seed, total=None):
    parts = (subject, total or total_of(subject), tuple(range(5)), seeded(seed))
    return ps.session.release(*parts, "uncharged", allow_reproducible=True)


@pytest.mark.parametrize("model", made.MODELS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_noise_of_a_plan_keeps_its_promise(model, adjacency):
    subject = plan(model, adjacency=adjacency, epsilon=2.0)
    assert joint_mu(SCHEMA, subject.noise.sigma, adjacency) == pytest.approx(gaussian_mu(2.0, 1e-6), rel=1e-9)


def test_the_honest_survivors_alone_carry_the_noise_of_a_plan():
    """Neither those who may vanish nor those who may collude are counted on."""
    subject = plan("distributed")
    for segment in subject.layout.segments:
        shares = (5 - 1) * subject.noise.share_sigma(segment) ** 2
        assert shares - 4 == pytest.approx(subject.noise.grid_sigma(segment) ** 2, rel=1e-9)


def test_noise_is_laid_out_on_the_grid_of_its_sums():
    subject = plan()
    for segment in subject.layout.segments:
        steps = subject.noise.sigma[segment.statistic] * SCHEMA.scale_of(segment.statistic)
        expected = steps / np.sqrt(2) if segment.name == "B.off" else steps
        assert subject.noise.grid_sigma(segment) == pytest.approx(expected)


@pytest.mark.parametrize("model", made.MODELS)
def test_noise_has_the_tails_of_a_gaussian(model):
    """Beyond 3 sigma lie 2.7 in a thousand: a cut would leave nothing there."""
    subject = plan(model, ps.ClassSchema(100, 400, "NA", 1.0))
    draw = draw_central if model == "central" else draw_share
    sample = draw(subject.noise, subject.layout, seeded(1))
    scale = np.concatenate([np.full(s.size, subject.noise.share_sigma(s)) for s in subject.layout.segments])
    beyond = int((np.abs(sample) > 3 * scale).sum())
    expected = 0.0026998 * len(sample)
    assert abs(beyond - expected) < 6 * np.sqrt(expected)


@pytest.mark.parametrize("model", made.MODELS)
def test_the_segments_of_a_release_have_independent_noise(model):
    """The noise of two segments is compared place by place: one stream used for both would be all correlation."""
    subject = plan(model, ps.ClassSchema(3, 60, "NAB", 1.0))
    draw = draw_central if model == "central" else draw_share
    sample = draw(subject.noise, subject.layout, seeded(2))
    parts = [sample[place] for place in subject.layout.slices if place.stop - place.start >= 60]
    for left, right in ((0, 1), (0, 2), (1, 2)):
        n = min(len(parts[left]), len(parts[right]))
        assert abs(np.corrcoef(parts[left][:n], parts[right][:n])[0, 1]) < 5 / np.sqrt(n)


def test_one_local_upload_carries_all_of_its_noise():
    schema = ps.ClassSchema(20, 200, "NA", 1.0)
    subject = plan("local", schema)
    empty = ps.measure(schema, np.zeros((0, 200)), np.zeros(0, int))
    upload = ps.session.contribution(subject, empty, seeded(4), allow_reproducible=True).vector.lift()
    place = subject.layout.slices[1]
    level = subject.noise.sigma["A"] * schema.scale
    assert upload[place].std() == pytest.approx(level, rel=0.05)


def test_the_minimum_count_is_decided_by_the_noisy_count():
    """A class at the minimum stays or goes as its noise falls, and never as its exact count says."""
    subject = plan(min_count=20)
    lenient = replace(subject, min_count=0)
    for seed in range(40):
        noisy = released(lenient, seed).moments.N
        assert released(subject, seed).suppressed == tuple(np.flatnonzero(noisy < 20))


def test_a_target_beyond_its_bound_is_clipped():
    schema = ps.RidgeSchema(3, 2, clip_norm=1.0, target_bound=2.0)
    x, y = np.ones((1, 3)) / 2, np.array([[2.0, 0.0]])
    assert ps.measure(schema, x, 50 * y).q <= schema.grid_steps**2
    assert ps.measure(schema, x, y).q == schema.grid_steps**2
