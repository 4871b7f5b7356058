"""Write the certificate of a course: each session's certificate, and the composition of all sessions.

``certificate_checker`` checks it as it checks a plan's. docs/certificate.md states what this proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from privstats.dp.exact import gaussian_delta_bounds
from privstats.errors import PlanError
from privstats.files.text import json_text
from privstats.plan.plan import Plan
from privstats.review import certificate_checker
from privstats.review.certificate import certificate_text

_ROUNDING = Fraction(1, 1 << 46)
"""Relative width of the interval of delta on both sides, within which two enclosures of it agree."""


def course_certificate_text(course_text: str, digest: str, plans: Sequence[Plan]) -> str:
    """Return the certificate of a course, as JSON, checked.

    Args:
        course_text: the course's file, which holds the promise for all sessions.
        digest: the course's.
        plans: the plan of each session, in order, as priced before the first.

    Raises:
        PlanError: a session without Gaussian noise, or sessions that do not keep the promise of the file.
    """
    sessions = [{"plan": plan.to_toml(), "certificate": certificate_text(plan)} for plan in plans]
    try:
        composed = certificate_checker.composition(course_text, sessions)
    except certificate_checker.Refused as refusal:
        raise PlanError(f"the course cannot be certified, {refusal}") from None
    low, high = (
        certificate_checker.root(composed.square * (1 + wider))[side]
        for side, wider in enumerate((-_ROUNDING, _ROUNDING))
    )
    delta = (
        gaussian_delta_bounds(low, composed.epsilon)[0],
        (1 + 2 * composed.slack) * gaussian_delta_bounds(high, composed.epsilon - 2 * composed.slack)[1],
    )
    if delta[1] > composed.delta:
        raise PlanError(
            "the course cannot be certified, its sessions together do not keep epsilon and delta of its file: divide "
            "the promise anew with `privstats course init`"
        )
    text = json_text(
        {
            "version": 1,
            "course_digest": digest,
            "epsilon": str(composed.epsilon),
            "delta": str(composed.delta),
            "sessions": sessions,
            "mu_squared": _interval(composed.square, composed.square),
            "delta_at_epsilon": _interval(*delta),
        }
    )
    try:
        certificate_checker.check_course(course_text, text)
    except certificate_checker.Refused as refusal:
        raise PlanError(
            f"the certificate does not hold, {refusal}: this is a bug in privstats, please report it"
        ) from None
    return text


def _interval(low: Fraction, high: Fraction) -> dict[str, str]:
    return {"low": str(low), "high": str(high)}
