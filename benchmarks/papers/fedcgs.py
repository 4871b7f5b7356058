"""FedCGS's tables and figures (Guan, Zhou and Gu, AAAI 2025), each cell beside what comes out here.

    python -m benchmarks.papers.fedcgs --save --figures docs/images

Its backbones do not install from a package, so accuracies stand beside those of frozen features that do and only the
differences between rows are set against each other. Uploads and the inversion of four samples compare directly.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from benchmarks.measuring import Rows
from benchmarks.papers.cgs import personal, skew, study, unseen
from benchmarks.papers.running import Parts, Pictures, paper_command, points
from privstats import heads

PARTS: Parts = {
    "table_1": lambda options: skew.table_1(quick=options.quick),
    "table_2": lambda options: unseen.domains(quick=options.quick),
    "table_3": lambda options: personal.table_3(quick=options.quick),
    "figure_2": lambda options: [study.linear_layers(quick=options.quick)],
    "figure_3": lambda options: [study.expansion(quick=options.quick)],
    "table_4": lambda options: [skew.backbones(quick=options.quick)],
    "uploads": lambda _: [skew.uploads()],
    "figure_4": lambda options: [study.inversion(quick=options.quick)],
}


def _skew(axes: Any, tables: Mapping[str, Rows]) -> None:
    """CIFAR-10 features: accuracy by alpha, the paper's dotted."""
    rows = next(rows for title, rows in tables.items() if "Table 1:" in title)
    chosen = [row for row in rows if row["row"].startswith("CIFAR10,") and row["ours"] is not None]
    for place, name in enumerate(dict.fromkeys(row["column"] for row in chosen)):
        mine, colour = [row for row in chosen if row["column"] == name], f"C{place}"
        alphas = [float(row["row"].rpartition(" ")[2]) for row in mine]
        errors = [row["se"] for row in mine]
        axes.errorbar(alphas, [row["ours"] for row in mine], errors, fmt="o-", color=colour, label=name)
        axes.plot(alphas, [value for _, value in points(mine, name, "published")], "x:", color=colour)
    axes.set(xscale="log", xlabel="Dirichlet alpha", ylabel="accuracy, % (dotted: the paper)")
    axes.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
    axes.set_xticks([], minor=True)
    axes.legend(fontsize="x-small")
    axes.grid(alpha=0.25)


def _bars(axes: Any, tables: Mapping[str, Rows], start: str) -> None:
    """A group of bars per set, a bar per row of the table."""
    rows = next(rows for title, rows in tables.items() if start in title)
    sets = list(dict.fromkeys(row["column"] for row in rows))
    names = list(dict.fromkeys(row["row"] for row in rows))
    wide = 0.8 / len(names)
    for place, name in enumerate(names):
        found = {row["column"]: row for row in rows if row["row"] == name}
        there = [(spot + place * wide, found[column]) for spot, column in enumerate(sets) if column in found]
        heights, errors = [row["ours"] for _, row in there], [2 * row["se"] for _, row in there]
        axes.bar([spot for spot, _ in there], heights, wide, yerr=errors, label=name)
    axes.set_xticks(
        [spot + 0.4 for spot in range(len(sets))], [name.partition(" behind")[0] for name in sets], fontsize=6
    )
    least = min(row["ours"] for row in rows)
    axes.set(ylabel="test accuracy, %", ylim=(5 * (least // 5) - 5, 100))
    axes.legend(fontsize="xx-small", ncols=2)


def _heads(axes: Any, tables: Mapping[str, Rows]) -> None:
    _bars(axes, tables, "Figure 2")


def _expansion(axes: Any, tables: Mapping[str, Rows]) -> None:
    _bars(axes, tables, "Figure 3")


def _inversion(axes: Any, tables: Mapping[str, Rows]) -> None:
    """PSNR by what the server sees."""
    rows = next(rows for title, rows in tables.items() if "Figure 4" in title)
    names = list(dict.fromkeys(row["data"] for row in rows))
    seen = list(dict.fromkeys(row["the server sees"] for row in rows))
    for place, name in enumerate(names):
        heights = [row["PSNR, dB"] for row in rows if row["data"] == name]
        axes.barh([y + 0.4 * place for y in range(len(heights))], heights, 0.38, label=name)
    axes.set_yticks([y + 0.2 for y in range(len(seen))], [text.partition(" (")[0] for text in seen], fontsize=7)
    axes.set(xlabel="PSNR of the attacker's pictures, dB")
    axes.invert_yaxis()
    axes.legend(fontsize="x-small")


PICTURES: Pictures = {
    "fedcgs_skew": _skew,
    "fedcgs_heads": _heads,
    "fedcgs_expansion": _expansion,
    "fedcgs_inversion": _inversion,
}


if __name__ == "__main__":
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    paper_command("fedcgs", __doc__, PARTS, PICTURES)
