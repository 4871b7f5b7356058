"""Sessions of both protocols as they grow, in parties and in entries: processor seconds and bytes of every party.

    OMP_NUM_THREADS=1 python -m benchmarks.secagg.how_big --save

Real machines over the loopback, entries of 32 bits, one helper in the one upload, a tenth of the clients gone. What was
not run follows from these by the rule of ``growth``, which is printed beside them.
"""

from __future__ import annotations

import argparse

from benchmarks.measuring import Row, Tables, command
from benchmarks.secagg.growth import checked
from benchmarks.secagg.large_cohorts import measure_elements
from benchmarks.secagg.upload import interactive, split
from privstats.encoding import Ring

_MANY = 1_000
_COMMON = (
    *((10, 10_000), (10, 1_000_000), (10, 10_000_000)),
    *((20, 1_000_000), (20, 10_000_000)),
    *((100, 10_000), (100, 1_000_000)),
)
RUN = {"interactive": (*_COMMON, (1_000, 10_000)), "split": (*_COMMON, (1_000, 10_000), (10_000, 10_000))}
QUICK = {"interactive": ((10, 100), (10, 400)), "split": ((10, 100), (10, 400))}


def options(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--repeats", type=int, default=2, help="of sessions of fewer than 1,000 parties")


def tables(chosen: argparse.Namespace) -> Tables:
    """What was run, and the rule against those of the runs that it was not fitted to."""
    run = QUICK if chosen.quick else RUN
    rows = [_interactive(*each, _repeats(each, chosen)) for each in run["interactive"]]
    rows += [_split(*each, _repeats(each, chosen)) for each in run["split"]]
    yield "measured here", rows
    mask = measure_elements(size=10_000 if chosen.quick else 1_000_000).mask
    yield "one mask of one entry, nanoseconds", [{"bits": "32", "ns": 1e9 * mask}]
    if not chosen.quick:
        for protocol in RUN:
            yield f"the rule against runs that it was not fitted to: {protocol}", checked(rows, protocol, mask)


def _repeats(size: tuple[int, int], chosen: argparse.Namespace) -> int:
    """Once for a thousand parties: their times are medians or sums of many."""
    return 1 if size[0] >= _MANY else int(chosen.repeats)


def _interactive(clients: int, entries: int, repeats: int) -> Row:
    row = min(
        (interactive(clients, Ring(((entries, 32),))) for _ in range(repeats)), key=lambda row: float(row["all_s"])
    )
    return _row("interactive", clients, entries, row)


def _split(clients: int, entries: int, repeats: int) -> Row:
    return _row("split", clients, entries, split(clients, Ring(((entries, 32),)), 1, repeats))


def _row(protocol: str, clients: int, entries: int, row: Row) -> Row:
    return {
        "protocol": protocol,
        "clients": clients,
        "entries": entries,
        "bits": row["bits"],
        "client": row["client_ms"] / 1e3,
        "server": row["server_s"],
        "helper": row["helper_s"] or 0.0,
        "sent": row["upload_bytes"],
    }


if __name__ == "__main__":
    command("secagg.how_big", __doc__, tables, options)
