"""What ``plan init`` asks of a treatment effect or of hazard ratios, and the schemas that the answers make."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import privstats as ps
from privstats.cli.parts.question import Question
from privstats.errors import PlanError

__all__ = ["EFFECT", "HAZARD", "QUESTIONS", "schema_of"]

EFFECT, HAZARD = "effect", "hazard"
_NOBODY = "none"

QUESTIONS: tuple[Question, ...] = (
    Question(
        "ranges",
        "Which columns, with which public ranges?",
        "As age=20:90,sex=0:1: measured before treatment, and known from the literature, not from records.",
        str,
        where=("task", (EFFECT, HAZARD)),
    ),
    Question(
        "treatment",
        "Which column says who was treated, 1, or not, 0?",
        "It is none of the columns before.",
        str,
        where=("task", (EFFECT,)),
    ),
    Question(
        "outcome",
        "What is the public range of the outcome?",
        "As 0:1 for no and yes, or 0:30 for days; several by name, as cured=0:1,died=0:1; beyond it one is cut.",
        str,
        where=("task", (EFFECT,)),
    ),
    Question(
        "probability",
        "With which probability was each record assigned to treatment?",
        "A number for a randomised trial, such as 0.5; none where nobody assigned it: then a propensity is fitted.",
        str,
        where=("task", (EFFECT,)),
    ),
    Question(
        "estimand",
        "Whose difference?",
        "overlap: of those who might have had either, the least noise; ate: of all; att: of the treated.",
        str,
        ("overlap", "ate", "att"),
        where=("probability", (_NOBODY,)),
    ),
    Question(
        "trim",
        "Below which propensity is a record left out?",
        "From .02 to .4, .1 is usual: nobody there is comparable.",
        float,
        where=("probability", (_NOBODY,)),
    ),
    Question(
        "bins",
        "Which spans of time?",
        "As months=0,6,12,18,24, from 0 to the end of follow-up: six suit noise.",
        str,
        where=("task", (HAZARD,)),
    ),
    Question(
        "event",
        "Which column says whether the event happened, 1, or not, 0?",
        "0 where the person was last seen without it.",
        str,
        where=("task", (HAZARD,)),
    ),
    Question(
        "expected_events",
        "How many events are expected, over all parties?",
        "A public guess: fewer than ten for a span of time are refused, and half widths follow from it.",
        int,
        where=("task", (HAZARD,)),
    ),
)


def schema_of(answers: Mapping[str, Any]) -> ps.schema.Schema:
    """The schema that the answers make.

    Raises:
        PlanError: an answer is no range, or no list of edges.
        SchemaError: the schema refuses it.
    """
    ranges = _ranges(answers["ranges"])
    if answers["task"] == HAZARD:
        return _hazards(ranges, answers)
    pi = answers["probability"]
    design: dict[str, Any] = {"probability": None if pi == _NOBODY else _number("probability", pi)}
    if pi == _NOBODY:
        design |= {"estimand": answers["estimand"], "trim": answers["trim"]}
    said = str(answers["outcome"])
    outcome = _ranges(said, "outcome") if "=" in said else _range("outcome", said)
    return ps.EffectSchema.of(ranges, treatment=answers["treatment"], outcome=outcome, **design)


def _hazards(ranges: Mapping[str, tuple[float, float]], answers: Mapping[str, Any]) -> ps.HazardSchema:
    """Columns become -1 to 1, beside a constant of 1."""
    name, _, edges = str(answers["bins"]).partition("=")
    lows, highs = zip(*ranges.values(), strict=True)
    return ps.HazardSchema(
        len(ranges) + 1,
        math.sqrt(len(ranges) + 1),
        bins=ps.Bins(name.strip(), tuple(_number("bins", each) for each in edges.split(","))),
        event=answers["event"],
        expected_events=answers["expected_events"],
        feature_names=tuple(ranges),
        transform=(
            ps.transforms.Centre(tuple((low + high) / 2 for low, high in zip(lows, highs, strict=True))),
            ps.transforms.Scale(tuple((high - low) / 2 for low, high in zip(lows, highs, strict=True))),
            ps.transforms.ConstantFeature(1.0),
        ),
    )


def _ranges(text: str, what: str = "ranges") -> dict[str, tuple[float, float]]:
    """The range of each column by its name."""
    found = {}
    for part in text.split(","):
        name, parted, ends = part.partition("=")
        if not parted or not name.strip() or name.strip() in found:
            raise PlanError(f"{what} must name each column once with its range, as age=20:90,sex=0:1, got {part!r}")
        found[name.strip()] = _range(f"the range of {name.strip()!r}", ends)
    return found


def _range(what: str, text: str) -> tuple[float, float]:
    low, parted, high = str(text).partition(":")
    if not parted:
        raise PlanError(f"{what} must be low:high, such as 20:90, got {text!r}; take it from public knowledge")
    ends = _number(what, low), _number(what, high)
    if not ends[0] < ends[1]:
        raise PlanError(f"{what} must be low:high with low below high, got {text!r}")
    return ends


def _number(what: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise PlanError(f"{what} must hold plain numbers, got {text.strip()!r}")
    return found
