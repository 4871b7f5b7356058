"""AIM and MST on coded tables in a file: ``PYTHON mbi_peer.py JOBS.npz ROWS.npz``.

Needs nothing of this library. ``mbi AIM`` and ``mbi MST`` are the authors' mechanisms, from the folder ``mechanisms``
of a checkout of ``ryan112358/mbi`` (``PRIVSTATS_MBI_MECHANISMS``), for an interpreter with ``mbi``. ``OpenDP AIM`` and
``OpenDP MST`` are OpenDP's, for an interpreter with ``opendp[mbi]`` and pandas; a null counts in the first cell. Each
runs for one curator who sees all records, under zero-concentrated privacy with the same rho.
"""

import contextlib
import math
import os
import sys
import time
from itertools import combinations
from typing import Any

import numpy as np

_STEPS = 1 << 12
_SPLITS = (0.875, 0.9, 0.88, 0.87, 0.86, 0.85, 0.89, 0.91)
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

    OpenDP 0.16 refuses MST where rounding makes the parts of rho exceed it. So rho is cut to twelve bits, and the first
    of a few parts of it for the measurements that is not refused is used.
    """
    del seed
    import opendp.prelude

    dp: Any = opendp.prelude
    dp.enable_features("contrib")
    if way == "AIM":
        return _table(dp, dp.mbi.AIM(queries=2), codes, sizes, rho)
    for split in _SPLITS:
        try:
            return _table(dp, dp.mbi.MST(measure_split=split), codes, sizes, rho)
        except dp.OpenDPException as refused:
            if "insufficient budget" not in str(refused):
                raise
    raise RuntimeError("OpenDP refuses rho in every split: add another one to _SPLITS")


def _table(dp: Any, algorithm: Any, codes: Any, sizes: Any, rho: float) -> Any:
    import polars as pl

    names = [f"c{k}" for k in range(codes.shape[1])]
    keys = {name: list(range(int(size))) for name, size in zip(names, sizes, strict=True)}
    mantissa, exponent = math.frexp(rho)
    spent = math.ldexp(math.floor(mantissa * _STEPS) / _STEPS, exponent)
    context = dp.Context.compositor(
        data=pl.LazyFrame({name: codes[:, k] for k, name in enumerate(names)}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=spent),
    )
    table = context.query(rho=spent).contingency_table(keys=keys, algorithm=algorithm).release()
    frame = table.synthesize(rows=len(codes))
    return np.column_stack([frame[name].fill_null(0).to_numpy() for name in names]).astype(np.int64)


if __name__ == "__main__":
    main(*sys.argv[1:])
