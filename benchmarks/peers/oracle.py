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
train on a fifteenth, the best sixty on a quarter, the best fifteen on all, and the best three are scored again.

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
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import privstats as ps
from benchmarks.data import Split, Task, agnews, clinc150, private_tasks
from benchmarks.measuring import Row, Rows, Tables, command, least_seconds, saved, standard_error
from privstats.dp import gaussian_mu
from privstats.transforms import UnitNorm

__all__ = ["Records", "Search", "accuracies", "best", "piece", "train"]

TITLE = "DP-GD chosen by the test set, accuracy in %: "
SEARCH = "settings that DP-GD's search goes on with: "
OTHER = "the winner on other divisions into training and test records, accuracy in %: "
EXACT = "softmax without noise, accuracy in %: "
LEADING = "in the tenth of directions with the largest second moments, %: "
FLOOR = "one step of DP-GD over its two matrix products: "
DELTA = 1e-5
EPSILONS = (1.0, 3.0, 0.3, 8.0)
STEPS = (10, 25, 50, 100, 200, 400, 800)
_RIVALS = ("DP-GD", "DP-FC")
WHITENED = "DP-GD, whitened"
OURS = "refined, as it comes"
_MODELS = (*_RIVALS, WHITENED, OURS)
_TAILS = (0.0, 0.25, 0.5, 0.75)
_MOMENTA = (0.0, 0.5, 0.9)
_MANY = 100  # settings of a piece
_AGAIN = 6
_REPEATS = 10
_DIVISIONS, _DRAWS_ELSEWHERE = 20, 1_000  # further draws than any stage's
_INVERSE_PENALTIES = (0.1, 1.0, 10.0, 100.0)  # of scikit-learn's logistic regression: C
# On a CPU a step's tensors should stay in the cache: rows of weights, and residuals between the two products.
_WIDTH, _ENTRIES = {"cpu": 2_048, "cuda": 1 << 16}, {"cpu": 1 << 20, "cuda": 1 << 28}
RATE, CLIP, MOMENTUM, TAIL, SHARE, DAMPING = range(6)
"""Columns of a tensor of settings ``(R, 6)``."""


@dataclass(frozen=True)
class Rung:
    """One stage of a search.

    Attributes:
        part: share of the records that settings train on; their noise is that of all records.
        go_on: number of settings, the best by the test rows, that reach the next stage.
    """

    part: float
    go_on: int


_LARGE = 1_000_000
_STAGES = {
    _LARGE: (Rung(1 / 15, 60), Rung(1 / 4, 15), Rung(1.0, 3)),
    20_000: (Rung(1 / 10, 400), Rung(1.0, 20)),
    0: (Rung(1.0, 20),),
}
"""The stages of a search by the number of records times classes from which on a set has them."""


