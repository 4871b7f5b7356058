"""The number tables of benchmarks/inference/site_level_numbers.md, from the results of ``inference/site_levels*.py``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measuring import Row
from benchmarks.table import Cells, Tables, by_name, titled

__all__ = ["TABLES"]


_UNTUNED, _HARD = "untuned: ", "hard: "


def site_levels() -> Cells:
    """benchmarks/inference/site_level_numbers.md: how often intervals miss, by world."""
    return _worlds("inference.site_levels", _missed)


def site_levels_logit() -> Cells:
    """benchmarks/inference/site_level_numbers.md: the same for a logistic regression."""
    return _worlds("inference.site_levels_logit", _apart)


def site_levels_untuned() -> Cells:
    """benchmarks/inference/site_level_numbers.md: the same in worlds on which no rule was chosen."""
    return _worlds("inference.site_levels_logit", _apart, _UNTUNED)


def site_levels_hard() -> Cells:
    """benchmarks/inference/site_level_numbers.md: the same in worlds that break or strain what is assumed."""
    return _worlds("inference.site_levels_logit", _apart, _HARD)


def _worlds(name: str, shown: Callable[[Row], str], group: str = "") -> Cells:
    """Return the worlds whose titles begin with ``group``; without one, those of no group."""
    tables = {
        title: rows
        for title, rows in titled(name)
        if title.startswith(group or title) and bool(group) == title.startswith((_UNTUNED, _HARD))
    }
    cells: dict[tuple[str, int, float], list[Row]] = {}
    for row in (row for title, rows in tables.items() for row in rows if row.get("world") == title):
        cells.setdefault((row["world"].removeprefix(group), row["sites"], row["tau"]), []).append(row)
    epsilons = [_epsilon(row) for row in next(iter(cells.values()))]
    head = ["", "sites", "tau", *(f"epsilon {each}" if each[0].isdigit() else each for each in epsilons)]
    return [
        head,
        *([world, f"{sites}", f"{tau:g}", *map(shown, found)] for (world, sites, tau), found in cells.items()),
    ]


def site_levels_lmer() -> Cells:
    """benchmarks/inference/site_level_numbers.md: the same records by lmer."""
    head = [
        "sites",
        "way",
        "epsilon",
        "missed: a coefficient / tau",
        "half widths: intercept, x1, x2",
        "interval of tau",
    ]
    lines = []
    for _, rows in titled("inference.site_levels", "beside lme4"):
        for row in rows:
            half = ", ".join(f"{each:.3f}" for each in row["half widths"])
            tau = "{:.2f} to {:.2f}".format(*row["tau interval"])
            lines.append([f"{row['sites']}", row["way"], _epsilon(row), _missed(row), half, tau])
    return [head, *lines]


def site_levels_glmer() -> Cells:
    """benchmarks/inference/site_level_numbers.md: a logistic regression's records by glmer."""
    head = [
        "sites",
        "way",
        "epsilon",
        "runs",
        "missed: intercept / a slope",
        "half widths: intercept, x1, x2",
        "median tau",
    ]
    lines = []
    for _, rows in titled("inference.site_levels_logit", "beside lme4"):
        for row in rows:
            half = ", ".join(f"{each:.3f}" for each in row["half widths"])
            missed = f"{_one(row['missed'][0], row['reported'])} / {_one(max(row['missed'][1:]), row['reported'])}"
            runs = f"{row['runs']}"
            lines.append([f"{row['sites']}", row["way"], _epsilon(row), runs, missed, half, f"{row['estimate']:.2f}"])
    return [head, *lines]


def _apart(row: Row) -> str:
    """Return the shares as :func:`_missed` does, with the intercept's first."""
    shares = (_one(missed, row["reported"]) for missed in (row["missed"][0], max(row["missed"][1:])))
    return " / ".join((*shares, _one(row["tau reported and missed"], row["tau reported"])))


def _missed(row: Row) -> str:
    """Return the shares of all releases, and of reported ones where some are not."""
    level = _one(row["tau reported and missed"], row["tau reported"])
    return f"{_one(row['worst coefficient'], row['reported'])} / {level}"


def _one(missed: float, reported: float) -> str:
    if reported < 0.005:
        return "not reported"
    return f"{100 * missed:.1f} %" + ("" if reported > 0.9 else f" ({100 * reported:.0f} % reported)")


def _epsilon(row: Row) -> str:
    return "no noise" if row["epsilon"] is None else f"{row['epsilon']:g}"


TABLES: Tables = by_name(
    site_levels, site_levels_lmer, site_levels_logit, site_levels_untuned, site_levels_hard, site_levels_glmer
)
"""By the name in the page's marker."""
