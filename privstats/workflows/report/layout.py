"""Lay out every page on one self-contained sheet.

Needs the ``report`` extra (jinja2; pictures need matplotlib).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Self, TypeAlias

from privstats import optional_dependencies
from privstats.plan import Plan
from privstats.version import __version__


@dataclass(frozen=True)
class Cell:
    """A table's cell: a text, small notes below, and a tag's colour, if any.

    Example:
        >>> from privstats.workflows.report import Cell, Table
        >>> cell = Cell("26.4", notes=("in records",))
        >>> Table("noise", header=("statistic", "sigma"), rows=[("N", cell)]).rows[0][1].notes
        ('in records',)
    """

    text: str
    notes: Sequence[str] = ()
    colour: str = ""


Text: TypeAlias = str | Cell


@dataclass(frozen=True)
class Table:
    """A table in its own scrolling box; ``label`` is for screen readers, ``words`` marks sentences.

    Example:
        >>> from privstats.workflows.report import Table
        >>> table = Table("numbers", header=("statistic", "sigma"), rows=[("N", "26.4"), ("A", "3.8")])
        >>> len(table.rows)
        2
    """

    label: str
    header: Sequence[Text]
    rows: Sequence[Sequence[Text]]
    words: bool = False


@dataclass(frozen=True)
class Figure:
    """A picture inside the page.

    Attributes:
        title: for screen readers.
        source: picture as a data URI.
        width: maximum CSS pixels; 0 for all available.

    Example:
        >>> from privstats.workflows.report import Figure
        >>> Figure("noise", "The noise against epsilon.", source="data:image/png;base64,").title
        'noise'
    """

    title: str
    caption: str
    source: str
    width: int = 0

    @classmethod
    def of_png(cls, title: str, caption: str, png: bytes) -> Self:
        """Return a figure of a 150 dpi PNG file, enlarged by at most a quarter."""
        dots = int.from_bytes(png[16:20])  # the width in the file's header
        width = round(dots / 150 * 96 * 1.25)
        return cls(title, caption, "data:image/png;base64," + base64.b64encode(png).decode(), width)


def render(package: str, template: str, **values: Any) -> str:
    """Return a page as HTML in one file that fetches nothing.

    Args:
        package: with the template; ``layout.html`` and ``parts.html`` come from there or here.
        values: variables; texts are escaped, and ``version`` is predefined.
    """
    jinja2 = optional_dependencies.load("jinja2", by="a page")
    packages = (package, __package__)

    def source(name: str) -> str | None:
        paths = (files(each).joinpath(name) for each in packages)
        return next((file.read_text("utf-8") for file in paths if file.is_file()), None)

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(source), trim_blocks=True
    )
    return str(environment.get_template(template).render(version=__version__, **values))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One section of the page.

    Attributes:
        summary: the finding, in a sentence or two.
        violated: whether it contradicts a guarantee.
        whole: whether it covers everything released, not only the plan.
        measured: best attack's result, by goal.

    Example:
        >>> from privstats.workflows.report import Finding
        >>> finding = Finding(title="An audit", summary="No search exceeded the bound.", violated=False)
        >>> finding.title, finding.violated
        ('An audit', False)
    """

    title: str
    summary: str
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    violated: bool = False
    whole: bool = False
    measured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Search:
    """Effort and seed of audits or attacks.

    None leaves the finder's choice; ``tick`` is called as work is done.

    Example:
        >>> from privstats.workflows.report import Search
        >>> search = Search(seed=0, trials=100)
        >>> search.seed, search.trials
        (0, 100)
    """

    seed: int | None = None
    trials: int | None = None
    tick: Callable[[], None] = lambda: None


Finder: TypeAlias = Callable[[Plan, Search], Sequence[Finding]]
