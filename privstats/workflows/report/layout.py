"""The one sheet that every page is written on: its style, its tables, its pictures, all inside the file.

No content: pages bring a template that extends ``layout.html`` and the values for it, from whatever package they are
in. Needs the ``report`` extra (jinja2; pictures need matplotlib).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Self, TypeAlias

from privstats import optional_dependencies
from privstats.version import __version__

__all__ = ["Cell", "Figure", "Table", "Text", "render"]


@dataclass(frozen=True)
class Cell:
    """A table's cell that is more than a text.

    Attributes:
        text: what stands in it.
        notes: small lines under it.
        colour: of the tag that the text stands in; none where empty.

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
    """A table in a box of its own, inside which it scrolls where the window is narrow.

    Attributes:
        label: what it is, for who cannot see it.
        header: one cell per column; its notes explain the term.
        rows: as wide as the header.
        words: whether its cells are sentences rather than numbers.

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
        title: for who cannot see it.
        caption: what it shows.
        source: the picture itself, as a data URI.
        width: of the picture where there is room, in CSS pixels; 0 for all the room there is.

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
        """A figure of the bytes of a PNG file of 150 dots an inch; at most a quarter larger than it was drawn."""
        dots = int.from_bytes(png[16:20])  # the width in the file's header
        width = round(dots / 150 * 96 * 1.25)
        return cls(title, caption, "data:image/png;base64," + base64.b64encode(png).decode(), width)


def render(package: str, template: str, **values: Any) -> str:
    """A page as HTML in one file that fetches nothing.

    Args:
        package: where the template lies; ``layout.html`` and ``parts.html`` are found beside it.
        template: its file name.
        values: what it shows; texts are escaped. ``version`` is there already.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    jinja2 = optional_dependencies.load("jinja2", by="a page")
    packages = (package, __package__)

    def source(name: str) -> str | None:
        found = (files(each).joinpath(name) for each in packages)
        return next((file.read_text("utf-8") for file in found if file.is_file()), None)

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(source),
        trim_blocks=True,
    )
    return str(environment.get_template(template).render(version=__version__, **values))
