"""Secure aggregation among 1,000 and 10,000 clients: what was run, and what it extrapolates to at a million entries.

Run: python benchmarks/secagg_scale.py [--clients 1000 10000] [--json FILE]. 10,000 clients take some ten minutes and a
few GiB: every client's real code runs in this process.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from privstats.engines.scale import ScaleReport, measure_elements, measure_scale


def row(report: ScaleReport, large: int, cost: object) -> dict[str, object]:
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


def main() -> None:
    """Run the sizes asked for and print one column per cohort."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--size", type=int, default=1_000, help="vector entries that are really run")
    parser.add_argument("--large", type=int, default=1_000_000, help="vector entries to extrapolate to")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console, rows = Console(width=140), []
    cost = measure_elements()
    with Progress(console=console, transient=True) as bar:
        for clients in options.clients:
            tasks: dict[str, object] = {}

            def advance(step: str, done: int, total: int, tasks: dict = tasks) -> None:
                tasks.setdefault(step, bar.add_task(step, total=total) if step not in tasks else None)
                bar.update(tasks[step], completed=done)

            report = measure_scale(
                clients, size=options.size, dropouts=clients // 10, colluders=clients // 10, progress=advance
            )
            rows.append(row(report, options.large, cost))
    table = Table(title="Sparse graph, 10 % colluders, 10 % dropouts after sharing", title_justify="left")
    table.add_column("measured, then extrapolated ('at')")
    for each in rows:
        table.add_column(f"{each['clients']} clients", justify="right")
    for name in list(rows[0])[1:]:
        table.add_row(name, *(str(each[name]) for each in rows))
    console.print(table)
    console.print(
        f"Run: every client and the server at {options.size} entries. Extrapolated: masks at "
        f"{1e9 * cost.mask:.3f} ns and uploads at {1e9 * cost.upload:.3f} ns per element, measured now on this machine."
    )
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "cost": asdict(cost)}, indent=1))


if __name__ == "__main__":
    main()
