"""The number tables of benchmarks/papers/numbers.md, from the committed results of ``benchmarks/papers`` and the peers.

Part of ``benchmarks/tables.py``, which writes them into the page. A table more is a line in :data:`TABLES` and its
marker in the page: cells become a row per row of the paper, other rows stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.measuring import RESULTS, Row, Rows, results
from benchmarks.papers.contents import contents
from benchmarks.table import Cells, Tables, by_name, titled

__all__ = ["TABLES", "from_results", "heads_and_uploads", "left_out", "losses"]

_WHY = ("differs: ", "loses: ", "cannot be had here: ")
_AND_LOSES = "; loses: "
_ROUNDING = 1e-12  # a smaller error, relative to the mean, is that of adding equal values
_LEAST = 1e-3  # below it a number without a spread is written with a power of ten


def from_results(benchmark: str, start: str, leave_out: Sequence[str] = ()) -> Cells:
    """One table of a benchmark.

    Args:
        benchmark: the name of its results.
        start: how the table's title begins; the first one counts.
        leave_out: columns that the page does without.
    """
    rows = next((rows for title, rows in results(benchmark).items() if title.startswith(start)), None)
    if rows is None:
        raise KeyError(f"no table of {benchmark} begins with {start!r}")
    return _pivoted(rows, leave_out) if "verdict" in rows[0] and "column" in rows[0] else _plain(rows, leave_out)


def gh_contradictions() -> Cells:
    """Cells that cannot both hold; and the inequality of appendix B, against what was measured."""
    sent = {row["a client sends"]: row["PSNR, dB"] for row in titled("papers.gh_appendix_b", "what one")[0][1]}
    update, sums = sent["FedAvg: one full-batch step from zero"], sent["LDA: N, A and B"]
    row = [
        "leakage of LDA's moments, of FedAvg",
        "Appendix B: L(moments) <= L(FedAvg), strict",
        f"four samples of a class: {sums:.1f} dB from N, A, B, {update:.1f} dB from one FedAvg update",
        "a linear softmax's first full-batch step from zero is a function of N and A, so data processing says >=",
        f"{update - sums:.1f} dB",
    ]
    return [*from_results("papers.gh_ofl", "GH-OFL against itself"), row]


def losses() -> Cells:
    """Every cell of a paper in which we lose, from all results that are committed: docs/evidence.md lists them."""
    lines = [["table", "where", "why"]]
    for path in sorted(RESULTS.glob("papers.*.json")):
        for title, rows in results(path.stem).items():
            lost = [row for row in rows if title != "machine" and row.get("lost") and "column" in row]
            table = title.partition(":")[0]
            for reason in dict.fromkeys(_said(row)[-1] for row in lost):
                lines.append([table, _places([row for row in lost if _said(row)[-1] == reason]), reason])
                table = ""
    return lines


def left_out(paper: str) -> Cells:
    """What of a paper has no number on the page, and why; ``papers/contents.toml`` has the reasons."""
    lines = [["in the paper", "without a number here", "why"]]
    found: dict[tuple[str, str], list[str]] = {}
    for item in contents():
        for reason, names in item.reasons().items() if item.paper == paper else ():
            found.setdefault((item.item, reason), []).extend(names)
    told = ""
    for (item_name, reason), names in found.items():
        lines.append(["" if item_name == told else item_name, "; ".join(filter(None, names)), reason])
        told = item_name
    return lines


def heads_and_uploads() -> Cells:
    """GH-OFL's Table 1, each head with the statistics that were uploaded for it."""
    overheads = next(rows for title, rows in results("papers.gh_ofl").items() if title.startswith("GH-OFL, Figure 3"))
    uploaded = {row["head"]: row["uploaded"] for row in overheads}
    head, *lines = from_results("papers.gh_ofl", "GH-OFL, Table 1:")
    return [head, *([f"{name}, ({uploaded[name]})" if name in uploaded else name, *rest] for name, *rest in lines)]


def _places(rows: Rows) -> str:
    """Columns with their rows, such as ``MSE; change, at 10, 20``; columns that share their rows stand together."""
    by_column: dict[str, list[str]] = {}
    for row in rows:
        by_column.setdefault(row["column"], []).append(str(row["row"]))
    by_rows: dict[tuple[str, ...], list[str]] = {}
    for column, names in by_column.items():
        by_rows.setdefault(tuple(names), []).append(column)
    return "; ".join(_place(names, columns) for names, columns in by_rows.items())


def _place(names: Sequence[str], columns: Sequence[str]) -> str:
    between = " and " if any("," in name for name in names) else ", "
    return f"{'; '.join(columns)}, at {between.join(names)}"


