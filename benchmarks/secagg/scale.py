"""Secure aggregation among 1,000 and 10,000 clients: what was run, and what it extrapolates to at a million entries.

    python -m benchmarks.secagg.scale [--clients 1000 10000] --save
    python -m benchmarks.secagg.scale --clients 1000 --size 1000000 --save

10,000 clients take some twenty minutes, and 1,000 of a million entries 5 GiB: every client's real code runs in this
process. Saved rows of other cohorts and sizes are kept.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.progress import Progress, TaskID

from benchmarks.measuring import Row, Tables, command, results
from benchmarks.secagg.large_cohorts import ElementCost, ScaleReport, measure_elements, measure_scale

TITLE = "sparse graph, 10 % colluders, 10 % dropouts after sharing"


def row(report: ScaleReport, large: int, cost: ElementCost) -> Row:
    """Measured columns first, extrapolated ones after them."""
    parameters, estimate = report.parameters, report.at(large, cost)
    bounds = parameters.bounds
    return {
        "clients": parameters.clients,
        "k": parameters.neighbours,
        "t": parameters.threshold,
        "log2 connectivity": round(bounds.connectivity, 1),
        "log2 privacy": round(bounds.privacy, 1),
        "log2 liveness": round(bounds.liveness, 1),
        "log2 lying server": round(bounds.lying_server, 1),
        "size run": parameters.ring.size,
        "client ms": round(1e3 * report.client_cpu, 1),
        "server s": round(report.server_cpu, 2),
        "sent KiB": round(report.client_bytes_sent / 1024, 1),
        "received KiB": round(report.client_bytes_received / 1024, 1),
        "server state KiB per client": round(report.server_state_bytes / 1024 / parameters.clients, 1),
        "wall s": round(report.seconds, 1),
        f"client ms at {large:.0e}": round(1e3 * estimate.client_cpu, 1),
        f"server s at {large:.0e}": round(estimate.server_cpu, 1),
        f"sent MiB at {large:.0e}": round(estimate.client_bytes_sent / 2**20, 2),
    }


def options(parser: argparse.ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--clients", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--size", type=int, default=1_000, help="vector entries that are really run")
    parser.add_argument("--large", type=int, default=1_000_000, help="vector entries to extrapolate to")


def tables(chosen: argparse.Namespace) -> Tables:
    """One row per cohort and size, then the cost per element that the last extrapolation used."""
    if chosen.quick:
        chosen.clients, chosen.size = [40], 100
    cost = measure_elements(size=10_000 if chosen.quick else 1_000_000)
    rows = [] if chosen.quick else results("secagg.scale")[TITLE]
    found = {(each["clients"], each["size run"]): each for each in rows}
    for clients in chosen.clients:
        found[clients, chosen.size] = row(measured(clients, chosen.size), chosen.large, cost)
    yield TITLE, [found[key] for key in sorted(found)]
    yield (
        "cost per element, ns",
        [{"mask": 1e9 * cost.mask, "upload": 1e9 * cost.upload, "lane bytes": cost.lane_bytes}],
    )


def measured(clients: int, size: int) -> ScaleReport:
    """One session of real machines, with a progress bar per step."""
    with Progress(console=Console(stderr=True), transient=True) as bar:
        steps: dict[str, TaskID] = {}

        def advance(step: str, done: int, total: int) -> None:
            if step not in steps:
                steps[step] = bar.add_task(step, total=total)
            bar.update(steps[step], completed=done)

        gone = clients // 10
        return measure_scale(clients, size=size, dropouts=gone, colluders=gone, progress=advance)


if __name__ == "__main__":
    command("secagg.scale", __doc__, tables, options)
