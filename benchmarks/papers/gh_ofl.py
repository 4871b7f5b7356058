"""GH-OFL's tables (Turazza, Picone and Mamei, ICLR 2026), each cell beside what comes out here.

    python -m benchmarks.papers.gh_ofl --save --figures docs/images

None of its backbones installs from a package, so accuracies stand beside those of the nearest features and only the
differences between rows are set against each other; uploads, invariance and the paper's own contradictions compare
directly. Corrupted images: ``benchmarks.features corrupted-fashion-mnist``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from benchmarks.measuring import Rows
from benchmarks.papers.gh import accuracy, cost, future, invariance, rounds, shape, squares
from benchmarks.papers.running import Parts, Pictures, paper_command
from privstats import heads

PARTS: Parts = {
    "integers": lambda options: [invariance.equal_integers(quick=options.quick)],
    "masked": lambda options: [invariance.masked(quick=options.quick)],
    "table_1": lambda options: accuracy.clean(quick=options.quick),
    "rounds": lambda options: rounds.beside(quick=options.quick),
    "squares": lambda options: [squares.worth(quick=options.quick)],
    "figure_3": lambda _: [cost.overheads()],
    "table_2": lambda options: accuracy.robustness(quick=options.quick),
    "table_3": lambda options: accuracy.backbones(quick=options.quick),
    "table_4": lambda options: accuracy.texts(quick=options.quick),
    "table_5": lambda options: cost.low_rank(quick=options.quick),
    "uploads": lambda options: [cost.uploads(quick=options.quick)],
    "table_7": lambda options: [invariance.equal_accuracies(quick=options.quick)],
    "table_8_top": lambda options: [cost.fitting(quick=options.quick)],
    "table_8_bottom": lambda options: [cost.sketches(quick=options.quick)],
    "predicting": lambda options: [cost.predicting(quick=options.quick)],
    "table_9": lambda options: [shape.gaussianity(quick=options.quick)],
    "table_10": lambda options: shape.subspaces(quick=options.quick),
    "future": lambda options: [future.trials(quick=options.quick)],
    "contradictions": lambda _: [shape.contradictions()],
}


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


def _tradeoff(axes: Any, tables: Mapping[str, Rows]) -> None:
    """Figure 3: accuracy against the upload, CIFAR-10 and corrupted images."""
    size = {row["head"]: row["KB"] for row in _starting(tables, "Figure 3")}
    for start, column, label in (
        ("Table 1:", "CIFAR-10", "CIFAR-10"),
        ("Table 2:", "CIFAR-100-C", "spoilt Fashion-MNIST"),
    ):
        chosen = [row for row in _starting(tables, start) if row["column"] == column and row["row"] in size]
        axes.plot([size[row["row"]] for row in chosen], [row["ours"] for row in chosen], "o", markersize=4, label=label)
        for place in dict.fromkeys(size[row["row"]] for row in chosen):
            there = sorted((row["ours"], row["row"]) for row in chosen if size[row["row"]] == place)
            names = "\n".join(name for _, name in reversed(there))
            axes.annotate(names, (place, there[-1][0]), xytext=(4, 0), textcoords="offset points", fontsize=6, va="top")
    axes.margins(x=0.15)
    axes.set(xscale="log", xlabel="upload of a client, KB (C = 10, 256 features, float32)", ylabel="test accuracy, %")
    axes.legend(fontsize="x-small")
    axes.grid(alpha=0.25)


def _convergence(axes: Any, tables: Mapping[str, Rows]) -> None:
    """Figure 4, CIFAR-10: a colour per method, a dash per alpha."""
    rows = tables[rounds.FIGURE_4.title]
    alphas: dict[str, str] = {}
    for name in dict.fromkeys(row["column"] for row in rows if "CIFAR-10," in row["column"]):
        method, _, alpha = name.split(", ")
        dash = alphas.setdefault(alpha, ("-", "--", ":")[len(alphas) % 3])
        colour = {"FedAvg": "C0", "FedProx": "C1", "SCAFFOLD": "C2"}[method]
        chosen = [(int(row["row"]), row["ours"]) for row in rows if row["column"] == name]
        axes.plot(*zip(*chosen, strict=True), color=colour, linestyle=dash, marker="o", markersize=2, label=name)
    head = next(row for row in _starting(tables, "Table 1:") if (row["row"], row["column"]) == ("GH-LDA", "CIFAR-10"))
    axes.axhline(head["ours"], color="black", linewidth=0.8, label="GH-LDA, one upload")
    axes.set(xscale="log", xlabel="communication rounds", ylabel="test accuracy, %")
    axes.legend(fontsize="xx-small", ncols=2)
    axes.grid(alpha=0.25)


def _starting(tables: Mapping[str, Rows], start: str) -> Rows:
    return next(rows for title, rows in tables.items() if title.startswith(f"GH-OFL, {start}"))


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


PICTURES: Pictures = {
    "gh_ofl_tradeoff": _tradeoff,
    "gh_ofl_convergence": _convergence,
    "gh_ofl_robustness": _robustness,
    "gh_ofl_sketches": _sketches,
}


if __name__ == "__main__":
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    paper_command("gh_ofl", __doc__, PARTS, PICTURES)
