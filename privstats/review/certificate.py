"""Write the budget certificate: the basis of a plan's promise, as rationals for an independent checker.

``certificate_checker``, which shares no code with privstats, recomputes the rationals before the file is written.
docs/certificate.md states what this proves.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import msgspec

from privstats.dp import Noise, Privacy, joint_mu
from privstats.dp.calibration import NoiseRow
from privstats.dp.exact import gaussian_delta_bounds
from privstats.dp.sensitivities import apart, unit_mu
from privstats.encoding import Segment
from privstats.errors import PlanError
from privstats.files.text import json_text
from privstats.plan import packages
from privstats.plan.plan import Plan
from privstats.review import certificate_checker
from privstats.review.worst_cases import worst_case

_ROUNDING = Fraction(1, 1 << 46)
"""Relative float64 error allowed in mu^2: about forty times the largest measured; the plan's margin covers it."""


def certificate_text(plan: Plan) -> str:
    """Return a plan's certificate, as JSON, checked.

    Raises:
        PlanError: a plan without differential privacy, or with delta = 0; or the checker refuses it, which is a bug.
    """
    noise, privacy = plan.noise, plan.privacy
    if noise is None or not isinstance(privacy, Privacy):
        raise PlanError("the plan is without differential privacy, so there is no budget to certify: add a Privacy")
    if noise.pure:
        raise PlanError(
            "a certificate covers Gaussian noise, and delta = 0 has Laplace noise: `privstats audit sensitivity` and "
            "`audit canary` test that promise by measurement"
        )
    if package := packages.of_kind(plan.schema):
        raise PlanError(
            f"no certificate covers the task {plan.schema.task!r} of {package}: the program that checks certificates "
            "has no bound of it; certify a plan of another task"
        )
    text = json_text(_certificate(plan, privacy, noise))
    try:
        certificate_checker.check(plan.to_toml(), text)
    except certificate_checker.Refused as refusal:
        raise PlanError(
            f"the certificate does not hold, {refusal}: this is a bug in privstats, please report it"
        ) from None
    return text


def _certificate(plan: Plan, privacy: Privacy, noise: Noise) -> dict[str, Any]:
    slack = certificate_checker.SLACK if noise.slack else Fraction(0)
    epsilon, delta = (Fraction(repr(number)) for number in (privacy.epsilon, privacy.delta))
    square = _enclosed(_mu_square(plan, privacy, noise))
    mu = _root(square[0]), _root(square[1] * (1 + _ROUNDING))
    low = gaussian_delta_bounds(mu[0], epsilon)[0]
    high = (1 + 2 * slack) * gaussian_delta_bounds(mu[1], epsilon - 2 * slack)[1]
    basis = plan.masking.failure_basis
    masking = {"masking": {**basis, "failure": str(Fraction(plan.masking.failure))}} if basis else {}
    weights = {row.statistic: (row.sigma * plan.schema.scale_of(row.statistic)) ** -2 for row in noise.rows}
    return {
        "version": 1,
        "plan_digest": plan.digest,
        "plan": msgspec.json.encode(plan.tables, order="deterministic").decode(),
        "model": privacy.model,
        "unit": privacy.unit,
        "adjacency": privacy.adjacency,
        "epsilon": str(epsilon),
        "delta": str(delta),
        "honest_shares": noise.trust.shares(noise.honest_shares),
        "statistics": {row.statistic: _statistic(plan, privacy, noise, row) for row in noise.rows},
        "joint": {"worst": _worst(plan, privacy, weights), "mu_squared": _interval(*square)},
        "delta_at_epsilon": _interval(low, high),
        **masking,
    }


def _statistic(plan: Plan, privacy: Privacy, noise: Noise, row: NoiseRow) -> dict[str, Any]:
    bound = row.sensitivity
    if privacy.clip is not None:  # the clip alone, whatever the records of a client or person could reach
        one = joint_mu(plan.schema, {row.statistic: 1.0}, "add-remove")
        bound = one * apart(plan.schema, row.statistic, privacy.adjacency) * privacy.clip / math.sqrt(row.share)
    square = (bound * plan.schema.scale_of(row.statistic)) ** 2
    return {
        "sensitivity_squared": _interval(*_enclosed(square)),
        "sigma": {_part(segment): _drawn(noise, segment) for segment in _segments(plan, row)},
        "worst": _worst(plan, privacy, {row.statistic: 1.0}),
    }


def _drawn(noise: Noise, segment: Segment) -> str | list[str]:
    """Return one party's sigma in wire steps; with layers, the base's, then each layer's, lowest first."""
    drawn = [str(Fraction(sigma)) for sigma in noise.layered_sigmas(segment)]
    return drawn if noise.levels else drawn[0]


def _segments(plan: Plan, row: NoiseRow) -> list[Segment]:
    return [segment for segment in plan.layout.segments if segment.statistic == row.statistic]


def _part(segment: Segment) -> str:
    return segment.name.partition(".")[2] or "all"


def _worst(plan: Plan, privacy: Privacy, weights: dict[str, float]) -> dict[str, Any]:
    case = asdict(worst_case(plan.schema, privacy, weights))
    return {**case, "moves": {letter: str(moved) for letter, moved in case["moves"].items()}}


def _mu_square(plan: Plan, privacy: Privacy, noise: Noise) -> float:
    """Return mu^2 of the declared noise for the plan's unit, by the closed forms of ``sensitivities``."""
    schema, sigma = plan.schema, dict(noise.sigma)
    if privacy.clip is not None:
        alone = (
            (joint_mu(schema, {s: sigma[s]}, "add-remove") * apart(schema, s, privacy.adjacency)) ** 2 / row.share
            for s, row in zip(sigma, noise.rows, strict=True)
        )
        return privacy.clip**2 * max(alone)
    return unit_mu(schema, privacy, sigma, privacy.adjacency) ** 2


def _enclosed(value: float) -> tuple[Fraction, Fraction]:
    return Fraction(value) * (1 - _ROUNDING), Fraction(value) * (1 + _ROUNDING)


def _root(square: Fraction) -> Fraction:
    """Return a root to 200 bits, from below."""
    return Fraction(math.isqrt((square.numerator << 400) // square.denominator), 1 << 200)


def _interval(low: Fraction, high: Fraction) -> dict[str, str]:
    return {"low": str(low), "high": str(high)}
