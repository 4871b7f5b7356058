"""What ``plan init`` asks of the score of a head, the plan's head beside it, and what is said of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import privstats as ps
from privstats.cli.parts.output import writable
from privstats.cli.parts.question import Question
from privstats.cli.parts.terminal import say

__all__ = ["QUESTIONS", "SCORE", "person_clip_of", "scoring_of", "write_scored"]

SCORE = "score"

QUESTIONS: tuple[Question, ...] = (
    Question(
        "head",
        "Which head?",
        "The file of a classifier, as its save() wrote it: the plan publishes it to all parties.",
        str,
        where=("task", (SCORE,)),
    ),
)
"""What else there is to choose (bins, margins, tables by class) is an option of ``privstats score``."""


def scoring_of(answers: Mapping[str, Any]) -> ps.Scoring:
    """The score of the head that the answers name, in the usual bins.

    Raises:
        HeadError: the file holds no classifier that can be scored.
    """
    return ps.Scoring(ps.heads.load(answers["head"]))


def person_clip_of(said: Any) -> Any:
    """What a promise per person takes of an answer: a number where it is one."""
    try:
        return said if said is None else float(said)
    except ValueError:
        return said


def write_scored(path: Path, plan: ps.Plan, text: str, *, force: bool) -> None:
    """Write a plan of a head's score, and the head beside it; say whether a promise covers it, and what is next.

    Raises:
        DataError: one of the files is there, and ``force`` is not set.
    """
    from privstats.files.atomic import atomic_write
    from privstats.heads.scoring import published_provenance
    from privstats.inference.head_scores.expected import expected_sentences
    from privstats.schema.public_values import beside

    assert plan.published is not None  # noqa: S101  a plan of a score has one
    head = beside(path)
    writable([path, head], force)
    atomic_write(path, text.encode(), shared=True)
    plan.published.save(head)
    promise = published_provenance(plan.published.read())
    if not promise.covered:
        say(f"WARNING: {head} publishes this head to all parties, and no promise covers it ({promise})")
    for told in expected_sentences(plan):
        say(told)
    say(f"wrote {path}, and {head} with the head; keep the two together. Check it: privstats plan check {path}")
    say("each party then names its records with: privstats flower records PARTY FILE --split SHARE --kept-out")
