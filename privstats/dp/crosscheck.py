"""Cross-check of a calibrated release by the accountants of other libraries.

Each accountant gets the same noise multipliers, one Gaussian release per statistic, and returns its own epsilon. It is
a check that is independent of our own accounting; nothing depends on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from privstats import optional_dependencies
from privstats.dp.calibration import Noise
from privstats.dp.gaussian import compose, gaussian_epsilon
from privstats.dp.zcdp import zcdp_epsilon
from privstats.errors import PlanError

__all__ = ["Accountant", "Opinion", "crosscheck"]

Accountant: TypeAlias = Literal["opacus", "opacus-rdp", "dp-accounting", "zcdp"]


@dataclass(frozen=True)
class Opinion:
    """The epsilon that another accountant computes for the same noise.

    Attributes:
        accountant: its name.
        epsilon: its epsilon for all statistics together, at the plan's delta.
        ours: the exact epsilon of the same noise.
        alone: its epsilon of each statistic alone.

    Example:
        >>> opinion = ps.dp.Opinion(accountant="zcdp", epsilon=1.25, ours=1.0, alone={"N": 0.3})
        >>> opinion.looser_by
        0.25
    """

    accountant: str
    epsilon: float
    ours: float
    alone: dict[str, float]

    @property
    def looser_by(self) -> float:
        """Its epsilon over ours, minus 1."""
        return self.epsilon / self.ours - 1


def crosscheck(noise: Noise, accountant: Accountant) -> Opinion:
    """Compute the epsilon of a calibrated release with another accountant.

    ``"opacus"`` is opacus' PRV accountant, ``"opacus-rdp"`` its Renyi accountant (both need the ``torch`` extra),
    ``"dp-accounting"`` Google's PLD accountant, ``"zcdp"`` the conversion of the Kairouz-Liu-Steinke bound. All get
    sigma / sensitivity under the plan's own unit and adjacency. If no replaced record moves two statistics by their
    maximum at once, composition overstates the joint mu, and their number is the looser one.

    Raises:
        PlanError: an unknown accountant, or no Gaussian noise.
        MissingExtraError: it is not installed.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> opinion = ps.dp.crosscheck(ps.dp.calibrate(schema, privacy, honest_shares=3), "zcdp")
        >>> round(opinion.ours, 3), round(opinion.epsilon, 3)
        (1.0, 1.092)
    """
    if accountant not in get_args(Accountant):
        raise PlanError(f"crosscheck must be one of {', '.join(get_args(Accountant))}, got {accountant!r}: choose one")
    if not isinstance(noise, Noise):
        raise PlanError(f"noise must be a Noise, got {type(noise).__name__}; give plan.noise")
    if noise.pure:
        raise PlanError("crosscheck asks accountants of Gaussian noise, and delta = 0 has Laplace noise: leave it out")
    ask = _ACCOUNTANTS[accountant]
    multipliers = {row.statistic: row.sigma / row.sensitivity for row in noise.rows}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, about their own discretisation
        joint = ask(list(multipliers.values()), noise.delta)
        alone = {statistic: ask([multiplier], noise.delta) for statistic, multiplier in multipliers.items()}
    return Opinion(accountant, joint, gaussian_epsilon(noise.mu, noise.delta), alone)


def _opacus(multipliers: list[float], delta: float) -> float:
    accountant = optional_dependencies.load("opacus.accountants", by="crosscheck").PRVAccountant()
    accountant.history = [(multiplier, 1.0, 1) for multiplier in multipliers]
    return float(accountant.get_epsilon(delta=delta, eps_error=0.01, delta_error=delta / 1000))


def _opacus_rdp(multipliers: list[float], delta: float) -> float:
    accountant = optional_dependencies.load("opacus.accountants", by="crosscheck").RDPAccountant()
    accountant.history = [(multiplier, 1.0, 1) for multiplier in multipliers]
    return float(accountant.get_epsilon(delta=delta))


def _dp_accounting(multipliers: list[float], delta: float) -> float:
    accountant = optional_dependencies.load("dp_accounting.pld", by="crosscheck").PLDAccountant(
        value_discretization_interval=1e-4
    )
    event = optional_dependencies.load("dp_accounting", by="crosscheck").GaussianDpEvent
    for multiplier in multipliers:
        accountant.compose(event(multiplier))
    return float(accountant.get_epsilon(delta))


def _zcdp(multipliers: list[float], delta: float) -> float:
    return zcdp_epsilon(compose(1 / multiplier for multiplier in multipliers) ** 2 / 2, delta)


_ACCOUNTANTS: dict[str, Callable[[list[float], float], float]] = {
    "opacus": _opacus,
    "opacus-rdp": _opacus_rdp,
    "dp-accounting": _dp_accounting,
    "zcdp": _zcdp,
}
