"""Tables IV and VII: what a client uploads as features grow, and what random projections lose and save.

Bytes of the paper's own formula (Theorem 4) beside those it prints, and beside what a client of the library sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

import privstats as ps
from benchmarks.measuring import Rows
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.ridge.baselines import FEDAVG, Rounds
from benchmarks.papers.ridge.data import Federation
from benchmarks.papers.ridge.library import exact_plan, measured, weights_of
from benchmarks.papers.ridge.scale import PAPER, TRIALS, Scale
from privstats.transforms import GaussianProjection
from privstats.workflows.simulate import run

__all__ = ["TABLE_4", "TABLE_7", "communication", "projections"]

TABLE_4 = Sheet(PAPER, "Table IV", "uploads per client, MB")
TABLE_7 = Sheet(PAPER, "Table VII", "random projections at d = 1000, K = 20", better="lower", trials=TRIALS)

_DOUBLE, _MB = 8, 1e6
_ROUNDS = 200
_WIDE = 1000

_PUBLISHED_4: Mapping[int, tuple[str, str, str, str]] = {
    50: ("0.02", "1.60", "80", "98.7"),
    100: ("0.08", "3.20", "40", "97.5"),
    200: ("0.32", "6.40", "20", "95.0"),
    400: ("1.28", "12.80", "10", "90.0"),
}
_PUBLISHED_7: Mapping[int, tuple[str, str, str, str, str]] = {
    50: ("0.0185", "+85", "0.02", "200", "4000"),
    100: ("0.0142", "+42", "0.08", "50", "1000"),
    200: ("0.0118", "+18", "0.32", "12.5", "250"),
    400: ("0.0105", "+5", "1.28", "3.1", "62"),
    600: ("0.0101", "+1", "2.88", "1.4", "28"),
    800: ("0.0100", "<1", "5.12", "0.78", "16"),
    1000: ("0.0100", "0", "8.00", "0.5", "10"),
}
_SQUARE = "printed are d x d doubles; Theorem 4 counts d (d + 1) / 2 + d"
_TOGETHER = "printed is the sum over 20 clients, though the column says per client"
_UNLIKE = "printed is one client's matrix against the uploads of 20"
_LOST_SIGNAL = "a projection to m of d directions keeps about m / d of the target's variance, whose rest is error"
_DEGREES = "with 8,000 records and 1,000 features the least expected MSE is about .0114"
_SAME = "200 rounds end where the exact solution is"
_NO_BYTES = "200 rounds of 1,000 doubles are 1.60 MB a client; 4.00 are 500 rounds"
_TENFOLD = "the exact upload is 8 MB, so printed ratios are ten times too large"
_BOTH = "follows from the bytes"


def communication(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Table IV. A client's messages are measured in a masked session of ten."""
    cells: list[Cell] = []
    for d in scale.dimensions:
        ours, fedavg = _doubles(d), _ROUNDS * d * _DOUBLE / _MB
        published = _PUBLISHED_4[d]
        row = f"{d}"
        cells += [
            TABLE_4.cell(row, "One-Shot", published[0], ours, why=_SQUARE),
            TABLE_4.cell(row, "FedAvg-200", published[1], fedavg, why=_TOGETHER),
            TABLE_4.cell(row, "ratio", published[2], fedavg / ours, why=_UNLIKE),
            TABLE_4.cell(row, "savings, %", published[3], 100 * (1 - ours / fedavg), why=_UNLIKE),
        ]
        bare, masked = _sent(d)
        cells += [
            TABLE_4.cell(row, "privstats, not masked", None, bare),
            TABLE_4.cell(row, "privstats, masked, all messages", None, masked),
        ]
    yield TABLE_4.rows(cells)


def projections(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Table VII; the last row is FedAvg."""
    federations = [Federation.draw(seed, d=_WIDE) for seed in scale.wide_seeds]
    exact = [_projected(federation, _WIDE) for federation in federations]
    cells: list[Cell] = []
    for m in scale.widths:
        mse, change, megabytes, fedavg, whole = _PUBLISHED_7[m]
        errors = exact if m == _WIDE else [_projected(federation, m) for federation in federations]
        rises = [100 * (error / least - 1) for error, least in zip(errors, exact, strict=True)]
        why = _DEGREES if m == _WIDE else _LOST_SIGNAL
        row, ours = f"{m}", _doubles(m)
        cells += [
            TABLE_7.cell(row, "MSE", mse, errors, why=why),
            TABLE_7.cell(row, "change, %", change, rises, why=why),
            TABLE_7.cell(row, "MB", megabytes, ours, why=_SQUARE),
            TABLE_7.cell(row, "vs FedAvg", fedavg, _ROUNDS * _WIDE * _DOUBLE / _MB / ours, why=_BOTH),
            TABLE_7.cell(row, "vs Exact", whole, _doubles(_WIDE) / ours, why=_TENFOLD),
        ]
    if scale.wide_rounds:
        cells += _fedavg(federations, exact, scale)
    yield TABLE_7.rows(cells)


def _doubles(d: int) -> float:
    """MB of a client's upload by Theorem 4."""
    return (d * (d + 1) // 2 + d) * _DOUBLE / _MB


def _sent(d: int) -> tuple[float, float]:
    """MB that a client of the library sends: the bare vector, and all its messages under masks."""
    federation = Federation.draw(0, d=d)
    plan = exact_plan(federation)
    session = run(plan, measured(plan, federation), rng=ps.randomness.seeded(0))
    return plan.ring.wire_bytes / _MB, float(np.mean(session.bytes_sent)) / _MB


def _projected(federation: Federation, m: int) -> float:
    """Test MSE with the projection in the plan; at full width without one."""
    if m == federation.features:
        plan = exact_plan(federation)
        return federation.error(weights_of(ps.session.aggregate_unmasked(plan, measured(plan, federation))))
    projection = GaussianProjection(seed=0, inputs=federation.features, features=m)
    plan = exact_plan(federation, transform=(projection,), features=m)
    weights = weights_of(ps.session.aggregate_unmasked(plan, measured(plan, federation)))
    return float(np.square(federation.y_test - projection.apply(federation.X_test) @ weights).mean())


def _fedavg(federations: list[Federation], exact: list[float], scale: Scale) -> list[Cell]:
    errors = []
    for federation in federations:
        (weights,) = Rounds.together(federation, FEDAVG).after([scale.wide_rounds])
        errors.append(federation.error(weights))
    rises = [100 * (error / least - 1) for error, least in zip(errors, exact, strict=True)]
    megabytes = scale.wide_rounds * _WIDE * _DOUBLE / _MB
    return [
        TABLE_7.cell("FedAvg", "MSE", "0.0103", errors, why=_DEGREES, peer=True),
        TABLE_7.cell("FedAvg", "change, %", "+3", rises, why=_SAME, peer=True),
        TABLE_7.cell("FedAvg", "MB", "4.00", megabytes, why=_NO_BYTES, peer=True),
    ]
