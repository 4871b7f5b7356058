"""Tables II, III and VI and Figure 3: one upload against FedAvg and FedProx, over heterogeneity, rounds and clients.

Every error is a test MSE; ours goes through the library, in integers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

import privstats as ps
from benchmarks.measuring import Rows, least_seconds
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.ridge.baselines import FEDAVG, FEDPROX, Local, Rounds, stepped
from benchmarks.papers.ridge.data import Federation
from benchmarks.papers.ridge.library import PENALTY, exact_plan, measured, one_message, one_shot
from benchmarks.papers.ridge.scale import PAPER, TRIALS, Scale
from privstats.workflows.simulate import run

__all__ = ["FIGURE_3", "TABLE_3", "TABLE_6", "baselines", "clients", "convergence", "heterogeneity"]

_MB = 1e6
_DOUBLE = 8
_ROUNDS = 200  # of FedAvg where the paper's tables name none
_SAMPLED = 10
_NOISE = 0.01  # variance of the targets' noise
_MACHINE = "processor seconds on this machine"

_TABLE_2 = Sheet(PAPER, "Table II", "baselines at d = 100, K = 20, gamma = .5", better="lower", trials=TRIALS)
_GAPS = Sheet(
    PAPER,
    "Table II, paired",
    "test MSE above the oracle's on the same data, %; published: of the printed means",
    better="lower",
)
TABLE_3 = Sheet(PAPER, "Table III", "test MSE by heterogeneity", better="lower", trials=TRIALS)
FIGURE_3 = Sheet(PAPER, "Figure 3", "test MSE by communication round", better="lower", trials=TRIALS)
TABLE_6 = Sheet(PAPER, "Table VI", "test MSE and seconds by number of clients", better="lower", trials=TRIALS)

_PUBLISHED_2: Mapping[str, tuple[str, str | None, str | None, str]] = {
    "One-Shot (Ours)": ("0.0100", "1", "0.82", "0.003"),
    "FedAvg-100": ("0.0103", "100", "1.60", "0.26"),
    "FedAvg-200": ("0.0102", "200", "3.20", "0.51"),
    "FedAvg-500": ("0.0102", "500", "8.00", "1.25"),
    "FedProx-200": ("0.0102", "200", "3.20", "0.54"),
    "Centralized": ("0.0100", None, None, "0.003"),
}
_PUBLISHED_3: Mapping[float, tuple[str, str, str, str]] = {
    0.0: ("0.01003", "0.01013", "0.01014", "0.01003"),
    0.2: ("0.01003", "0.01014", "0.01015", "0.01003"),
    0.4: ("0.01004", "0.01014", "0.01013", "0.01004"),
    0.6: ("0.01006", "0.01013", "0.01014", "0.01006"),
    0.8: ("0.01008", "0.01014", "0.01014", "0.01008"),
    1.0: ("0.01012", "0.01016", "0.01037", "0.01012"),
}
_PUBLISHED_6: Mapping[int, tuple[str, str, str, str]] = {
    10: ("0.0090", "0.0090", "0.001", "0.065"),
    20: ("0.0094", "0.0094", "0.001", "0.070"),
    50: ("0.0097", "0.0098", "0.002", "0.080"),
    100: ("0.0102", "0.0132", "0.010", "0.085"),
    200: ("0.0100", "0.0130", "0.020", "0.075"),
    500: ("0.0099", "0.0123", "0.040", "0.045"),
}
_PEERS = ("FedAvg-100", "FedAvg-200", "FedAvg-500", "FedProx-200", "Centralized")
_CONVERGES = "full-batch steps as stated go on to the ridge solution; no gap stays"
_FLOOR = "a mean below the noise's variance, .0100, is out of every estimate's reach"
_FULL = "with all clients in every round, as section V-A says, nothing degrades; nor with ten sampled"

Trained = Mapping[str, Sequence[float]]


def baselines(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Table II: MSE, rounds, bytes of all clients' uploads and seconds; then the gaps on the same data."""
    federations = [Federation.draw(seed) for seed in scale.seeds]
    errors = _errors(federations)
    seconds = _seconds(federations[0], scale)
    cells: list[Cell] = []
    for row, (mse, rounds, megabytes, spent) in _PUBLISHED_2.items():
        cells.append(_TABLE_2.cell(row, "MSE", mse, errors[row], why=_CONVERGES, peer=row in _PEERS))
        if rounds is not None and megabytes is not None:
            cells.append(_TABLE_2.cell(row, "rounds", rounds, float(rounds)))
            cells.append(_TABLE_2.cell(row, "MB", megabytes, _megabytes(row, int(rounds), federations[0])))
        if seconds:
            cells.append(_TABLE_2.nearest(row, "seconds", spent, seconds[row], _MACHINE))
    cells += _uploads(federations[0])
    yield _TABLE_2.rows(cells)
    yield _GAPS.rows(_gaps(errors))