def _said(row: Row) -> list[str]:
    """The reasons of a verdict: what stands in where a cell cannot be had, then why it is a loss, where it is one."""
    for word in _WHY:
        if row["verdict"].startswith(word):
            return str(row["verdict"].removeprefix(word)).split(_AND_LOSES)
    return []


def _pivoted(rows: Rows, leave_out: Sequence[str]) -> Cells:
    """Rows of a paper's table down, its columns across, published / ours; losses bold, reasons at the end."""
    columns = [column for column in dict.fromkeys(row["column"] for row in rows) if column not in leave_out]
    lines = [["published / here", *columns, "where it differs, and why"]]
    told: dict[tuple[str, ...], str] = {}
    for name in dict.fromkeys(row["row"] for row in rows):
        found = {row["column"]: row for row in rows if row["row"] == name and row["column"] in columns}
        if found:
            cells = [_cell(found[column]) if column in found else "" for column in columns]
            reasons = _reasons(found)
            lines.append([str(name), *cells, "; ".join(_shortened(reasons, told))])
            if reasons:
                told.setdefault(reasons, str(name))
    return lines if told else [line[:-1] for line in lines]


def _cell(row: Row) -> str:
    ours = "–" if row["ours"] is None else _measured(row["ours"], row["se"])
    ours = f"**{ours}**" if row["lost"] else ours
    return ours if row["published"] is None else f"{row['published']} / {ours}"


def _reasons(found: Mapping[str, Row]) -> tuple[str, ...]:
    """Each reason once, behind the columns that it is about, losses last; no column where it is all."""
    by_reason: dict[str, list[str]] = {}
    said = {column: _said(row) for column, row in found.items()}
    for place in range(2):
        for column, reasons in said.items():
            if place < len(reasons):
                by_reason.setdefault(reasons[place], []).append(column)
    return tuple(
        reason if len(columns) == len(found) else f"{', '.join(columns)}: {reason}"
        for reason, columns in by_reason.items()
    )


def _shortened(reasons: tuple[str, ...], told: Mapping[tuple[str, ...], str]) -> Sequence[str]:
    """What an earlier row has said whole is not said again."""
    for known in range(len(reasons), 0, -1):
        if reasons[:known] in told:
            return [f"as at {told[reasons[:known]]}", *reasons[known:]]
    return reasons


def _plain(rows: Rows, leave_out: Sequence[str]) -> Cells:
    """Rows as they are; a standard error goes behind its mean."""
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in (*leave_out, "lost")]
    errors = {_error_of(key, keys): key for key in keys if _error_of(key, keys)}
    shown = [key for key in keys if key not in errors.values()]
    lines = [list(shown)]
    for row in rows:
        lines.append([_value(row, key, row.get(errors.get(key, ""))) for key in shown])
    return lines


def _error_of(key: str, keys: Sequence[str]) -> str | None:
    """The column whose standard error a column is, or None: ``se`` is that of the column before it."""
    if key.endswith(", se"):
        return key.removesuffix(", se")
    return keys[keys.index(key) - 1] if key == "se" else None


def _value(row: Row, key: str, error: float | None) -> str:
    value: Any = row.get(key)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, int | float):
        shown = _measured(value, error or 0.0)
        return f"**{shown}**" if row.get("lost") and key == "ours" else shown
    return str(value)


def _measured(mean: float, error: float) -> str:
    """Two digits of the error and as many places of the mean; three digits where there is no error."""
    if math.isfinite(error) and error > _ROUNDING * abs(mean):
        places = max(0, 1 - int(f"{error:.1e}".partition("e")[2]))
        return f"{mean:.{places}f} ± {error:.{places}f}"
    if mean and abs(mean) < _LEAST:
        return f"{mean:.1e}"
    places = max(0, 2 - math.floor(math.log10(abs(mean)))) if mean else 0
    text = f"{mean:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def _of(benchmark: str, **starts: str) -> dict[str, Callable[[], Cells]]:
    return {name: partial(from_results, benchmark, start) for name, start in starts.items()}