@dataclass(frozen=True)
class Records:
    """Training and test rows on one device, in float32, with a column of ones; every row has norm 1.

    Attributes:
        rows, tests: ``(n, k)`` and ``(m, k)``.
        labels, right: classes of both, ``(n,)`` and ``(m,)``.
        classes: C.
        total: the number of records that noise is divided by: n, or more where the rows are a part of them.
    """

    rows: torch.Tensor
    tests: torch.Tensor
    labels: torch.Tensor
    right: torch.Tensor
    classes: int
    total: int

    @classmethod
    def of(cls, split: Split, device: str) -> Records:
        """Put rows of norm 1 on a device, in random order."""
        X, X_test, y, y_test = split
        order = np.random.default_rng(0).permutation(len(X))
        rows, tests = (
            torch.as_tensor(np.hstack([part, np.ones((len(part), 1))]) / 2**0.5, dtype=torch.float32, device=device)
            for part in (X[order], X_test)
        )
        labels, right = (torch.as_tensor(part, device=device) for part in (y[order], y_test))
        return cls(rows, tests, labels, right, int(max(y.max(), y_test.max())) + 1, len(X))

    def part(self, share: float) -> Records:
        """Return the first records, a share of all, with the noise of all."""
        n = round(share * len(self.rows))
        return replace(self, rows=self.rows[:n], labels=self.labels[:n])

    def noisy_moments(self, sigma: torch.Tensor, chances: Sequence[torch.Generator]) -> torch.Tensor:
        """Return second moments of all records with noise, ``(R, k, k)``: sigma on the diagonal, sigma / sqrt 2 off it.

        A row of norm 1 changes the second moment by 1 in Frobenius norm.
        """
        n, k = self.rows.shape
        noise = torch.stack([torch.randn((k, k), generator=chance, device=self.rows.device) for chance in chances])
        symmetric = torch.tril(noise) + torch.tril(noise, -1).mT
        scale = torch.eye(k, device=noise.device) * (1 - 2**-0.5) + 2**-0.5
        return self.rows.T @ self.rows * (self.total / n) + sigma[:, None, None] * symmetric * scale

    def inverses(self, moments: torch.Tensor, damping: torch.Tensor) -> torch.Tensor:
        """Return inverses of second moments over their mean eigenvalue, damped; eigenvalues below 0 become 0."""
        k = self.rows.shape[1]
        values, vectors = torch.linalg.eigh(moments * (k / self.total))
        inverses: torch.Tensor = (vectors / (values.clamp(min=0.0) + damping[:, None])[:, None, :]) @ vectors.mT
        return inverses


def piece(number: int, *, preconditioned: bool = False) -> torch.Tensor:
    """Return the hundred random settings of a numbered piece, ``(100, 6)``.

    Rates, clips and dampings are log-uniform; DP-FC also has a share of the budget. All have as many steps.
    """
    rng = np.random.default_rng([0, number])
    columns = [
        np.exp(rng.uniform(np.log(0.5), np.log(512.0), _MANY)),
        np.exp(rng.uniform(np.log(0.02), np.log(1.5), _MANY)),
        rng.choice(_MOMENTA, _MANY),
        rng.choice(_TAILS, _MANY),
        rng.uniform(0.02, 0.5, _MANY) if preconditioned else np.zeros(_MANY),
        np.exp(rng.uniform(np.log(0.01), np.log(10.0), _MANY)),
    ]
    return torch.as_tensor(np.stack(columns, axis=1), dtype=torch.float32)


