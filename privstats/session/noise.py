"""Sample the noise of a plan's parties, releases and streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privstats import domains, dp
from privstats.dp import Noise
from privstats.encoding import Layout, RingVector
from privstats.plan import Plan
from privstats.progress import track
from privstats.randomness import Generator, bound_to
from privstats.secagg.machines import ROOT_BYTES, Opening, layer_seeds
from privstats.session.validation import require_plan


def client_noise(noise: Noise, layout: Layout, rng: Generator) -> tuple[NDArray[np.int64], bytes]:
    """Sample one client's noise, int64 ``(layout.size,)`` in wire steps, and return its layers' secret, or b"", too."""
    root = rng.bytes(ROOT_BYTES) if noise.levels else b""
    layers = ([Generator(seed) for seed in layer_seeds(root, len(noise.levels) - 1)],) if noise.levels else ()
    return dp.draw_share(noise, layout, rng, *layers), root


def helper_noise(plan: Plan) -> Callable[[bytes], RingVector] | None:
    """Return a function from 32 secret bytes to a helper's noise in the plan's ring; None except in the panel model.

    Guarantee:
        Each sample is the full noise of the plan (``dp.draw_member``), equal for equal bytes and unrelated for
        different bytes. An answer with this noise is mu-GDP toward the leader and all other helpers together. The
        condition: only this helper has the bytes, and no other bytes serve the same sum.

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

    def sample(seed: bytes) -> RingVector:
        rng = bound_to(seed, domains.HELPER_NOISE, plan.digest.encode())
        return plan.ring.encode(dp.draw_member(noise, plan.layout, rng))

    return sample


def without_excess(plan: Plan, total: RingVector, openings: Mapping[int, Opening]) -> RingVector:
    """Subtract the noise layers that the clients opened."""
    noise, opened = plan.noise, [each.seeds for each in openings.values() if each.seeds]
    if noise is None or not opened:
        return total
    excess = np.zeros(plan.layout.size, np.int64)
    for seeds in track("removing noise", opened):
        excess += dp.draw_layers(noise, plan.layout, [Generator(seed) for seed in seeds])
    needed = plan.ring.encode(-excess)
    needed.add(total)
    return needed


def with_central_noise(plan: Plan, total: RingVector, rng: Generator) -> RingVector:
    """Add the noise of the server, or of a panel's leader, in the ring; other models add nothing."""
    noise = plan.noise
    if noise is None or not noise.trust.at_release:
        return total
    of_panel = noise.trust.drawn_by == "member"
    sampled = dp.draw_member(noise, plan.layout, rng) if of_panel else dp.draw_central(noise, plan.layout, rng)
    noisy = plan.ring.encode(sampled)
    noisy.add(total)
    return noisy


def epoch_noise(noise: Noise, layout: Layout, rng: Generator, fixed_bits: int) -> NDArray[np.int64]:
    """Sample the noise of one epoch of a stream, in steps of ``2**-fixed_bits`` of a wire step.

    These steps are finer, because the stream's server multiplies each epoch by a weight.
    """
    sigmas = [noise.share_sigma(segment) * (1 << fixed_bits) for segment in layout.segments]
    samples = [dp.rounded_gaussian(sigma, each.size, rng) for sigma, each in zip(sigmas, layout.segments, strict=True)]
    return np.concatenate(samples)
