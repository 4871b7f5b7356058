"""Noise lands where the layout says, with the level the calibration says."""

import numpy as np
import pytest
from scipy.stats import kstest

import privstats as ps
from privstats.dp import Privacy, calibrate, draw_central, draw_member, draw_share
from privstats.dp.privacy import MODELS

SCHEMAS = [
    ps.ClassSchema(5, 40, "NABD", 2.0),
    ps.ClassSchema(5, 12, "NAS", 2.0),
    ps.RidgeSchema(40, 3, clip_norm=2.0, target_bound=0.5, folds=4),
]


def noise_of(schema, model, honest=6):
    privacy = Privacy(model=model, unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    return calibrate(schema, privacy, honest_shares=honest, members=3 if privacy.trust.drawn_by == "member" else 1)


DRAWS = {"server": draw_central, "client": draw_share, "member": draw_member}


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("model", MODELS)
def test_every_segment_carries_its_own_noise(schema, model):
    noise, layout = noise_of(schema, model), ps.encoding.layout_of(schema)
    draw = DRAWS[noise.trust.drawn_by]
    sample = np.concatenate([draw(noise, layout, ps.randomness.seeded(i))[None] for i in range(40)])
    assert (sample.dtype, sample.shape) == (np.int64, (40, layout.size))
    for segment, place in zip(layout.segments, layout.slices, strict=True):
        scaled = sample[:, place].ravel() / noise.share_sigma(segment)
        assert kstest(scaled, "norm").pvalue > 1e-6


def test_off_diagonal_noise_is_the_diagonals_over_root_two():
    schema = ps.ClassSchema(2, 200, "NAB", 1.0)
    noise, layout = noise_of(schema, "central"), ps.encoding.layout_of(schema)
    diagonal, off = (layout.segments[i] for i in (2, 3))
    assert noise.share_sigma(off) == pytest.approx(noise.share_sigma(diagonal) / np.sqrt(2))
    sample = draw_central(noise, layout, ps.randomness.seeded(1))
    ratio = sample[layout.slices[3]].std() / sample[layout.slices[2]].std()
    assert ratio == pytest.approx(2**-0.5, rel=0.15)


def test_shares_of_six_clients_sum_to_the_noise_of_one_server():
    schema = SCHEMAS[0]
    layout = ps.encoding.layout_of(schema)
    shares = noise_of(schema, "distributed")
    total = sum(draw_share(shares, layout, ps.randomness.seeded(i)) for i in range(6))
    central = noise_of(schema, "central")
    for segment, place in zip(layout.segments, layout.slices, strict=True):
        assert kstest(total[place] / central.grid_sigma(segment), "norm").pvalue > 1e-6