def steps_of(setting: int) -> int:
    """Return the number of steps of a setting: those of its piece, which take turns."""
    return STEPS[setting // _MANY % len(STEPS)]


def accuracies(records: Records, settings: torch.Tensor, steps: int, mu: float, seeds: Sequence[int]) -> list[float]:
    """Return each setting's accuracy on the test rows, from as many seeds of noise as settings."""
    width = max(1, _WIDTH[records.rows.device.type] // records.classes)
    found: list[float] = []
    for at in range(0, len(settings), width):
        weights = train(records, settings[at : at + width], steps, mu, seeds[at : at + width])
        scores = weights.flatten(0, 1) @ records.tests.T
        guess = scores.view(*weights.shape[:2], -1).argmax(dim=1)
        # Rounded as they are stored, so that a stored search has the same ties.
        found += [round(score, 7) for score in (guess == records.right).double().mean(dim=1).tolist()]
    return found


def train(records: Records, settings: torch.Tensor, steps: int, mu: float, seeds: Sequence[int]) -> torch.Tensor:
    """Return each setting's weights ``(R, C, k)``, which are mu-GDP for one record.

    T Gaussian mechanisms with noise multiplier ``sqrt(T) / m`` are m-GDP (Dong, Roth and Su 2022). A share s of mu^2
    pays for the second moment, so m^2 is ``(1 - s) mu^2``. A setting's noise follows from its own seed alone.
    """
    device, shape = records.rows.device, (len(settings), records.classes, records.rows.shape[1])
    chances = [torch.Generator(device).manual_seed(seed) for seed in seeds]
    settings = settings.to(device)
    rate, clip, momentum, tail, share, damping = (settings[:, each, None, None] for each in range(6))
    scale = clip * steps**0.5 / (mu * (1 - share) ** 0.5) / records.total
    inverse = None
    if bool((share > 0).any()):
        sigma = 1 / (mu * share[:, 0, 0] ** 0.5)
        inverse = records.inverses(records.noisy_moments(sigma, chances), damping[:, 0, 0])
    W, velocity, mean, G, noise, product = (torch.zeros(shape, device=device) for _ in range(6))
    first = steps - torch.clamp((tail * steps).round(), min=1)  # the step from which on weights are averaged
    for step in range(steps):
        put_gradients(records, W, clip[:, :, 0], G)
        for each, chance in zip(noise, chances, strict=True):
            torch.randn(each.shape, generator=chance, out=each)
        G.addcmul_(noise, scale)
        change = G if inverse is None else torch.bmm(G, inverse, out=product)
        velocity.mul_(momentum).add_(change)
        W.addcmul_(velocity, rate, value=-1)
        averaged = (first <= step).float()
        if bool(averaged.any()):
            mean.addcmul_(W, averaged)
    return mean.div_(steps - first)


def put_gradients(records: Records, W: torch.Tensor, clip: torch.Tensor, G: torch.Tensor) -> None:
    """Write means of clipped gradients into G, ``(R, C, k)``.

    A gradient has norm ``|p - e_y|``, since rows have norm 1.
    Residuals of all settings and some records are one matrix between two products, ``(R C, records)``.
    """
    (R, C, k), n = W.shape, len(records.rows)
    weights, sums = W.view(R * C, k), G.view(R * C, k)
    pieces = math.ceil(R * C * n / _ENTRIES[W.device.type])
    size = math.ceil(n / pieces)
    store, squares = torch.empty((2, R * C * size), device=W.device).unbind()
    minus = torch.full((1, 1, 1), -1.0, device=W.device)
    for at in range(0, n, size):
        rows, labels = records.rows[at : at + size], records.labels[at : at + size]
        entries = R * C * len(rows)
        products = store[:entries].view(R * C, len(rows))
        residual = torch.mm(weights, rows.T, out=products).view(R, C, len(rows))
        torch.softmax(residual, 1, out=residual)
        residual.scatter_add_(1, labels.expand(R, 1, -1), minus.expand(R, 1, len(rows)))
        # torch.linalg.vector_norm over a middle axis takes longer than both products.
        norms = torch.mul(residual, residual, out=squares[:entries].view_as(residual)).sum(dim=1).sqrt_()
        residual.mul_((clip / norms.clamp_(min=1e-30)).clamp_(max=1.0)[:, None, :])
        sums.addmm_(products, rows, beta=float(at > 0), alpha=1 / n)


def _floor(records: Records) -> Row:
    """Time the steps of settings that train side by side, and the two matrix products of such a step, in turns."""
    C, k = records.classes, records.rows.shape[1]
    settings, steps = piece(0)[: max(1, _WIDTH["cpu"] // C)], 5
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


Scores: TypeAlias = Mapping[int, Sequence[float]]
"""Accuracies by the number of their setting."""


@dataclass(frozen=True)
class Search:
    """One search so far, by the test rows.

    Attributes:
        settings: number of settings that were begun.
        stages: scores of each rung's best settings, then those of finalists and those of winners, on fresh noise.
        seconds: of all runs together.
    """

    settings: int
    stages: tuple[Scores, ...]
    seconds: float = 0.0

    @classmethod
    def of(cls, rungs: Sequence[Rung], row: Row | None) -> Search:
        """Return the search of a saved row. One by other stages begins anew, with what it scored on all records."""
        names = _names(rungs)
        if row is None or not row.keys() >= {*names}:
            known = {} if row is None else {names.index(each): _read(row[each]) for each in names[1:-2] if each in row}
            return cls(0, tuple(known.get(stage, {}) for stage in range(len(names))))
        return cls(row["settings"], tuple(_read(row[name]) for name in names), row["seconds"])

    def row(self, rungs: Sequence[Rung]) -> Row:
        """Return what :meth:`of` reads: each stage as ``setting:score,score`` in words."""
        stages = zip(_names(rungs), self.stages, strict=True)
        return {
            "settings": self.settings,
            **{name: _written(scores) for name, scores in stages},
            "seconds": self.seconds,
        }

    def with_scores(self, stage: int, found: Scores, seconds: float) -> Search:
        """Return the search after further scores of one stage."""
        stages = [*self.stages]
        stages[stage] = {**stages[stage], **found}
        return replace(self, stages=tuple(stages), seconds=self.seconds + seconds)


def _names(rungs: Sequence[Rung]) -> list[str]:
    return [*(f"on {rung.part:.2g} of the records" for rung in rungs), "finalists", "winners"]


def _written(scores: Scores) -> str:
    return " ".join(f"{each}:{','.join(f'{score:.7g}' for score in of)}" for each, of in scores.items())


def _read(text: str) -> Scores:
    pairs = (word.split(":") for word in text.split())
    return {int(each): [float(score) for score in of.split(",")] for each, of in pairs}


def _best(scores: Scores, count: int) -> list[int]:
    """Return the settings of the best mean scores; of equal ones the first."""
    return sorted(scores, key=lambda each: (-float(np.mean(scores[each])), each))[:count]


def rungs_of(records: Records) -> Sequence[Rung]:
    """Return the stages of a set's search, by its size alone."""
    return next(rungs for least, rungs in _STAGES.items() if _size(records) >= least)


def _size(records: Records) -> int:
    return records.total * records.classes


def going_on(
    records: Records, mu: float, search: Search, count: int, *, preconditioned: bool = False
) -> Iterator[Search]:
    """Yield a search after each batch of runs, until ``count`` settings were begun and the winner was repeated."""
    rungs = rungs_of(records)
    parts = [records.part(rung.part) for rung in rungs]

    def scored(stage: int, settings: Sequence[int], draws: Sequence[int]) -> tuple[Scores, float]:
        began = time.perf_counter()
        runs = [(each, draw) for each in settings for draw in draws]
        drawn = torch.stack([_setting(each, preconditioned) for each, _ in runs])
        part = parts[min(stage, len(parts) - 1)]
        found = iter(accuracies(part, drawn, steps_of(settings[0]), mu, [_seed(*run) for run in runs]))
        return {each: [next(found) for _ in draws] for each in settings}, time.perf_counter() - began

    while search.settings < count:
        begun = range(search.settings, search.settings + _MANY)
        search = search.with_scores(0, *scored(0, begun, [0]))
        kept = {each: search.stages[0][each] for each in _best(search.stages[0], rungs[0].go_on)}
        search = replace(search, settings=begun.stop, stages=(kept, *search.stages[1:]))
        yield search
    fresh = 0
    numbers = [rung.go_on for rung in rungs] + [1]
    for stage, number in enumerate(numbers, 1):
        # No draw of noise serves two stages.
        draws = range(fresh + 1, fresh + 1 + (1 if stage < len(rungs) else _AGAIN if stage == len(rungs) else _REPEATS))
        fresh = draws[-1]
        todo = [each for each in _best(search.stages[stage - 1], number) if each not in search.stages[stage]]
        for batch in _side_by_side(todo, max(1, _WIDTH["cpu"] // records.classes // len(draws))):
            search = search.with_scores(stage, *scored(stage, batch, draws))
            yield search


def _side_by_side(settings: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Yield settings of equal steps, at most as many as ``limit`` at a time."""
    for steps in STEPS:
        equal = [each for each in settings if steps_of(each) == steps]
        for at in range(0, len(equal), limit):
            yield equal[at : at + limit]


def _setting(number: int, preconditioned: bool) -> torch.Tensor:
    return piece(number // _MANY, preconditioned=preconditioned)[number % _MANY]


def _seed(setting: int, draw: int) -> int:
    return int(np.random.SeedSequence([setting, draw]).generate_state(1)[0])


def best(records: Records, search: Search, *, preconditioned: bool = False) -> Row:
    """Return the row of a search that has ended: the winner's scores, and the same setting's on fresh noise.

    One noisy score chooses the luckiest noise, not the best setting. So finalists are scored six times again, and the
    best mean of these wins.
    """
    rungs = rungs_of(records)
    *stages, finalists, winners = search.stages
    (winner,) = _best(finalists, 1)
    repeated = winners[winner]
    chosen = 100 * float(np.mean(finalists[winner]))
    rate, clip, momentum, tail, share, damping = _setting(winner, preconditioned).tolist()
    return {
        "settings": search.settings,
        "on all records": search.settings if len(rungs) == 1 else len(stages[-1]),
        "best of one score": 100 * max(score for (score,) in stages[-1].values()),
        "chosen": chosen,
        "repeated": 100 * float(np.mean(repeated)),
        "se": 100 * standard_error(repeated),
        "selection's gain": chosen - 100 * float(np.mean(repeated)),
        "winner": f"rate {rate:.3g}, clip {clip:.2g}, momentum {momentum:g}, tail {tail:g}, {steps_of(winner)} steps"
        + (f", share {share:.2g}, damping {damping:.2g}" if preconditioned else ""),
        "seconds": search.seconds,
    }


def _refined(split: Split, epsilon: float) -> Row:
    """Score the library's refinement rounds as they come, on ten draws of their noise."""
    began = time.perf_counter()
    scores = np.array(_refined_scores(split, epsilon, _REPEATS))
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
    mu, setting = gaussian_mu(epsilon, DELTA), _setting(winner, preconditioned)[None]
    theirs, ours = [], []
    for division in range(_DIVISIONS):
        order = np.random.default_rng([1, division]).permutation(len(rows))
        held, train_on = order[:tests], order[tests:]
        parts = rows[train_on], rows[held], labels[train_on], labels[held]
        records = Records.of(parts, device)
        theirs += accuracies(records, setting, steps_of(winner), mu, [_seed(winner, _DRAWS_ELSEWHERE + division)])
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

    def put(self, title: str, epsilon: float, model: str, row: Row) -> tuple[str, Rows]:
        """Put a row in the place of another, and return the table."""
        rows = self._rows[title]
        rows[epsilon, model] = {"epsilon": epsilon, "model": model, **row}
        return title + self._name, [rows[key] for key in sorted(rows, key=lambda key: (key[0], _MODELS.index(key[1])))]


def tables(chosen: argparse.Namespace) -> Tables:
    """Six tables for each data set; searches and their results again after each batch of runs."""
    device, before = "cuda" if torch.cuda.is_available() else "cpu", _before(chosen)
    count = _MANY if chosen.quick else chosen.settings
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
                search = begun = Search.of(rungs_of(rows), stored.row(SEARCH, epsilon, model))
                for search in going_on(rows, mu, begun, count, preconditioned=model == "DP-FC"):
                    yield stored.put(SEARCH, epsilon, model, search.row(rungs_of(rows)))
                    if time.monotonic() > deadline:
                        return
                row = best(rows, search, preconditioned=model == "DP-FC")
                yield stored.put(TITLE, epsilon, model, {**row, "device": device})
                (winner,) = _best(search.stages[-2], 1)
                known = stored.row(OTHER, epsilon, model)
                if _size(records) < _LARGE and model != WHITENED and (known is None or known["setting"] != winner):
                    found = _elsewhere(split, epsilon, winner, device, preconditioned=model == "DP-FC")
                    yield stored.put(OTHER, epsilon, model, found)


if __name__ == "__main__":
    command("peers.oracle", __doc__, tables, _options, _before)
