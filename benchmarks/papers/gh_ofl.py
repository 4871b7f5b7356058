"""GH-OFL's tables (Turazza, Picone and Mamei, ICLR 2026), each cell beside what comes out here.

    python -m benchmarks.papers.gh_ofl --save --figures docs/images

None of its backbones installs from a package, so accuracies stand beside those of the nearest features and only the
differences between rows are set against each other; uploads, invariance and the paper's own contradictions compare
directly. Corrupted images: ``benchmarks.features corrupted-fashion-mnist``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from typing import Any

from benchmarks.measuring import Rows, Tables
from benchmarks.papers.gh import accuracy, cost, invariance, shape
from benchmarks.papers.running import paper_command
from privstats import heads


def tables(options: argparse.Namespace) -> Tables:
    """Table after table, in the order of the paper."""
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    quick: bool = options.quick
    yield invariance.equal_integers(quick=quick)
    yield invariance.masked(quick=quick)
    yield from accuracy.clean(quick=quick)
    yield from accuracy.robustness(quick=quick)
    yield from accuracy.backbones(quick=quick)
    yield from accuracy.texts(quick=quick)
    yield from cost.low_rank(quick=quick)
    yield cost.uploads(quick=quick)
    yield invariance.equal_accuracies(quick=quick)
    yield cost.fitting(quick=quick)
    yield cost.sketches(quick=quick)
    yield shape.gaussianity(quick=quick)
    yield from shape.subspaces(quick=quick)
    yield shape.contradictions()


def _robustness(axes: Any, tables: Mapping[str, Rows]) -> None:
    """Points above FedCGS under corruption, a pair of bars per head: the paper's and ours."""
    rows = next(rows for title, rows in tables.items() if "Table 2, points" in title)
    for offset, label, values in (
        (-0.2, "the paper, CIFAR-100-C", [float(row["published"]) for row in rows]),
        (0.2, "here, Fashion-MNIST spoilt likewise", [row["ours"] for row in rows]),
    ):
        axes.barh([place + offset for place in range(len(rows))], values, 0.38, label=label)
    axes.set_yticks(range(len(rows)), [row["row"] for row in rows], fontsize=8)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xlabel="points above FedCGS under corruptions of severity 5")
    axes.invert_yaxis()
    axes.legend(fontsize="x-small")


def _sketches(axes: Any, tables: Mapping[str, Rows]) -> None:
    """Accuracy by RP dimension."""
    rows = next(rows for title, rows in tables.items() if "Table 8, bottom:" in title)
    for name, style in (("LDA", "o-"), ("C100 Acc.", "s--")):
        chosen = [row for row in rows if row["column"] == name and row["row"].startswith("RP-")]
        widths = [int(row["row"][3:].split()[0]) for row in chosen]
        label = "LDA, always" if name == "LDA" else "what the sent statistics allow"
        axes.errorbar(widths, [row["ours"] for row in chosen], [row["se"] for row in chosen], fmt=style, label=label)
    printed = [
        (int(row["row"][3:].split()[0]), float(row["published"])) for row in rows if row["column"] == "C100 Acc."
    ]
    axes.plot(*zip(*printed, strict=True), "x:", color="#777777", label="the paper, CIFAR-100")
    axes.set(xlabel="dimension behind the projection", ylabel="test accuracy, %", xscale="log")
    axes.set_xticks(widths, [str(width) for width in widths], minor=False)
    axes.set_xticks([], minor=True)
    axes.legend(fontsize="x-small")
    axes.grid(alpha=0.25)


if __name__ == "__main__":
    paper_command("gh_ofl", __doc__, tables, {"gh_ofl_robustness": _robustness, "gh_ofl_sketches": _sketches})
