"""Write a one-page report: a picture, the budget, the facts, the plan; needs the ``report`` extra."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

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
class Curve:
    """A score against positive, finite epsilons, at least one.

    Example:
        >>> from privstats.workflows.report import Curve, Point
        >>> curve = Curve("LDA", [Point("LDA", 1.0, 0.81, 0.02), Point("LDA", 8.0, 0.89, 0.01)])
        >>> [point.epsilon for point in curve.points]
        [1.0, 8.0]
    """

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Chart:
    """Curves, at least one, over common epsilons, with horizontal reference ``lines`` by name and height.

    Example:
        >>> from privstats.workflows.report import Chart, Curve, Point
        >>> points = [Point("LDA", 1.0, 0.81, 0.02), Point("LDA", 8.0, 0.89, 0.01)]
        >>> chart = Chart("accuracy", [Curve("LDA", points)], lines=[("without noise", 0.9)])
        >>> [curve.name for curve in chart.curves]
        ['LDA']
    """

    metric: str
    curves: Sequence[Curve]
    lines: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class Page:
    """The content of a report.

    Example:
        >>> from privstats.workflows.report import Chart, Curve, Page, Point
        >>> chart = Chart("accuracy", [Curve("LDA", [Point("LDA", 1.0, 0.81, 0.02)])])
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> page = Page("Hips", chart, header=("head", "score"), scores=[("LDA", "81.0%")], facts=(), plan=plan)
        >>> page.budget.epsilon
        inf
    """

    title: str
    chart: Chart
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
        >>> from privstats.workflows.report import Chart, Curve, Page, Point, write_page
        >>> chart = Chart("accuracy", [Curve("LDA", [Point("LDA", 1.0, 0.81, 0.02), Point("LDA", 8.0, 0.9, 0.01)])])
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> write_page(Page("Hips", chart, ("head", "score"), [("LDA", "81.0%")], facts=(), plan=plan), "hips.html")
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
        chart=_picture(page.chart),
        scores=Table("scores", page.header, page.scores),
        budget=budget_table(page.plan),
    )
    atomic_write(path, html.encode(), shared=True)


def _picture(chart: Chart) -> Figure:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(4.6, 3.4), layout="constrained")  # on a phone 9 points of type are 9 of its pixels
    axes = figure.subplots()
    for curve in chart.curves:
        points = sorted(curve.points, key=lambda point: point.epsilon)
        epsilons, means, spreads = zip(*((each.epsilon, each.mean, each.spread) for each in points), strict=True)
        axes.errorbar(epsilons, means, yerr=spreads, marker="o", capsize=3, label=curve.name)
    for style, (name, height) in zip(cycle(("--", ":", "-.")), chart.lines):
        axes.axhline(height, linestyle=style, color="#666666", linewidth=1.2, label=name)
    ticks = sorted({point.epsilon for curve in chart.curves for point in curve.points})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    axes.minorticks_off()
    axes.set_xlabel("epsilon (stronger privacy to the left)")
    axes.set_ylabel(chart.metric)
    axes.grid(alpha=0.25)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return Figure.of_png(f"{chart.metric} against epsilon", "", buffer.getvalue())
