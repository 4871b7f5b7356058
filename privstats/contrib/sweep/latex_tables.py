r"""Write a study as LaTeX tables for a paper, in booktabs style: the scores, and the methods that they are of.

The document needs ``\usepackage{booktabs}`` alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from scipy.special import stdtrit

from privstats.contrib.sweep.axes import OF_PARTITION, OF_PROMISE
from privstats.contrib.sweep.experiment import Study
from privstats.contrib.sweep.points import metric
from privstats.dp import Privacy

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "²": r"\textsuperscript{2}",
    "±": r"$\pm$",
}
_HEADERS = {"alpha": r"$\alpha$", "dimension": "features", "clip_norm": "clip norm"}
_NO_VALUE = "--"
_METHOD_WIDTH, _DESCRIPTION_WIDTH = "0.22", "0.42"
"""Widths of the columns of names and of descriptions, as shares of the text's width."""
_TEXT_WIDTH = 345
"""Width of an article's text, in points."""
_NARROW = r"\setlength{\tabcolsep}{3pt}"
_SIZES: Sequence[tuple[float, int, tuple[str, ...]]] = (
    (4.8, 12, ()),
    (4.5, 6, (r"\small", _NARROW)),
    (4.1, 6, (r"\footnotesize", _NARROW)),
    (3.9, 6, (r"\scriptsize", _NARROW)),
)
"""Type sizes, largest first: points per letter of a table, points between columns, and commands."""


def latex(study: Study | Mapping[str, Study]) -> str:
    r"""Return two tables: mean scores with 95 % intervals, and what each method is and promises.

    Several studies over the same axes and methods, by the names of their data sets, share both tables.

    A row of the first table is a head or rival, under each value of the varied axes; a column is an epsilon. A cell is
    the mean and half of the Student interval over the replicates. A head without noise has one score and no interval.

    Example:
        >>> from privstats.contrib.sweep import Axes, latex, study
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 8.0), cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> found = study(plan, (X, y), (X, y), {"LDA": ps.heads.LDA}, Axes(epsilon=(1.0, 8.0)), repeats=2)
        >>> print(latex(found).splitlines()[7])
        method & no DP & $\varepsilon = 8$ & $\varepsilon = 1$ \\
    """
    studies = study if isinstance(study, Mapping) else {"": study}
    return "\n".join([*_scores(studies), "", *_methods(studies), ""])


def escaped(text: str) -> str:
    r"""Return text that LaTeX prints as it is.

    Example:
        >>> from privstats.contrib.sweep.latex_tables import escaped
        >>> escaped("50 % of R_1 & {more}")
        '50 \\% of R\\_1 \\& \\{more\\}'
    """
    return "".join(_ESCAPED.get(letter, letter) for letter in text)


def _scores(studies: Mapping[str, Study]) -> list[str]:
    first = next(iter(studies.values()))
    axes = [name for name in first.axes.varied if name != "epsilon"]
    summaries = [study.summary for study in studies.values()]
    found = {row["epsilon"] for summary in summaries for row in summary if row["epsilon"] is not None}
    epsilons = sorted(found, reverse=True)
    several = ["data"] * (len(studies) > 1)
    headers = [*several, *(_HEADERS.get(name, name) for name in axes), "method", "no DP"]
    headers += [rf"$\varepsilon = {epsilon:g}$" for epsilon in epsilons]
    rows = [
        [
            *[escaped(name)] * len(several),
            *(_value(value) for value in values),
            escaped(head),
            *(_cell(study, cells, at) for at in (None, *epsilons)),
        ]
        for name, study in studies.items()
        for (values, head), cells in _grouped(study, axes).items()
    ]
    shared = len(several) + len(axes)
    layout = "l" * (shared + 1) + "r" * (len(epsilons) + 1)
    return _table(layout, headers, _apart(rows, shared), _caption(studies), "scores", _size([headers, *rows]))


