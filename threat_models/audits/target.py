"""What the audits aim at: a schema, a promise and the cohort's numbers, with or without a plan around them.

A plan has all of it; audits ask for no more, so that a mechanism can be audited before there is a plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.dp import Noise, Privacy, calibrate, draw_central, draw_share
from privstats.encoding import Layout, Segment, layout_of
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.schema import Schema

__all__ = ["Target", "target_of"]


@dataclass(frozen=True)
class Target:
    """A mechanism to audit.

    Attributes:
        schema: what is measured.
        privacy: the promise under audit.
        clients: parties in the cohort.
        min_survivors: fewest that must remain.
        colluders: how many of them tell the attacker their noise.
    """

    schema: Schema
    privacy: Privacy
    clients: int = 1
    min_survivors: int = 1
    colluders: int = 0

    @property
    def honest_shares(self) -> int:
        """Clients whose noise the attacker does not know, in the worst session the plan admits."""
        return self.min_survivors - self.colluders

    @cached_property
    def noise(self) -> Noise:
        """The calibrated noise."""
        return calibrate(self.schema, self.privacy, honest_shares=self.honest_shares)

    @property
    def layout(self) -> Layout:
        """The flat vector's segments."""
        return layout_of(self.schema)

    def claimed_sigma(self) -> NDArray[np.float64]:
        """Guaranteed noise of every entry of the flat vector, in grid steps."""
        return np.concatenate([np.full(s.size, self.noise.grid_sigma(s)) for s in self.layout.segments])

    def draw(self, releases: int, rng: Generator) -> NDArray[np.int64]:
        """The noise of that many releases, ``(releases, size)``, in the session that is worst for privacy.

        Distributed: exactly ``honest_shares`` shares. Local: one client's. Drawn by the mechanisms themselves, on a
        layout that stands for all releases at once.
        """
        wide = Layout(tuple(_repeated(segment, releases) for segment in self.layout.segments))
        trust = self.privacy.trust
        draw = draw_central if trust.by_server else draw_share
        flat = draw(self.noise, wide, rng)
        for _ in range(trust.shares(self.honest_shares) - 1):
            flat += draw(self.noise, wide, rng)
        return np.hstack([flat[place].reshape(releases, -1) for place in wide.slices])


def target_of(plan: Plan) -> Target:
    """The target that a plan describes.

    Raises:
        PlanError: the plan promises nothing, so there is nothing to falsify.
    """
    if not isinstance(plan.privacy, Privacy):
        raise PlanError(
            "privacy.model is 'none': there is no claim to audit; "
            "`privstats plan check` prints the membership advantage that the plan admits"
        )
    cohort = plan.cohort
    return Target(plan.schema, plan.privacy, cohort.clients, cohort.min_survivors, cohort.colluders)


def _repeated(segment: Segment, times: int) -> Segment:
    return Segment(
        segment.name, segment.statistic, segment.size * times, segment.scale, segment.bound, segment.noise_factor
    )