def heterogeneity(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Table III: the same data with more and more different means."""
    cells = []
    for gamma in scale.gammas:
        federations = [Federation.draw(seed, heterogeneity=gamma) for seed in scale.seeds]
        errors = _errors(federations)
        rows = ("One-Shot (Ours)", f"FedAvg-{_ROUNDS}", f"FedProx-{_ROUNDS}", "Centralized")
        for column, row, published in zip(
            ("One-Shot", "FedAvg", "FedProx", "Oracle"), rows, _PUBLISHED_3[gamma], strict=True
        ):
            peer = row in _PEERS
            cells.append(TABLE_3.cell(f"{gamma:g}", column, published, errors[row], why=_CONVERGES, peer=peer))
    yield TABLE_3.rows(cells)


def convergence(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Figure 3; the paper prints numbers for its end only."""
    federations = [Federation.draw(seed) for seed in scale.seeds]
    exact = [federation.error(one_shot(federation)) for federation in federations]
    paths = {name: [_path(f, local, scale) for f in federations] for name, local in _LOCALS.items()}
    cells = []
    for place, rounds in enumerate(scale.rounds):
        cells.append(FIGURE_3.cell(f"{rounds}", "One-Shot", "0.010", exact))
        last = "0.0102" if rounds == max(scale.rounds) else None
        for name, path in paths.items():
            errors = [each[place] for each in path]
            cells.append(FIGURE_3.cell(f"{rounds}", name, last, errors, why=_CONVERGES, peer=True))
    yield FIGURE_3.rows(cells)


def clients(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Table VI: 200 records a client; FedAvg with everybody, as section V-A has it, and with ten clients a round."""
    cells = []
    for count in scale.cohorts:
        published, fedavg, spent, fedavg_spent = _PUBLISHED_6[count]
        federations = [Federation.draw(seed, clients=count, each=200) for seed in scale.seeds]
        exact = [federation.error(one_shot(federation)) for federation in federations]
        rounds = [Rounds.of(federation, FEDAVG) for federation in federations]
        everybody = [f.error(next(iter(r.after([_ROUNDS])))) for f, r in zip(federations, rounds, strict=True)]
        some = [
            f.error(r.sampled(_ROUNDS, _SAMPLED, np.random.default_rng(seed)))
            for f, r, seed in zip(federations, rounds, scale.seeds, strict=True)
        ]
        row, low = f"{count}", float(fedavg) < _NOISE
        cells += [
            TABLE_6.cell(row, "One-Shot", published, exact, why=_FLOOR),
            TABLE_6.cell(row, "FedAvg", fedavg, everybody, why=_FLOOR if low else _FULL, peer=True),
            TABLE_6.cell(row, "FedAvg, ten a round", None, some),
        ]
        if scale.timed:
            tasks = {
                "One-Shot": partial(one_shot, federations[0]),
                "FedAvg": partial(stepped, federations[0], FEDAVG, _ROUNDS),
            }
            seconds = least_seconds(tasks, scale.timed, time.process_time)
            cells.append(TABLE_6.nearest(row, "One-Shot, s", spent, seconds["One-Shot"], _MACHINE))
            cells.append(TABLE_6.nearest(row, "FedAvg, s", fedavg_spent, seconds["FedAvg"], _MACHINE))
    yield TABLE_6.rows(cells)


_LOCALS: Mapping[str, Local] = {"FedAvg": FEDAVG, "FedProx": FEDPROX}


def _errors(federations: Sequence[Federation]) -> dict[str, list[float]]:
    """Test MSE per federation, by row of Table II."""
    errors: dict[str, list[float]] = {row: [] for row in _PUBLISHED_2}
    for federation in federations:
        errors["One-Shot (Ours)"].append(federation.error(one_shot(federation)))
        errors["Centralized"].append(federation.error(federation.oracle(PENALTY)))
        for name, numbers in (("FedAvg", (100, 200, 500)), ("FedProx", (200,))):
            found = Rounds.together(federation, _LOCALS[name]).after(numbers)
            for number, weights in zip(numbers, found, strict=True):
                errors[f"{name}-{number}"].append(federation.error(weights))
    return errors


def _path(federation: Federation, local: Local, scale: Scale) -> list[float]:
    return [federation.error(weights) for weights in Rounds.together(federation, local).after(scale.rounds)]


def _gaps(errors: Trained) -> list[Cell]:
    """Per cent above the oracle on the same data; the paper's are of its printed means."""
    oracle = np.array(errors["Centralized"])
    published = {"One-Shot (Ours)": "0", "FedAvg-100": "3", "FedAvg-200": "2", "FedAvg-500": "2", "FedProx-200": "2"}
    rows = ((row, text, 100 * (np.array(errors[row]) / oracle - 1)) for row, text in published.items())
    return [_GAPS.cell(row, "gap", text, list(gaps), why=_CONVERGES, peer=row in _PEERS) for row, text, gaps in rows]


def _seconds(federation: Federation, scale: Scale) -> dict[str, float]:
    """Least time by row of Table II; empty where nothing is timed."""
    tasks = {
        "One-Shot (Ours)": partial(one_shot, federation),
        "FedAvg-100": partial(stepped, federation, FEDAVG, 100),
        "FedAvg-200": partial(stepped, federation, FEDAVG, 200),
        "FedAvg-500": partial(stepped, federation, FEDAVG, 500),
        "FedProx-200": partial(stepped, federation, FEDPROX, 200),
        "Centralized": partial(federation.oracle, PENALTY),
    }
    return least_seconds(tasks, scale.timed, time.process_time) if scale.timed else {}


def _megabytes(row: str, rounds: int, federation: Federation) -> float:
    """Uploads of all clients by the paper's Theorem 4, in doubles."""
    d = federation.features
    numbers = d * (d + 1) // 2 + d if row.startswith("One-Shot") else rounds * d
    return federation.clients * numbers * _DOUBLE / _MB


def _uploads(federation: Federation) -> list[Cell]:
    """What the clients of the library really send: the ring elements, bare and with all that masking needs."""
    plan = exact_plan(federation)
    parts, rng = measured(plan, federation), ps.randomness.seeded(0)
    sent = {
        "privstats, not masked": federation.clients * plan.ring.wire_bytes,
        "privstats, masked, all messages": sum(run(plan, parts, rng=rng).bytes_sent),
        "privstats, masked, one message": sum(run(one_message(plan, rng), parts, rng=rng).bytes_sent),
    }
    return [_TABLE_2.cell(row, "MB", None, number / _MB) for row, number in sent.items()]
