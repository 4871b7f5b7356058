"""A one-page report: a picture, the budget, the facts, the plan.

It knows nothing of how the numbers came about. Needs the ``report`` extra (matplotlib, jinja2).
"""

from __future__ import annotations

import base64
import importlib.util
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from privstats.errors import MissingExtraError
from privstats.files import write_whole
from privstats.plan import Budget, Plan
from privstats.version import __version__

__all__ = ["Curve", "Page", "require_extra", "write_page"]


@dataclass(frozen=True)
class Curve:
    """A score against epsilon.

    Attributes:
        metric: label of the vertical axis.
        epsilons: positive, any order.
        means: score at each epsilon.
        spreads: standard deviation at each epsilon.
        lines: horizontal reference lines, name and height.
    """

    metric: str
    epsilons: Sequence[float]
    means: Sequence[float]
    spreads: Sequence[float]
    lines: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Page:
    """The content of a report."""

    title: str
    curve: Curve
    scores: Sequence[tuple[str, str]]
    facts: Sequence[str]
    plan: Plan

    @property
    def budget(self) -> Budget:
        """The budget of the plan."""
        return self.plan.budget()


def require_extra() -> None:
    """Refuse early where the ``report`` extra is missing.

    Raises:
        MissingExtraError: with the line that installs it.
    """
    missing = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"a report needs {' and '.join(missing)}; install them with: pip install 'privstats[report]'"
        )


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Render ``page`` and write it whole to ``path``."""
    require_extra()
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(files(__package__).joinpath("page.html").read_text("utf-8"))
    html = template.render(page=page, picture=_picture(page.curve), version=__version__)
    write_whole(path, html.encode())


def _picture(curve: Curve) -> str:
    """The curve as a PNG data URI."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.subplots()
    order = sorted(range(len(curve.epsilons)), key=lambda i: curve.epsilons[i])
    axes.errorbar(
        [curve.epsilons[i] for i in order],
        [curve.means[i] for i in order],
        yerr=[curve.spreads[i] for i in order],
        marker="o",
        capsize=3,
        color="#1f4e79",
        label="privstats with noise (± one standard deviation)",
    )
    for style, (name, height) in zip(("--", ":", "-."), curve.lines, strict=False):
        axes.axhline(height, linestyle=style, color="#666666", linewidth=1.2, label=name)
    axes.set_xscale("log")
    axes.set_xticks(list(curve.epsilons), [f"{e:g}" for e in curve.epsilons])
    axes.minorticks_off()
    axes.set_xlabel("epsilon (stronger privacy to the left)")
    axes.set_ylabel(curve.metric)
    axes.grid(alpha=0.25)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
