"""Sample a release's noise for the flat integer vector: central, distributed, local and a panel's.

- Distributed, local: clients add noise before they encode into the ring.
- Panel: helpers add noise to their answers in the ring.
- Central, panel: server or leader adds noise to the ring sum, before the lift.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privstats.dp.calibration import Noise
from privstats.dp.samplers import discrete_laplace
from privstats.encoding import Layout, Segment
from privstats.errors import PlanError
from privstats.randomness import Generator


def draw_central(noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    """Sample the server's noise for one release: int64, shape ``(layout.size,)``, wire steps.

    Guarantee:
        The exact sum plus this noise is exactly ``noise.mu``-GDP for the promise's unit and adjacency, because
        rounding the noise equals rounding the noisy value. With delta = 0 the noisy sum is epsilon-DP. The server
        must be honest and keep ``rng`` secret.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=privacy)
        >>> ps.dp.draw_central(plan.noise, plan.layout, randomness.seeded(0)).shape
        (6,)
    """
    if noise.trust.drawn_by != "server":
        raise ValueError(f"the server adds noise only in the central model, not in the {noise.model} one")
    return _sample(noise, layout, rng)


def draw_share(noise: Noise, layout: Layout, rng: Generator, layers: Sequence[Generator] = ()) -> NDArray[np.int64]:
    """Sample one client's noise, its share or (local) the full noise; int64, wire steps.

    Args:
        rng: the client's secret generator.
        layers: one separately seeded generator per layer, lowest first.

    Guarantee:
        Distributed: a sum with at least ``noise.honest_shares`` honest shares meets the promise, whatever other parties
        do. With ``noise.levels[j] - noise.levels[0]`` more honest shares it still does after each client has revealed
        its j lowest layers. Local: this client's upload alone meets the promise.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=privacy)
        >>> ps.dp.draw_share(plan.noise, plan.layout, randomness.seeded(0)).shape
        (6,)
    """
    if noise.trust.drawn_by != "client":
        raise ValueError(f"clients add no noise in the {noise.model} model")
    if len(layers) != max(0, len(noise.levels) - 1):
        raise ValueError(f"a share of this noise has {max(0, len(noise.levels) - 1)} layers, got {len(layers)}")
    if noise.levels:
        return _sample_layer(0, noise, layout, rng) + draw_layers(noise, layout, layers)
    return _sample(noise, layout, rng)


def draw_layers(noise: Noise, layout: Layout, layers: Sequence[Generator]) -> NDArray[np.int64]:
    """Sample and sum the lowest layers of one client's share: int64, wire steps.

    A server with the layers' seeds gets integers equal to the client's if both compute equal sigmas (``layer_sigmas``).

    Example:
        >>> from privstats import randomness
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(6, 4, 100)
        >>> privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy, excess_noise="removed")
        >>> first, again = ([randomness.Generator(bytes(32)), randomness.seeded(1)] for _ in range(2))
        >>> one, other = (ps.dp.draw_layers(plan.noise, plan.layout, seeds) for seeds in (first, again))
        >>> bool((one == other).all())
        True
    """
    if len(layers) >= max(1, len(noise.levels)):
        raise ValueError(f"this noise has {max(0, len(noise.levels) - 1)} layers, got {len(layers)}")
    total = np.zeros(layout.size, np.int64)
    for place, rng in enumerate(layers, start=1):
        total += _sample_layer(place, noise, layout, rng)
    return total


def draw_member(noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    """Sample one panel member's full noise: int64, shape ``(layout.size,)``, wire steps.

    Guarantee:
        The exact sum plus this noise is exactly ``noise.mu``-GDP for the promise's unit and adjacency, as in the
        central model. Other members' noise is post-processing. This member must sample once per sum and keep ``rng``
        secret. Nothing is assumed about other members.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="panel", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> noise = ps.dp.calibrate(schema, privacy, honest_shares=1, members=3)
        >>> ps.dp.draw_member(noise, ps.encoding.layout_of(schema), randomness.seeded(0)).shape
        (6,)
    """
    if noise.trust.drawn_by != "member":
        raise ValueError(f"leader and helpers add noise only in the panel model, not in the {noise.model} one")
    return _sample(noise, layout, rng)


def _sample(noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    bare = sorted({segment.statistic for segment in layout.segments}.difference(noise.sigma))
    if bare:
        raise PlanError(f"noise has no scale for {', '.join(bare)}, which the layout has; pass both from one plan")
    return np.concatenate([_of_segment(noise, segment, rng) for segment in layout.segments])


def _sample_layer(place: int, noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    samples = (noise.trust.sampler(noise.layered_sigmas(each)[place], each.size, rng) for each in layout.segments)
    return np.concatenate(list(samples))


def _of_segment(noise: Noise, segment: Segment, rng: Generator) -> NDArray[np.int64]:
    if noise.pure:
        return discrete_laplace(noise.scales[segment.statistic], segment.size, rng)
    return noise.trust.sampler(noise.share_sigma(segment), segment.size, rng)
