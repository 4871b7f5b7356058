"""DP-GD whose setting the test set chooses among thousands: a rival that no user can have.

    python -m benchmarks.peers.oracle --data digits --settings 7000 --save
    python -m benchmarks.peers.oracle --data clinc150 --epsilon 1 --settings 700 --minutes 8 --save  # again to go on

Full batches, with the exact composition of Gaussians. Each setting has its own rate, clip, momentum, tail, steps and
noise, sampled at random; a piece is a hundred settings of equal steps, which train side by side as one tensor on the
CPU or a CUDA device. Pieces are numbered, and a setting's number and repeat determine its noise, so a search that was
stopped goes on where it was, and a larger ``--settings`` adds pieces to a stored search.

The best twenty by one score are scored six times again, and the winner ten times more: the difference is the
selection's gain by noise. What the choice gained by the test rows is seen on twenty other random divisions of the same
records; sets of a million records times classes or more have none. Every comparison is by the test rows.

Larger sets are searched by successive halving, with the noise of all records at each stage. From twenty thousand
records times classes on, all settings train on a tenth of the records, and the best 400 on all. From a million on, all
train on a fifteenth, the best sixty on a quarter, the best fifteen on all, and the best three are scored again. With
``--model "DP-GD, by forest"`` all of the first 700 settings train, and then those 105 of every 2,100 for which a random
forest expects the best scores.

DP-FC (Mehta et al. 2022, arXiv 2211.13403) multiplies each gradient by the inverse of a noisy second moment, which a
sampled share of the budget pays for. ``--model "DP-GD, whitened"`` searches on rows that were whitened without noise,
to show what whitening alone costs DP-GD. Weights are never published; the numbers are for comparison alone.

Each set also shows the time of a step over that of its two matrix products alone, how much of the classes' differences
is in few directions, and the accuracy of a softmax without noise, from rows as they are and from whitened rows, on
which refinement runs: ``--settings 0`` measures these alone. Sets, epsilons and models that are not measured keep their
saved rows.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import privstats as ps
from benchmarks.data import Split, Task, agnews, clinc150, private_tasks
from benchmarks.measuring import Row, Rows, Tables, command, least_seconds, saved, standard_error
from benchmarks.peers.descents import MANY, Records, accuracies, piece, seed_of, setting_of, steps_of, train
from benchmarks.peers.halving import AT_RANDOM, LARGE, REPEATS, Search, best, going_on, rungs_of
from privstats.dp import gaussian_mu
from privstats.transforms import UnitNorm

TITLE = "DP-GD chosen by the test set, accuracy in %: "
SEARCH = "settings that DP-GD's search goes on with: "
OTHER = "the winner on other divisions into training and test records, accuracy in %: "
EXACT = "softmax without noise, accuracy in %: "
LEADING = "in the tenth of directions with the largest second moments, %: "
FLOOR = "one step of DP-GD over its two matrix products: "
DELTA = 1e-5
EPSILONS = (1.0, 3.0, 0.3, 8.0)
_RIVALS = ("DP-GD", "DP-FC")
WHITENED = "DP-GD, whitened"
FOREST = "DP-GD, by forest"
OURS = "refined, as it comes"
_MODELS = (*_RIVALS, FOREST, WHITENED, OURS)
_DIVISIONS, _DRAWS_ELSEWHERE = 20, 1_000  # further draws than any stage's
_INVERSE_PENALTIES = (0.1, 1.0, 10.0, 100.0)  # of scikit-learn's logistic regression: C


def _floor(records: Records) -> Row:
    """Time the steps of settings that train side by side, and the two matrix products of such a step, in turns."""
    C, k = records.classes, records.rows.shape[1]
    settings, steps = piece(0)[: records.width], 5
    flat = torch.randn((len(settings) * C, k), device=records.rows.device)
    tasks: dict[str, Callable[[], object]] = {
        "products": lambda: torch.mm(torch.mm(flat, records.rows.T), records.rows).sum().item(),
        "steps": lambda: train(records, settings, steps, 1.0, range(len(settings))).sum().item(),
    }
    seconds = least_seconds(tasks, 7)
    return {
        "settings side by side": len(settings),
        "operations of the products": 4 * len(flat) * k * len(records.rows),
        "ms of the products": 1e3 * seconds["products"],
        "ms of the step": 1e3 * seconds["steps"] / steps,
        "step / products": seconds["steps"] / steps / seconds["products"],
        "device": records.rows.device.type,
    }


def _refined(split: Split, epsilon: float) -> Row:
    """Score the library's refinement rounds as they come, on ten draws of their noise."""
    began = time.perf_counter()
    scores = np.array(_refined_scores(split, epsilon, REPEATS))
    seconds = time.perf_counter() - began
    mean, error = 100 * float(scores.mean()), 100 * standard_error(scores)
    return {"settings": 1, "repeated": mean, "se": error, "seconds": seconds}


