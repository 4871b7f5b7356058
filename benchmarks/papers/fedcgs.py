"""FedCGS's tables and figures (Guan, Zhou and Gu, AAAI 2025), each cell beside what comes out here.

    python -m benchmarks.papers.fedcgs --save --figures docs/images

Its backbones do not install from a package, so accuracies stand beside those of frozen features that do and only the
differences between rows are set against each other. Uploads and the inversion of four samples compare directly.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from typing import Any

from benchmarks.measuring import Rows, Tables
from benchmarks.papers.cgs import personal, skew, study
from benchmarks.papers.running import paper_command, points
from privstats import heads


def tables(options: argparse.Namespace) -> Tables:
    """Table after table, in the order of the paper."""
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    quick: bool = options.quick
    yield from skew.table_1(quick=quick)
    yield skew.domains()
    yield from personal.table_3(quick=quick)
    yield study.linear_layers(quick=quick)
    yield study.expansion(quick=quick)
    yield skew.backbones(quick=quick)
    yield skew.uploads()
    yield study.inversion(quick=quick)


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


if __name__ == "__main__":
    paper_command("fedcgs", __doc__, tables, {"fedcgs_skew": _skew, "fedcgs_inversion": _inversion})
