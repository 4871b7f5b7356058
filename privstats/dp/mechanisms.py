"""Drawing a release's noise on the flat integer layout: central, distributed, local and a panel's.

The levels come from a ``Noise`` and the distribution from its trust model. A client adds its share before the ring, the
server adds central noise after the ring and before the centre lift, and a member of a panel adds its noise in the ring.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.dp.calibration import Noise
from privstats.dp.samplers import discrete_laplace
from privstats.encoding import Layout, Segment
from privstats.errors import PlanError
from privstats.randomness import Generator

__all__ = ["draw_central", "draw_member", "draw_share"]


def draw_central(noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    """The server's noise for one release: int64, shape ``(layout.size,)``, grid steps.

    Guarantee:
        Exact sum + this is exactly ``noise.mu``-GDP for the unit and adjacency of the promise, because rounding the
        noise equals rounding the noisy value; of a pure promise it is epsilon-DP with delta = 0. Assumes that the
        server is honest and keeps ``rng`` secret.

    Raises:
        ValueError: the model is not central.

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
    return _draw(noise, layout, rng)


def draw_share(noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    """One client's noise: its share in the distributed model, all of it in the local one; int64, grid steps.

    Guarantee:
        Distributed: with at least ``noise.honest_shares`` such shares from honest clients in it, the sum meets the
        promise whatever the other parties do. Local: this client's upload alone meets it.

    Raises:
        ValueError: the model is central or panel, where clients add nothing.

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
    return _draw(noise, layout, rng)


def draw_member(noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    """The full noise of one member of the panel, its leader or a helper: int64, shape ``(layout.size,)``, grid steps.

    Guarantee:
        Exact sum + this is exactly ``noise.mu``-GDP for the unit and adjacency of the promise, as in the central model;
        the noise of the other members is added to that, so it is post-processing. Assumes that this member draws it
        once per sum and keeps ``rng`` secret, and nothing of any other member.

    Raises:
        ValueError: the model is not panel.

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
    return _draw(noise, layout, rng)


def _draw(noise: Noise, layout: Layout, rng: Generator) -> NDArray[np.int64]:
    bare = sorted({segment.statistic for segment in layout.segments}.difference(noise.sigma))
    if bare:
        raise PlanError(f"noise has no level for {', '.join(bare)}, which the layout holds; give both of one plan")
    return np.concatenate([_of_segment(noise, segment, rng) for segment in layout.segments])


def _of_segment(noise: Noise, segment: Segment, rng: Generator) -> NDArray[np.int64]:
    if noise.pure:
        return discrete_laplace(noise.scales[segment.statistic], segment.size, rng)
    return noise.trust.sampler(noise.share_sigma(segment), segment.size, rng)
