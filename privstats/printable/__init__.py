"""Escape untrusted text for a terminal, a log, a notebook or a spreadsheet, and round printed bounds.

Untrusted text may hold escape sequences, line ends that forge a log line, marks that turn the text's direction, HTML,
or formulas. All text that this machine's owner did not write passes through here.
"""

from __future__ import annotations

import csv
import io
import logging
import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from itertools import pairwise
from typing import Any

_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # with the wide forms, which spreadsheets take for the same
_TEXT = "'"
# A calibrated number meets its bound up to a smaller relative error; no text has as many digits.
_TOLERANCE = 1e-7
_WITH_ENDS = re.compile(r"-?[0-9]+\.[0-9]+ \(-?[0-9]+\.[0-9]+ to -?[0-9]+\.[0-9]+\)")


def printable(text: object) -> str:
    r"""Return the text in one line, with each unprintable character (``str.isprintable``) as its Python escape.

    A backslash stays, so two texts may be shown alike.

    Example:
        >>> from privstats.printable import printable
        >>> print(printable("Ulm, Süd"), printable("a\x1b[2Jb"), printable("one\ntwo"), printable("\u202ecod.exe"))
        Ulm, Süd a\x1b[2Jb one\ntwo \u202ecod.exe
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in shown)


def printable_lines(text: str) -> str:
    r"""Escape a text like :func:`printable`, except its line ends.

    Example:
        >>> from privstats.printable import printable_lines
        >>> print(printable_lines("one\ntwo\x07"))
        one
        two\x07
    """
    return "\n".join(map(printable, text.split("\n")))


class Printable(logging.Filter):
    r"""A logger's filter that turns every message into one printable line; a traceback's lines stay.

    Example:
        >>> import logging
        >>> from privstats.printable import Printable
        >>> record = logging.LogRecord("party", logging.INFO, "", 0, "it says %s", ("no\n09:00 all is well",), None)
        >>> Printable().filter(record), record.getMessage()
        (True, 'it says no\\n09:00 all is well')
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Escape the record's message in place; return True."""
        record.msg, record.args = printable(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = printable_lines(logging.Formatter().formatException(record.exc_info))
        return True


def bin_names(edges: Sequence[float], closed: str, open: str) -> tuple[str, ...]:
    """Return readable names of bins, as every table and page shows them.

    Args:
        closed: the end that belongs to a bin, ``"left"`` or ``"right"``.
        open: outer bins without an outer limit: ``"both"``, ``"above"``, ``"below"`` or ``"none"``.

    Example:
        >>> from privstats.printable import bin_names
        >>> bin_names((0, 2, 4, 6), "left", "above"), bin_names((0, 2, 4, 6), "right", "both")
        (('0 to 2', '2 to 4', '4 or more'), ('up to 2', '2 to 4', 'over 4'))
    """
    first, last = ("under {1}", "{0} or more") if closed == "left" else ("up to {1}", "over {0}")
    names = ["{0} to {1}"] * (len(edges) - 1)
    if open in ("both", "below"):
        names[0] = first
    if open in ("both", "above"):
        names[-1] = last
    return tuple(name.format(*pair) for name, pair in zip(names, pairwise(map(_in_digits, edges)), strict=True))


def _in_digits(number: float) -> str:
    """JavaScript must write an identical text, so exponents follow its rule."""
    text = repr(number + 0.0).removesuffix(".0")
    if 1e-6 <= abs(number) < 1e21:
        return f"{Decimal(text):f}"
    return re.sub(r"(e[+-])0", r"\1", text)


def levels_text(levels: Any, *, stays: bool = False) -> str:
    """Describe which texts of columns and outcomes declared by ``Levels`` count as which numbers.

    Args:
        levels: the declaration.
        stays: whether a person with another cause stays at risk, as for subdistribution ratios.

    Example:
        >>> from privstats.printable import levels_text
        >>> levels_text(ps.transforms.Levels((ps.Categories("arm", ("placebo", "drug")),)))
        "in arm 'placebo' counts as 0 and 'drug' as 1"
    """
    worded = [each for each in levels.outcomes if hasattr(each, "values")]
    return "; ".join([*map(_comparison, levels.columns), *(_caused(each, stays=stays) for each in worded)])


def _comparison(column: Any) -> str:
    first, *rest = map(repr, column.values)
    if len(rest) == 1:
        return f"in {column.name} {first} counts as 0 and {rest[0]} as 1"
    return f"in {column.name} {first} is what {', '.join(rest)} are compared with"


def _caused(outcome: Any, *, stays: bool) -> str:
    first, event, *others = map(repr, outcome.values)
    if not others:
        return _comparison(outcome)
    if stays:
        causes = f"a person with {' or '.join(others)} stays at risk"
        return f"in {outcome.name} {event} is the event; {first} ends the time without it, and {causes}"
    return f"in {outcome.name} {event} is the event; {', '.join((first, *others))} end the time without it"


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column holds names, the others numbers.

    Example:
        >>> from privstats.printable import html_table
        >>> html_table(["statistic", "sigma"], [["N", "<1"]]).count("&lt;1")
        1
    """
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def html_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a heading, and names with their values.

    Example:
        >>> from privstats.printable import html_facts
        >>> html_facts("plan", [("clients", "3")])
        '<p><strong>plan</strong></p><dl><dt>clients</dt><dd>3</dd></dl>'
    """
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f"<p><strong>{escape(title)}</strong></p><dl>{items}</dl>"


def html_lines(text: str) -> str:
    """Return a text with its line breaks.

    Example:
        >>> from privstats.printable import html_lines
        >>> html_lines("mu < 1" + chr(10) + "epsilon 1")
        '<p>mu &lt; 1<br>epsilon 1</p>'
    """
    return f"<p>{'<br>'.join(map(escape, text.splitlines()))}</p>"


def framed(page: str, height: int = 600) -> str:
    """Return a full page in a frame that runs no script.

    Example:
        >>> from privstats.printable import framed
        >>> framed("<p>a page</p>").count("&lt;p&gt;")
        1
    """
    style = f"width: 100%; height: {height}px; border: 1px solid #ccc"
    return f'<iframe sandbox srcdoc="{escape(page)}" style="{style}" title="report"></iframe>'


def _row(tag: str, cells: Sequence[str]) -> str:
    sides = ("left", *["right"] * (len(cells) - 1))
    cells_html = (
        f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(cells_html)}</tr>"


def at_most(value: float, spec: str = ".4g") -> str:
    """Return an upper bound as text, rounded up: an epsilon, a delta, a mu, a probability of failure.

    Args:
        spec: digits and form of the text, as for ``format``: ``.4g``, ``,.4g`` or ``.4f``.

    Guarantee: the number in the text is at least ``value * (1 - 1e-7)``.

    Example:
        >>> from privstats.printable import at_most
        >>> at_most(1.00001), at_most(1 + 1e-15), at_most(9.31e-10, ".2g"), at_most(0.26801, ".4f")
        ('1.001', '1', '9.4e-10', '0.2681')
    """
    return _directed(value, spec, ROUND_CEILING)


def first_few(texts: Sequence[str], most: int) -> str:
    """Return at most so many of these texts, and how many follow.

    Example:
        >>> from privstats.printable import first_few
        >>> first_few(["a", "b"], 2), first_few(["a", "b", "c", "d"], 2)
        ('a, b', 'a, b and 2 more')
    """
    shown = ", ".join(texts[:most])
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most} more"


