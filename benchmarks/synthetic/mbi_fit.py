"""mbi's fit under noisy tables: ``PYTHON mbi_fit.py TABLES.npz FITTED.npz``, for an interpreter with ``mbi``."""

import sys
import time
from typing import Any

import numpy as np

STEPS = 1_000
"""Of mirror descent, as the authors' mechanisms take."""


def main(tables: str, out: str) -> None:
    """Fit once, and write the fitted counts of each table, and the seconds."""
    import mbi
    from mbi import estimation

    with np.load(tables) as given:
        count = sum(name.startswith("counts") for name in given)
        cliques = [tuple(f"c{k}" for k in given[f"variables{place}"]) for place in range(count)]
        counts = [given[f"counts{place}"] for place in range(count)]
        sigmas, sizes = [float(sigma) for sigma in given["sigmas"]], [int(size) for size in given["sizes"]]
    domain = mbi.Domain([f"c{k}" for k in range(len(sizes))], sizes)
    given_tables = zip(counts, cliques, sigmas, strict=True)
    measured = [mbi.LinearMeasurement(table.ravel(), clique, stddev=sigma) for table, clique, sigma in given_tables]
    begun = time.perf_counter()
    model = estimation.MirrorDescent().estimate(domain, measured, iters=STEPS)
    found: dict[str, Any] = {
        f"fitted{place}": np.asarray(model.project(clique).datavector()) for place, clique in enumerate(cliques)
    }
    np.savez(out, **found, seconds=time.perf_counter() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
