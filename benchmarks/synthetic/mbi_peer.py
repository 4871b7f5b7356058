"""AIM and MST on coded tables in a file: ``PYTHON mbi_peer.py JOBS.npz ROWS.npz``.

Needs nothing of this library. ``mbi AIM`` and ``mbi MST`` are the authors' mechanisms, from the folder ``mechanisms``
of a checkout of ``ryan112358/mbi`` (``PRIVSTATS_MBI_MECHANISMS``), for an interpreter with ``mbi``. ``OpenDP AIM`` and
``OpenDP MST`` are OpenDP's, for an interpreter with ``opendp[mbi]`` and pandas; a null counts in the first cell. Each
runs for one curator who sees all records, under zero-concentrated privacy with the same rho.
"""

import contextlib
import os
import sys
import time
from itertools import combinations
from typing import Any

import numpy as np

_BELOW = 1 - 2**-40
MODEL_MEGABYTES, FIT_STEPS = 1.0, 300
"""Limits of the authors' AIM: their 80 MB and 1,000 steps take hours on two cores."""


def main(jobs: str, out: str) -> None:
    """Draw as many rows as each ``codes`` has, once for each ``rho``."""
    found: dict[str, Any] = {}
    with np.load(jobs) as given:
        for place in range(sum(name.startswith("codes") for name in given)):
            codes, way = given[f"codes{place}"], str(given[f"way{place}"])
            sizes, rho, seed = given[f"sizes{place}"], float(given[f"rho{place}"]), int(given[f"seed{place}"])
            begun = time.perf_counter()
            draw = _opendp if way.startswith("OpenDP ") else _authors
            found[f"rows{place}"] = draw(codes, sizes, rho, way.split()[-1], seed)
            found[f"seconds{place}"] = time.perf_counter() - begun
    np.savez(out, **found)


def _authors(codes: Any, sizes: Any, rho: float, way: str, seed: int) -> Any:
    sys.path.insert(0, os.environ["PRIVSTATS_MBI_MECHANISMS"])
    import aim
    import mbi
    import mst

    names = [f"c{k}" for k in range(codes.shape[1])]
    domain = mbi.Domain(names, [int(size) for size in sizes])
    data = mbi.Dataset({name: codes[:, k] for k, name in enumerate(names)}, domain)
    np.random.seed(seed)  # both draw from numpy's global generator
    with contextlib.redirect_stdout(sys.stderr):
        if way == "AIM":
            mechanism = aim.AIM(1.0, 1e-6, max_model_size=MODEL_MEGABYTES, max_iters=FIT_STEPS)
            mechanism.rho = rho
            _, rows = mechanism.run(data, [(pair, 1.0) for pair in combinations(names, 2)], num_synth_rows=len(codes))
        else:
            mst.cdp_rho = lambda *_: rho
            rows = mst.MST(data, 1.0, 1e-6)
    columns = rows.to_dict()
    return np.column_stack([np.asarray(columns[name]) for name in names]).astype(np.int64)


def _opendp(codes: Any, sizes: Any, rho: float, way: str, seed: int) -> Any:
    """Return rows of OpenDP's algorithm; its noise has no seed.

    OpenDP 0.16 divides a part of rho among MST's selections and adds them up again, each sum rounded up. It refuses
    where that exceeds the part in the last digit: always for eight selections, often for others. So each division here
    is rounded down by 2^-40 of its value, in place of one last digit.
    """
    del seed
    import opendp.extras.mbi._mst
    import opendp.prelude

    dp: Any = opendp.prelude
    dp.enable_features("contrib")
    selections: Any = opendp.extras.mbi._mst
    selections.prior = lambda value: value * _BELOW
    algorithm = dp.mbi.AIM(queries=2) if way == "AIM" else dp.mbi.MST()
    return _table(dp, algorithm, codes, sizes, rho)


def _table(dp: Any, algorithm: Any, codes: Any, sizes: Any, rho: float) -> Any:
    import polars as pl

    names = [f"c{k}" for k in range(codes.shape[1])]
    keys = {name: list(range(int(size))) for name, size in zip(names, sizes, strict=True)}
    context = dp.Context.compositor(
        data=pl.LazyFrame({name: codes[:, k] for k, name in enumerate(names)}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    table = context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm).release()
    frame = table.synthesize(rows=len(codes))
    return np.column_stack([frame[name].fill_null(0).to_numpy() for name in names]).astype(np.int64)


if __name__ == "__main__":
    main(*sys.argv[1:])
