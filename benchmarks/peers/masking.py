"""Masking one vector of some parties: Flower's SecAgg+ as it comes, and both protocols here, byte for byte.

Flower's own workflow and client mod, driven by ``grid``; ours over the loopback. Nobody vanishes, every pair masks. The
vector is integers, which ours sums exactly; SecAgg+ rounds them at random to steps of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.client import NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from numpy.typing import NDArray

from benchmarks.measuring import Row, Rows
from benchmarks.peers.grid import PARTY, InProcess, quiet
from benchmarks.secagg.sessions import cohort
from benchmarks.secagg.upload import Uploads
from privstats.encoding import Ring
from privstats.engines import loopback

__all__ = ["WAYS", "Masked", "interactive", "masked", "secagg_plus", "split"]

_FEWEST, _COLLUDING = 0.75, 0.25
"""Shares of the parties whose vectors have to be there, and who may work with the server."""
_LARGEST = 50  # of an entry


@dataclass(frozen=True)
class Masked:
    """One session.

    Attributes:
        bytes: what all parties, and a helper, sent and received.
        error: largest error of an entry of the sum.
    """

    bytes: int
    error: float


def masked(parties: int, size: int, repeats: int) -> Rows:
    """A row per protocol: bytes, processor seconds of everybody (the least of repeats), largest error of the sum."""
    rows: list[Row] = []
    for name, way in WAYS.items():
        runs, seconds = [], []
        for _ in range(repeats):
            began = time.process_time()
            runs.append(way(parties, size))
            seconds.append(time.process_time() - began)
        share = runs[0].bytes / (4 * size * parties)
        row = {"protocol": name, "entries": size, "bytes": runs[0].bytes, "bytes over those of the vectors": share}
        rows.append({**row, "seconds": min(seconds), "largest error": max(run.error for run in runs)})
    return rows


def secagg_plus(parties: int, size: int) -> Masked:
    """Flower's four stages, with a threshold of three quarters as ours; floats up to the largest entry."""
    values = _values(parties, size)

    class Vector(NumPyClient):
        """A client whose update is its vector; all weigh the same."""

        def __init__(self, place: int) -> None:
            self.place = place

        def fit(self, parameters: Any, config: Any) -> Any:  # noqa: ARG002 - nothing is trained
            return [values[self.place].astype(np.float64)], 1, {}

    def client(context: Context) -> Any:
        return Vector(int(context.node_config[PARTY])).to_client()

    with quiet():
        grid = InProcess(ClientApp(client, mods=[secaggplus_mod]), parties)
        context = _context(grid)
        workflow = SecAggPlusWorkflow(1.0, _FEWEST, max_weight=1.0, clipping_range=float(_LARGEST))
        logging.disable()  # its stages ask a deprecated helper for each message
        try:
            workflow(grid, context)
        finally:
            logging.disable(logging.NOTSET)
    (mean,) = context.state.array_records[MAIN_PARAMS_RECORD].to_numpy_ndarrays()
    return Masked(grid.sent, float(np.abs(parties * mean - values.sum(axis=0)).max()))


def _context(grid: InProcess) -> LegacyContext:
    """What Flower's default workflow prepares for a round of fitting, without a thread that watches for nodes."""
    context = LegacyContext(Context(0, 0, {}, RecordDict(), {}), strategy=FedAvg(fraction_evaluate=0.0))
    for node in grid.get_node_ids():
        context.client_manager.register(GridClientProxy(node, grid, 0))
    context.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    context.state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord()  # so that no model goes down
    return context


def interactive(parties: int, size: int) -> Masked:
    """Five messages, no trusted server."""
    server, machines, values, _ = cohort(
        parties, Ring(((size, 32),)), int(_FEWEST * parties), int(_COLLUDING * parties)
    )
    outcome = loopback.run(server, machines)
    error = np.abs(outcome.total.lift() - np.sum(values, axis=0)).max()
    return Masked(sum(outcome.bytes_sent) + sum(outcome.bytes_received), float(error))


def split(parties: int, size: int) -> Masked:
    """One message to a leader and a helper."""
    made = Uploads(parties, 1, Ring(((size, 32),)))
    made.clients = 0  # its sum leaves out the first tenth, who are silent there; here everybody speaks
    machines = [made.client(place) for place in range(parties)]
    outcome = loopback.run(made.leader, machines, helpers=made.members)
    sent = (outcome.bytes_sent, outcome.bytes_received, outcome.helper_sent, outcome.helper_received)
    return Masked(sum(map(sum, sent)), float(np.abs(outcome.total.lift() - made.values).max()))


WAYS: Mapping[str, Callable[[int, int], Masked]] = {
    "SecAgg+ (Flower)": secagg_plus,
    "interactive": interactive,
    "split, one helper": split,
}


def _values(parties: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(-_LARGEST, _LARGEST, (parties, size))