def _size(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the commands of the largest type at which a table fits an article's text, else of the smallest."""
    columns = list(zip(*rows, strict=True))
    letters = sum(max(len(_visible(cell)) for cell in column) for column in columns)
    fitting = (how for points, gap, how in _SIZES if points * letters + gap * len(columns) <= _TEXT_WIDTH)
    return next(fitting, _SIZES[-1][2])


def _visible(cell: str) -> str:
    """Return a cell with one letter for each command, and without marks that LaTeX does not print."""
    return re.sub(r"[\\${}]", "", re.sub(r"\\[a-z]+", "x", cell))


def _apart(rows: Sequence[Sequence[str]], axes: int) -> list[str]:
    """Return the lines of rows: several heads share one print of their axes' values, and a space parts their groups."""
    lines: list[str] = []
    for values, group in groupby(rows, key=lambda row: list(row[:axes])):
        heads = list(group)
        if lines and len(heads) > 1:
            lines.append(r"\addlinespace")
        shown = [values, *[[""] * axes] * (len(heads) - 1)]
        lines += [rf"{' & '.join([*of, *row[axes:]])} \\" for of, row in zip(shown, heads, strict=True)]
    return lines


def _grouped(study: Study, axes: Sequence[str]) -> dict[tuple[tuple[Any, ...], str], dict[float | None, Any]]:
    """Return each line's summary rows by epsilon; the point without noise is in each line of its partition."""
    lines: dict[tuple[tuple[Any, ...], str], dict[float | None, Any]] = {}
    exact = [row for row in study.summary if row["epsilon"] is None]
    for row in study.summary:
        if row["epsilon"] is not None:
            lines.setdefault((tuple(row[name] for name in axes), row["head"]), {})[row["epsilon"]] = row
    for row in exact:
        of_partition = {name: row[name] for name in (*OF_PARTITION, "head")}
        beside = [cells for cells in lines.values() if _agrees(next(iter(cells.values())), of_partition)]
        key = tuple(None if name in OF_PROMISE else row[name] for name in axes), row["head"]
        for cells in beside or [lines.setdefault(key, {})]:
            cells[None] = row
    order = list(dict.fromkeys(study.summary["head"]))
    return dict(sorted(lines.items(), key=lambda line: (*map(_rank, line[0][0]), order.index(line[0][1]))))


def _agrees(row: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    return all(row[name] == value for name, value in values.items())


def _rank(value: Any) -> tuple[int, Any]:
    return (2, 0) if value is None else (1, value) if isinstance(value, str) else (0, value)


def _cell(study: Study, cells: Mapping[float | None, Mapping[str, Any]], epsilon: float | None) -> str:
    row = cells.get(epsilon)
    if row is None:
        return _NO_VALUE
    if row["deviation"] is None:
        return f"${_number(study, row['mean'])}$"
    half = (row["high"] - row["low"]) / 2
    return rf"${_number(study, row['mean'])} \pm {_number(study, half)}$"


def _number(study: Study, score: float) -> str:
    return f"{100 * score:.1f}" if metric(study.plan.schema) == "accuracy" else f"{score:.3f}"


def _value(value: Any) -> str:
    return _NO_VALUE if value is None else f"${value:g}$" if isinstance(value, int | float) else escaped(str(value))


def _caption(studies: Mapping[str, Study]) -> str:
    study = next(iter(studies.values()))
    privacy = study.plan.privacy
    unit = r"\%" if metric(study.plan.schema) == "accuracy" else ""
    t = float(stdtrit(study.repeats - 1, (1 + study.confidence) / 2))
    parts = [
        f"{escaped(study.metric)}{f' in {unit}' if unit else ''} on {_sizes(studies)}",
        f"mean $\\pm$ half of the {100 * study.confidence:g}\\,\\% Student $t$ interval over {study.repeats} seeds, "
        f"each with one partition and one noise sample ($t = {t:.3f}$); a head without noise has no spread",
    ]
    if isinstance(privacy, Privacy):
        units = ", ".join(study.axes.unit or (privacy.unit,))
        delta = _power(privacy.delta)
        parts.append(f"$\\delta = {delta}$, unit {escaped(units)}, {escaped(privacy.adjacency)} adjacency")
    if "alpha" not in study.axes.varied:
        alpha = study.axes.alpha[0] if study.axes.alpha else None
        parts.append("records dealt evenly" if alpha is None else f"Dirichlet label skew $\\alpha = {alpha:g}$")
    if len(study.axes.clients) < 2:
        parts.append(f"{(study.axes.clients or (study.plan.cohort.clients,))[0]} parties")
    unprotected = [name for name, rival in study.rivals.items() if not rival.private]
    if unprotected:
        parts.append(f"no privacy: {escaped('; '.join(unprotected))}")
    return ". ".join(part[0].upper() + part[1:] if part[0].isalpha() else part for part in parts) + "."


def _sizes(studies: Mapping[str, Study]) -> str:
    """Return each data set's numbers of test and training records in words."""
    sizes = {name: (study.sizes["test"], study.sizes["train"]) for name, study in studies.items()}
    if len(sizes) == 1:
        ((test, train),) = sizes.values()
        return f"{test} test records after training on {train}"
    each = ", ".join(f"{escaped(name)} {test} and {train}" for name, (test, train) in sizes.items())
    return f"the test records of each data set (test and training records: {each})"


def _power(delta: float) -> str:
    if not delta:
        return "0"
    exponent = math.floor(math.log10(delta))
    factor = delta / 10**exponent
    return f"10^{{{exponent}}}" if math.isclose(factor, 1) else f"{factor:g} \\cdot 10^{{{exponent}}}"


def _methods(studies: Mapping[str, Study]) -> list[str]:
    uploads: dict[str, list[int]] = {}
    for study in studies.values():
        for name, upload in {row["head"]: row["upload_bytes"] for row in study.summary}.items():
            uploads.setdefault(name, []).append(upload)
    rivals, rows = {name: rival for study in studies.values() for name, rival in study.rivals.items()}, []
    for name, sizes in uploads.items():
        rival = rivals.get(name)
        text = "a closed-form head of summed statistics with the plan's noise" if rival is None else str(rival)
        promise = "yes" if rival is None or rival.private else "no"
        kilobytes = sorted({f"{upload / 1e3:.1f}" for upload in sizes if upload}, key=float)
        size = " to ".join(f"${each}$" for each in dict.fromkeys((*kilobytes[:1], *kilobytes[-1:]))) or _NO_VALUE
        rows.append(
            rf"\raggedright {escaped(name)} & {promise} & {size} & \raggedright {escaped(text)} \tabularnewline"
        )
    caption = (
        "Methods. Private: whether the released model meets the promise of its column. Upload: kilobytes of one party "
        "in all its rounds; none where the records are pooled."
    )
    layout = rf"p{{{_METHOD_WIDTH}\textwidth}}lrp{{{_DESCRIPTION_WIDTH}\textwidth}}"
    apart = [line for row in rows for line in (r"\addlinespace", row)][1:]
    return _table(layout, ["method", "private", "upload", "model and training"], apart, caption, "methods")


def _table(
    layout: str, headers: Sequence[str], lines: Sequence[str], caption: str, label: str, size: Sequence[str] = ()
) -> list[str]:
    return [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:sweep-{label}}}",
        *size,
        r"\medskip",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        rf"{' & '.join(headers)} \\",
        r"\midrule",
        *lines,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
