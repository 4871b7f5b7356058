"""The promise in the plan document, turned into one number by the auditor's own arithmetic.

It reads epsilon, delta, unit and adjacency and no number that the library computed from them: no noise level, no
sensitivity, no privacy curve of ``privstats.dp``. Every other audit compares with this ceiling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from privstats.dp import Privacy
from privstats.dp.privacy import Adjacency, Unit

_REACH = 40.0
_PANELS = 400
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_HALVINGS = 60


@dataclass(frozen=True)
class AuditedPromise:
    """A plan's promise about one unit.

    Attributes:
        epsilon, delta, unit, adjacency: as written.
        records: worst-case records that one unit is worth: 1, the declared clip, or the most of a client.
        mu: the Gaussian-DP parameter that (epsilon, delta) admits, or that follows from epsilon at delta 0.
    """

    epsilon: float
    delta: float
    unit: Unit
    adjacency: Adjacency
    records: float
    mu: float


def promise_of(privacy: Privacy) -> AuditedPromise:
    """The promise of a plan, from the fields of its document alone."""
    records = 1.0  # also of a person who adds the average of all rows
    if privacy.unit == "client":
        records = privacy.client_clip or float(privacy.max_records_per_client or 1)
    elif privacy.unit == "person" and not isinstance(privacy.person_clip, str):
        records = float(privacy.person_clip or 0)
    mu = mu_of(privacy.epsilon, privacy.delta) if privacy.delta else _pure_mu(privacy.epsilon)
    return AuditedPromise(privacy.epsilon, privacy.delta, privacy.unit, privacy.adjacency, records, mu)


def delta_of(mu: float, epsilon: float) -> float:
    """The hockey-stick divergence of N(mu, 1) from N(0, 1), integrated from its definition.

    The privacy loss is mu t + mu^2 / 2 for t ~ N(0, 1), so delta = E[(1 - e^(epsilon - loss))+], the integral of
    phi(t) (1 - e^(-mu (t - s))) over t > s with s = epsilon / mu - mu / 2. Gauss-Legendre on panels; the library
    evaluates a difference of Mills' ratios instead.
    """
    s = epsilon / mu - mu / 2
    low = max(s, -_REACH)
    edges = np.linspace(low, max(low, 0.0) + _REACH, _PANELS + 1)
    half = np.diff(edges)[:, None] / 2
    t = edges[:-1, None] + half * (1 + _NODES)
    inside = np.exp(-0.5 * t * t) * -np.expm1(-mu * (t - s))
    return float(np.sum(half * _WEIGHTS * inside)) / math.sqrt(2 * math.pi)


@lru_cache(maxsize=256)
def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu whose divergence at ``epsilon`` is at most ``delta``, by halving an interval in log mu."""
    low, high = math.log(1e-8), math.log(1e4)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(math.exp(middle), epsilon) <= delta else (low, middle)
    return math.exp(low)


def _pure_mu(epsilon: float) -> float:
    """The mu whose trade-off curve passes through the kink of epsilon-DP, at equal error rates 1 / (1 + e^epsilon)."""
    return 2 * float(ndtri(1 / (1 + math.exp(-epsilon))))
