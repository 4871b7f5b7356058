"""How many neighbours a sparse graph needs, and with what probability each promise fails: exact tails, no timing.

python -m benchmarks.secagg.graphs --save
"""

from __future__ import annotations

import argparse

from benchmarks.measuring import Row, Tables, command
from privstats.secagg.interactive.random_graph import solve_sparse


def tables(options: argparse.Namespace) -> Tables:
    """Sparse, then robust, by number of clients; a tenth collude and a tenth drop."""
    sizes = (100,) if options.quick else (100, 1_000, 10_000)
    yield "10 % collude, 10 % drop", [row(clients, robust) for robust in (False, True) for clients in sizes]


def row(clients: int, robust: bool) -> Row:
    """The smallest graph and log2 of its failure probabilities; null where nothing can fail."""
    graph = solve_sparse(clients, min_survivors=clients * 9 // 10, colluders=clients // 10, robust=robust)
    return {
        "clients": clients,
        "graph": "robust" if robust else "sparse",
        "k": graph.neighbours,
        "t": graph.threshold,
        **{f"log2 {name}": bound for name, bound in vars(graph.bounds).items()},
    }


if __name__ == "__main__":
    command("secagg.graphs", __doc__, tables)
