"""The number tables of benchmarks/inference/imputation_numbers.md, from the results of ``inference/imputation*.py``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from benchmarks.measuring import Row
from benchmarks.table import Cells, Tables, by_name, titled

__all__ = ["TABLES"]


def imputation_many_gaps() -> Cells:
    """benchmarks/inference/imputation_numbers.md: bias and coverage with 30 % missing."""
    return _by_world(0.3)


def imputation_few_gaps() -> Cells:
    """benchmarks/inference/imputation_numbers.md: bias and coverage with 10 % missing."""
    return _by_world(0.1)


def imputation_mice() -> Cells:
    """benchmarks/inference/imputation_numbers.md: the same records by mice."""
    head = ["gaps in", "missing", "way", "epsilon", "reported", "bias / coverage", "half width"]
    lines = []
    for _, rows in titled("inference.imputation", "beside mice"):
        for row in rows:
            about = [row["world"], f"{100 * row['missing']:.0f} %", row["way"], _epsilon(row)]
            half = "-" if row["half width"] is None else f"{row['half width']:.3f}"
            lines.append([*about, f"{100 * row['reported']:.0f} %", _imputed(row), half])
    return [head, *lines]


def imputation_cells_holds() -> Cells:
    """benchmarks/inference/imputation_numbers.md: odds ratios and risk differences through cells."""
    return _cells_of("gaps in covariates", "gaps in the outcome")


def imputation_cells_edges() -> Cells:
    """benchmarks/inference/imputation_numbers.md: rare values, many cells, declared products, and other models."""
    return _cells_of("edges: rare", "edges: many", "a declared product", "outside the model")


def imputation_cells_mice() -> Cells:
    """benchmarks/inference/imputation_numbers.md: odds ratios of the same records by mice."""
    head = ["gaps in", "missing", "way", "epsilon", "reported", "bias / misses", "half width"]
    lines = []
    for _, rows in titled("inference.imputation_cells", "beside mice"):
        for row in rows:
            about = [row["world"], f"{100 * row['missing']:.0f} %", row["way"], _epsilon(row)]
            half = "-" if row["half width"] is None else f"{row['half width']:.3f}"
            lines.append([*about, f"{100 * row['reported']:.0f} %", _missed(row, ""), half])
    return [head, *lines]


def _cells_of(*titles: str) -> Cells:
    rows = [row for title in titles for _, found in titled("inference.imputation_cells", title) for row in found]
    cells: dict[tuple[str, int, float], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["world"], row["records"], row["missing"]), []).append(row)
    head = ["gaps in", "records", "missing", "of", "epsilon 1", "epsilon 3", "epsilon 8", "no noise", "complete cases"]
    lines = []
    for (world, records, missing), found in cells.items():
        for what in _WHAT:
            first = [world, f"{records:,}", f"{100 * missing:.0f} %"] if what == "odds" else ["", "", ""]
            last = found[-1]
            cases = (
                f"{_number(last[f'{what}: complete cases bias'])} / {100 * last[f'{what}: complete cases worst']:.0f} %"
            )
            lines.append([*first, _WHAT[what], *(_missed(row, f"{what}: ") for row in found), cases])
    return [head, *lines]


_WHAT = {"odds": "coefficients", "risks": "log odds of risks", "differences": "risk differences"}


def _missed(row: Row, prefix: str) -> str:
    reported = row[f"{prefix}reported"]
    if not reported:
        return "not reported"
    share = "" if reported > 0.995 or "way" in row else f" ({100 * reported:.0f} % reported)"
    return f"{_number(row[f'{prefix}bias'])} / {100 * row[f'{prefix}worst']:.1f} %{share}"


def _number(bias: float | None) -> str:
    return "-" if bias is None else f"{bias:.3f}"


def _by_world(missing: float) -> Cells:
    rows = [row for _, rows in titled("inference.imputation") for row in rows if "records" in row]
    cells: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row["missing"] == missing:
            cells.setdefault((row["world"], row["records"]), []).append(row)
    epsilons = [_epsilon(row) for row in next(iter(cells.values()))]
    head = ["gaps in", "records", "way", *(f"epsilon {each}" if each[0].isdigit() else each for each in epsilons)]
    lines = []
    for (world, records), found in cells.items():
        lines.append([world, f"{records:,}", "imputed", *map(_imputed, found)])
        lines.append(["", "", "complete cases", *map(_complete, found)])
    return [head, *lines]


def _imputed(row: Row) -> str:
    if not row["reported"]:
        return "not reported"
    share = "" if row["reported"] > 0.995 or "way" in row else f" ({100 * row['reported']:.0f} % reported)"
    return f"{row['bias']:.3f} / {100 * (1 - row['worst slope'] / row['reported']):.1f} %{share}"


def _complete(row: Row) -> str:
    return f"{row['complete cases: bias']:.3f} / {100 * (1 - row['complete cases miss']):.1f} %"


def _epsilon(row: Row) -> str:
    return "no noise" if row["epsilon"] is None else f"{row['epsilon']:g}"


TABLES: Tables = by_name(
    imputation_many_gaps,
    imputation_few_gaps,
    imputation_mice,
    imputation_cells_holds,
    imputation_cells_edges,
    imputation_cells_mice,
)
"""By the name in the page's marker."""