def _refined_scores(split: Split, epsilon: float, draws: int) -> list[float]:
    X, X_test, y, y_test = split
    classes = range(int(max(y.max(), y_test.max())) + 1)
    terms: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "adjacency": "add-remove", "ledger": "uncharged"}
    heads = (
        ps.heads.RefinedSoftmax().fit_private(X, y, clip_norm=1.0, classes=classes, expected_records=len(X), **terms)
        for _ in range(draws)
    )
    return [head.score(X_test, y_test) for head in heads]


def _elsewhere(split: Split, epsilon: float, winner: int, device: str, *, preconditioned: bool) -> Row:
    """Score a winner and refinement on other random divisions of all records, whose test rows did not choose it."""
    X, X_test, y, y_test = split
    rows, labels, tests = np.vstack([X, X_test]), np.concatenate([y, y_test]), len(X_test)
    mu, setting = gaussian_mu(epsilon, DELTA), setting_of(winner, preconditioned)[None]
    theirs, ours = [], []
    for division in range(_DIVISIONS):
        order = np.random.default_rng([1, division]).permutation(len(rows))
        held, train_on = order[:tests], order[tests:]
        parts = rows[train_on], rows[held], labels[train_on], labels[held]
        records = Records.of(parts, device)
        theirs += accuracies(records, setting, steps_of(winner), mu, [seed_of(winner, _DRAWS_ELSEWHERE + division)])
        ours += _refined_scores(parts, epsilon, 1)
    lead = 100 * (np.array(theirs) - np.array(ours))
    return {
        "setting": winner,
        "divisions": _DIVISIONS,
        "rival": 100 * float(np.mean(theirs)),
        "refined": 100 * float(np.mean(ours)),
        "lead": float(lead.mean()),
        "se": standard_error(lead),
    }


def _leading(split: Split) -> Row:
    """Return what the leading tenth of directions holds of the rows' and of the class means' squares."""
    X, _, y, _ = split
    directions = np.linalg.eigh(X.T @ X / len(X))[1][:, ::-1]
    classes, counts = np.unique(y, return_counts=True)
    offsets = np.stack([X[y == each].mean(axis=0) for each in classes]) - X.mean(axis=0)
    rows, means = ((X @ directions) ** 2).sum(axis=0), counts @ (offsets @ directions) ** 2
    tenth = X.shape[1] // 10
    return {"rows": 100 * rows[:tenth].sum() / rows.sum(), "class means": 100 * means[:tenth].sum() / means.sum()}


def _whitened(split: Split) -> Split:
    """Return whitened rows of norm 1, by the second moment of the training rows, without noise."""
    X, X_test, y, y_test = split
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    kept = values > values[-1] * 1e-6  # a column that is 0 has no scale
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    rows, tests = (UnitNorm().apply(part @ whitening) for part in (X, X_test))
    return rows, tests, y, y_test


def _without_noise(split: Split) -> Row:
    """Score the softmax of the best penalty, by the test rows, on rows as they are and on whitened rows of norm 1."""
    X, X_test, y, y_test = split
    whitened, tests, *_ = _whitened(split)
    refined = ps.heads.RefinedSoftmax().fit(X, y)

    def softmax(rows: NDArray[Any], others: NDArray[Any]) -> float:
        fits = (LogisticRegression(C=C, max_iter=300).fit(rows, y) for C in _INVERSE_PENALTIES)
        return float(100 * max(fit.score(others, y_test) for fit in fits))

    return {
        "rows as they are": softmax(X, X_test),
        "whitened rows": softmax(whitened, tests),
        "refined": 100 * refined.score(X_test, y_test),
        "refined, training": 100 * refined.score(X, y),
    }


