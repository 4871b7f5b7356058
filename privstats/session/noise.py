"""The one place that draws a plan's noise: a client's, a helper's, what is due at the release, an epoch's of a stream.

Levels and laws are ``dp``'s. Here is who draws, from which generator, and where it is added; nothing else outside
``dp`` calls a sampler (``tests/project/test_core.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privstats import dp
from privstats.dp import Noise
from privstats.encoding import Layout, RingVector
from privstats.plan import Plan
from privstats.progress import track
from privstats.randomness import Generator, bound_to
from privstats.secagg.machines import ROOT_BYTES, Opening, layer_seeds
from privstats.session.validation import require_plan

_HELPER_NOISE = b"privstats/upload/noise/1"


def client_noise(noise: Noise, layout: Layout, rng: Generator) -> tuple[NDArray[np.int64], bytes]:
    """One client's noise, int64 of shape ``(layout.size,)`` in grid steps, and what its layers are drawn from; that is
    empty where it has none."""
    root = rng.bytes(ROOT_BYTES) if noise.levels else b""
    layers = ([Generator(seed) for seed in layer_seeds(root, len(noise.levels) - 1)],) if noise.levels else ()
    return dp.draw_share(noise, layout, rng, *layers), root


def helper_noise(plan: Plan) -> Callable[[bytes], RingVector] | None:
    """What draws a helper's noise from 32 secret bytes, in the plan's ring; None in every model but the panel's.

    For a helper's machine and its journal, which give it bytes that follow from the box key and the answered list.

    Args:
        plan: the plan all parties agreed on.

    Guarantee:
        A draw is the full noise of the plan (``dp.draw_member``), the same for the same bytes and unrelated for any
        others: an answer with it in is mu-GDP toward the leader and all other helpers together, if the bytes stay with
        this helper and no others draw for the same sum.

    Example:
        >>> panel = [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2)]
        >>> privacy = ps.Privacy(model="panel", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> named = {"cohort": ps.Cohort(3, 3, 100), "privacy": privacy, "protocol": "split", "panel": panel}
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), **named)
        >>> draw = ps.session.helper_noise(plan)
        >>> draw(os.urandom(32)).lift().tolist() == draw(os.urandom(32)).lift().tolist()
        False
    """
    require_plan(plan)
    noise = plan.noise
    if noise is None or noise.trust.drawn_by != "member":
        return None

    def draw(seed: bytes) -> RingVector:
        return plan.ring.encode(dp.draw_member(noise, plan.layout, bound_to(seed, _HELPER_NOISE, plan.digest.encode())))

    return draw


def without_excess(plan: Plan, total: RingVector, openings: Mapping[int, Opening]) -> RingVector:
    """The sum without the layers of noise that its clients opened; the sum itself where there are none."""
    noise, given = plan.noise, [each.seeds for each in openings.values() if each.seeds]
    if noise is None or not given:
        return total
    excess = np.zeros(plan.layout.size, np.int64)
    for seeds in track("removing noise", given):
        excess += dp.draw_layers(noise, plan.layout, [Generator(seed) for seed in seeds])
    needed = plan.ring.encode(-excess)
    needed.add(total)
    return needed


def with_central_noise(plan: Plan, total: RingVector, rng: Generator) -> RingVector:
    """The sum plus the noise of the server, or of a panel's leader, still in the ring; the sum itself elsewhere."""
    noise = plan.noise
    if noise is None or not noise.trust.at_release:
        return total
    of_panel = noise.trust.drawn_by == "member"
    drawn = dp.draw_member(noise, plan.layout, rng) if of_panel else dp.draw_central(noise, plan.layout, rng)
    noisy = plan.ring.encode(drawn)
    noisy.add(total)
    return noisy


def epoch_noise(noise: Noise, layout: Layout, rng: Generator, fixed_bits: int) -> NDArray[np.int64]:
    """The noise of one epoch of a stream that a server weighs, in steps of ``2**-fixed_bits`` of a grid step."""
    sigmas = [noise.share_sigma(segment) * (1 << fixed_bits) for segment in layout.segments]
    drawn = [dp.rounded_gaussian(sigma, each.size, rng) for sigma, each in zip(sigmas, layout.segments, strict=True)]
    return np.concatenate(drawn)
