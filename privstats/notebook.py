"""HTML for notebooks: small tables of a value's contents, with every text escaped and nothing fetched.

Alignment is the only style, because notebooks have their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["framed", "html_facts", "html_lines", "html_table"]


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column holds names, the others numbers.

    Example:
        >>> from privstats.notebook import html_table
        >>> html_table(["statistic", "sigma"], [["N", "<1"]]).count("&lt;1")
        1
    """
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def html_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """A heading, and names with their values.

    Example:
        >>> from privstats.notebook import html_facts
        >>> html_facts("plan", [("clients", "3")])
        '<p><strong>plan</strong></p><dl><dt>clients</dt><dd>3</dd></dl>'
    """
    told = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f"<p><strong>{escape(title)}</strong></p><dl>{told}</dl>"


def html_lines(text: str) -> str:
    """Preformatted lines of text.

    Example:
        >>> from privstats.notebook import html_lines
        >>> html_lines("mu < 1" + chr(10) + "epsilon 1")
        '<p>mu &lt; 1<br>epsilon 1</p>'
    """
    return f"<p>{'<br>'.join(map(escape, text.splitlines()))}</p>"


def framed(page: str, height: int = 600) -> str:
    """A whole page in a frame of its own, which runs no script.

    Example:
        >>> from privstats.notebook import framed
        >>> framed("<p>a page</p>").count("&lt;p&gt;")
        1
    """
    style = f"width: 100%; height: {height}px; border: 1px solid #ccc"
    return f'<iframe sandbox srcdoc="{escape(page)}" style="{style}" title="report"></iframe>'


def _row(tag: str, cells: Sequence[str]) -> str:
    sides = ("left", *["right"] * (len(cells) - 1))
    told = (
        f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(told)}</tr>"