def _tasks(quick: bool, names: Sequence[str]) -> Iterator[Task]:
    for task in (*private_tasks(bundled_only=quick), *(() if quick else (*agnews(), *clinc150()))):
        if not names or task.name in names:
            yield task


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--settings", type=int, default=7_000, help="of DP-GD at each epsilon, and as many of DP-FC; 0: none"
    )
    parser.add_argument("--data", action="append", default=[], help="a data set; all where omitted")
    parser.add_argument("--epsilon", action="append", type=float, default=[])
    parser.add_argument(
        "--model", action="append", default=[], choices=_MODELS[:-1], help="DP-GD and DP-FC where omitted"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no batch of runs later than that")


def _before(chosen: argparse.Namespace) -> Mapping[str, Any]:
    return {} if chosen.quick else saved("peers.oracle")


class _Stored:
    """Rows of one data set by title, epsilon and model: the saved ones, and those that replace them."""

    def __init__(self, before: Mapping[str, Any], name: str) -> None:
        self._name = name
        self._rows = {
            title: {(row["epsilon"], row["model"]): row for row in before.get(title + name, [])}
            for title in (TITLE, SEARCH, OTHER)
        }

    def row(self, title: str, epsilon: float, model: str) -> Row | None:
        """Return a row, or None."""
        return self._rows[title].get((epsilon, model))

    def search(self, epsilon: float, model: str) -> Row | None:
        """Return the row that a search goes on from: its own, or of a search whose first settings were the same."""
        found, first = (self.row(SEARCH, epsilon, each) for each in (model, "DP-GD"))
        shared = found is None and model == FOREST and first is not None and first["settings"] == AT_RANDOM
        return first if shared else found

    def put(self, title: str, epsilon: float, model: str, row: Row) -> tuple[str, Rows]:
        """Put a row in the place of another, and return the table."""
        rows = self._rows[title]
        rows[epsilon, model] = {"epsilon": epsilon, "model": model, **row}
        return title + self._name, [rows[key] for key in sorted(rows, key=lambda key: (key[0], _MODELS.index(key[1])))]


def tables(chosen: argparse.Namespace) -> Tables:
    """Six tables for each data set; searches and their results again after each batch of runs."""
    device, before = "cuda" if torch.cuda.is_available() else "cpu", _before(chosen)
    count = MANY if chosen.quick else chosen.settings
    deadline = time.monotonic() + 60 * chosen.minutes
    for task in _tasks(chosen.quick, chosen.data):
        split = task.transformed()
        records = Records.of(split, device)
        if not count or EXACT + task.name not in before:
            yield EXACT + task.name, [_without_noise(split)]
        yield LEADING + task.name, [_leading(split)]
        yield FLOOR + task.name, [_floor(records)]
        epsilons = chosen.epsilon or (EPSILONS[:1] if chosen.quick else EPSILONS)
        stored = _Stored(before, task.name)
        for epsilon in epsilons if count else ():
            mu = gaussian_mu(epsilon, DELTA)
            if stored.row(TITLE, epsilon, OURS) is None:
                yield stored.put(TITLE, epsilon, OURS, {**_refined(split, epsilon), "device": "cpu"})
            for model in chosen.model or _RIVALS:
                rows = Records.of(_whitened(split), device) if model == WHITENED else records
                search = begun = Search.of(rungs_of(rows), stored.search(epsilon, model))
                ways = {"preconditioned": model == "DP-FC", "forest": model == FOREST}
                for search in going_on(rows, mu, begun, count, **ways):
                    yield stored.put(SEARCH, epsilon, model, search.row(rungs_of(rows)))
                    if time.monotonic() > deadline:
                        return
                row = best(rows, search, preconditioned=model == "DP-FC")
                yield stored.put(TITLE, epsilon, model, {**row, "device": device})
                winner, known = search.winner, stored.row(OTHER, epsilon, model)
                if records.size < LARGE and model in _RIVALS and (known is None or known["setting"] != winner):
                    found = _elsewhere(split, epsilon, winner, device, preconditioned=model == "DP-FC")
                    yield stored.put(OTHER, epsilon, model, found)


if __name__ == "__main__":
    command("peers.oracle", __doc__, tables, _options, _before)