TABLES: Tables = {
    "losses": losses,
    "gh_heads": heads_and_uploads,
    **_of(
        "papers.one_shot_ridge",
        ridge_recovery="One-shot ridge, Theorem 2",
        ridge_baselines="One-shot ridge, Table II:",
        ridge_gaps="One-shot ridge, Table II, paired",
        ridge_heterogeneity="One-shot ridge, Table III:",
        ridge_uploads="One-shot ridge, Table IV:",
        ridge_convergence="One-shot ridge, Figure 3:",
        ridge_as_published="One-shot ridge, Table V:",
        ridge_true_epsilon="One-shot ridge, Table V, true epsilon",
        ridge_kept="One-shot ridge, Table V, kept",
        ridge_clients="One-shot ridge, Table VI:",
        ridge_projections="One-shot ridge, Table VII:",
        ridge_vanished="One-shot ridge, Theorem 8",
        ridge_penalties="One-shot ridge, Proposition 5",
        ridge_seconds="One-shot ridge, Figure 2 (b)",
        ridge_distances="One-shot ridge, Propositions 2 and 3",
        ridge_gradients="One-shot ridge, section VI-A",
        ridge_kernels="One-shot ridge, section VI-C",
        ridge_perturbed="One-shot ridge, section VI-D",
        ridge_partitions="One-shot ridge, Theorem 5",
        ridge_crossover="One-shot ridge, Corollary 2",
        ridge_composition="One-shot ridge, Theorem 7",
        ridge_first_step="One-shot ridge, Proposition 4",
    ),
    **_of(
        "papers.gh_ofl",
        gh_invariance="partitions",
        gh_masked="one partition",
        gh_heads_gaps="GH-OFL, Table 1, points",
        gh_rounds="GH-OFL, Table 1, multi-round:",
        gh_squares="GH-OFL, Section 3.3",
        gh_backbones="GH-OFL, Table 3:",
        gh_backbones_gaps="GH-OFL, Table 3, points",
        gh_overheads="GH-OFL, Figure 3",
        gh_partitions="GH-OFL, Table 7:",
        gh_predicting="GH-OFL, Table 8, head cost",
        gh_sketches="GH-OFL, Table 8, bottom:",
        gh_corrupted="GH-OFL, Table 2:",
        gh_corrupted_gaps="GH-OFL, Table 2, points",
        gh_texts_gaps="GH-OFL, Table 4, points",
        gh_low_rank_gaps="GH-OFL, Table 5, points",
        gh_uploads="GH-OFL, Tables 6 and 8:",
        gh_fitting="GH-OFL, Table 8, top:",
        gh_gaussianity="GH-OFL, Table 9:",
        gh_subspaces="GH-OFL, Table 10:",
        gh_subspaces_gaps="GH-OFL, Table 10, points",
        gh_future="GH-OFL, Section D.3",
    ),
    **by_name(gh_contradictions),
    **_of(
        "papers.gh_appendix_b",
        gh_leakage="what one client's message",
        gh_local_noise="local noise by k",
        gh_final_heads="noise on the final head",
        gh_laplace="Gaussian or Laplace, CIFAR-10",
        gh_laplace_counts="Gaussian or Laplace, noise",
    ),
    "gh_texts": partial(from_results, "papers.gh_ofl", "GH-OFL, Table 4:", ("DBPEDIA-14", "SST-2")),
    "gh_low_rank": partial(from_results, "papers.gh_ofl", "GH-OFL, Table 5:", ("DBPEDIA-14 Acc.",)),
    **{
        f"{name}_left_out": partial(left_out, paper)
        for name, paper in {"gh": "GH-OFL", "cgs": "FedCGS", "slot": "SLOT-Align", "ridge": "One-shot ridge"}.items()
    },
    **_of(
        "papers.fedcgs",
        cgs_skew_gaps="FedCGS, Table 1, points",
        cgs_unseen="FedCGS, Table 2:",
        cgs_unseen_gaps="FedCGS, Table 2, points",
        cgs_personal="FedCGS, Table 3:",
        cgs_personal_gaps="FedCGS, Table 3, points",
        cgs_linear="FedCGS, Figure 2:",
        cgs_expansion="FedCGS, Figure 3:",
        cgs_backbones="FedCGS, Table 4:",
        cgs_uploads="FedCGS, Communication",
        cgs_inversion="FedCGS, Figure 4:",
    ),
    "cgs_skew": partial(from_results, "papers.fedcgs", "FedCGS, Table 1:", ("DENSE", "Co-Boosting")),
    **_of(
        "papers.slot_align",
        slot_accuracy="SLOT-Align, main results:",
        slot_gains="SLOT-Align, main results, gains",
        slot_label_shift="SLOT-Align, ablation: points that alignment adds to FedCGS, by label shift",
        slot_others="SLOT-Align, ablation: points that alignment adds to the other methods",
        slot_strength="SLOT-Align, ablation: points that alignment adds at alpha .1, by tau",
        slot_contraction="SLOT-Align, key designs",
    ),
}
"""By the name in the page's marker."""
