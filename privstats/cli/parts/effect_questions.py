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
_NOBODY, _NOTHING = "none", "no"

QUESTIONS: tuple[Question, ...] = (
    Question(
        "ranges",
        "Which columns, with which public ranges?",
        "As age=20:90,sex=female/male: measured before treatment, known from the literature and not from records; two "
        "texts count as 0 and 1.",
        str,
        where=("task", (EFFECT, HAZARD)),
    ),
    Question(
        "treatment",
        "Which column says who was treated, 1, or not, 0?",
        "It is none of the columns before; where it holds two texts, that of the others first: arm=placebo/drug.",
        str,
        where=("task", (EFFECT,)),
    ),
    Question(
        "outcome",
        "What is the public range of the outcome?",
        "As 0:1, or 0:30 for days; by name, as cured=no/yes, and several as cured=0:1,died=0:1; beyond it one is cut.",
        str,
        where=("task", (EFFECT,)),
    ),
    Question(
        "subgroups",
        "Which subgroups, beside all records?",
        "As age=20:55:90 for spans, sex=0/1 for values: they cost nothing but their own noise; none for none.",
        str,
        where=("task", (EFFECT,)),
        usual=_NOBODY,
    ),
    Question(
        "probability",
        "With which probability was each record assigned to treatment?",
        "A number for a randomised trial, such as 0.5; none where nobody assigned it: then a propensity is fitted.",
        str,
        where=("task", (EFFECT,)),
    ),
    Question(
        "missing",
        "May outcomes be missing?",
        "no: a record without one is left out; weights: it counts, where its arm and columns alone say who has none.",
        str,
        (_NOTHING, "weights"),
        where=("task", (EFFECT,)),
        unless=("probability", (_NOBODY,)),
        usual=_NOTHING,
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
        "Of treatment .02 to .4, .1 is usual; of an observed outcome .2 to .8, .5: nobody beyond is comparable.",
        float,
        where=("probability", (_NOBODY,)),
        also=("missing", ("weights",)),
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
        "0 where the person was last seen without it; where it holds two texts, that of these first: died=no/yes.",
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
    ranges = _declared(answers["ranges"])
    if answers["task"] == HAZARD:
        return _hazards(ranges, answers)
    pi = answers["probability"]
    design: dict[str, Any] = {"probability": None if pi == _NOBODY else _number("probability", pi)}
    if pi == _NOBODY:
        design |= {"estimand": answers["estimand"], "trim": answers["trim"]}
    elif answers["missing"] != _NOTHING:
        design |= {"missing": answers["missing"], "trim": answers["trim"]}
    if (apart := str(answers["subgroups"])) != _NOBODY:
        design["subgroups"] = tuple(_subgroups(name, ends) for name, ends in _named(apart, "subgroups").items())
    said, arm = str(answers["outcome"]), str(answers["treatment"])
    outcome = _declared(said, "outcome") if "=" in said else _range("outcome", said)
    treatment = _declared(arm, "treatment") if "=" in arm else arm
    return ps.EffectSchema.of(ranges, treatment=treatment, outcome=outcome, **design)


def _hazards(ranges: Mapping[str, Any], answers: Mapping[str, Any]) -> ps.HazardSchema:
    """Columns become -1 to 1, beside a constant of 1."""
    name, _, edges = str(answers["bins"]).partition("=")
    ends = [(0.0, 1.0) if _is_worded(each) else each for each in ranges.values()]
    event, parted, texts = str(answers["event"]).partition("=")
    goals = (ps.Categories(event.strip(), _texts("event", texts)),) if parted else ()
    columns = tuple(ps.Categories(name, each) for name, each in ranges.items() if _is_worded(each))
    return ps.HazardSchema(
        len(ranges) + 1,
        math.sqrt(len(ranges) + 1),
        bins=ps.Bins(name.strip(), tuple(_number("bins", each) for each in edges.split(","))),
        event=event.strip(),
        expected_events=answers["expected_events"],
        feature_names=tuple(ranges),
        transform=(
            *((ps.transforms.Levels(columns, goals),) if columns or goals else ()),
            ps.transforms.Centre(tuple((low + high) / 2 for low, high in ends)),
            ps.transforms.Scale(tuple((high - low) / 2 for low, high in ends)),
            ps.transforms.ConstantFeature(1.0),
        ),
    )


def _is_worded(declared: tuple[Any, Any]) -> bool:
    return isinstance(declared[0], str)


def _named(text: str, what: str) -> dict[str, str]:
    """What is said of each column, by its name."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, parted, said = part.partition("=")
        if not parted or not name.strip() or name.strip() in found:
            raise PlanError(
                f"{what} must name each column once with its range, as age=20:90,sex=0:1, or with its two texts, as "
                f"sex=female/male, got {part!r}"
            )
        found[name.strip()] = said
    return found


def _declared(text: str, what: str = "ranges") -> dict[str, Any]:
    """The range of each column by its name, or its two texts."""
    return {
        name: _texts(f"the texts of {name!r}", said) if "/" in said else _range(f"the range of {name!r}", said)
        for name, said in _named(text, what).items()
    }


def _texts(what: str, said: str) -> tuple[str, str]:
    """Two texts, of which the first counts as 0."""
    texts = [each.strip() for each in said.split("/")]
    if len(texts) != 2 or not all(texts):
        raise PlanError(f"{what} must be two with a slash between, such as placebo/drug, got {said!r}")
    return texts[0], texts[1]


def _subgroups(name: str, said: str) -> ps.Bins | ps.Categories:
    """Spans between edges, or one subgroup for each value."""
    if "/" not in said:
        return ps.Bins(name, tuple(_number(f"the edges of {name!r}", each) for each in said.split(":")))
    values = [each.strip() for each in said.split("/")]
    whole = all(each.lstrip("-").isdecimal() for each in values)
    return ps.Categories(name, tuple(map(int, values)) if whole else tuple(values))


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
