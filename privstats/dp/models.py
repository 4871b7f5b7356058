"""The trust models: who draws the noise, in how many shares, from which distribution, and who must be trusted.

All other code looks a model up in this table and never compares its name. The table is independent of schema and
promise: ``calibration`` sizes the noise and ``mechanisms`` draws it.

Distributed noise is priced as a Gaussian, not through zCDP. A sum of discrete Gaussians with 4 grid steps^2 of extra
variance is a randomised rounding of a continuous Gaussian up to 1e-20, so the exact curve applies; docs/privacy.md
has the proof. The conversion from zCDP would ask for 5 to 9 % more noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp.samplers import discrete_gaussian, rounded_gaussian
from privstats.randomness import Generator
from privstats.tables import by_name

__all__ = ["MARGIN", "MODELS", "ROUNDING_VARIANCE", "Model", "Sampler", "TrustModel"]

Model: TypeAlias = Literal["central", "distributed", "local", "panel"]
Drawer: TypeAlias = Literal["server", "client", "member"]
Sampler: TypeAlias = Callable[[float, int, Generator], NDArray[np.int64]]
"""Samples of one law: sigma in grid steps, how many, and where the randomness comes from."""

ROUNDING_VARIANCE = 4.0
"""Variance by which a discrete Gaussian falls short of a continuous one, in squared grid steps; docs/privacy.md."""

MARGIN = 1 - 2.0**-40
"""Factor on the promised epsilon and delta before noise is sized: covers rounding, and the slack of a model.

A plan is sized for mu with delta(mu, m epsilon) = m delta, where m = 1 - g; float arithmetic (the root, the shares, the
squares of the joint mu) leaves it at mu (1 + r). To first order delta rises by r mu phi(a), with a = epsilon / mu - mu
/ 2, and the margin has lowered it by g phi(a) (epsilon R(b) + R(a) - R(b)), with b = a + mu and Mills' ratio R, because
d delta / d mu = phi(a), d delta / d epsilon = -e^epsilon Phi(-b) = -phi(a) R(b) and delta = phi(a) (R(a) - R(b)). So g
>= K r is enough, with K = mu / (epsilon R(b) + R(a) - R(b)), which is at most 2. Here g = 2**-40 = 9e-13 covers r up to
4e-13; what was found in plans is 1e-15. The slack of distributed noise is below 1e-20 (docs/privacy.md). It costs 1e-12
of the noise.
"""


@dataclass(frozen=True, kw_only=True)
class TrustModel:
    """One row: how noise of a known size enters a sum. By default rounded Gaussians are drawn, undivided.

    Attributes:
        name: as plans and ledgers write it.
        drawn_by: the ``"server"``, once per release; every ``"client"``, once per upload; or every
            ``"member"`` of the panel, each helper inside its one answer and the leader once per release.
        trusted: a sentence for people: who must do what for the promise to hold.
        divided: a client draws a share of the noise, and only the honest shares together keep the promise.
        sampler: the distribution of one draw.
        rounding: how far one draw may exceed a sub-Gaussian of its own sigma, in grid steps.
        surplus_variance: variance that the honest shares carry on top of the guaranteed one, in squared grid steps.
        slack: max-divergence per entry between the drawn noise and post-processed Gaussian noise.
        margin: factor on epsilon and delta that covers rounding and the slack; see :data:`MARGIN`.
        impure: why a plan of this model cannot have delta = 0; empty where it can, with discrete Laplace noise.
    """

    name: Model
    drawn_by: Drawer
    trusted: str
    divided: bool = False
    sampler: Sampler = rounded_gaussian
    rounding: float = 0.5
    surplus_variance: float = 0.0
    slack: float = 0.0
    margin: float = MARGIN
    impure: str = ""

    def shares(self, honest: int) -> int:
        """Draws that together carry the guaranteed noise, where ``honest`` clients' draws are certain to be there."""
        return honest if self.divided else 1

    @property
    def at_release(self) -> bool:
        """Whether noise is still due on an unmasked sum: the server's, or that of the leader of a panel."""
        return self.drawn_by != "client"

    def draws(self, clients: int, members: int) -> int:
        """Draws that are in a released sum of ``clients``, made by ``members`` of a panel; 1 where none draws."""
        return clients if self.drawn_by == "client" else members


_ROWS = (
    TrustModel(
        name="central",
        drawn_by="server",
        trusted="the server, which sees the exact sum, must add its noise and keep both secret",
    ),
    TrustModel(
        name="distributed",
        drawn_by="client",
        divided=True,
        sampler=discrete_gaussian,
        rounding=0.0,
        surplus_variance=ROUNDING_VARIANCE,
        slack=1e-66 + 2.1e-34,  # summing shares, and one discrete against one continuous Gaussian
        impure="a share would be a difference of negative binomials, and masks hide shares only from bounded computers",
        trusted="min_survivors - colluders clients must add their shares; the server need not be trusted",
    ),
    TrustModel(
        name="local",
        drawn_by="client",
        impure="no tail of the sum of all clients' Laplace noise is proved, and the ring's width needs one",
        trusted="no other party: each client's own noise keeps the promise to it, whatever all others do",
    ),
    TrustModel(
        name="panel",
        drawn_by="member",
        impure="the members' boxes hide the exact sum only from bounded computers",
        trusted="one of leader and helpers must add its noise and keep it secret; no party sees the exact sum",
    ),
)
MODELS: Mapping[Model, TrustModel] = MappingProxyType(by_name(_ROWS, lambda row: row.name, "trust model"))
"""The trust models by name."""
