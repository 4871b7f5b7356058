"""Measure how a session between machines grows: parties in the simulation and as processes, requests, and a large
upload.

    python -m benchmarks.engines.scale [--quick] --save

Everything shares this machine's cores, so a step's seconds are those of all parties' work one after another; on
separate machines only the server's part grows. Requests are counted on a grid that answers nothing, by a clock that
only moves when the loop waits.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.supercore.task_identity import TaskIdentity

import privstats as ps
from benchmarks.engines.federation import over_flower, steps
from benchmarks.measuring import Row, Rows, Tables, command
from benchmarks.secagg.sessions import bits_of
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network.nodes import RequestQueue
from tests.engines.flower.simulated import simulation, study_of_many
from tests.engines.network.fake import Study, study_of

SIMULATED, PROCESSES = (50, 100), (10, 20)
UPLOADERS = 3
LARGE = ps.ClassSchema(100, 512, "NAS", clip_norm=2.0)
_SECONDS = ((0.0, 5.0), (5.0, 60.0))


class SilentGrid:
    """Flower's grid with so many nodes, none of which ever answers; it counts the requests to Flower."""

    def __init__(self, parties: int) -> None:
        self.requests, self._nodes = 0, [SimpleNamespace(node_id=place, name="") for place in range(parties)]

    def get_nodes(self) -> list[SimpleNamespace]:
        """All are online."""
        self.requests += 1
        return self._nodes

    def push_messages(self, messages: Sequence[Any]) -> list[str]:
        """All are taken."""
        return [str(id(message)) for message in messages]

    def pull_messages(self, _: Sequence[str]) -> list[Any]:
        """Nothing has come."""
        self.requests += 1
        return []


def requests(parties: int) -> Row:
    """Requests a second of a server whose parties are all silent: at first, and once nothing has come for a while."""
    for name in ("_task_id", "_run_id", "_node_id"):
        setattr(TaskIdentity, name, 1)  # Flower makes no message outside of a task
    grid, now = SilentGrid(parties), 0.0
    transport: Any = GridTransport(grid)  # type: ignore[arg-type]
    queue = RequestQueue(transport, lambda: now, 600.0, 4096)
    for node in range(parties):
        queue.ask(node, "step", lambda: b"")
    found = {}
    for start, end in _SECONDS:
        grid.requests = 0
        while now < end:
            transport.online()
            list(queue.replies())
            now += queue.pause
        found[f"{start:g} to {end:g} s"] = grid.requests / (end - start)
    return {"parties": parties, **found}


def grown(rows: Rows, parties: int) -> Rows:
    """A step's seconds, and its bytes of one party."""
    sizes = ("bytes up", "bytes down")
    kept = ({**row, **{f"{size} of a party": row[size] / parties for size in sizes}} for row in rows)
    return [{"parties": parties, **row} for row in kept]


def simulated(parties: int) -> Rows:
    """A session in Flower's simulation engine."""
    with tempfile.TemporaryDirectory() as folder:
        study = study_of_many(Path(folder), parties)
        with simulation(study, Path(folder)) as run:
            said = run()
        _require_release(study, said.stdout + said.stderr)
        return grown(list(steps(said.stdout, "interactive", "simulation")), parties)


def as_processes(parties: int) -> Rows:
    """A session with a node per party."""
    with tempfile.TemporaryDirectory() as folder:
        study = study_of_many(Path(folder), parties)
        ((said, _, _),) = over_flower(study, Path(folder) / "federation", 1)
        return grown(list(steps(said, "interactive", "processes")), parties)


def upload() -> Rows:
    """Three parties whose vectors have 13 million entries: megabytes a second of the step that carries them."""
    with tempfile.TemporaryDirectory() as folder:
        study = large_study(Path(folder))
        ((said, _, _),) = over_flower(study, Path(folder) / "federation", 1)
        found = list(steps(said, "interactive", "processes"))
    largest = max(found, key=lambda row: row["bytes up"])
    megabytes = largest["bytes up"] / 1e6
    named = {name: largest[name] for name in ("step", "seconds")}
    return [
        {
            "parties": UPLOADERS,
            "entries": study.plan.layout.size,
            "bits": bits_of(study.plan.ring),
            "MB of a party": megabytes / UPLOADERS,
            **named,
            "MB a second": megabytes / largest["seconds"],
            "seconds of the other steps": sum(row["seconds"] for row in found) - largest["seconds"],
        }
    ]


def large_study(place: Path) -> Study:
    """A study of N, A and S of 100 classes with 512 features."""
    cohort = ps.Cohort(clients=UPLOADERS, min_survivors=UPLOADERS, max_records=100_000)
    study = study_of(place, names=[f"party {each}" for each in range(UPLOADERS)], schema=LARGE, cohort=cohort)
    for place_, rng in enumerate(np.random.default_rng(0).spawn(UPLOADERS)):
        X = rng.normal(size=(300, LARGE.features)) / LARGE.features**0.5
        np.savez(study.home(place_) / "records.npz", X=X, y=np.arange(300) % LARGE.classes)
    return study


def _require_release(study: Study, said: str) -> None:
    if not (study.host / "release.safetensors").exists():
        raise SystemExit(f"the session has no release: {said[-3000:]}")


def tables(options: argparse.Namespace) -> Tables:
    """All tables of this benchmark; the quick form starts no process."""
    yield "requests a second to Flower while all parties are silent", [requests(n) for n in (5, 20, 50, 100)]
    if not options.quick:
        yield "steps in the simulation", _all(simulated, SIMULATED)
        yield "a large upload", upload()
        yield "steps as processes", _all(as_processes, PROCESSES)


def _all(session: Any, sizes: Sequence[int]) -> Rows:
    def rows() -> Iterator[Row]:
        for parties in sizes:
            yield from session(parties)

    return list(rows())


if __name__ == "__main__":
    command("engines.scale", __doc__ or "", tables)
