"""Noise lands where the layout says, with the level the calibration says."""

import numpy as np
import pytest
from scipy.stats import kstest

from privstats import ClassSchema, RidgeSchema
from privstats.dp import Privacy, calibrate, draw_central, draw_member, draw_share
from privstats.dp.models import MODELS
from privstats.encoding import layout_of
from privstats.randomness import seeded

SCHEMAS = [
    ClassSchema(5, 40, "NABD", 2.0),
    ClassSchema(5, 12, "NAS", 2.0),
    RidgeSchema(40, 3, clip_norm=2.0, target_bound=0.5, folds=4),
]


def noise_of(schema, model, honest=6):
    privacy = Privacy(model=model, unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    return calibrate(schema, privacy, honest_shares=honest, members=3 if privacy.trust.drawn_by == "member" else 1)


DRAWS = {"server": draw_central, "client": draw_share, "member": draw_member}


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("model", MODELS)
def test_every_segment_carries_its_own_noise(schema, model):
    noise, layout = noise_of(schema, model), layout_of(schema)
    draw = DRAWS[noise.trust.drawn_by]
    sample = np.concatenate([draw(noise, layout, seeded(i))[None] for i in range(40)])
    assert sample.dtype == np.int64
    assert sample.shape == (40, layout.size)
    for segment, place in zip(layout.segments, layout.slices, strict=True):
        scaled = sample[:, place].ravel() / noise.share_sigma(segment)
        assert kstest(scaled, "norm").pvalue > 1e-6


def test_off_diagonal_noise_is_the_diagonals_over_root_two():
    schema = ClassSchema(2, 200, "NAB", 1.0)
    noise, layout = noise_of(schema, "central"), layout_of(schema)
    diagonal, off = (layout.segments[i] for i in (2, 3))
    assert noise.share_sigma(off) == pytest.approx(noise.share_sigma(diagonal) / np.sqrt(2))
    sample = draw_central(noise, layout, seeded(1))
    ratio = sample[layout.slices[3]].std() / sample[layout.slices[2]].std()
    assert ratio == pytest.approx(2**-0.5, rel=0.15)


def test_shares_of_six_clients_sum_to_the_noise_of_one_server():
    schema = SCHEMAS[0]
    layout = layout_of(schema)
    shares = noise_of(schema, "distributed")
    total = sum(draw_share(shares, layout, seeded(i)) for i in range(6))
    central = noise_of(schema, "central")
    for segment, place in zip(layout.segments, layout.slices, strict=True):
        assert kstest(total[place] / central.grid_sigma(segment), "norm").pvalue > 1e-6


def test_draws_are_reproducible_from_the_generator_alone():
    schema = SCHEMAS[1]
    noise, layout = noise_of(schema, "central"), layout_of(schema)
    np.testing.assert_array_equal(draw_central(noise, layout, seeded(3)), draw_central(noise, layout, seeded(3)))
    assert (draw_central(noise, layout, seeded(3)) != draw_central(noise, layout, seeded(4))).mean() > 0.9


def test_only_the_one_who_should_add_noise_can():
    schema = SCHEMAS[1]
    layout = layout_of(schema)
    with pytest.raises(ValueError, match="clients add no noise"):
        draw_share(noise_of(schema, "central"), layout, seeded(0))
    for model in ("distributed", "local"):
        with pytest.raises(ValueError, match="server adds noise only"):
            draw_central(noise_of(schema, model), layout, seeded(0))
