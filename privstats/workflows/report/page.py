"""Write a one-page report: a picture, the budget, the facts, the plan; needs the ``report`` extra."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from privstats import optional_dependencies
from privstats.files.atomic import atomic_write
from privstats.plan import Budget, Plan
from privstats.printable import at_most, delta_text
from privstats.workflows.report.explanations import budget_table
from privstats.workflows.report.layout import Figure, Table, render


@dataclass(frozen=True)
class Point:
    """One head at one epsilon: mean and standard deviation (ddof 1) of its score.

    They are over noise replicates; ``epsilon`` is infinite, with spread 0, for the release without noise. The other
    fields are means as in :class:`~privstats.workflows.score.Scores`.

    Example:
        >>> from privstats.workflows.report import Point
        >>> Point("LDA", epsilon=1.0, mean=0.81, spread=0.02).mean
        0.81
    """

    head: str
    epsilon: float
    mean: float
    spread: float
    balanced: float | None = None
    auc: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None


@dataclass(frozen=True)
class Page:
    """The content of a report.

    Attributes:
        metric: what the picture and the scores show, such as ``"accuracy"``.

    Example:
        >>> from privstats.workflows.report import Figure, Page
        >>> chart = Figure("accuracy against epsilon", "Mean and interval.", source="data:image/png;base64,")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> terms = {"header": ("head", "score"), "scores": [("LDA", "81.0%")], "facts": (), "plan": plan}
        >>> Page("Hips", "accuracy", chart, **terms).budget.epsilon
        inf
    """

    title: str
    metric: str
    chart: Figure
    header: Sequence[str]
    scores: Sequence[Sequence[str]]
    facts: Sequence[str]
    plan: Plan

    @property
    def budget(self) -> Budget:
        """The plan's budget."""
        return self.plan.budget()


def require_extra(*packages: str) -> None:
    """Raise ``MissingExtraError`` where packages of the ``report`` extra are missing.

    Example:
        >>> from privstats.workflows.report import require_extra
        >>> require_extra("jinja2") is None  # the extra `report` is installed
        True
    """
    optional_dependencies.require(*(packages or ("matplotlib", "jinja2")), by="a report")


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Render ``page`` and write it atomically to ``path``.

    Example:
        >>> from privstats.workflows.report import Figure, Page, write_page
        >>> chart = Figure("accuracy against epsilon", "Mean and interval.", source="data:image/png;base64,")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> terms = {"header": ("head", "score"), "scores": [("LDA", "81.0%")], "facts": (), "plan": plan}
        >>> write_page(Page("Hips", "accuracy", chart, **terms), "hips.html")
        >>> "Hips" in open("hips.html", encoding="utf-8").read()
        True
    """
    require_extra()
    spent = page.budget
    html = render(
        __package__,
        "page.html",
        page=page,
        mu=at_most(spent.mu),
        epsilon=at_most(spent.epsilon),
        delta=delta_text(spent.delta),
        scores=Table("scores", page.header, page.scores),
        budget=budget_table(page.plan),
    )
    atomic_write(path, html.encode(), shared=True)
