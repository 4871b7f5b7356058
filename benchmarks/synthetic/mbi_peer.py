"""OpenDP's AIM and MST on coded tables in a file: ``PYTHON mbi_peer.py ASKED.npz TOLD.npz``.

For an interpreter with ``opendp[mbi]``; nothing of this library is needed there. Both run for one curator who sees all
records, under zero-concentrated privacy.
"""

import math
import sys
import time
from typing import Any

import numpy as np

_STEPS = 1 << 12


def main(asked: str, told: str) -> None:
    """Draw as many rows as each ``codes`` has, once for each ``rho``."""
    out: dict[str, Any] = {}
    with np.load(asked) as given:
        for place in range(sum(name.startswith("codes") for name in given)):
            codes, begun = given[f"codes{place}"], time.perf_counter()
            table = released(codes, given[f"sizes{place}"], float(given[f"rho{place}"]), str(given[f"way{place}"]))
            frame = table.synthesize(rows=len(codes))
            names = [f"c{k}" for k in range(codes.shape[1])]
            drawn = np.column_stack([frame[name].fill_null(0).to_numpy() for name in names])
            out[f"rows{place}"] = drawn.astype(np.int64)
            out[f"seconds{place}"] = time.perf_counter() - begun
    np.savez(told, **out)


def released(codes: Any, sizes: Any, rho: float, way: str) -> Any:
    """Return the released tables.

    OpenDP 0.16 refuses MST where rounding makes the parts of rho exceed it: rho is cut to twelve bits, and an eighth of
    it, in place of a tenth, selects the pairs.
    """
    import opendp.prelude
    import polars as pl

    dp: Any = opendp.prelude
    dp.enable_features("contrib")
    names = [f"c{k}" for k in range(codes.shape[1])]
    keys = {name: list(range(int(size))) for name, size in zip(names, sizes, strict=True)}
    mantissa, exponent = math.frexp(rho)
    spent = math.ldexp(math.floor(mantissa * _STEPS) / _STEPS, exponent)
    context = dp.Context.compositor(
        data=pl.LazyFrame({name: codes[:, k] for k, name in enumerate(names)}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=spent),
    )
    algorithm = dp.mbi.AIM() if way == "AIM" else dp.mbi.MST(measure_split=0.875)
    return context.query(rho=spent).contingency_table(keys=keys, algorithm=algorithm).release()


if __name__ == "__main__":
    main(*sys.argv[1:])