def delta_text(delta: float) -> str:
    """Return the delta of a promise as text of six digits, rounded up, so that all pages print one delta alike.

    Example:
        >>> from privstats.printable import delta_text
        >>> delta_text(1e-6), delta_text(1e-5 / 3), delta_text(1e-6 + 1e-12)
        ('1e-06', '3.33334e-06', '1.00001e-06')
    """
    return at_most(delta, ".6g")


def at_least(value: float, spec: str = ".4g") -> str:
    """Return a lower bound as text, rounded down; the opposite of :func:`at_most`.

    Guarantee: the number in the text is at most ``value * (1 + 1e-7)``.

    Example:
        >>> from privstats.printable import at_least
        >>> at_least(0.99999), at_least(1 - 1e-15), at_least(12345.6, ",.4g")
        ('0.9999', '1', '1.234e+04')
    """
    return _directed(value, spec, ROUND_FLOOR)


def _directed(value: float, spec: str, rounding: str) -> str:
    """Return the nearest text if it is on the right side, up to the tolerance, else the next one on that side."""
    nearest = format(value, spec)
    if not 0 < value < math.inf:
        return nearest
    beyond = float(nearest.replace(",", "")) / value - 1
    if (beyond if rounding == ROUND_CEILING else -beyond) >= -_TOLERANCE:
        return nearest
    digits, exact = int(spec[spec.index(".") + 1 : -1]), Decimal(value)
    if spec.endswith("g"):
        rounded = Context(prec=digits, rounding=rounding).create_decimal(exact)
    else:
        rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding, Context(prec=400))
    return format(float(rounded), spec)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return the rows as comma-separated lines, with an apostrophe before text that a spreadsheet would run.

    Numbers, also as text, and a sign alone stay unchanged.

    Example:
        >>> from privstats.printable import csv_text
        >>> print(csv_text([["name", "mean"], ["=1+1", -1.5], ["-2", "-inf"], ["-", "@ulm"]]), end="")
        name,mean
        '=1+1,-1.5
        -2,-inf
        -,'@ulm
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip().startswith(_FORMULA) or _is_harmless(value.strip()):
        return value
    return _TEXT + value


def _is_harmless(text: str) -> bool:
    """Return whether a text is a number, also with commas or an interval, or a single sign."""
    if _WITH_ENDS.fullmatch(text):
        return True
    try:
        float(text.replace(",", ""))
    except ValueError:
        return len(text) == 1
    return "_" not in text
