"""OpenDP's AIM and MST on coded tables in a file: ``PYTHON mbi_peer.py ASKED.npz TOLD.npz``.

For an interpreter with ``opendp[mbi]``; nothing of this library is needed there. Both run for one curator who sees all
records, under zero-concentrated privacy.
"""

import sys
import time
from typing import Any

import numpy as np


def main(asked: str, told: str) -> None:
    """Draw as many rows as each ``codes`` has, once for each ``rho``."""
    import opendp.prelude
    import polars as pl

    dp: Any = opendp.prelude
    dp.enable_features("contrib")
    out: dict[str, Any] = {}
    with np.load(asked) as given:
        for place in range(sum(name.startswith("codes") for name in given)):
            codes, sizes, way = given[f"codes{place}"], given[f"sizes{place}"], str(given[f"way{place}"])
            names = [f"c{k}" for k in range(codes.shape[1])]
            rho, begun = float(given[f"rho{place}"]), time.perf_counter()
            context = dp.Context.compositor(
                data=pl.LazyFrame({name: codes[:, k] for k, name in enumerate(names)}),
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(rho=rho),
            )
            algorithm = dp.mbi.AIM() if way == "AIM" else dp.mbi.MST()
            keys = {name: list(range(int(size))) for name, size in zip(names, sizes, strict=True)}
            table = context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm).release()
            frame = table.synthesize(rows=len(codes))
            drawn = np.column_stack([frame[name].fill_null(0).to_numpy() for name in names])
            out[f"rows{place}"] = drawn.astype(np.int64)
            out[f"seconds{place}"] = time.perf_counter() - begun
    np.savez(told, **out)


if __name__ == "__main__":
    main(*sys.argv[1:])
