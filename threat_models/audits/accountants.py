"""The epsilon of a plan's noise by the accountants of other projects.

Each gets the same noise multipliers, one Gaussian release per statistic, and returns its own epsilon. None shares a
formula with the library, and nothing depends on what it says.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from privstats import optional_dependencies
from privstats.dp import Noise, compose, gaussian_epsilon
from privstats.errors import PlanError
from privstats.printable import delta_text
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report
from threat_models.audits.zcdp import zcdp_epsilon

Accountant: TypeAlias = Literal["opacus", "opacus-rdp", "dp-accounting", "zcdp"]

_COLUMNS = ("accountant", "statistic", "epsilon", "ours", "looser by")
_TOLERANCE = 1e-3  # of epsilon, and 1e-6 on top: the discretisation of theirs


@dataclass(frozen=True)
class Opinion:
    """The epsilon that another accountant computes for the same noise.

    Attributes:
        accountant: its name.
        epsilon: its epsilon for all statistics together, at the plan's delta.
        ours: the exact epsilon of the same noise.
        alone: its epsilon of each statistic alone.

    Example:
        >>> from threat_models.audits.accountants import Opinion
        >>> opinion = Opinion(accountant="zcdp", epsilon=1.25, ours=1.0, alone={"N": 0.3})
        >>> opinion.looser_by
        0.25
    """

    accountant: str
    epsilon: float
    ours: float
    alone: dict[str, float]

    @property
    def looser_by(self) -> float:
        """Relative excess of the other accountant's epsilon over the library's."""
        return self.epsilon / self.ours - 1


def audit_accountants(target: Target, accountants: Sequence[Accountant]) -> Report:
    """A row for each statistic and one for all together, by accountant.

    The library calls its epsilon the least that its noise has, and theirs are upper bounds: one that lies below ours,
    beyond its own discretisation, contradicts the claim. Ours stands in the rows as the library states it.

    Raises:
        PlanError: an unknown accountant, or the plan's noise is not Gaussian.
        MissingExtraError: an accountant is not installed.

    Example:
        >>> from threat_models.audits.accountants import audit_accountants
        >>> from threat_models.audits.target import target_of
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
        >>> report = audit_accountants(target_of(plan), ["zcdp"])
        >>> report.violated, [row[1] for row in report.rows]
        (False, ['N', 'A', 'joint'])
    """
    rows = [row for name in accountants for row in _rows(target.noise, second_opinion(target.noise, name))]
    notes = (
        f"epsilon at delta {delta_text(target.noise.delta)} of the same noise; an accountant composes statistic by "
        "statistic, so the joint row is looser where no record moves all of them most",
    )
    violated = any(theirs < ours * (1 - _TOLERANCE) - 1e-6 for _, _, theirs, ours, _ in rows)
    return Report("accountants", _COLUMNS, tuple(rows), notes, violated)


def second_opinion(noise: Noise, accountant: Accountant) -> Opinion:
    """Compute the epsilon of a calibrated release with another accountant.

    ``"opacus"`` is opacus' PRV accountant, ``"opacus-rdp"`` its Renyi accountant (both need the ``torch`` extra),
    ``"dp-accounting"`` Google's PLD accountant, ``"zcdp"`` the conversion of the Kairouz-Liu-Steinke bound. All get
    sigma / sensitivity under the plan's own unit and adjacency. If no replaced record moves two statistics by their
    maximum at once, composition overstates the joint mu, and their number is the looser one.

    Raises:
        PlanError: an unknown accountant, or no Gaussian noise.
        MissingExtraError: it is not installed.

    Example:
        >>> from threat_models.audits.accountants import second_opinion
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> opinion = second_opinion(ps.dp.calibrate(schema, privacy, honest_shares=3), "zcdp")
        >>> round(opinion.ours, 3), round(opinion.epsilon, 3)
        (1.0, 1.092)
    """
    if accountant not in get_args(Accountant):
        raise PlanError(f"accountant must be one of {', '.join(get_args(Accountant))}, got {accountant!r}: choose one")
    if not isinstance(noise, Noise):
        raise PlanError(f"noise must be a Noise, got {type(noise).__name__}; give plan.noise")
    if noise.pure:
        raise PlanError(f"{accountant} counts Gaussian noise, and delta = 0 has Laplace noise: leave it out")
    ask = _ACCOUNTANTS[accountant]
    multipliers = {row.statistic: row.sigma / row.sensitivity for row in noise.rows}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, about their own discretisation
        joint = ask(list(multipliers.values()), noise.delta)
        alone = {statistic: ask([multiplier], noise.delta) for statistic, multiplier in multipliers.items()}
    return Opinion(accountant, joint, gaussian_epsilon(noise.mu, noise.delta), alone)


def _rows(noise: Noise, opinion: Opinion) -> Iterator[tuple[str, str, float, float, float]]:
    for name, theirs, ours in (
        *((row.statistic, opinion.alone[row.statistic], row.epsilon) for row in noise.rows),
        ("joint", opinion.epsilon, opinion.ours),
    ):
        yield opinion.accountant, name, theirs, ours, theirs / ours - 1


def _opacus(multipliers: list[float], delta: float) -> float:
    accountant = optional_dependencies.load("opacus.accountants", by="this accountant").PRVAccountant()
    accountant.history = [(multiplier, 1.0, 1) for multiplier in multipliers]
    return float(accountant.get_epsilon(delta=delta, eps_error=0.01, delta_error=delta / 1000))


def _opacus_rdp(multipliers: list[float], delta: float) -> float:
    accountant = optional_dependencies.load("opacus.accountants", by="this accountant").RDPAccountant()
    accountant.history = [(multiplier, 1.0, 1) for multiplier in multipliers]
    return float(accountant.get_epsilon(delta=delta))


def _dp_accounting(multipliers: list[float], delta: float) -> float:
    load = optional_dependencies.load
    accountant = load("dp_accounting.pld", by="this accountant").PLDAccountant(value_discretization_interval=1e-4)
    event = load("dp_accounting", by="this accountant").GaussianDpEvent
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
